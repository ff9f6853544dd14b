//! The trust table: its certificates, read back with another parser and verified as a TLS peer would, and that its rows fit together.
#![expect(clippy::unwrap_used, reason = "tests")]

use ::time::{OffsetDateTime, macros::datetime};
use rustls_pki_types::{CertificateDer, UnixTime, pem::PemObject};
use seedling_pki::trust::{
    self, Cluster, DAY, Leaf, Names, Owned, Renewal, Signer, Start, TEN_YEARS, YEAR, installer,
};
use seedling_pki::{
    CaSpec, CertKey, KeyAlgorithm, LAG, LeafSpec, Policy, Usage, bundle, certificates, check_signer, holds,
    issue, life, new_ca, not_after, rsa_keypair, with_signers,
};
use seedling_types::{ClusterDomain, Host, Role};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_parser::prelude::*;

const NOW: OffsetDateTime = datetime!(2026-11-15 12:00:00 UTC);

/// A cluster of a bootstrap machine, a master and a worker.
fn with_cluster<T>(api_vips: &[IpAddr], look: impl FnOnce(&Cluster) -> T) -> T {
    let host = |(n, role): (u8, Role)| Host {
        name: format!("{}-0", role.as_str()),
        role,
        mac: String::new(),
        address: [192, 168, 100, n].into(),
        second_address: None,
    };
    let hosts = [(10, Role::Bootstrap), (11, Role::Master), (12, Role::Worker)].map(host);
    let domain = ClusterDomain::new("ocp4", "alchemy.com");
    let service_addresses = vec![[172, 30, 0, 1].into()];
    look(&Cluster { domain: &domain, service_addresses, api_vips, hosts: &hosts })
}

fn signers(alg: KeyAlgorithm) -> BTreeMap<&'static str, CertKey> {
    let mut made = BTreeMap::<_, CertKey>::new();
    for signer in trust::signers() {
        let pair = match made.get(signer.key_file) {
            Some(other) => signer.renew(&other.key, NOW),
            None => signer.make(alg, NOW),
        };
        made.insert(signer.file, pair.unwrap());
    }
    made
}

/// Every signer and every leaf by file, or by Secret where there is no file; of a row for many, each.
fn made(alg: KeyAlgorithm) -> BTreeMap<String, CertKey> {
    let signers = signers(alg);
    let leaves = trust::leaves().flat_map(|leaf| pairs(leaf, &signers[leaf.signer.file], alg));
    let leaves: Vec<_> = leaves.collect();
    signers.into_iter().map(|(file, pair)| (file.to_string(), pair)).chain(leaves).collect()
}

fn name(leaf: &Leaf) -> String {
    let secret = || format!("{}/{}", leaf.owned.namespace, leaf.owned.secret);
    if leaf.file.is_empty() { secret() } else { leaf.file.into() }
}

/// As their maker makes them.
fn pairs(leaf: &Leaf, signer: &CertKey, alg: KeyAlgorithm) -> Vec<(String, CertKey)> {
    with_cluster(&[], |cluster| {
        if !leaf.asset.is_empty() {
            return vec![(name(leaf), leaf.make(signer, Some(cluster), alg, NOW).unwrap())];
        }
        let files = leaf.make_files(signer, cluster, leaf.validity, NOW).unwrap();
        let stems = leaf.stems(cluster);
        assert_eq!(files.len(), stems.len() * 2);
        let part = |stem: &str, end: &str| files[&format!("{stem}.{end}")].clone();
        let pair = |stem: &str| CertKey { cert: part(stem, "crt"), key: part(stem, "key") };
        let named = |stem: &String| match leaf.names {
            Names::EtcdMember => stem.clone(),
            _ => name(leaf),
        };
        stems.iter().map(|stem| (named(stem), pair(stem))).collect()
    })
}

fn parse<T>(pem: &str, look: impl FnOnce(&X509Certificate) -> T) -> T {
    let pem = Pem::iter_from_buffer(pem.as_bytes()).next().unwrap().unwrap();
    look(&pem.parse_x509().unwrap())
}

