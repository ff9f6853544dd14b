#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::machine_approver::judge::LONGEST;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequestSpec, CertificateSigningRequestStatus};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, PublicKeyData, SanType,
};
use seedling_types::admission::{Issued, Spent, digest_of};
use seedling_types::csr::{CLIENT_SIGNER, SERVING_SIGNER};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// The key that master-1's certificate is for.
static MASTER_1: LazyLock<KeyPair> = LazyLock::new(|| KeyPair::generate().unwrap());

pub(super) const HOSTS: &str = "hosts:\n\
    - {name: bootstrap, role: bootstrap, mac: '52:54:00:00:00:01', address: 192.168.126.10}\n\
    - {name: master-0, role: master, mac: '52:54:00:00:00:02', address: 192.168.126.11}\n\
    - {name: master-1, role: master, mac: '52:54:00:00:00:03', address: 192.168.126.12}\n\
    - {name: master-2, role: master, mac: '52:54:00:00:00:05', address: 192.168.126.13}\n\
    - {name: worker-0, role: worker, mac: '52:54:00:00:00:04', address: 192.168.126.21}\n";
const BOOTSTRAPPER: &str = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper";
const BOOTSTRAPPER_GROUPS: [&str; 3] = [
    "system:serviceaccounts:openshift-machine-config-operator",
    "system:serviceaccounts",
    "system:authenticated",
];
const NODE_GROUPS: [&str; 2] = ["system:nodes", "system:authenticated"];

/// Who asks for what; a hostile case changes one thing of an honest one.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) signer: &'static str,
    pub(super) username: &'static str,
    pub(super) groups: Vec<&'static str>,
    pub(super) usages: Vec<&'static str>,
    pub(super) subject: Vec<(DnType, &'static str)>,
    pub(super) dns: Vec<&'static str>,
    pub(super) ips: Vec<&'static str>,
    pub(super) other: Vec<SanType>,
    pub(super) extended: Vec<ExtendedKeyUsagePurpose>,
    pub(super) raw: Option<String>,
    pub(super) condition: Option<&'static str>,
    /// The same seed gives the same key.
    pub(super) key: Option<&'static KeyPair>,
}

pub(super) fn first(node: &'static str) -> Case {
    Case {
        signer: CLIENT_SIGNER,
        username: BOOTSTRAPPER,
        groups: BOOTSTRAPPER_GROUPS.into(),
        usages: vec!["digital signature", "client auth"],
        subject: vec![(DnType::OrganizationName, "system:nodes"), (DnType::CommonName, node)],
        dns: vec![],
        ips: vec![],
        other: vec![],
        extended: vec![],
        raw: None,
        condition: None,
        key: None,
    }
}

fn renewal(node: &'static str) -> Case {
    Case { username: node, groups: NODE_GROUPS.into(), ..first(node) }
}

pub(super) fn serving(node: &'static str) -> Case {
    Case {
        signer: SERVING_SIGNER,
        usages: vec!["digital signature", "server auth"],
        dns: vec!["master-0"],
        ips: vec!["192.168.126.11"],
        ..renewal(node)
    }
}

