//! The state file, as openshift-install reads it: each member has the fields of upstream's Go type, and nothing else.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;
use base64::{Engine, engine::general_purpose::STANDARD};
use common::{Assets, HOSTS, SEED, data};
use seedling_assets::{Target, state_files};
use seedling_pki::trust::installer::{BUNDLES, LEAVES, SIGNERS};
use serde_json::{Map, Value, json};
use std::fs;

const STATE: &str = ".openshift_install_state.json";

/// What Go unmarshals a field from. `null` is fine for all but text.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Text,
    /// `[]byte`
    Bytes,
    /// `*asset.File`
    File,
    /// `[]*asset.File`
    Files,
    /// A pointer to a struct.
    Object,
}
use Kind::{Bytes, File, Files, Object, Text};

/// From upstream's sources: `pkg/asset/**`, the exported fields of each asset's type.
fn fields(asset: &str) -> Option<Vec<(&'static str, Kind)>> {
    let has = |mut names: Box<dyn Iterator<Item = &'static str>>| names.any(|name| name == asset);
    if has(Box::new(BUNDLES.iter().map(|b| b.asset))) {
        return Some(vec![("BundleRaw", Bytes), ("FileList", Files)]);
    }
    if has(Box::new(SIGNERS.iter().map(|s| s.asset).chain(LEAVES.iter().map(|l| l.asset)))) {
        return Some(vec![("CertRaw", Bytes), ("KeyRaw", Bytes), ("FileList", Files)]);
    }
    let machines = [
        ("UserDataFile", File),
        ("MachineConfigFiles", Files),
        ("MachineFiles", Files),
        ("SecretFiles", Files),
        ("NetworkConfigSecretFiles", Files),
        ("HostFiles", Files),
        ("FencingCredentialsSecretFiles", Files),
    ];
    Some(match asset {
        "installconfig.InstallConfig" => vec![("config", Object), ("file", File)],
        "installconfig.ClusterID" => vec![("UUID", Text), ("InfraID", Text)],
        "tls.SignerKeyParams" => vec![("PKIConfig", Object)],
        "tls.ServiceAccountKeyPair" => vec![("Pvt", Bytes), ("Pub", Bytes), ("FileList", Files)],
        "tls.BootstrapSSHKeyPair" => vec![("Priv", Bytes), ("Pub", Bytes)],
        "password.KubeadminPassword" => vec![("Password", Text), ("PasswordHash", Bytes), ("File", File)],
        "releaseimage.Image" => vec![("PullSpec", Text), ("Repository", Text)],
        "manifests.Manifests" => vec![("KubeSysConfig", Object), ("FileList", Files)],
        "manifests.Openshift" | "clusterapi.Cluster" | "bootstrap.CVOIgnore" | "tls.BoundSASigningKey" => {
            vec![("FileList", Files)]
        }
        "kubeconfig.AdminClient"
        | "kubeconfig.AdminInternalClient"
        | "kubeconfig.Kubelet"
        | "kubeconfig.LoopbackClient"
        | "machine.Master"
        | "machine.Arbiter"
        | "machine.Worker"
        | "bootstrap.Bootstrap"
        | "bootstrap.SingleNodeBootstrapInPlace" => vec![("Config", Object), ("File", File)],
        "machine.MasterIgnitionCustomizations"
        | "machine.ArbiterIgnitionCustomizations"
        | "machine.WorkerIgnitionCustomizations"
        | "openshiftinstall.Config"
        | "cluster.Metadata" => vec![("File", File)],
        "machines.Master" | "machines.Arbiter" => machines.to_vec(),
        "machines.Worker" => [&machines[..3], &[("MachineSetFiles", Files)]].concat(),
        _ => return None,
    })
}

fn is(value: &Value, kind: Kind) -> bool {
    let bytes = |v: &Value| v.as_str().is_some_and(|text| STANDARD.decode(text).is_ok());
    let file = |v: &Value| {
        let object = v.as_object().filter(|o| o.len() == 2);
        object.is_some_and(|o| {
            o.get("Filename").is_some_and(Value::is_string) && o.get("Data").is_some_and(bytes)
        })
    };
    match kind {
        Text => value.is_string(),
        _ if value.is_null() => true,
        Bytes => bytes(value),
        File => file(value),
        Files => value.as_array().is_some_and(|list| list.iter().all(file)),
        Object => value.is_object(),
    }
}

fn raw(assets: &Assets) -> Map<String, Value> {
    serde_json::from_str(&assets.read(STATE)).unwrap()
}

