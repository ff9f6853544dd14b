//! What the store reads, keeps, drops and says: the recorded situations (`store-behaviour.txt`), one test each.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;
use common::{Assets, SEED, data};
use seedling_assets::Target::{self, IgnitionConfigs, InstallConfig, Manifests, SingleNodeIgnitionConfig};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

const SCHEDULABLE: &str = "warning: Making control-plane schedulable by setting MastersSchedulable to true for Scheduler cluster settings";
const CA: &str =
    "info: Successfully populated MCS CA cert information: root-ca 2036-11-12T12:00:00Z 2026-11-15T12:00:00Z";
const TLS: &str = "info: Successfully populated MCS TLS cert information: root-ca 2036-11-12T12:00:00Z 2026-11-15T12:00:00Z";
const IGNITION_DONE: &str = "info: Ignition-Configs created in: s and s/auth";
const MANIFESTS_DONE: &str = "info: Manifests created in: s, s/manifests and s/openshift";
/// Seedling's own: upstream knows no inventory.
const NO_HOSTS: &str =
    "warning: There is no hosts.yaml: the bootstrap node will wait for one in /opt/openshift/hosts.yaml";
const WHOLE: [&str; 5] = [
    "Openshift Manifests",
    "Worker Machines",
    "Master Machines",
    "OpenShift Install (Manifests)",
    "Common Manifests",
];
const AFTER_IGNITION: [&str; 7] = [
    ".openshift_install_state.json",
    "auth/kubeadmin-password",
    "auth/kubeconfig",
    "bootstrap.ign",
    "master.ign",
    "metadata.json",
    "worker.ign",
];

fn seed() -> Assets {
    Assets::of_case(SEED)
}
fn after(target: Target) -> Assets {
    let assets = seed();
    assets.create(target).unwrap();
    assets
}
fn consuming(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| format!("info: Consuming {name} from target directory")).collect()
}
fn said(assets: &Assets, target: Target, want: &[&str], consumed: &[&str]) {
    let mut got = assets.said(target);
    got.remove(NO_HOSTS);
    got.remove("warning: Without hosts.yaml the machine-config server will answer whoever reaches it");
    let want: BTreeSet<_> = want.iter().map(|line| line.to_string()).chain(consuming(consumed)).collect();
    assert_eq!(got, want);
}
fn bootstrap_paths(assets: &Assets) -> BTreeSet<String> {
    let config: Value = serde_json::from_str(&assets.read("bootstrap.ign")).unwrap();
    let files = config["storage"]["files"].as_array().unwrap();
    files.iter().map(|file| file["path"].as_str().unwrap().to_string()).collect()
}
fn state(assets: &Assets) -> Value {
    serde_json::to_value(seedling_assets::state_files(assets.dir.path()).unwrap()).unwrap()
}

#[test]
fn ignition_configs_directly() {
    let assets = seed();
    let consumed = ["Install Config", "Signer Key Parameters"];
    said(&assets, IgnitionConfigs, &[SCHEDULABLE, CA, TLS, IGNITION_DONE], &consumed);
    assert_eq!(assets.tree(), AFTER_IGNITION);
    assert!(assets.read(".openshift_install.log").contains("level=info msg=\"Ignition-Configs created in: "));
    let again = assets.read("bootstrap.ign");
    said(&assets, IgnitionConfigs, &[IGNITION_DONE], &[]);
    assert_eq!(assets.read("bootstrap.ign"), again, "a second run is a no-op");
}

#[test]
fn manifests_twice() {
    let assets = after(Manifests);
    let before = assets.tree();
    said(&assets, Manifests, &[MANIFESTS_DONE], &["OpenShift Install (Manifests)"]);
    assert_eq!(assets.tree(), before);
}

#[test]
fn install_config_after_manifests_comes_from_the_state() {
    let assets = after(Manifests);
    said(&assets, InstallConfig, &["info: Install-Config created in: s"], &[]);
    assert!(assets.path("install-config.yaml").exists() && assets.path("manifests").exists());
}

