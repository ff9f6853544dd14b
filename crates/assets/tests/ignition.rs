//! Ignition files: accepted by the real validator, laid out as recorded, stable from run to run.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod common;
use base64::{Engine, engine::general_purpose::STANDARD};
use common::{Assets, HOSTS, SEED, cases, data};
use seedling_assets::{Target, lab_kubeconfig};
use seedling_ignition::Config;
use seedling_types::Admission;
use seedling_types::admission::digest;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

fn made() -> Assets {
    let assets = Assets::of_case(SEED);
    assets.write("hosts.yaml", HOSTS);
    assets.create(Target::IgnitionConfigs).unwrap();
    assets
}

/// Path → (mode, contents) of the files that are carried inside.
fn files(assets: &Assets) -> BTreeMap<String, (u32, String)> {
    let config: Config = serde_json::from_str(&assets.read("bootstrap.ign")).unwrap();
    let inline = |file: seedling_ignition::File| {
        let source = file.contents?.source?;
        let url = source.starts_with("data:").then_some(source)?;
        let (body, _) = data_url::DataUrl::process(&url).unwrap().decode_to_vec().unwrap();
        Some((file.path, (file.mode?, String::from_utf8(body).unwrap())))
    };
    config.storage.files.into_iter().filter_map(inline).collect()
}

#[test]
fn the_real_validator_accepts_every_file() {
    let assets = made();
    for name in ["bootstrap.ign", "master.ign", "worker.ign", "nodes/master01.ign"] {
        let run = Command::new("ignition-validate").arg(assets.path(name)).output();
        let run = run.expect("ignition-validate must be installed (Debian package ignition)");
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(run.status.success() && said.is_empty(), "{name}: {said}");
    }
}

/// What upstream's bootstrap.ign has and the native profile has not, and why.
const NOT_NATIVE: [(&str, &str); 10] = [
    ("konnectivity", "stages of the tech preview"),
    ("egress-selector", "the same"),
    ("node-image-", "the node OS is left alone"),
    ("var-ostreecontainer.mount", "the same"),
    ("/usr/local/bin/", "the program is the script"),
    ("ironic", "bare metal is not provisioned from here yet"),
    ("metal3", "the same"),
    ("NetworkManager", "the same"),
    ("bmc-ca", "the same"),
    ("image-customization", "the same"),
];

#[test]
fn the_files_and_units_are_those_recorded() {
    for case in cases() {
        let assets = Assets::of_case(&case);
        let in_place = case == "sno-bip";
        let (target, name) = match in_place {
            true => (Target::SingleNodeIgnitionConfig, "bootstrap-in-place-for-live-iso.ign"),
            false => (Target::IgnitionConfigs, "bootstrap.ign"),
        };
        assets.create(target).unwrap();
        let summary = fs::read_to_string(data(&case).join("summary.json")).unwrap();
        let summary: Value = serde_json::from_str(&summary).unwrap();
        let recorded = summary["ignition"][name]["files"].as_array().unwrap().iter();
        let absent = |path: &str| {
            path.contains("bootstrap-in-place/") || NOT_NATIVE.iter().any(|(part, _)| path.contains(part))
        };
        let recorded: BTreeMap<_, _> = recorded
            .map(|file| (file[0].as_str().unwrap(), file[1].as_str().unwrap()))
            .filter(|(path, _)| !absent(path))
            .collect();
        let config: Config = serde_json::from_str(&assets.read(name)).unwrap();
        let ours: BTreeMap<_, _> =
            config.storage.files.iter().map(|f| (f.path.as_str(), f.mode.unwrap())).collect();
        for (path, mode) in &recorded {
            let got = ours.get(path).unwrap_or_else(|| panic!("{case}: {path} is missing"));
            assert_eq!(&format!("0o{got:o}"), mode, "{case}: {path}");
        }
        let units: Vec<_> = config.systemd.units.iter().map(|unit| unit.name.as_str()).collect();
        for unit in summary["ignition"][name]["units"].as_array().unwrap() {
            let unit = unit[0].as_str().unwrap();
            let native = !["crio-configure", "ironic", "metal3", "bmh-update", "provisioning-interface"]
                .iter()
                .any(|part| unit.contains(part));
            assert!(!native || units.contains(&unit), "{case}: {unit}");
        }
        for (role, want) in
            ["master", "worker", "arbiter"].map(|r| (r, &summary["ignition"][format!("{r}.ign")]["raw"]))
        {
            let Some(want) = want.as_str() else { continue };
            let got = assets.read(&format!("{role}.ign"));
            let (head, tail) = want.split_once("<redacted>").unwrap();
            assert!(got.starts_with(head) && got.ends_with(tail), "{case}: {got}");
        }
        let tree: BTreeSet<_> = assets.tree().into_iter().collect();
        let recorded =
            summary["final_tree"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_string());
        let not_here = [".openshift_install.log", "000_capi-namespace.yaml"];
        let recorded: BTreeSet<_> = recorded.filter(|name| !not_here.contains(&name.as_str())).collect();
        assert_eq!(tree, recorded, "{case}");
    }
}