fn verify(leaf: &str, ca: &str, usage: KeyUsage) -> Result<(), webpki::Error> {
    let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW.unix_timestamp() as u64));
    verify_at(leaf, ca, usage, now)
}

fn verify_at(leaf: &str, ca: &str, usage: KeyUsage, now: UnixTime) -> Result<(), webpki::Error> {
    let (leaf, ca) = (
        CertificateDer::from_pem_slice(leaf.as_bytes()).unwrap(),
        CertificateDer::from_pem_slice(ca.as_bytes()).unwrap(),
    );
    let anchors = [anchor_from_trusted_cert(&ca)?];
    EndEntityCert::try_from(&leaf)?
        .verify_for_usage(webpki::ALL_VERIFICATION_ALGS, &anchors, &[], now, usage, None, None)
        .map(drop)
}

#[test]
fn every_chain_verifies_for_its_usages_and_no_other() {
    let made = signers(KeyAlgorithm::default());
    for leaf in trust::leaves() {
        let ca = &made[leaf.signer.file];
        for (name, CertKey { cert, .. }) in pairs(leaf, ca, KeyAlgorithm::default()) {
            for (usage, asked) in
                [(Usage::Server, KeyUsage::server_auth()), (Usage::Client, KeyUsage::client_auth())]
            {
                let answer = verify(&cert, &ca.cert, asked);
                assert_eq!(answer.is_ok(), leaf.usages.contains(&usage), "{name} {usage:?}: {answer:?}");
            }
            let other = if leaf.signer.file == "root-ca" { "aggregator-ca" } else { "root-ca" };
            assert!(
                verify(&cert, &made[other].cert, KeyUsage::client_auth()).is_err(),
                "{name} under a foreign signer"
            );
            let with_parent = cert.contains(&format!("-----END CERTIFICATE-----\n\n{}", ca.cert));
            assert_eq!(with_parent, leaf.append_parent, "{name}");
        }
    }
}

fn subject_of(signer: &Signer) -> String {
    let time =
        if signer.start == Start::Dated { format!("@{}", NOW.unix_timestamp()) } else { String::new() };
    let ou = signer.ou.map(|ou| format!("OU={ou}, ")).unwrap_or_default();
    format!("{ou}CN={}{time}", signer.cn)
}

#[test]
fn subjects_validity_and_extensions() {
    let made = signers(KeyAlgorithm::default());
    for signer in trust::signers() {
        parse(&made[signer.file].cert, |c| {
            assert_eq!(c.subject().to_string(), subject_of(signer));
            let from = if signer.start == Start::Backdated { NOW - LAG } else { NOW };
            assert_eq!(c.validity().not_before.to_datetime(), from, "{}", signer.file);
            assert_eq!((c.validity().not_after.to_datetime() - NOW, c.is_ca()), (signer.validity, true));
            assert!(
                c.key_usage().unwrap().unwrap().critical && c.basic_constraints().unwrap().unwrap().critical
            );
            assert!(
                c.get_extension_unique(&oid_registry::OID_X509_EXT_AUTHORITY_KEY_IDENTIFIER)
                    .unwrap()
                    .is_none()
            );
        });
    }
    for leaf in trust::leaves() {
        let (signer, ca) = (leaf.signer, &made[leaf.signer.file]);
        for (name, pair) in pairs(leaf, ca, KeyAlgorithm::default()) {
            parse(&pair.cert, |c| {
                let groups: Vec<_> = c.subject().iter_organization().map(|o| o.as_str().unwrap()).collect();
                let cn = c.subject().iter_common_name().next().unwrap().as_str().unwrap();
                let want = match leaf.names {
                    Names::EtcdMember if name.ends_with("-bootstrap") => "192.168.100.10",
                    Names::EtcdMember => "192.168.100.11",
                    _ => leaf.cn,
                };
                assert_eq!((cn, groups.as_slice()), (want, leaf.organizations));
                assert_eq!(c.issuer().to_string(), subject_of(signer));
                let from = if signer.start == Start::Backdated { NOW - LAG } else { NOW };
                assert_eq!(
                    (c.validity().not_before.to_datetime(), c.validity().not_after.to_datetime() - NOW),
                    (from, leaf.validity)
                );
                assert!(!c.is_ca() && c.basic_constraints().unwrap().is_some());
                assert_eq!(c.key_usage().unwrap().is_some(), leaf.key_usage, "{name}");
                for oid in [
                    oid_registry::OID_X509_EXT_AUTHORITY_KEY_IDENTIFIER,
                    oid_registry::OID_X509_EXT_SUBJECT_KEY_IDENTIFIER,
                ] {
                    assert!(c.get_extension_unique(&oid).unwrap().is_some(), "{name}");
                }
                assert_eq!(c.subject_alternative_name().unwrap().is_some(), leaf.names != Names::None);
                assert!(c.raw_serial().len() <= 8 && c.raw_serial()[0] < 0x80);
            });
        }
    }
}

