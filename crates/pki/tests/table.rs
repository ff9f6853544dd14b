//! The certificate table, read back with another parser and verified as a TLS peer would.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use ::time::{OffsetDateTime, macros::datetime};
use rustls_pki_types::{CertificateDer, UnixTime, pem::PemObject};
use seedling_pki::table::{self, Cluster, Names};
use seedling_pki::{
    CaSpec, CertKey, KeyAlgorithm, LeafSpec, Usage, bundle, certificates, check_signer, holds, issue, new_ca,
    not_after, rsa_keypair, with_signers,
};
use seedling_types::ClusterDomain;
use std::{collections::BTreeMap, time::Duration};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_parser::prelude::*;

const NOW: OffsetDateTime = datetime!(2026-11-15 12:00:00 UTC);

fn made(alg: KeyAlgorithm) -> BTreeMap<String, CertKey> {
    let domain = ClusterDomain::new("ocp4", "alchemy.com");
    let service_address = "172.30.0.1".parse().unwrap();
    let mut made = BTreeMap::new();
    let cluster = Cluster { domain: &domain, service_address, api_vips: &[] };
    let files = table::SIGNERS.iter().map(|s| s.file).chain(table::LEAVES.iter().map(|l| l.file));
    files.for_each(|file| make(file, &mut made, &cluster, alg));
    made
}

/// The named certificate, and its signer, if they are not there yet.
fn make(file: &str, made: &mut BTreeMap<String, CertKey>, cluster: &Cluster, alg: KeyAlgorithm) {
    if made.contains_key(file) {
        return;
    }
    let pair = match table::SIGNERS.iter().find(|s| s.file == file) {
        Some(signer) => signer.make(alg, NOW).unwrap(),
        None => {
            let leaf = table::LEAVES.iter().find(|l| l.file == file).unwrap();
            make(leaf.signer, made, cluster, alg);
            leaf.make(&made[leaf.signer], Some(cluster), alg, NOW).unwrap()
        }
    };
    made.insert(file.into(), pair);
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
    let made = made(KeyAlgorithm::default());
    assert_eq!(made.len(), table::SIGNERS.len() + table::LEAVES.len());
    for leaf in table::LEAVES {
        let (cert, ca) = (&made[leaf.file].cert, &made[leaf.signer].cert);
        for (usage, asked) in
            [(Usage::Server, KeyUsage::server_auth()), (Usage::Client, KeyUsage::client_auth())]
        {
            let answer = verify(cert, ca, asked);
            assert_eq!(answer.is_ok(), leaf.usages.contains(&usage), "{} {usage:?}: {answer:?}", leaf.file);
        }
        let other = if leaf.signer == "root-ca" { "aggregator-ca" } else { "root-ca" };
        assert!(
            verify(cert, &made[other].cert, KeyUsage::client_auth()).is_err(),
            "{} under a foreign signer",
            leaf.file
        );
        assert_eq!(
            cert.contains(&format!("-----END CERTIFICATE-----\n\n{ca}")),
            leaf.append_parent,
            "{}",
            leaf.file
        );
    }
}