#[test]
fn what_the_native_profile_adds() {
    let ours = files(&made());
    let summary = fs::read_to_string(data(SEED).join("summary.json")).unwrap();
    let extra: Vec<_> = ours
        .keys()
        .filter(|path| path.starts_with("/opt/openshift/") && !summary.contains(path.as_str()))
        .collect();
    assert_eq!(
        extra,
        [
            "/opt/openshift/hosts.yaml",
            "/opt/openshift/manifests/00_openshift-machine-api-ns.yaml",
            "/opt/openshift/node-tokens.json",
            "/opt/openshift/release.json"
        ]
    );
}

#[test]
fn mirrors_proxy_and_trust_reach_the_bootstrap_node() {
    let of = |case: &str, path: &str| {
        let assets = Assets::of_case(case);
        assets.create(Target::IgnitionConfigs).unwrap();
        files(&assets)[path].1.clone()
    };
    let registries = of("mirrors-ids", "/etc/containers/registries.conf");
    let block = "location = \"quay.io/openshift-release-dev/ocp-v4.0-art-dev\"\nmirror-by-digest-only = true\nblocked = true\n\n\
                 [[registry.mirror]]\nlocation = \"registry.example.com/ocp/release\"\n";
    assert!(registries.ends_with(block) && registries.matches("[[registry]]").count() == 2, "{registries}");
    assert!(
        of("proxy-trust", "/etc/profile.d/proxy.sh")
            .contains("export HTTP_PROXY=\"http://proxy.example.com:3128\"\n")
    );
    let environment = of("proxy-trust", "/etc/systemd/system.conf.d/10-default-env.conf");
    assert!(
        environment.starts_with("[Manager]\nDefaultEnvironment=HTTP_PROXY=\"http://proxy"),
        "{environment}"
    );
    assert!(
        of("trust-only", "/etc/pki/ca-trust/source/anchors/ca.crt")
            .starts_with("-----BEGIN CERTIFICATE-----")
    );
    assert_eq!(of("base", "/etc/systemd/system.conf.d/10-default-env.conf"), "[Manager]\n");
    let fips = of("base", "/etc/ignition-machine-config-encapsulated.json");
    assert!(fips.contains("\"name\": \"bootstrap-fips\"") && fips.contains("\"fips\": false"));
}

