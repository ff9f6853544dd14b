//! Any valid config gives assets in which every reference resolves, every certificate chains and every Ignition file is valid.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;
use common::Assets;
use proptest::prelude::*;
use rustls_pki_types::{CertificateDer, UnixTime, pem::PemObject};
use seedling_assets::Target;
use seedling_pki::trust::YEAR;
use seedling_pki::trust::installer::{BUNDLES, LEAVES};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJD1L38PLq39QJkTAyV6NKX2AJyqiAQ9gfXq1yGBrzmh core@oracle";

/// A valid install-config: a name, a size, a platform, networks, and whatever else can be asked for.
fn config() -> impl Strategy<Value = String> {
    let name = "[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,6}){0,2}";
    let size = prop_oneof![Just((3, 0)), Just((3, 2)), Just((1, 0)), Just((5, 3))];
    let networks = prop_oneof![
        Just("{clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 23}], serviceNetwork: [172.30.0.0/16]}"),
        Just(
            "{clusterNetwork: [{cidr: 'fd01::/48', hostPrefix: 64}], serviceNetwork: ['fd02::/112'], machineNetwork: [{cidr: 'fd00::/64'}]}"
        ),
        Just(
            "{clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 23}, {cidr: 'fd01::/48', hostPrefix: 64}], machineNetwork: \
             [{cidr: 10.0.0.0/16}, {cidr: 'fd00::/64'}], serviceNetwork: [172.30.0.0/16, 'fd02::/112']}"
        ),
    ];
    let extras = proptest::sample::subsequence(
        vec![
            format!("sshKey: {KEY}"),
            "proxy: {httpProxy: 'http://proxy.example.com:3128', noProxy: '.example.org,10.1.0.0/16'}".into(),
            "featureSet: TechPreviewNoUpgrade".into(),
            "capabilities: {baselineCapabilitySet: None, additionalEnabledCapabilities: [Ingress, MachineAPI, CloudCredential]}".into(),
            "imageDigestSources: [{source: quay.io/a/b, mirrors: [mirror.example.com/a/b], sourcePolicy: NeverContactSource}]".into(),
            "additionalTrustBundlePolicy: Always".into(),
            format!("additionalTrustBundle: {}", serde_json::to_string(&bundle()).unwrap()),
            "hyperthreading".into(),
        ],
        0..=8,
    );
    (name, size, networks, extras).prop_map(|(name, (masters, workers), networks, extras)| {
        let smt = if extras.iter().any(|e| e == "hyperthreading") { "Disabled" } else { "Enabled" };
        let extras: Vec<_> = extras.into_iter().filter(|e| e != "hyperthreading").collect();
        format!(
            "apiVersion: v1\nmetadata: {{name: {name}}}\nbaseDomain: example.com\nplatform: {{none: {{}}}}\nnetworking: {networks}\n\
             pullSecret: '{{\"auths\":{{\"r.example.com\":{{\"auth\":\"dTpw\"}}}}}}'\ncontrolPlane: {{name: master, replicas: {masters}, \
             hyperthreading: {smt}}}\ncompute: [{{name: worker, replicas: {workers}}}]\n{}\n",
            extras.join("\n")
        )
    })
}

fn bundle() -> String {
    let spec = seedling_pki::CaSpec { cn: "proxy", ou: None, validity: YEAR };
    seedling_pki::new_ca(&spec, Default::default(), common::NOW).unwrap().cert
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 20, ..ProptestConfig::default() })]
    #[test]
    fn any_valid_config(yaml in config()) {
        let assets = Assets::new(&yaml);
        assets.create(Target::Manifests).unwrap_or_else(|e| panic!("{e}\n{yaml}"));
        let objects = objects(&assets);
        assets.create(Target::IgnitionConfigs).unwrap();
        references(&assets, &objects);
        chains(&assets);
        for file in ["bootstrap.ign", "master.ign", "worker.ign"] {
            let run = Command::new("ignition-validate").arg(assets.path(file)).output();
            let run = run.expect("ignition-validate must be installed (Debian package ignition)");
            assert!(run.status.success() && run.stderr.is_empty(), "{file}: {}", String::from_utf8_lossy(&run.stderr));
        }
    }
}

/// The recorded bare-metal config, whose objects refer to each other the most.
#[test]
fn bare_metal() {
    let assets = Assets::of_case("baremetal");
    assets.create(Target::Manifests).unwrap();
    let objects = objects(&assets);
    assets.create(Target::IgnitionConfigs).unwrap();
    references(&assets, &objects);
    chains(&assets);
}

fn objects(assets: &Assets) -> Vec<Value> {
    let manifests = assets
        .tree()
        .into_iter()
        .filter(|path| path.starts_with("manifests/") || path.starts_with("openshift/"));
    manifests.map(|path| assets.yaml(&path)).collect()
}

