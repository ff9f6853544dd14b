//! The certificate table, read back with another parser and verified as a TLS peer would.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use ::time::{OffsetDateTime, macros::datetime};
use rustls_pki_types::{CertificateDer, UnixTime, pem::PemObject};
use seedling_pki::table::{self, Cluster, Names};
use seedling_pki::{CaSpec, CertKey, KeyAlgorithm, LeafSpec, Usage, issue, new_ca, not_after, rsa_keypair};
use seedling_types::ClusterDomain;
use std::{collections::BTreeMap, time::Duration};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_parser::prelude::*;

const NOW: OffsetDateTime = datetime!(2026-11-15 12:00:00 UTC);

fn made(alg: KeyAlgorithm) -> BTreeMap<String, CertKey> {
    let domain = ClusterDomain::new("ocp4", "alchemy.com");
    let service_address = "172.30.0.1".parse().unwrap();
    let mut made = BTreeMap::new();
    table::make_all(&mut made, &Cluster { domain: &domain, service_address }, alg, NOW).unwrap();
    made
}

fn parse<T>(pem: &str, look: impl FnOnce(&X509Certificate) -> T) -> T {
    let pem = Pem::iter_from_buffer(pem.as_bytes()).next().unwrap().unwrap();
    look(&pem.parse_x509().unwrap())
}

fn verify(leaf: &str, ca: &str, usage: KeyUsage) -> Result<(), webpki::Error> {
    let (leaf, ca) = (
        CertificateDer::from_pem_slice(leaf.as_bytes()).unwrap(),
        CertificateDer::from_pem_slice(ca.as_bytes()).unwrap(),
    );
    let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW.unix_timestamp() as u64));
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
    let bundles = table::bundles(&made);
    for bundle in table::BUNDLES {
        let want: String = bundle.signers.iter().map(|s| made[*s].cert.as_str()).collect();
        assert_eq!(bundles[bundle.file], want, "{}", bundle.file);
    }
    assert_eq!(bundles["kube-apiserver-complete-client-ca-bundle"].matches("BEGIN").count(), 5);
}

#[test]
fn every_key_algorithm_signs_and_is_read_back() {
    use KeyAlgorithm::*;
    for alg in [EcdsaP256, EcdsaP384, EcdsaP521, Rsa2048, Rsa4096] {
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
        verify(&leaf.cert, &ca.cert, KeyUsage::client_auth()).unwrap_or_else(|e| panic!("{alg:?}: {e}"));
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