#[test]
fn an_edited_manifest_goes_into_the_ignition_config() {
    let assets = after(Manifests);
    let path = "manifests/cluster-scheduler-02-config.yml";
    assets.write(path, &assets.read(path).replace("true", "false"));
    said(&assets, IgnitionConfigs, &[IGNITION_DONE], &WHOLE);
    let kept = state(&assets)["*manifests.Manifests"][path].as_str().unwrap().to_string();
    assert!(kept.contains("mastersSchedulable: false"));
}

#[test]
fn user_manifests_are_carried_along() {
    let assets = after(Manifests);
    let object =
        |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: b}}\n");
    assets.write("manifests/zz-user.yaml", &object("a3"));
    assets.write("openshift/99-user.yml", &object("a"));
    assets.write(
        "openshift/x.json",
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a2","namespace":"b"}}"#,
    );
    assets.write("openshift/readme.txt", "not a manifest");
    said(&assets, IgnitionConfigs, &[IGNITION_DONE], &WHOLE);
    let paths = bootstrap_paths(&assets);
    for path in ["manifests/zz-user.yaml", "openshift/99-user.yml", "openshift/x.json"] {
        assert!(paths.contains(&format!("/opt/openshift/{path}")), "{path}");
        assert!(!assets.path(path).exists(), "{path}");
    }
    assert!(assets.path("openshift/readme.txt").exists() && !assets.path("manifests").exists());
    let overrides = &state(&assets)["*bootstrap.CVOIgnore"]["manifests/cvo-overrides.yaml"];
    let overrides: Value = serde_saphyr::from_str(overrides.as_str().unwrap()).unwrap();
    for name in ["a", "a2", "a3"] {
        let entry = serde_json::json!({"group": "", "kind": "ConfigMap", "name": name, "namespace": "b", "unmanaged": true});
        assert!(overrides["spec"]["overrides"].as_array().unwrap().contains(&entry), "{name}");
    }
}

const IGNORE: &str = "fatal: failed to fetch Bootstrap Ignition Config: failed to fetch dependency of \"Bootstrap Ignition Config\": \
                      failed to generate asset \"CVO Ignore\": ";

/// A failed run changes nothing, where upstream has eaten the files by then.
fn refused(assets: &Assets, warning: Option<&str>, fatal: &str) {
    let before = assets.tree();
    let want = warning.map(|w| format!("warning: {w}")).into_iter().chain([format!("{IGNORE}{fatal}")]);
    assert_eq!(assets.said(IgnitionConfigs), want.collect());
    assert_eq!(assets.create(IgnitionConfigs).unwrap_err().exit_code(), 1);
    assert_eq!(assets.tree(), before);
}

#[test]
fn two_manifests_for_one_object() {
    for copy in ["manifests/dup.yaml", "openshift/dup.yaml"] {
        let assets = after(Manifests);
        let first = "manifests/cluster-dns-02-config.yml";
        assets.write(copy, &assets.read(first));
        let what = "multiple manifests for group config.openshift.io kind DNS namespace  name cluster";
        refused(&assets, None, &format!("{what}: {first}, {copy}"));
    }
}

#[test]
fn manifests_that_are_none() {
    let assets = after(Manifests);
    assets.write("openshift/bad.yaml", "a: b\n");
    let why = r#"error unmarshaling JSON: while decoding JSON: Object 'Kind' is missing in '{"a":"b"}'"#;
    let warning = format!("failed to unmarshal file openshift/bad.yaml: {why}");
    refused(&assets, Some(&warning), &format!("could not unmarshal \"openshift/bad.yaml\": {why}"));

    assets.write("openshift/bad.yaml", "a: 1\nb: [}\n");
    let why = "error converting YAML to JSON: yaml: line 1: did not find expected node content";
    let warning = format!("failed to unmarshal file openshift/bad.yaml: {why}");
    refused(&assets, Some(&warning), &format!("could not unmarshal \"openshift/bad.yaml\": {why}"));
}