fn name(object: &Value) -> String {
    let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default().to_string();
    format!("{} {}/{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

fn references(assets: &Assets, objects: &[Value]) {
    let names: BTreeSet<_> = objects.iter().map(name).collect();
    assert_eq!(names.len(), objects.len(), "no object twice");
    let resolves = |kind: &str, namespace: &str, at: Option<&Value>, from: &Value| {
        if let Some(wanted) = at.and_then(Value::as_str).filter(|name| !name.is_empty()) {
            let wanted = format!("{kind} {namespace}/{wanted}");
            assert!(names.contains(&wanted), "{}: {wanted}", name(from));
        }
    };
    let machine_api = "openshift-machine-api";
    for object in objects {
        resolves("ConfigMap", "openshift-config", object.pointer("/spec/trustedCA/name"), object);
        for at in ["/spec/bmc/credentialsName", "/spec/userData/name", "/spec/preprovisioningNetworkDataName"]
        {
            resolves("Secret", machine_api, object.pointer(at), object);
        }
        for at in ["/spec/providerSpec", "/spec/template/spec/providerSpec"] {
            resolves("Secret", machine_api, object.pointer(&format!("{at}/value/userData/name")), object);
        }
        resolves("Machine", machine_api, object.pointer("/spec/consumerRef/name"), object);
    }
    let kubeconfig = assets.yaml("auth/kubeconfig");
    let context = &kubeconfig["contexts"][0];
    assert_eq!(kubeconfig["current-context"], context["name"]);
    assert_eq!(context["context"]["user"], kubeconfig["users"][0]["name"]);
    assert_eq!(context["context"]["cluster"], kubeconfig["clusters"][0]["name"]);

    let config: seedling_ignition::Config = serde_json::from_str(&assets.read("bootstrap.ign")).unwrap();
    let paths: BTreeSet<_> = config.storage.files.iter().map(|file| file.path.clone()).collect();
    // Programs and files that units name are carried along, or made while the node runs.
    let made_later = [".bootkube.done"];
    for unit in &config.systemd.units {
        let text = unit.contents.clone().unwrap_or_default()
            + &unit.dropins.iter().map(|d| d.contents.as_str()).collect::<String>();
        let words = text.split(|c: char| c.is_whitespace() || "=!:\"".contains(c));
        for word in words.filter(|w| w.starts_with("/opt/openshift/") || w.starts_with("/usr/local/bin/")) {
            let later = made_later.iter().any(|end| word.ends_with(end));
            assert!(later || paths.contains(word), "{}: {word}", unit.name);
        }
    }
    let overrides: Value = {
        let file =
            config.storage.files.iter().find(|f| f.path.ends_with("/manifests/cvo-overrides.yaml")).unwrap();
        let bytes =
            seedling_ignition::decode(file.contents.as_ref().unwrap().source.as_ref().unwrap()).unwrap();
        serde_saphyr::from_str(&String::from_utf8(bytes).unwrap()).unwrap()
    };
    for entry in overrides["spec"]["overrides"].as_array().unwrap() {
        let text = |key: &str| entry[key].as_str().unwrap();
        let wanted = format!("{} {}/{}", text("kind"), text("namespace"), text("name"));
        assert!(names.contains(&wanted), "override of {wanted}");
    }
}

fn chains(assets: &Assets) {
    let state = seedling_assets::state_files(assets.dir.path()).unwrap();
    let pem = |asset: &str, file: &str| state[&format!("*{asset}")][&format!("tls/{file}.crt")].clone();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(common::NOW.unix_timestamp() as u64));
    let verify = |leaf: &str, authority: &str, usage| {
        let (leaf, authority) = (
            CertificateDer::from_pem_slice(leaf.as_bytes()).unwrap(),
            CertificateDer::from_pem_slice(authority.as_bytes()).unwrap(),
        );
        let anchors = [anchor_from_trusted_cert(&authority).unwrap()];
        let cert = EndEntityCert::try_from(&leaf).unwrap();
        cert.verify_for_usage(webpki::ALL_VERIFICATION_ALGS, &anchors, &[], now, usage, None, None).map(drop)
    };
    for leaf in LEAVES {
        let authority = pem(leaf.signer.asset, leaf.signer.file);
        let usage = if leaf.usages.contains(&seedling_pki::Usage::Server) {
            KeyUsage::server_auth()
        } else {
            KeyUsage::client_auth()
        };
        verify(&pem(leaf.asset, leaf.file), &authority, usage)
            .unwrap_or_else(|e| panic!("{}: {e}", leaf.file));
    }
    for bundle in BUNDLES {
        let want: String = bundle.signers.iter().map(|signer| pem(signer.asset, signer.file)).collect();
        assert_eq!(pem(bundle.asset, bundle.file), want, "{}", bundle.file);
    }
    // Machines trust the server that their pointer config leads them to.
    let pointer: Value = serde_json::from_str(&assets.read("master.ign")).unwrap();
    let source = pointer["ignition"]["config"]["merge"][0]["source"].as_str().unwrap();
    let host = source
        .trim_start_matches("https://")
        .rsplit_once(":22623")
        .unwrap()
        .0
        .trim_matches(['[', ']'])
        .to_string();
    let ca = pointer["ignition"]["security"]["tls"]["certificateAuthorities"][0]["source"].as_str().unwrap();
    assert_eq!(seedling_ignition::decode(ca).unwrap(), pem("tls.RootCA", "root-ca").into_bytes());
    let server = pem("tls.MCSCertKey", "machine-config-server");
    let der = CertificateDer::from_pem_slice(server.as_bytes()).unwrap();
    let name = rustls_pki_types::ServerName::try_from(host.clone()).unwrap();
    EndEntityCert::try_from(&der)
        .unwrap()
        .verify_is_valid_for_subject_name(&name)
        .unwrap_or_else(|e| panic!("{host}: {e}"));
}