#[test]
fn overrides_list_every_object_but_machines_and_the_version_itself() {
    let files = files(&made());
    let version: Value =
        serde_saphyr::from_str(&files["/opt/openshift/manifests/cvo-overrides.yaml"].1).unwrap();
    let overrides = version["spec"]["overrides"].as_array().unwrap();
    assert_eq!(overrides.len(), 13 + 4);
    assert_eq!(
        serde_json::to_string(&overrides[0]).unwrap(),
        r#"{"group":"","kind":"ConfigMap","name":"cluster-config-v1","namespace":"kube-system","unmanaged":true}"#
    );
    assert!(!overrides.iter().any(|o| o["kind"] == "ClusterVersion" || o["kind"] == "MachineConfig"));
    assert_eq!(files["/opt/openshift/original_cvo_overrides.patch"].1, r#"{"spec":{"overrides":null}}"#);
}

#[test]
fn pointer_configs() {
    let assets = made();
    let root_ca = files(&assets)["/opt/openshift/tls/root-ca.crt"].1.clone();
    for role in ["master", "worker"] {
        let want = format!(
            r#"{{"ignition":{{"config":{{"merge":[{{"source":"https://api-int.ocp4.alchemy.com:22623/config/{role}"}}]}},"security":{{"tls":{{"certificateAuthorities":[{{"source":"data:text/plain;charset=utf-8;base64,{}"}}]}}}},"version":"3.2.0"}}}}"#,
            STANDARD.encode(&root_ca)
        );
        assert_eq!(assets.read(&format!("{role}.ign")), want);
        let secret =
            format!("/opt/openshift/openshift/99_openshift-cluster-api_{role}-user-data-secret.yaml");
        assert!(files(&assets)[&secret].1.contains(&STANDARD.encode(&want)));
    }
}

#[test]
fn each_machine_has_a_pointer_and_a_token_of_its_own() {
    let assets = made();
    let admission: Admission =
        serde_json::from_str(&files(&assets)["/opt/openshift/node-tokens.json"].1).unwrap();
    assert_eq!(files(&assets)["/opt/openshift/node-tokens.json"].0, 0o600);
    assert!(!admission.open);
    assert_eq!(admission.nodes.keys().collect::<Vec<_>>(), ["master01", "master02", "master03"]);
    let everything_else: String =
        ["bootstrap.ign", "master.ign", "worker.ign", "metadata.json"].map(|f| assets.read(f)).concat();
    let role: Value = serde_json::from_str(&assets.read("master.ign")).unwrap();
    for (name, issued) in &admission.nodes {
        let path = assets.path(&format!("nodes/{name}.ign"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let mut own: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let merge = own["ignition"]["config"]["merge"][0].as_object_mut().unwrap();
        let headers = merge.remove("httpHeaders").unwrap();
        let token = headers[0]["value"].as_str().unwrap().strip_prefix("Bearer ").unwrap();
        assert_eq!(headers[0]["name"], "Authorization");
        assert_eq!((token.len(), &digest(token)), (64, &issued.sha256));
        assert!(!everything_else.contains(token));
        assert_eq!(own, role, "otherwise it is the role's");
    }
    let before = assets.read("nodes/master01.ign");
    assets.create(Target::IgnitionConfigs).unwrap();
    assert_eq!(assets.read("nodes/master01.ign"), before, "a second run changes nothing");
}

#[test]
fn an_open_server_needs_no_tokens() {
    let mut assets = made();
    assets.open = true;
    assets.create(Target::IgnitionConfigs).unwrap();
    assert_eq!(files(&assets)["/opt/openshift/node-tokens.json"].1, r#"{"open":true}"#);
    assert!(!assets.tree().iter().any(|path| path.starts_with("nodes/")));
    // Without an inventory nobody knows whom to give a token, and that is said.
    let assets = Assets::of_case(SEED);
    let outcome = assets.create(Target::IgnitionConfigs).unwrap();
    assert!(outcome.messages.iter().any(|m| m.text.contains("will answer whoever reaches it")));
    assert_eq!(files(&assets)["/opt/openshift/node-tokens.json"].1, r#"{"open":true}"#);
}

#[test]
fn kubeconfigs() {
    let assets = made();
    let files = files(&assets);
    let parse = |text: &str| serde_saphyr::from_str::<Value>(text).unwrap();
    let cases = [
        (assets.yaml("auth/kubeconfig"), "https://api.ocp4.alchemy.com:6443", "admin", 3),
        (
            parse(&files["/opt/openshift/auth/kubeconfig"].1),
            "https://api-int.ocp4.alchemy.com:6443",
            "admin",
            3,
        ),
        (
            parse(&files["/opt/openshift/auth/kubeconfig-kubelet"].1),
            "https://api-int.ocp4.alchemy.com:6443",
            "kubelet",
            3,
        ),
        (parse(&files["/opt/openshift/auth/kubeconfig-loopback"].1), "https://localhost:6443", "loopback", 1),
        (
            parse(&files["/etc/kubernetes/kubeconfigs/localhost.kubeconfig"].1),
            "https://localhost:6443",
            "loopback",
            1,
        ),
    ];
    for (config, server, user, authorities) in cases {
        let cluster = &config["clusters"][0];
        assert_eq!(
            (cluster["name"].as_str(), cluster["cluster"]["server"].as_str()),
            (Some("ocp4"), Some(server))
        );
        assert_eq!(config["current-context"], user);
        assert_eq!(
            config["contexts"][0],
            serde_json::json!({ "context": { "cluster": "ocp4", "user": user }, "name": user })
        );
        let ca = STANDARD.decode(cluster["cluster"]["certificate-authority-data"].as_str().unwrap()).unwrap();
        assert_eq!(String::from_utf8(ca).unwrap().matches("BEGIN CERTIFICATE").count(), authorities);
        assert!(config["users"][0]["user"]["client-key-data"].is_string());
        assert!(config.get("kind").is_none());
    }
    let lab =
        lab_kubeconfig(&assets.read("auth/kubeconfig"), "https://127.0.0.1:40001", "api.ocp4.alchemy.com");
    let cluster = parse(&lab)["clusters"][0]["cluster"].clone();
    assert_eq!(
        (cluster["server"].as_str(), cluster["tls-server-name"].as_str()),
        (Some("https://127.0.0.1:40001"), Some("api.ocp4.alchemy.com"))
    );
}

#[test]
fn units_and_users() {
    let config: Config = serde_json::from_str(&made().read("bootstrap.ign")).unwrap();
    let units: BTreeMap<_, _> = config.systemd.units.iter().map(|u| (u.name.as_str(), u.enabled)).collect();
    for enabled in [
        "bootkube.service",
        "kubelet.service",
        "containerd.service",
        "approve-csr.service",
        "progress.service",
    ] {
        assert_eq!(units[enabled], Some(true), "{enabled}");
    }
    assert_eq!(units["release-image.service"], None);
    let keys = &config.passwd.users[0].ssh_authorized_keys;
    assert!(keys[0].ends_with("core@oracle") && keys[1].starts_with("ecdsa-sha2-nistp256 "));
}

#[test]
fn identity_is_kept_and_edits_are_carried_along() {
    let assets = Assets::of_case(SEED);
    assets.create(Target::Manifests).unwrap();
    let infra =
        assets.yaml("manifests/cluster-infrastructure-02-config.yml")["status"]["infrastructureName"].clone();
    let scheduler = "manifests/cluster-scheduler-02-config.yml";
    assets.write(scheduler, &assets.read(scheduler).replace("true", "false"));
    assets.write(
        "openshift/99_mine.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine, namespace: default}\n",
    );
    assets.write("openshift/readme.txt", "not a manifest");
    let outcome = assets.create(Target::IgnitionConfigs).unwrap();
    let said: BTreeSet<_> = outcome.messages.iter().map(|m| m.text.as_str()).collect();
    for asset in [
        "Common Manifests",
        "Openshift Manifests",
        "Master Machines",
        "Worker Machines",
        "OpenShift Install (Manifests)",
    ] {
        assert!(said.contains(format!("Consuming {asset} from target directory").as_str()), "{said:?}");
    }
    let metadata: Value = serde_json::from_str(&assets.read("metadata.json")).unwrap();
    assert_eq!(metadata["infraID"], infra);
    let files = files(&assets);
    assert!(files[&format!("/opt/openshift/{scheduler}")].1.contains("mastersSchedulable: false"));
    assert!(files.contains_key("/opt/openshift/openshift/99_mine.yaml"));
    let overrides = &files["/opt/openshift/manifests/cvo-overrides.yaml"].1;
    assert!(overrides.contains("name: mine"));
    assert_eq!(
        assets.tree(),
        [
            ".openshift_install_state.json",
            "000_capi-namespace.yaml",
            "auth/kubeadmin-password",
            "auth/kubeconfig",
            "bootstrap.ign",
            "master.ign",
            "metadata.json",
            "openshift/readme.txt",
            "worker.ign"
        ]
    );
    let before = assets.read("bootstrap.ign");
    assets.create(Target::IgnitionConfigs).unwrap();
    assert_eq!(assets.read("bootstrap.ign"), before, "a second run changes nothing");
}

#[test]
fn another_install_config_is_another_cluster() {
    let assets = Assets::of_case(SEED);
    let text = assets.read("install-config.yaml");
    assets.create(Target::Manifests).unwrap();
    assets.write("install-config.yaml", &text.replace("ocp4", "other"));
    let outcome = assets.create(Target::IgnitionConfigs).unwrap();
    assert!(
        outcome
            .messages
            .iter()
            .any(|m| m.text.trim_start().starts_with("Discarding the Common Manifests that was provided"))
    );
    let metadata: Value = serde_json::from_str(&assets.read("metadata.json")).unwrap();
    assert_eq!(metadata["clusterName"], "other");
    assert!(
        files(&assets)["/opt/openshift/manifests/cluster-dns-02-config.yml"].1.contains("other.alchemy.com")
    );
}

#[test]
fn stale_assets_are_refused() {
    let mut assets = made();
    assets.now += time::Duration::days(2);
    let error = assets.create(Target::IgnitionConfigs).unwrap_err();
    assert_eq!(error.exit_code(), 1);
    let lines = error.lines();
    let has = |level, text: &str| assert!(lines.contains(&(level, text.into())), "{lines:?}");
    has("error", "Bootstrap Ignition-Config Certificate kubelet-signer.crt expired at 2026-11-16T12:00:00Z.");
    has("warning", "Please regenerate ignition configuration files in a new directory.");
    has(
        "fatal",
        "failed to fetch Bootstrap Ignition Config: failed to load asset \"Bootstrap Ignition Config\": 13 certificates expired",
    );
    has(
        "info",
        "These assets were made 2 days ago. `seedling certs refresh` renews their certificates and keeps the cluster's identity.",
    );
}

#[test]
fn two_manifests_for_one_object_are_refused() {
    let assets = Assets::of_case(SEED);
    assets.create(Target::Manifests).unwrap();
    assets.write("manifests/dup.yaml", &assets.read("manifests/cluster-dns-02-config.yml"));
    let text = assets.create(Target::IgnitionConfigs).unwrap_err().to_string();
    let want = "multiple manifests for group config.openshift.io kind DNS namespace  name cluster: \
                manifests/cluster-dns-02-config.yml, manifests/dup.yaml";
    assert!(text.ends_with(want), "{text}");
    assert!(assets.path("manifests/dup.yaml").exists(), "nothing is lost");
}

#[test]
fn without_a_release_nothing_is_touched() {
    let assets = Assets::of_case(SEED);
    assets.create(Target::Manifests).unwrap();
    let before = assets.tree();
    let options =
        seedling_assets::Options { release: "/nonexistent".into(), now: common::NOW, ..Default::default() };
    let error = seedling_assets::create(Target::IgnitionConfigs, assets.dir.path(), &options).unwrap_err();
    assert_eq!((error.exit_code(), assets.tree()), (1, before));
    assert!(error.to_string().contains("there is no /nonexistent/release.json"), "{error}");
}

/// Whoever reads bootstrap.ign is admin for a day, and not for ten years; the person's own kubeconfig is as it was.
#[test]
fn the_admin_of_the_bootstrap_node_ends_with_the_day() {
    let assets = made();
    let files = files(&assets);
    let days = |yaml: &str| {
        let user = seedling_assets::in_kubeconfig("k", yaml).unwrap().pop().unwrap().certificate;
        (user.not_after - user.not_before).whole_days()
    };
    for (path, (_, yaml)) in
        files.iter().filter(|(path, _)| path.contains("kubeconfig") && !path.ends_with(".crt"))
    {
        if yaml.contains("user: kubelet") {
            continue;
        }
        assert_eq!(days(yaml), 1, "{path}");
    }
    assert_eq!(days(&assets.read("auth/kubeconfig")), 3650);
    assert!(
        !files.keys().any(|path| path.contains("tls/bootstrap-admin-client")),
        "its key is in no file of its own"
    );
}