/// What refers to a row finds it, and nothing is in two places.
#[test]
fn rows_fit_together() {
    let unique = |names: Vec<String>| {
        let count = names.len();
        assert_eq!(names.into_iter().collect::<BTreeSet<_>>().len(), count, "twice");
    };
    let secret = |owned: Owned| format!("{}/{}", owned.namespace, owned.secret);
    unique(trust::owned().map(secret).collect());
    unique(trust::signers().map(|signer| signer.file.to_string()).collect());
    unique(trust::leaves().map(name).collect());
    let known = |signer: &Signer| trust::signers().any(|row| row.file == signer.file);
    for leaf in trust::leaves() {
        assert!(known(leaf.signer), "{}", name(leaf));
        let policy = Policy::default();
        match leaf.owned.renewal {
            Renewal::Leaf => assert_eq!(leaf.validity, policy.leaf),
            Renewal::LongLeaf => assert_eq!(leaf.validity, policy.signer),
            Renewal::Signer => panic!("{} signs nothing", name(leaf)),
            Renewal::Never(why) => assert_eq!(why.is_empty(), !leaf.owned.is_kept(), "{}", name(leaf)),
        }
    }
    for signer in trust::signers() {
        let renewed = signer.owned.renewal == Renewal::Signer;
        assert_eq!(renewed, !signer.next_cn.is_empty(), "{}", signer.file);
        assert!(!renewed || signer.trusted_in().next().is_some(), "nobody is told of {}", signer.file);
        assert!(trust::signers().any(|row| row.file == signer.key_file), "{}", signer.file);
    }
    for bundle in trust::bundles() {
        assert!(bundle.signers.iter().all(|signer| known(signer)), "{}{}", bundle.file, bundle.configmap);
        assert!(bundle.copies.is_empty() || !bundle.configmap.is_empty(), "{}", bundle.file);
    }
    for part in &trust::TABLE {
        let assets = part.signers.iter().map(|s| s.asset).chain(part.leaves.iter().map(|l| l.asset));
        let mut assets = assets.chain(part.bundles.iter().map(|b| b.asset));
        assert!(assets.all(|asset| asset.is_empty() == (part.made_by != "installer")), "{}", part.made_by);
    }
}

/// A certificate is checked by who has the signer's bundle: what operators make is verified by those whom the table names.
#[test]
fn a_replaced_signer_is_trusted_by_those_who_meet_its_certificates() {
    let trusted = |signer: &Signer| {
        signer.trusted_in().map(|(pod, map)| format!("{} {map}", pod.name())).collect::<Vec<_>>().join(", ")
    };
    for (signer, want) in [
        (&trust::CSR_SIGNER, "kube-apiserver client-ca, kube-apiserver kubelet-serving-ca"),
        (&trust::CONTROL_PLANE_SIGNER, "kube-apiserver client-ca"),
        (&trust::AGGREGATOR_SIGNER, "kube-apiserver aggregator-client-ca"),
        (&trust::ETCD_SIGNER, "etcd etcd-ca-bundle, kube-apiserver etcd-serving-ca"),
    ] {
        assert_eq!(trusted(signer), want);
        let next = signer.make_next(YEAR, NOW).unwrap();
        parse(&next.cert, |c| {
            let want = format!("OU=openshift, CN={}@{}", signer.next_cn, NOW.unix_timestamp());
            assert_eq!(c.subject().to_string(), want);
        });
        let lives = life(&next.cert).unwrap();
        assert_eq!((lives.issued, lives.ends), (NOW, NOW + YEAR));
        for leaf in trust::leaves().filter(|leaf| leaf.signer.file == signer.file) {
            let (_, pair) = pairs(leaf, &next, KeyAlgorithm::default()).remove(0);
            verify(&pair.cert, &next.cert, KeyUsage::client_auth()).unwrap();
        }
    }
}