#[test]
fn subjects_validity_and_extensions() {
    let made = made(KeyAlgorithm::default());
    for signer in table::SIGNERS {
        parse(&made[signer.file].cert, |c| {
            assert_eq!(c.subject().to_string(), format!("OU={}, CN={}", signer.ou, signer.cn));
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
    for leaf in table::LEAVES {
        let signer =
            table::SIGNERS.iter().find(|s| s.file == leaf.signer).expect("the signer is in the table");
        parse(&made[leaf.file].cert, |c| {
            let groups: Vec<_> = c.subject().iter_organization().map(|o| o.as_str().unwrap()).collect();
            let cn = c.subject().iter_common_name().next().unwrap().as_str().unwrap();
            assert_eq!((cn, groups.as_slice()), (leaf.cn, leaf.organizations));
            assert_eq!(c.issuer().to_string(), format!("OU={}, CN={}", signer.ou, signer.cn));
            assert_eq!(
                (c.validity().not_before.to_datetime(), c.validity().not_after.to_datetime() - NOW),
                (NOW, leaf.validity)
            );
            assert!(!c.is_ca() && c.basic_constraints().unwrap().is_some());
            assert_eq!(c.key_usage().unwrap().is_some(), leaf.key_usage, "{}", leaf.file);
            for oid in [
                oid_registry::OID_X509_EXT_AUTHORITY_KEY_IDENTIFIER,
                oid_registry::OID_X509_EXT_SUBJECT_KEY_IDENTIFIER,
            ] {
                assert!(c.get_extension_unique(&oid).unwrap().is_some(), "{}", leaf.file);
            }
            assert_eq!(c.subject_alternative_name().unwrap().is_some(), leaf.names != Names::None);
            assert!(c.raw_serial().len() <= 8 && c.raw_serial()[0] < 0x80);
        });
    }
}

#[test]
fn server_names() {
    let made = made(KeyAlgorithm::default());
    let names = |file: &str| {
        parse(&made[file].cert, |c| {
            let san = c.subject_alternative_name().unwrap().unwrap().value.clone();
            san.general_names.iter().map(|n| n.to_string()).collect::<Vec<_>>().join(" ")
        })
    };
    assert_eq!(names("kube-apiserver-lb-server"), "DNSName(api.ocp4.alchemy.com)");
    assert_eq!(names("machine-config-server"), "DNSName(api-int.ocp4.alchemy.com)");
    assert_eq!(
        names("kube-apiserver-localhost-server"),
        "DNSName(localhost) IPAddress(7f:00:00:01) IPAddress(00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:01)"
    );
    let service = names("kube-apiserver-service-network-server");
    assert!(
        service.contains("DNSName(openshift.default.svc.cluster.local)")
            && service.ends_with("IPAddress(ac:1e:00:01)")
    );
}

#[test]
fn bundles_hold_their_signers_in_order() {
    let made = made(KeyAlgorithm::default());
    for row in table::BUNDLES {
        let signers: Vec<_> = row.signers.iter().map(|s| made[*s].cert.as_str()).collect();
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
        let ca = new_ca(&CaSpec { cn: "etcd-signer", ou: None, validity: table::YEAR }, alg, NOW).unwrap();
        let spec = LeafSpec {
            cn: "etcd-client",
            organizations: vec!["etcd-client".into(), "system:etcd".into()],
            usages: &[Usage::Client],
            dns: vec![],
            ips: vec![],
            validity: table::DAY,
            append_parent: false,
            key_usage: true,
        };
        let leaf = issue(&ca, &spec, EcdsaP256, NOW + table::DAY).unwrap();
        let asked = |moment: OffsetDateTime| {
            let moment = UnixTime::since_unix_epoch(Duration::from_secs(moment.unix_timestamp() as u64));
            verify_at(&leaf.cert, &ca.cert, KeyUsage::client_auth(), moment)
        };
        asked(NOW + table::DAY).unwrap_or_else(|e| panic!("{alg:?}: {e}"));
        // A clock may lag behind by an hour, not by a day.
        assert!(asked(NOW + table::DAY - ::time::Duration::HOUR).is_ok() && asked(NOW).is_err());
        assert_eq!(not_after(&leaf.cert).unwrap(), NOW + table::DAY * 2);
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
    for leaf in table::LEAVES {
        subject_id(leaf.file);
        let authority = parse(&made[leaf.file].cert, |c| {
            c.iter_extensions().find_map(|e| match e.parsed_extension() {
                ParsedExtension::AuthorityKeyIdentifier(id) => {
                    id.key_identifier.as_ref().map(|k| k.0.to_vec())
                }
                _ => None,
            })
        });
        assert_eq!(authority, Some(subject_id(leaf.signer)), "{}", leaf.file);
    }
}

#[test]
fn a_renewed_signer_still_vouches_for_what_it_signed() {
    let made = made(KeyAlgorithm::default());
    let signer = table::SIGNERS.iter().find(|s| s.file == "kube-control-plane-signer").unwrap();
    let renewed = signer.renew(&made[signer.file], NOW + table::DAY).unwrap();
    assert_eq!(renewed.key, made[signer.file].key);
    assert_eq!(not_after(&renewed.cert).unwrap(), NOW + table::DAY + table::YEAR);
    let old = &made["kube-control-plane-kube-scheduler-client"].cert;
    let later: OffsetDateTime = NOW + table::DAY * 2;
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
    assert!(refused(root.clone(), NOW + table::TEN_YEARS).contains("is valid from"));
}

#[test]
fn all_certificates_of_a_file_are_listed() {
    let made = made(KeyAlgorithm::default());
    let found = certificates(&made["kube-apiserver-lb-server"].cert).unwrap();
    let seen: Vec<_> = found.iter().map(|c| (c.subject.as_str(), c.authority, c.not_after - NOW)).collect();
    assert_eq!(
        seen,
        [
            ("O=kube-master, CN=system:kube-apiserver", false, table::DAY),
            ("OU=openshift, CN=kube-apiserver-lb-signer", true, table::TEN_YEARS)
        ]
    );
}

#[test]
fn virtual_addresses_are_names_of_the_machine_config_server() {
    let domain = ClusterDomain::new("ocp4", "alchemy.com");
    let vips = ["10.0.0.5".parse().unwrap()];
    let cluster =
        Cluster { domain: &domain, service_address: "172.30.0.1".parse().unwrap(), api_vips: &vips };
    let mut made = BTreeMap::new();
    make("machine-config-server", &mut made, &cluster, KeyAlgorithm::default());
    let names = parse(&made["machine-config-server"].cert, |c| {
        let san = c.subject_alternative_name().unwrap().unwrap().value.clone();
        san.general_names.iter().map(|n| n.to_string()).collect::<Vec<_>>().join(" ")
    });
    assert_eq!(names, "DNSName(10.0.0.5) DNSName(api-int.ocp4.alchemy.com) IPAddress(0a:00:00:05)");
}

/// A signer whose key has so many bits, and a leaf of it.
fn signs(algorithm: KeyAlgorithm, bits: usize) {
    let domain = ClusterDomain::new("ocp4", "alchemy.com");
    let cluster = Cluster { domain: &domain, service_address: [172, 30, 0, 1].into(), api_vips: &[] };
    let mut made = BTreeMap::new();
    make("machine-config-server", &mut made, &cluster, algorithm);
    let signer = &made["root-ca"];
    check_signer(signer, NOW).unwrap();
    let size = parse(&signer.cert, |c| c.public_key().parsed().unwrap().key_size());
    assert_eq!((size, algorithm.to_string()), (bits, format!("rsa-{bits}")));
    assert!(signer.key.starts_with("-----BEGIN PRIVATE KEY-----\n"), "PKCS#8");
    verify(&made["machine-config-server"].cert, &signer.cert, KeyUsage::server_auth()).unwrap();
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