#[test]
fn without_cluster_config_the_set_is_not_one() {
    let assets = after(Manifests);
    fs::remove_file(assets.path("manifests/cluster-config.yaml")).unwrap();
    let dns = "manifests/cluster-dns-02-config.yml";
    assets.write(dns, "apiVersion: v1\nkind: Other\nmetadata: {name: x}\n");
    let consumed = WHOLE.map(|name| if name == "Common Manifests" { WHOLE[0] } else { name });
    said(&assets, IgnitionConfigs, &[IGNITION_DONE], &consumed);
    assert!(assets.path(dns).exists(), "left on the disk");
    assert!(
        bootstrap_paths(&assets).contains("/opt/openshift/manifests/cluster-config.yaml"),
        "from the state"
    );
}

#[test]
fn another_install_config_makes_everything_anew() {
    let assets = seed();
    let text = assets.read("install-config.yaml");
    assets.create(Manifests).unwrap();
    let password = state(&assets)["*password.KubeadminPassword"].clone();
    assets.write("install-config.yaml", &text.replace("ocp4", "other"));
    assets.write("openshift/mine.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine}\n");
    let discarding = |indent: &str, name: &str| {
        format!(
            "warning: {indent}Discarding the {name} that was provided in the target directory because its dependencies are dirty \
             and it needs to be regenerated"
        )
    };
    let discarded = [
        discarding("    ", "Common Manifests"),
        discarding("    ", "Openshift Manifests"),
        discarding("  ", "Master Machines"),
        discarding("  ", "Worker Machines"),
    ];
    let mut want = vec![SCHEDULABLE, CA, TLS, IGNITION_DONE];
    want.extend(discarded.iter().map(String::as_str));
    let mut consumed = WHOLE.to_vec();
    consumed.extend(["Install Config", "Signer Key Parameters"]);
    said(&assets, IgnitionConfigs, &want, &consumed);
    let metadata: Value = serde_json::from_str(&assets.read("metadata.json")).unwrap();
    assert_eq!(metadata["clusterName"], "other");
    assert!(metadata["infraID"].as_str().unwrap().starts_with("other-"));
    assert_eq!(state(&assets)["*password.KubeadminPassword"], password, "made of nothing that changed");
    let mine = "/opt/openshift/openshift/mine.yaml";
    assert!(bootstrap_paths(&assets).contains(mine), "upstream loses a user's own file here");
}

#[test]
fn the_same_install_config_again_changes_nothing() {
    let assets = seed();
    let text = assets.read("install-config.yaml");
    assets.create(Manifests).unwrap();
    let before = state(&assets)["*installconfig.ClusterID"].clone();
    assets.write("install-config.yaml", &text);
    let mut consumed = WHOLE.to_vec();
    consumed.extend(["Install Config", "Signer Key Parameters"]);
    said(&assets, IgnitionConfigs, &[IGNITION_DONE], &consumed);
    assert_eq!(state(&assets)["*installconfig.ClusterID"], before);
}

#[test]
fn what_was_made_of_another_install_config_is_not_used_later() {
    let assets = seed();
    let text = assets.read("install-config.yaml");
    assets.create(IgnitionConfigs).unwrap();
    let before = assets.read("bootstrap.ign");
    assets.write("install-config.yaml", &text.replace("ocp4", "other"));
    assets.create(Manifests).unwrap();
    assets.create(IgnitionConfigs).unwrap();
    assert_ne!(assets.read("bootstrap.ign"), before);
    assert!(assets.read("master.ign").contains("api-int.other.alchemy.com"));
    assert!(assets.read("auth/kubeconfig").contains("api.other.alchemy.com"));
}

#[test]
fn without_an_install_config() {
    let assets = seed();
    fs::remove_file(assets.path("install-config.yaml")).unwrap();
    let error = assets.create(Manifests).unwrap_err();
    assert_eq!(error.exit_code(), 1);
    assert!(error.to_string().contains("has neither an install-config.yaml nor the state of an earlier run"));
    assert!(assets.tree().is_empty());
}