fn names(cert: &str) -> String {
    parse(cert, |c| {
        let san = c.subject_alternative_name().unwrap().unwrap().value.clone();
        san.general_names.iter().map(|n| n.to_string()).collect::<Vec<_>>().join(" ")
    })
}

#[test]
fn server_names() {
    let made = made(KeyAlgorithm::default());
    let names = |file: &str| names(&made[file].cert);
    let loopback = "IPAddress(7f:00:00:01) IPAddress(00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:01)";
    for (bootstrap, masters, want) in [
        ("lb-server", "external-loadbalancer-serving-certkey", "DNSName(api.ocp4.alchemy.com)"),
        ("internal-lb-server", "internal-loadbalancer-serving-certkey", "DNSName(api-int.ocp4.alchemy.com)"),
        ("localhost-server", "localhost-serving-cert-certkey", &format!("DNSName(localhost) {loopback}")),
        (
            "service-network-server",
            "service-network-serving-certkey",
            "DNSName(kubernetes) DNSName(kubernetes.default) DNSName(kubernetes.default.svc) \
             DNSName(kubernetes.default.svc.cluster.local) DNSName(openshift) DNSName(openshift.default) \
             DNSName(openshift.default.svc) DNSName(openshift.default.svc.cluster.local) IPAddress(ac:1e:00:01)",
        ),
    ] {
        assert_eq!(names(&format!("kube-apiserver-{bootstrap}")), want);
        assert_eq!(names(&format!("openshift-kube-apiserver/{masters}")), want);
    }
    assert_eq!(names("machine-config-server"), "DNSName(api-int.ocp4.alchemy.com)");
    let service = ["kube-system", "openshift-etcd"]
        .map(|ns| format!("DNSName(etcd.{ns}.svc) DNSName(etcd.{ns}.svc.cluster.local)"));
    for (member, address) in [("bootstrap", "c0:a8:64:0a"), ("master-0", "c0:a8:64:0b")] {
        let want = format!("DNSName(localhost) {} {loopback} IPAddress({address})", service.join(" "));
        assert_eq!(names(&format!("etcd-peer-{member}")), want);
        assert_eq!(names(&format!("etcd-serving-{member}")), want);
    }
    assert!(!made.contains_key("etcd-peer-worker-0"));
}

#[test]
fn bundles_hold_their_signers_in_order() {
    let made = signers(KeyAlgorithm::default());
    for row in trust::bundles() {
        let signers: Vec<_> = row.signers.iter().map(|signer| made[signer.file].cert.as_str()).collect();
        assert_eq!(bundle(&signers), signers.concat(), "{}", row.file);
        if row.file == "kube-apiserver-complete-client-ca-bundle" {
            assert_eq!(bundle(&signers).matches("BEGIN").count(), 5);
        }
    }
}

