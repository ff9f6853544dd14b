//! How long certificates last, and what renewing them keeps.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;
use common::{Assets, SEED};
use seedling_assets::{Options, Target, certificates, refresh};
use seedling_pki::KeyAlgorithm;
use serde_json::Value;
use time::Duration;

fn state(assets: &Assets) -> Value {
    serde_json::to_value(seedling_assets::state_files(assets.dir.path()).unwrap()).unwrap()
}

#[test]
fn every_certificate_is_listed_with_its_end() {
    let assets = Assets::of_case(SEED);
    assets.create(Target::IgnitionConfigs).unwrap();
    let found = certificates(assets.dir.path()).unwrap();
    let of = |place: &str| {
        found
            .iter()
            .filter(|l| l.place == place)
            .map(|l| l.certificate.not_after - assets.now)
            .collect::<Vec<_>>()
    };
    assert_eq!(of("tls/kubelet-signer.crt"), [Duration::days(1)]);
    assert_eq!(of("tls/root-ca.crt"), [Duration::days(3650)]);
    assert_eq!(
        of("bootstrap.ign:/opt/openshift/tls/kube-apiserver-lb-server.crt"),
        [Duration::days(1), Duration::days(3650)]
    );
    assert_eq!(of("auth/kubeconfig:admin/client-certificate-data"), [Duration::days(3650)]);
    assert_eq!(of("auth/kubeconfig:ocp4/certificate-authority-data").len(), 3);
}

#[test]
fn stale_assets_are_refreshed_and_stay_the_same_cluster() {
    let mut assets = Assets::of_case(SEED);
    assets.create(Target::Manifests).unwrap();
    assets.write("openshift/mine.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\n");
    assets.create(Target::IgnitionConfigs).unwrap();
    let (before, pointer) = (state(&assets), assets.read("master.ign"));
    assets.now += Duration::days(30);
    assert!(assets.create(Target::IgnitionConfigs).is_err());
    refresh(assets.dir.path(), &assets.options()).unwrap();

    let after = state(&assets);
    for same in [
        "*installconfig.ClusterID",
        "*password.KubeadminPassword",
        "*manifests.Openshift",
        "*manifests.Manifests",
        "*tls.RootCA",
        "*tls.ServiceAccountKeyPair",
    ] {
        assert_eq!(after[same], before[same], "{same}");
    }
    assert_eq!(assets.read("master.ign"), pointer);
    let signer = |state: &Value, end: &str| {
        state["*tls.KubeletCSRSignerCertKey"][format!("tls/kubelet-signer.{end}")].clone()
    };
    assert_eq!(signer(&after, "key"), signer(&before, "key"), "a signer keeps its key");
    assert_ne!(signer(&after, "crt"), signer(&before, "crt"));
    assert!(assets.read("bootstrap.ign").contains("/opt/openshift/openshift/mine.yaml"));
    let soonest =
        certificates(assets.dir.path()).unwrap().into_iter().map(|l| l.certificate.not_after).min().unwrap();
    assert_eq!(soonest, assets.now + Duration::days(1));
    assets.create(Target::IgnitionConfigs).unwrap();
}

#[test]
fn there_must_be_something_to_refresh() {
    let assets = Assets::of_case(SEED);
    assets.create(Target::Manifests).unwrap();
    let error = refresh(assets.dir.path(), &assets.options()).unwrap_err().to_string();
    assert!(error.contains("has no Ignition configs to refresh"), "{error}");
}

#[test]
fn the_key_algorithm_can_be_chosen() {
    let assets = Assets::of_case(SEED);
    let options = Options { keys: Some(KeyAlgorithm::Rsa3072), ..assets.options() };
    seedling_assets::create(Target::Manifests, assets.dir.path(), &options).unwrap();
    let state = state(&assets);
    let bits = |id: &str, file: &str| {
        let pem = state[id][file].as_str().unwrap().to_string();
        let (_, pem) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
        let cert = pem.parse_x509().unwrap();
        cert.public_key().parsed().unwrap().key_size()
    };
    assert_eq!(bits("*tls.RootCA", "tls/root-ca.crt"), 3072);
    assert_eq!(bits("*tls.MCSCertKey", "tls/machine-config-server.crt"), 2048);
}

/// Also one that only the crypto library itself makes.
#[test]
fn the_install_config_chooses_the_size_of_keys() {
    for size in ["3072", "5120"] {
        let text = Assets::of_case("featureset-techpreview").read("install-config.yaml");
        let assets = Assets::new(&format!(
            "{text}pki: {{signerCertificates: {{key: {{algorithm: RSA, rsa: {{keySize: {size}}}}}}}}}\n"
        ));
        assets.create(Target::Manifests).unwrap();
        assert_eq!(state(&assets)["*tls.SignerKeyParams"]["algorithm"], format!("rsa-{size}"));
    }
}