#[test]
fn in_place_needs_one_master_and_a_disk() {
    let assets = seed();
    let why = "fatal: failed to fetch Single node bootstrap In Place Ignition Config: failed to generate asset \"Single node bootstrap \
               In Place Ignition Config\": [controlPlane.replicas: Invalid value: 3: bootstrap in place requires a single ControlPlane \
               replica, bootstrapInPlace: Required value: bootstrapInPlace is required when creating a single node bootstrap-in-place \
               ignition]";
    assert_eq!(assets.said(SingleNodeIgnitionConfig), [why.to_string()].into());
    assert_eq!(assets.tree(), ["install-config.yaml"], "upstream has eaten it by now");

    let assets = Assets::of_case("sno-bip");
    let mut config: Value = serde_saphyr::from_str(&assets.read("install-config.yaml")).unwrap();
    config["bootstrapInPlace"]["installationDisk"] = "".into();
    assets.write("install-config.yaml", &config.to_string());
    let said = assets.said(SingleNodeIgnitionConfig);
    let why = "\"Single node bootstrap In Place Ignition Config\": bootstrapInPlace.installationDisk: Required value: installationDisk must \
               be set the target disk drive for the installation";
    assert!(said.len() == 1 && said.iter().all(|line| line.ends_with(why)), "{said:?}");
}

/// The recorded files of `openshift/`, in another order: theirs is the order of assets, ours of names.
#[test]
fn an_arbiter_directly() {
    let assets = Assets::of_case("arbiter");
    let consumed = ["Install Config", "Signer Key Parameters"];
    said(&assets, IgnitionConfigs, &[SCHEDULABLE, CA, TLS, IGNITION_DONE], &consumed);
    let openshift = "/opt/openshift/openshift/";
    let got: BTreeSet<_> =
        bootstrap_paths(&assets).into_iter().filter(|p| p.starts_with(openshift)).collect();
    let pools = ["master", "arbiter", "worker"].into_iter().flat_map(|pool| {
        let ssh = format!("99_openshift-machineconfig_99-{pool}-ssh.yaml");
        [format!("99_openshift-cluster-api_{pool}-user-data-secret.yaml"), ssh]
    });
    let others = [
        "99_feature-gate",
        "99_kubeadmin-password-secret",
        "99_osimagestream",
        "openshift-install-manifests",
    ];
    let others = others.into_iter().map(|name| format!("{name}.yaml"));
    assert_eq!(got, pools.chain(others).map(|name| format!("{openshift}{name}")).collect());
    let mut files: Vec<_> = AFTER_IGNITION.into_iter().chain(["arbiter.ign"]).collect();
    files.sort();
    assert_eq!(assets.tree(), files);
}

#[test]
fn the_bootstrap_nodes_address_reaches_its_kubelet() {
    let assets = seed();
    let with = |address: &str| {
        let options =
            seedling_assets::Options { bootstrap_node_ip: Some(address.into()), ..assets.options() };
        seedling_assets::create(IgnitionConfigs, assets.dir.path(), &options)
    };
    let why = with("me").unwrap_err().to_string();
    assert!(
        why.ends_with("OPENSHIFT_INSTALL_BOOTSTRAP_NODE_IP: Invalid value: \"me\": must be an IP address"),
        "{why}"
    );
    with("10.0.0.77").unwrap();
    let config: Value = serde_json::from_str(&assets.read("bootstrap.ign")).unwrap();
    let units = config["systemd"]["units"].as_array().unwrap();
    let kubelet = units.iter().find(|unit| unit["name"] == "kubelet.service").unwrap();
    let want = "[Service]\nEnvironment=\"NODE_ARGS=--node-ip=10.0.0.77 --address=10.0.0.77\"\n";
    assert_eq!(kubelet["dropins"][0]["contents"], want);
    assert!(kubelet["contents"].as_str().unwrap().contains(" $$NODE_ARGS'"), "the unit takes them");
}