#[test]
fn every_key_algorithm_signs_and_is_read_back() {
    use KeyAlgorithm::*;
    for alg in [EcdsaP256, EcdsaP384, EcdsaP521, Rsa2048, Rsa3072, Rsa4096] {
        assert_eq!(alg.to_string().parse(), Ok(alg));
        let ca = new_ca(&CaSpec { cn: "etcd-signer", ou: None, validity: YEAR }, alg, NOW).unwrap();
        let spec = LeafSpec {
            cn: "etcd-client",
            organizations: vec!["etcd-client".into(), "system:etcd".into()],
            usages: &[Usage::Client],
            dns: vec![],
            ips: vec![],
            validity: DAY,
            append_parent: false,
            key_usage: true,
        };
        let leaf = issue(&ca, &spec, EcdsaP256, NOW + DAY).unwrap();
        let asked = |moment: OffsetDateTime| {
            let moment = UnixTime::since_unix_epoch(Duration::from_secs(moment.unix_timestamp() as u64));
            verify_at(&leaf.cert, &ca.cert, KeyUsage::client_auth(), moment)
        };
        asked(NOW + DAY).unwrap_or_else(|e| panic!("{alg:?}: {e}"));
        // A clock may lag behind by an hour, not by a day.
        assert!(asked(NOW + DAY - ::time::Duration::HOUR).is_ok() && asked(NOW).is_err());
        assert_eq!(not_after(&leaf.cert).unwrap(), NOW + DAY * 2);
        assert!(ca.key.starts_with("-----BEGIN PRIVATE KEY-----\n"), "PKCS#8");
        assert!(!format!("{ca:?}").contains("PRIVATE"));
        let three = LeafSpec { organizations: vec!["a".into(), "b".into(), "c".into()], ..spec };
        assert!(issue(&ca, &three, alg, NOW).unwrap_err().to_string().contains("at most two"));
    }
}

#[test]
fn service_account_pair() {
    let pair = rsa_keypair().unwrap();
    assert!(pair.key.starts_with("-----BEGIN PRIVATE KEY-----\n"));
    assert!(
        pair.public.starts_with("-----BEGIN RSA PUBLIC KEY-----\n")
            && pair.public.ends_with("-----END RSA PUBLIC KEY-----\n")
    );
    let der = Pem::iter_from_buffer(pair.public.as_bytes()).next().unwrap().unwrap();
    assert!(SubjectPublicKeyInfo::from_der(&der.contents).is_ok(), "PKIX inside");
}

#[test]
fn key_identifiers_are_the_sha1_of_the_public_key_and_name_the_signer() {
    use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
    let made = made(KeyAlgorithm::default());
    let subject_id = |file: &str| {
        parse(&made[file].cert, |c| {
            let key =
                digest(&SHA1_FOR_LEGACY_USE_ONLY, &c.public_key().subject_public_key.data).as_ref().to_vec();
            let found = c.iter_extensions().find_map(|e| match e.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
                _ => None,
            });
            assert_eq!(found.as_ref(), Some(&key), "{file}");
            key
        })
    };
    for leaf in installer::LEAVES {
        subject_id(leaf.file);
        let authority = parse(&made[leaf.file].cert, |c| {
            c.iter_extensions().find_map(|e| match e.parsed_extension() {
                ParsedExtension::AuthorityKeyIdentifier(id) => {
                    id.key_identifier.as_ref().map(|k| k.0.to_vec())
                }
                _ => None,
            })
        });
        assert_eq!(authority, Some(subject_id(leaf.signer.file)), "{}", leaf.file);
    }
}

#[test]
fn a_renewed_signer_still_vouches_for_what_it_signed() {
    let made = made(KeyAlgorithm::default());
    let signer = &trust::CONTROL_PLANE_SIGNER;
    let renewed = signer.renew(&made[signer.file].key, NOW + DAY).unwrap();
    assert_eq!(renewed.key, made[signer.file].key);
    assert_eq!(not_after(&renewed.cert).unwrap(), NOW + DAY + YEAR);
    let old = &made["kube-control-plane-kube-scheduler-client"].cert;
    let later: OffsetDateTime = NOW + DAY * 2;
    let at = UnixTime::since_unix_epoch(Duration::from_secs(later.unix_timestamp() as u64));
    verify_at(old, &renewed.cert, KeyUsage::client_auth(), at).unwrap();
}

