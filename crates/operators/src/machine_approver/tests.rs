#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequestSpec, CertificateSigningRequestStatus};
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, SanType};
use std::collections::BTreeSet;

const HOSTS: &str = "hosts:\n\
    - {name: bootstrap, role: bootstrap, mac: '52:54:00:00:00:01', address: 192.168.126.10}\n\
    - {name: master-0, role: master, mac: '52:54:00:00:00:02', address: 192.168.126.11}\n\
    - {name: master-1, role: master, mac: '52:54:00:00:00:03', address: 192.168.126.12}\n\
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
struct Case {
    signer: &'static str,
    username: &'static str,
    groups: Vec<&'static str>,
    usages: Vec<&'static str>,
    subject: Vec<(DnType, &'static str)>,
    dns: Vec<&'static str>,
    ips: Vec<&'static str>,
    other: Vec<SanType>,
    extended: Vec<ExtendedKeyUsagePurpose>,
    raw: Option<&'static str>,
    condition: Option<&'static str>,
}

fn first(node: &'static str) -> Case {
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
    }
}

fn renewal(node: &'static str) -> Case {
    Case { username: node, groups: NODE_GROUPS.into(), ..first(node) }
}

fn serving(node: &'static str) -> Case {
    Case {
        signer: SERVING_SIGNER,
        usages: vec!["digital signature", "server auth"],
        dns: vec!["master-0"],
        ips: vec!["192.168.126.11"],
        ..renewal(node)
    }
}

fn request(case: &Case) -> CertificateSigningRequest {
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
    let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
    let strings = |list: &[&str]| Some(list.iter().map(ToString::to_string).collect());
    let condition =
        |kind: &str| CertificateSigningRequestCondition { type_: kind.into(), ..Default::default() };
    CertificateSigningRequest {
        spec: CertificateSigningRequestSpec {
            request: ByteString(case.raw.map_or(pem, String::from).into_bytes()),
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

fn verdict(case: &Case) -> Verdict {
    let (inventory, domain) = (Inventory::parse(HOSTS).unwrap(), ClusterDomain("ocp4.example.com".into()));
    let nodes = BTreeSet::from(["master-1".to_string()]);
    judge(&request(case), &Known { inventory: &inventory, domain: &domain, nodes: &nodes })
}

#[test]
fn machines_of_the_inventory_get_their_certificates() {
    let rsa = vec!["digital signature", "key encipherment", "client auth"];
    for case in [
        first("system:node:master-0"),
        first("system:node:worker-0"),
        Case { usages: rsa, ..first("system:node:master-0") },
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
    let cases = [
        ("a stranger", first("system:node:evil"), "no master or worker"),
        ("the bootstrap machine", first("system:node:bootstrap"), "no master or worker"),
        ("a name like another's", first("system:node:master-0.evil"), "no master or worker"),
        ("not a node", first("system:admin"), "not a node's name"),
        ("a Node that exists", first(m1), "exists already"),
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
                raw: Some("-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"),
                ..first(m0)
            },
            "cannot be read",
        ),
        ("nothing", Case { raw: Some(""), ..first(m0) }, "cannot be read"),
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
fn what_is_decided_or_not_ours_is_left_alone() {
    for case in [
        Case { condition: Some("Denied"), ..first("system:node:master-0") },
        Case { condition: Some("Approved"), ..first("system:node:evil") },
        Case { signer: "kubernetes.io/kube-apiserver-client", ..first("system:node:master-0") },
    ] {
        assert_eq!(verdict(&case), Verdict::Ignore);
    }
}