#[test]
fn a_single_node_on_bare_metal() {
    let assets = Assets::of_case("baremetal");
    let mut config: Value = serde_saphyr::from_str(&assets.read("install-config.yaml")).unwrap();
    config["controlPlane"]["replicas"] = 1.into();
    config["compute"] = serde_json::json!([{"name": "worker", "replicas": 0}]);
    assets.write("install-config.yaml", &config.to_string());
    let why = "failed to generate asset \"Master Machines\": this install method does not support Single Node installation on platform \
               baremetal";
    assert_eq!(assets.said(Manifests), [format!("fatal: failed to fetch Master Machines: {why}")].into());
    let bootstrap = "Bootstrap Ignition Config";
    let want =
        format!("fatal: failed to fetch {bootstrap}: failed to fetch dependency of {bootstrap:?}: {why}");
    assert_eq!(assets.said(IgnitionConfigs), [want].into());
}

#[test]
fn the_invoker_is_noted() {
    let assets = seed();
    let options = seedling_assets::Options { invoker: "hive".into(), ..assets.options() };
    seedling_assets::create(Manifests, assets.dir.path(), &options).unwrap();
    assert!(assets.read("openshift/openshift-install-manifests.yaml").contains("invoker: hive"));
}

#[test]
fn a_corrupt_state_is_refused() {
    let assets = seed();
    assets.write(".openshift_install_state.json", "{");
    let why = "fatal: failed to create asset store: failed to unmarshal state file \"s/.openshift_install_state.json\": unexpected end \
               of JSON input";
    assert_eq!(assets.said(Manifests), [why.to_string()].into());
}

#[test]
fn a_bound_service_account_key_of_the_users_own() {
    let assets = seed();
    let pair = seedling_pki::rsa_keypair().unwrap();
    assets.write("tls/bound-service-account-signing-key.key", &pair.key);
    let consumed = ["Install Config", "Signer Key Parameters", "User-provided Service Account Signing key"];
    said(&assets, IgnitionConfigs, &[SCHEDULABLE, CA, TLS, IGNITION_DONE], &consumed);
    assert_eq!(assets.tree(), AFTER_IGNITION);
    let paths = bootstrap_paths(&assets);
    for end in ["key", "pub"] {
        assert!(paths.contains(&format!("/opt/openshift/tls/bound-service-account-signing-key.{end}")));
    }
    let kept = state(&assets)["*tls.BoundSASigningKey"]["tls/bound-service-account-signing-key.pub"].clone();
    assert_eq!(kept, pair.public);
}

#[test]
fn an_edited_pointer_config_becomes_a_machine_config() {
    let assets = after(IgnitionConfigs);
    let edited = assets.read("master.ign").replace(
        r#""version":"3.2.0"}"#,
        r#""version":"3.2.0"},"storage":{"files":[{"path":"/etc/mine","contents":{"source":"data:,x"}}]}"#,
    );
    assets.write("master.ign", &edited);
    fs::remove_file(assets.path("bootstrap.ign")).unwrap();
    let modified = "info: Master pointer ignition was modified. Saving contents to a machineconfig";
    said(&assets, IgnitionConfigs, &[modified, IGNITION_DONE], &[]);
    assert_eq!(assets.read("master.ign"), edited, "the user's stays");
    let path = "openshift/99_openshift-installer-ignition_master.yaml";
    assert!(bootstrap_paths(&assets).contains(&format!("/opt/openshift/{path}")));
    let text = state(&assets)["*machine.MasterIgnitionCustomizations"][path].as_str().unwrap().to_string();
    let config: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(config["metadata"]["name"], "99-installer-ignition-master");
    let want = serde_json::json!({
        "ignition": {"version": "3.2.0"},
        "storage": {"files": [{"path": "/etc/mine", "contents": {"source": "data:,x"}}]},
    });
    assert_eq!(config["spec"]["config"], want, "without the pointer itself");

    let before = assets.read("bootstrap.ign");
    said(&assets, IgnitionConfigs, &[IGNITION_DONE], &[]);
    assert_eq!(assets.read("bootstrap.ign"), before);
}

#[test]
fn unreadable_ignition_files_are_refused() {
    let assets = after(IgnitionConfigs);
    assets.write("bootstrap.ign", "{");
    let lines = assets.create(IgnitionConfigs).unwrap_err().to_string();
    assert!(lines.ends_with("failed to unmarshal bootstrap.ign: unexpected end of JSON input"), "{lines}");
}