#[test]
fn a_signer_that_somebody_brings_is_looked_at() {
    let made = made(KeyAlgorithm::default());
    let root = &made["root-ca"];
    check_signer(root, NOW).unwrap();
    let refused = |pair: CertKey, now| check_signer(&pair, now).unwrap_err().to_string();
    let foreign = CertKey { key: made["kubelet-signer"].key.clone(), ..root.clone() };
    assert!(refused(foreign, NOW).contains("does not belong"));
    assert!(refused(made["kubelet-client"].clone(), NOW).contains("no authority"));
    assert!(refused(root.clone(), NOW + TEN_YEARS).contains("is valid from"));
}

#[test]
fn all_certificates_of_a_file_are_listed() {
    let made = made(KeyAlgorithm::default());
    let found = certificates(&made["kube-apiserver-lb-server"].cert).unwrap();
    let seen: Vec<_> = found.iter().map(|c| (c.subject.as_str(), c.authority, c.not_after - NOW)).collect();
    assert_eq!(
        seen,
        [
            ("O=kube-master, CN=system:kube-apiserver", false, DAY),
            ("OU=openshift, CN=kube-apiserver-lb-signer", true, TEN_YEARS)
        ]
    );
}

#[test]
fn virtual_addresses_are_names_of_the_machine_config_server() {
    let leaf = installer::LEAVES.iter().find(|leaf| leaf.file == "machine-config-server").unwrap();
    let root = leaf.signer.make(KeyAlgorithm::default(), NOW).unwrap();
    let pair = with_cluster(&[[10, 0, 0, 5].into()], |cluster| {
        leaf.make(&root, Some(cluster), KeyAlgorithm::default(), NOW).unwrap()
    });
    assert_eq!(
        names(&pair.cert),
        "DNSName(10.0.0.5) DNSName(api-int.ocp4.alchemy.com) IPAddress(0a:00:00:05)"
    );
}

/// A signer whose key has so many bits, and a leaf of it.
fn signs(algorithm: KeyAlgorithm, bits: usize) {
    let leaf = installer::LEAVES.iter().find(|leaf| leaf.file == "machine-config-server").unwrap();
    let signer = leaf.signer.make(algorithm, NOW).unwrap();
    check_signer(&signer, NOW).unwrap();
    let size = parse(&signer.cert, |c| c.public_key().parsed().unwrap().key_size());
    assert_eq!((size, algorithm.to_string()), (bits, format!("rsa-{bits}")));
    assert!(signer.key.starts_with("-----BEGIN PRIVATE KEY-----\n"), "PKCS#8");
    let (_, pair) = pairs(leaf, &signer, algorithm).remove(0);
    verify(&pair.cert, &signer.cert, KeyUsage::server_auth()).unwrap();
}

#[test]
fn an_rsa_size_that_only_the_library_itself_makes() {
    signs(KeyAlgorithm::Rsa5120, 5120);
}

/// Takes minutes: `cargo test -- --ignored`.
#[test]
#[ignore = "large keys take long to make"]
fn every_large_rsa_size() {
    for (algorithm, bits) in
        [(KeyAlgorithm::Rsa6144, 6144), (KeyAlgorithm::Rsa7168, 7168), (KeyAlgorithm::Rsa8192, 8192)]
    {
        signs(algorithm, bits);
    }
}

#[test]
fn a_bundle_keeps_what_lives_and_changes_only_for_a_newcomer() {
    let ca = |cn: &str, days: i64| {
        let spec = CaSpec { cn, ou: None, validity: ::time::Duration::days(days) };
        new_ca(&spec, KeyAlgorithm::default(), NOW).unwrap().cert
    };
    let (short, long, new) = (ca("short", 1), ca("long", 900), ca("new", 900));
    let old = format!("{short}{long}");
    let later = NOW + ::time::Duration::days(30);
    assert_eq!(with_signers(&old, &[&long], later), old);
    assert_eq!(with_signers(&old, &[&long, &new], NOW), format!("{old}{new}"));
    let renewed = with_signers(&old, &[&new, &new], later);
    assert_eq!(renewed, format!("{long}{new}"));
    assert!(holds(&renewed, &new) && holds(&renewed, &long) && !holds(&renewed, &short));
    assert!(!holds("", &new) && !holds(&renewed, ""));
    assert_eq!(with_signers("", &[&new], NOW), new);
}