pub(super) fn request(case: &Case) -> CertificateSigningRequest {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for (kind, value) in &case.subject {
        params.distinguished_name.push(kind.clone(), *value);
    }
    params.subject_alt_names = (case.dns.iter().map(|n| SanType::DnsName((*n).try_into().unwrap())))
        .chain(case.ips.iter().map(|i| SanType::IpAddress(i.parse().unwrap())))
        .chain(case.other.clone())
        .collect();
    params.extended_key_usages = case.extended.clone();
    let made = KeyPair::generate().unwrap();
    let pem = params.serialize_request(case.key.unwrap_or(&made)).unwrap().pem().unwrap();
    let strings = |list: &[&str]| Some(list.iter().map(ToString::to_string).collect());
    let condition =
        |kind: &str| CertificateSigningRequestCondition { type_: kind.into(), ..Default::default() };
    CertificateSigningRequest {
        spec: CertificateSigningRequestSpec {
            request: ByteString(case.raw.clone().unwrap_or(pem).into_bytes()),
            signer_name: case.signer.into(),
            username: Some(case.username.into()),
            groups: strings(&case.groups),
            usages: strings(&case.usages),
            ..Default::default()
        },
        status: case.condition.map(|kind| CertificateSigningRequestStatus {
            conditions: Some(vec![condition(kind)]),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// master-1 has its certificate, for [`MASTER_1`]; master-2 is in the inventory, but was given no token; the others are to come.
pub(super) fn admission() -> Admission {
    let issued = |spent| Issued { sha256: "d".into(), spent };
    let key = digest_of(&MASTER_1.subject_public_key_info());
    let spent = Some(Spent { at: "2026-11-16T00:00:00Z".into(), key });
    let nodes = [("master-0", None), ("worker-0", None), ("master-1", spent)];
    Admission { open: false, nodes: nodes.map(|(name, spent)| (name.into(), issued(spent))).into() }
}

fn verdict_of(case: &Case, admission: &Admission) -> Verdict {
    let (inventory, domain) = (Inventory::parse(HOSTS).unwrap(), ClusterDomain("ocp4.example.com".into()));
    let nodes = BTreeSet::from(["master-1".to_string()]);
    judge(&request(case), &Known { inventory: &inventory, domain: &domain, nodes: &nodes, admission })
}

fn verdict(case: &Case) -> Verdict {
    verdict_of(case, &admission())
}

#[test]
fn machines_of_the_inventory_get_their_certificates() {
    let rsa = vec!["digital signature", "key encipherment", "client auth"];
    for case in [
        first("system:node:master-0"),
        first("system:node:worker-0"),
        Case { usages: rsa, ..first("system:node:master-0") },
    ] {
        let key = match verdict(&case) {
            Verdict::ApproveFirst { node, key } if case.subject[1].1.ends_with(&node) => key,
            other => panic!("{:?}: {other:?}", case.subject),
        };
        assert_eq!(key.len(), 64);
    }
    for case in [
        // Killed after its request was approved: the kubelet kept the key and asks again.
        Case { key: Some(&MASTER_1), ..first("system:node:master-1") },
        renewal("system:node:master-0"),
        // Its Node exists: that is what a renewal is.
        renewal("system:node:master-1"),
        serving("system:node:master-0"),
        Case { dns: vec!["master-0", "master-0.ocp4.example.com"], ..serving("system:node:master-0") },
        Case { ips: vec![], ..serving("system:node:master-0") },
    ] {
        assert_eq!(verdict(&case), Verdict::Approve, "{} {:?}", case.username, case.subject);
    }
}

#[test]
fn nobody_else_does() {
    let (m0, m1) = ("system:node:master-0", "system:node:master-1");
    let subject = |list: &[(DnType, &'static str)]| list.to_vec();
    let (o, cn, ou) = (DnType::OrganizationName, DnType::CommonName, DnType::OrganizationalUnitName);
    let email = SanType::Rfc822Name("a@b.c".try_into().unwrap());
    let uri = SanType::URI("spiffe://x".try_into().unwrap());
    let pem = String::from_utf8(request(&first(m0)).spec.request.0).unwrap();
    let twice = pem.repeat(2);
    let certificate = pem.replace("CERTIFICATE REQUEST", "CERTIFICATE");
    let trailing = format!("{pem}rm -rf /\n");
    let huge = format!("{pem}{}", " ".repeat(LONGEST));
    let cases = [
        ("a stranger", first("system:node:evil"), "no master or worker"),
        ("the bootstrap machine", first("system:node:bootstrap"), "no master or worker"),
        ("a name like another's", first("system:node:master-0.evil"), "no master or worker"),
        ("not a node", first("system:admin"), "not a node's name"),
        ("a second key for a node", first(m1), "another key since 2026-11-16T00:00:00Z"),
        ("a node without a token", first("system:node:master-2"), "seedling node reissue master-2"),
        (
            "another node with master-1's key",
            Case { key: Some(&MASTER_1), ..first("system:node:evil") },
            "no master or worker",
        ),
        ("no node at all", first("system:node:"), "no master or worker"),
        ("a name in capitals", first("system:node:MASTER-0"), "no master or worker"),
        ("a name with a space", first("system:node:master-0 "), "no master or worker"),
        ("a huge one", Case { raw: Some(huge), ..first(m0) }, "bytes"),
        ("two requests in one", Case { raw: Some(twice), ..first(m0) }, "not one PEM request"),
        ("a certificate instead", Case { raw: Some(certificate), ..first(m0) }, "not one PEM request"),
        ("something after the request", Case { raw: Some(trailing), ..first(m0) }, "not one PEM request"),
        ("many names", Case { dns: vec!["a.example.com"; 900], ..serving(m0) }, "bytes"),
        ("a client for every purpose", Case { usages: vec!["any", "client auth"], ..first(m0) }, "usages"),
        ("no usage", Case { usages: vec![], ..first(m0) }, "usages"),
        ("an anonymous requester", Case { username: "system:anonymous", ..first(m0) }, "may not ask"),
        (
            "another service account",
            Case { username: "system:serviceaccount:default:default", ..first(m0) },
            "may not ask",
        ),
        (
            "a node for another node",
            Case { username: m1, groups: NODE_GROUPS.into(), ..first(m0) },
            "may not ask",
        ),
        (
            "one group too many",
            Case { groups: [BOOTSTRAPPER_GROUPS.as_slice(), &["system:masters"]].concat(), ..first(m0) },
            "groups",
        ),
        ("one group too few", Case { groups: vec!["system:authenticated"], ..first(m0) }, "groups"),
        (
            "an administrator's organization",
            Case { subject: subject(&[(o.clone(), "system:masters"), (cn.clone(), m0)]), ..first(m0) },
            "organizations",
        ),
        ("no organization", Case { subject: subject(&[(cn.clone(), m0)]), ..first(m0) }, "organizations"),
        (
            "a unit beside it",
            Case {
                subject: subject(&[(o.clone(), "system:nodes"), (ou, "x"), (cn.clone(), m0)]),
                ..first(m0)
            },
            "subject",
        ),
        ("no name", Case { subject: subject(&[(o, "system:nodes")]), ..first(m0) }, "common names"),
        ("a client with a DNS name", Case { dns: vec!["master-0"], ..first(m0) }, "alternative names"),
        ("a client with an address", Case { ips: vec!["192.168.126.11"], ..first(m0) }, "alternative names"),
        (
            "a client that would serve",
            Case { usages: vec!["digital signature", "server auth"], ..first(m0) },
            "usages",
        ),
        (
            "a client that would do both",
            Case { usages: vec!["digital signature", "client auth", "server auth"], ..first(m0) },
            "usages",
        ),
        (
            "a client that would sign",
            Case { usages: vec!["cert sign", "client auth"], ..first(m0) },
            "usages",
        ),
        (
            "a renewal outside the nodes' group",
            Case { groups: vec!["system:authenticated"], ..renewal(m0) },
            "groups",
        ),
        (
            "an extension of its own",
            Case { extended: vec![ExtendedKeyUsagePurpose::CodeSigning], ..first(m0) },
            "extension",
        ),
        (
            "garbage",
            Case {
                raw: Some(
                    "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n".into(),
                ),
                ..first(m0)
            },
            "cannot be read",
        ),
        ("nothing", Case { raw: Some(String::new()), ..first(m0) }, "cannot be read"),
        (
            "another node's serving certificate",
            Case { username: m1, ..serving(m0) },
            "asks for the certificate",
        ),
        (
            "the bootstrapper serving",
            Case { username: BOOTSTRAPPER, ..serving(m0) },
            "asks for the certificate",
        ),
        (
            "the API's name",
            Case { dns: vec!["master-0", "api-int.ocp4.example.com"], ..serving(m0) },
            "not a name of",
        ),
        ("a wildcard", Case { dns: vec!["*.ocp4.example.com"], ..serving(m0) }, "not a name of"),
        ("another node's address", Case { ips: vec!["192.168.126.12"], ..serving(m0) }, "not the address of"),
        ("loopback", Case { ips: vec!["192.168.126.11", "127.0.0.1"], ..serving(m0) }, "not the address of"),
        ("an IPv6 address", Case { ips: vec!["::1"], ..serving(m0) }, "not the address of"),
        ("nothing to serve", Case { dns: vec![], ips: vec![], ..serving(m0) }, "needs alternative names"),
        ("a mail address", Case { other: vec![email], ..serving(m0) }, "neither"),
        ("a URI", Case { other: vec![uri], ..serving(m0) }, "neither"),
        (
            "serving that would be a client",
            Case { usages: vec!["digital signature", "client auth"], ..serving(m0) },
            "usages",
        ),
        (
            "serving outside the nodes' group",
            Case { groups: vec!["system:authenticated"], ..serving(m0) },
            "groups",
        ),
    ];
    for (what, case, why) in cases {
        match verdict(&case) {
            Verdict::Refuse(said) => assert!(said.contains(why), "{what}: {said}"),
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn a_node_that_was_issued_anew_may_bring_one_new_key() {
    let mut admission = admission();
    let case = first("system:node:master-1");
    assert!(matches!(verdict_of(&case, &admission), Verdict::Refuse(_)));
    admission.nodes.insert("master-1".into(), Issued { sha256: "new".into(), spent: None });
    let Verdict::ApproveFirst { key, .. } = verdict_of(&case, &admission) else { panic!("not approved") };
    let spent = Some(Spent { at: "later".into(), key });
    admission.nodes.insert("master-1".into(), Issued { sha256: "new".into(), spent });
    // Every request has a key of its own here.
    assert!(matches!(verdict_of(&case, &admission), Verdict::Refuse(_)));
}

#[test]
fn an_open_cluster_approves_as_upstream() {
    let open = Admission { open: true, ..Admission::default() };
    for name in ["system:node:master-0", "system:node:master-2"] {
        assert_eq!(verdict_of(&first(name), &open), Verdict::Approve);
    }
    match verdict_of(&first("system:node:master-1"), &open) {
        Verdict::Refuse(why) => assert!(why.contains("exists already"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_became_of_a_request_is_shown() {
    let mut refused = request(&first("system:node:evil"));
    refused.annotations_mut().insert(REFUSED.into(), "a stranger".into());
    let shown = show(&refused);
    assert_eq!((shown.verdict, shown.reason.as_str()), ("refused", "a stranger"));
    assert_eq!((shown.kind.as_str(), shown.node.as_deref()), ("client", Some("evil")));
    assert_eq!((shown.requester.as_str(), shown.issued), (BOOTSTRAPPER, false));
    let table = [
        (renewal("system:node:master-0"), "client renewal", "pending"),
        (Case { condition: Some("Approved"), ..serving("system:node:master-0") }, "serving", "approved"),
        (Case { condition: Some("Denied"), ..first("system:node:evil") }, "client", "denied"),
        (Case { signer: "example.com/x", ..first("system:node:evil") }, "example.com/x", "pending"),
        (Case { raw: Some("junk".into()), ..first("system:node:evil") }, "client", "pending"),
    ];
    for (case, kind, verdict) in table {
        let shown = show(&request(&case));
        assert_eq!((shown.kind.as_str(), shown.verdict), (kind, verdict));
    }
}

#[test]
fn what_is_decided_or_not_ours_is_left_alone() {
    for case in [
        Case { condition: Some("Denied"), ..first("system:node:master-0") },
        Case { condition: Some("Approved"), ..first("system:node:evil") },
        Case { signer: "kubernetes.io/kube-apiserver-client", ..first("system:node:master-0") },
    ] {
        assert_eq!(verdict(&case), Verdict::Ignore);
    }
}

/// The first attribute has the names that are checked; Go's parser, and with it the signer, might take the second one's.
#[test]
fn extensions_are_asked_for_once() {
    let names = [0x30, 6, 0x82, 4, b'e', b'v', b'i', b'l'];
    let mut second = vec![0x31, 0x13, 0x30, 0x11, 0x30, 0x0f, 6, 3, 0x55, 0x1d, 0x11, 4, 8];
    second.extend(names);
    let attribute = rcgen::Attribute { oid: &[1, 2, 840, 113549, 1, 9, 14], values: second };
    let case = serving("system:node:master-0");
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for (kind, value) in &case.subject {
        params.distinguished_name.push(kind.clone(), *value);
    }
    params.subject_alt_names = vec![
        SanType::DnsName("master-0".try_into().unwrap()),
        SanType::IpAddress("192.168.126.11".parse().unwrap()),
    ];
    let key = KeyPair::generate().unwrap();
    let twice = params.serialize_request_with_attributes(&key, vec![attribute]).unwrap().pem().unwrap();
    let said = format!("{:?}", verdict(&Case { raw: Some(twice), ..case }));
    assert!(said.contains("asks for extensions more than once"), "{said}");
}