#[test]
fn an_edited_password_is_overwritten_from_the_state() {
    let assets = after(IgnitionConfigs);
    let password = assets.read("auth/kubeadmin-password");
    assets.write("auth/kubeadmin-password", "mine");
    assets.create(IgnitionConfigs).unwrap();
    assert_eq!(assets.read("auth/kubeadmin-password"), password);
}

/// Own signers, given when the install-config is still there: upstream throws them away and deletes the files.
#[test]
fn own_signers_are_used_when_asked_for_and_stay() {
    let mut assets = seed();
    let made = table();
    for file in ["root-ca", "kube-apiserver-lb-signer"] {
        assets.write(&format!("tls/{file}.crt"), &made[file].cert);
        assets.write(&format!("tls/{file}.key"), &made[file].key);
    }
    assets.own_signers = true;
    assets.create(IgnitionConfigs).unwrap();
    let state = state(&assets);
    assert_eq!(state["*tls.RootCA"]["tls/root-ca.crt"], made["root-ca"].cert);
    assert_eq!(
        state["*tls.KubeAPIServerLBSignerCertKey"]["tls/kube-apiserver-lb-signer.key"],
        made["kube-apiserver-lb-signer"].key
    );
    assert!(
        assets.path("tls/root-ca.key").exists() && assets.path("tls/kube-apiserver-lb-signer.crt").exists()
    );

    assets.write("tls/root-ca.key", &made["kubelet-signer"].key);
    let error = assets.create(IgnitionConfigs).unwrap_err().to_string();
    assert!(error.ends_with("tls/root-ca.crt: the key does not belong to the certificate"), "{error}");
    assets.own_signers = false;
    assets.create(IgnitionConfigs).expect("without asking, tls/ is ignored");
}

/// Signers of another cluster.
fn table() -> std::collections::BTreeMap<&'static str, seedling_pki::CertKey> {
    let signers = seedling_pki::trust::installer::SIGNERS.iter();
    signers.map(|signer| (signer.file, signer.make(Default::default(), common::NOW).unwrap())).collect()
}

/// Every edge of ours between assets that upstream has is upstream's, but for those that say why.
#[test]
fn the_graph_is_upstreams() {
    let edges = |dot: &str| -> BTreeSet<(String, String)> {
        let edge = |line: &str| {
            let (from, to) = line.trim().trim_end_matches(';').split_once("->")?;
            Some((from.trim_matches('"').to_string(), to.trim_matches('"').to_string()))
        };
        dot.lines().filter_map(edge).collect()
    };
    let upstream = edges(&fs::read_to_string(data("graph.dot")).unwrap());
    let known: BTreeSet<_> = upstream.iter().flat_map(|(a, b)| [a, b]).collect();
    let ours = edges(&seedling_assets::dot());
    let reasons: &[(&str, &str)] = &[
        ("tls.SignerKeyParams", "every signer's key is made with the chosen algorithm, short-lived ones too"),
        ("openshift.KubeadminPasswordSecret", "it holds the hash only"),
        ("password.KubeadminPassword", "the hash is of this password"),
        ("machine.ArbiterIgnitionCustomizations", "an edited arbiter.ign is not lost, either"),
        ("tls.RootCA", "root-ca goes into manifests through no asset of its own"),
        ("tls.MCSCertKey", "the same"),
    ];
    let bundle = |(from, to): &(String, String)| to.ends_with("CABundle") && from.starts_with("tls.");
    // It lives a day here, and such ones are made anew with the install-config.
    let short_lived = |edge: &(String, String)| edge.1 == "tls.KubeletClientCertKey";
    let explained = |edge: &(String, String)| {
        bundle(edge) || short_lived(edge) || reasons.iter().any(|(from, _)| edge.0 == *from)
    };
    let extra: Vec<_> = ours
        .difference(&upstream)
        .filter(|(a, b)| known.contains(a) && known.contains(b))
        .filter(|edge| !explained(edge))
        .collect();
    assert!(extra.is_empty(), "{extra:?}");
    assert!(ours.intersection(&upstream).count() > 120);
}