fn decoded(file: &Value) -> String {
    String::from_utf8(STANDARD.decode(file["Data"].as_str().unwrap()).unwrap()).unwrap()
}

#[test]
fn every_member_is_of_upstreams_type_or_ours() {
    let mut seen = 0;
    for case in ["base", SEED, "baremetal", "arbiter", "sno-bip", "two-node-fencing", "proxy-trust"] {
        let assets = Assets::of_case(case);
        let target =
            if case == "sno-bip" { Target::SingleNodeIgnitionConfig } else { Target::IgnitionConfigs };
        assets.create(target).unwrap_or_else(|e| panic!("{case}: {e}"));
        for (name, member) in raw(&assets) {
            let member = member.as_object().unwrap();
            if name.starts_with("*seedling.") || name == "stale" {
                assert!(member.values().all(Value::is_string), "{case}: {name}");
                continue;
            }
            let known =
                fields(name.trim_start_matches('*')).unwrap_or_else(|| panic!("{case}: {name} is nobody's"));
            for (field, value) in member {
                let kind = known.iter().find(|(known, _)| known == field).map(|(_, kind)| *kind);
                assert!(kind.is_some_and(|kind| is(value, kind)), "{case}: {name}.{field} as {kind:?}");
            }
            seen += 1;
        }
    }
    assert!(seen > 300, "{seen}");
}

/// What `wait-for` stumbled over: it takes the platform and the names from here.
#[test]
fn the_install_config_is_there_read_and_as_written() {
    let assets = Assets::of_case(SEED);
    assets.create(Target::IgnitionConfigs).unwrap();
    let state = raw(&assets);
    let asset = &state["*installconfig.InstallConfig"];
    let given: Value =
        serde_saphyr::from_str(&fs::read_to_string(data(SEED).join("install-config.yaml")).unwrap()).unwrap();
    for path in ["/metadata/name", "/baseDomain", "/platform/none", "/pullSecret", "/sshKey"] {
        assert_eq!(asset["config"].pointer(path), given.pointer(path), "{path}");
    }
    assert_eq!(asset["config"]["controlPlane"]["replicas"], 3);
    assert_eq!(asset["file"]["Filename"], "install-config.yaml");
    let written: Value = serde_saphyr::from_str(&decoded(&asset["file"])).unwrap();
    assert_eq!(written, asset["config"]);
    let admin = &state["*kubeconfig.AdminClient"];
    assert_eq!(
        admin["Config"]["clusters"][0]["cluster"]["server"].as_str().unwrap().rsplit(':').next(),
        Some("6443")
    );
    assert_eq!(decoded(&admin["File"]), assets.read("auth/kubeconfig"));
    assert_eq!(decoded(&state["*cluster.Metadata"]["File"]), assets.read("metadata.json"));
    let hash = state["*password.KubeadminPassword"]["PasswordHash"].as_str().unwrap();
    assert!(STANDARD.decode(hash).unwrap().starts_with(b"$2a$"));
}

/// Every step reads back what the one before wrote: nothing is made anew, whatever went through the form.
#[test]
fn what_is_written_is_read_back() {
    for case in [SEED, "baremetal", "two-node-fencing"] {
        let assets = Assets::of_case(case);
        assets.create(Target::Manifests).unwrap();
        let before = state_files(assets.dir.path()).unwrap();
        assets.create(Target::IgnitionConfigs).unwrap();
        let after = state_files(assets.dir.path()).unwrap();
        for (name, files) in before.iter().filter(|(name, _)| *name != "stale") {
            assert_eq!(after.get(name), Some(files), "{case}: {name}");
        }
    }
}

#[test]
fn a_state_of_an_earlier_version_is_still_read() {
    let assets = Assets::of_case(SEED);
    assets.write("hosts.yaml", HOSTS);
    assets.create(Target::Manifests).unwrap();
    let files = state_files(assets.dir.path()).unwrap();
    // Path → contents for every asset.
    assets.write(STATE, &json!(files).to_string());
    assert_eq!(state_files(assets.dir.path()).unwrap(), files);
    assets.create(Target::IgnitionConfigs).unwrap();
    let after = state_files(assets.dir.path()).unwrap();
    for name in ["*installconfig.ClusterID", "*tls.RootCA", "*tls.SignerKeyParams"] {
        assert_eq!(after[name], files[name], "{name}");
    }
    assert!(
        raw(&assets)["*installconfig.InstallConfig"]["config"].is_object(),
        "and is written in the new form"
    );
}
