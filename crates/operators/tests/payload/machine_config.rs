//! The machine-config operator, its server and the CSR approver against a real API server, with a controller manager that signs.

use super::control_plane::{ControlPlane, payload};
use axum_server::Handle;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use seedling_cluster::admission;
use seedling_cluster::manifest::{apply, create_if_missing, get};
use seedling_components::machine_config::*;
use seedling_components::node::NodeParams;
use seedling_machine_config_server::{Listen, Source, serve};
use seedling_operators::{machine_approver, machine_config};
use seedling_pki::{CaSpec, KeyAlgorithm, LeafSpec, Usage, issue, new_ca};
use seedling_steps::{Awaited, Condition, Probe, wait_for};
use seedling_types::names::{NS_APPROVER, NS_MCO as NS};
use seedling_types::release::Binary;
use seedling_types::{ClusterDomain, Inventory, ReleaseInfo, csr};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::task::{LocalSet, spawn_local};

const VERSION: &str = "0.1.0";

fn release() -> ReleaseInfo {
    let binary = |name: &str| (name.to_string(), Binary { sha512: "0".repeat(128), size: 1 });
    let image = |name: &str| {
        (name.to_string(), format!("registry.seedling.internal/seedling/{name}@sha256:{}", "0".repeat(64)))
    };
    ReleaseInfo {
        version: VERSION.into(),
        kubernetes_version: "1.36.4".into(),
        release_image: image("release").1,
        images: ["seedling", "pause"].map(image).into(),
        binaries: [
            "kubelet",
            "kubectl",
            "crictl",
            "containerd",
            "containerd-shim-runc-v2",
            "ctr",
            "runc",
            "seedling",
        ]
        .map(binary)
        .into(),
        components: [].into(),
    }
}

async fn until<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    static UNTIL: Awaited = Awaited::in_test("WHAT");
    let hint = "read the test's output";
    let condition = Condition::new(&UNTIL, Duration::from_secs(20), hint).with("WHAT", what);
    wait_for(&condition, Duration::from_millis(100), async || match probe().await {
        Some(met) => Probe::Met(met),
        None => Probe::Unmet("not yet".into()),
    })
    .await
    .unwrap()
}

pub(crate) async fn put(client: &Client, object: Value) {
    until(&object.to_string(), async || {
        create_if_missing(client, &object).await.map_err(|e| println!("{e}")).ok()
    })
    .await;
}

/// What bootkube and the version operator have made before the operators run; the rendered names bootkube came to.
async fn prepare(client: &Client, tls: &Path) -> Vec<String> {
    let manifests = tempfile::tempdir().unwrap();
    payload(manifests.path());
    let mut manifests: Vec<_> = std::fs::read_dir(&manifests).unwrap().map(|e| e.unwrap().path()).collect();
    manifests.sort();
    let apply_those = async |wanted: &dyn Fn(&str) -> bool| {
        for path in manifests.iter().filter(|p| wanted(p.to_str().unwrap())) {
            put(client, serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()).await;
        }
    };
    apply_those(&|name| name.ends_with(".crd.yaml")).await;
    let (domain, release) = (ClusterDomain("ocp4.example.com".into()), release());
    let service_networks = vec!["172.30.0.0/16".parse().unwrap()];
    let node = NodeParams { domain: &domain, release: &release, service_networks, pod_networks: vec![] };
    let inputs =
        Inputs { node, outside: Default::default(), root_ca: "ROOT", kube_ca: "KUBE", extra: vec![] };
    for contents in cluster_manifests(&inputs).unwrap().into_values() {
        let object: Value = serde_saphyr::from_str(std::str::from_utf8(&contents).unwrap()).unwrap();
        if object["kind"] != "ConfigMap" {
            put(client, object).await;
        }
    }
    let before: Vec<Value> =
        serde_saphyr::from_str(include_str!("../data/before-the-operators.yaml")).unwrap();
    for object in before {
        put(client, object).await;
    }
    let ours = ["0000_50_cluster-machine-approver_", "0000_80_machine-config_"];
    apply_those(&|name| !name.ends_with(".crd.yaml") && ours.iter().any(|part| name.contains(part))).await;

    let (now, day) = (time::OffsetDateTime::now_utc(), time::Duration::days(1));
    let ca =
        new_ca(&CaSpec { cn: "root-ca", ou: None, validity: day }, KeyAlgorithm::EcdsaP256, now).unwrap();
    let leaf = LeafSpec {
        cn: "system:machine-config-server",
        organizations: vec![],
        usages: &[Usage::Server],
        dns: vec![domain.api_int()],
        ips: vec![],
        validity: day,
        append_parent: false,
        key_usage: false,
    };
    let pair = issue(&ca, &leaf, KeyAlgorithm::EcdsaP256, now).unwrap();
    std::fs::write(tls.join("tls.crt"), &pair.cert).unwrap();
    std::fs::write(tls.join("tls.key"), &pair.key).unwrap();
    put(client, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": NS, "name": "machine-config-server-ca"}, "data": {"ca-bundle.crt": ca.cert}})).await;
    let files = render_bootstrap(&inputs).unwrap();
    files
        .keys()
        .filter_map(|f| f.strip_prefix("machine-configs/")?.strip_suffix(".yaml").map(String::from))
        .collect()
}

/// A client that is somebody else.
async fn as_user(plane: &ControlPlane, user: &str, groups: &[&str]) -> Client {
    let mut kubeconfig = Kubeconfig::read_from(plane.dir.path().join("auth/kubeconfig")).unwrap();
    let auth = kubeconfig.auth_infos[0].auth_info.as_mut().unwrap();
    auth.impersonate = Some(user.into());
    auth.impersonate_groups = Some(groups.iter().map(ToString::to_string).collect());
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap()
        .try_into()
        .unwrap()
}

pub(crate) async fn as_service_account(plane: &ControlPlane, namespace: &str, name: &str) -> Client {
    let groups =
        [&format!("system:serviceaccounts:{namespace}"), "system:serviceaccounts", "system:authenticated"];
    as_user(plane, &format!("system:serviceaccount:{namespace}:{name}"), &groups).await
}

async fn ask(client: &Client, name: &str, node: &str, signer: &str, usage: &str, sans: &[&str]) {
    let mut params =
        rcgen::CertificateParams::new(sans.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "system:nodes");
    params.distinguished_name.push(rcgen::DnType::CommonName, node);
    let pem = params.serialize_request(&rcgen::KeyPair::generate().unwrap()).unwrap().pem().unwrap();
    let csr: CertificateSigningRequest = serde_json::from_value(json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
        "spec": {"signerName": signer, "usages": ["digital signature", usage],
            "request": base64::Engine::encode(&base64::engine::general_purpose::STANDARD, pem)},
    }))
    .unwrap();
    Api::all(client.clone()).create(&PostParams::default(), &csr).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a built release"]
async fn a_master_joins() {
    LocalSet::new().run_until(joining()).await
}

/// Operators stay on the thread they began on.
async fn joining() {
    let plane = ControlPlane::start().await.with_signer();
    let client = plane.client.clone();
    let tls = tempfile::tempdir().unwrap();
    let names = prepare(&client, tls.path()).await;
    // With the rights of their own service accounts, no more.
    let image = release().images["seedling"].clone();
    let operator = as_service_account(&plane, NS, "machine-config-operator").await;
    spawn_local(machine_config::operate(operator.into(), VERSION.into(), image));
    let approver = as_service_account(&plane, NS_APPROVER, "machine-approver-sa").await;
    spawn_local(machine_approver::operate(approver.into(), VERSION.into()));
    let server = as_service_account(&plane, NS, "machine-config-server").await;
    let source = Source::cluster(server, "https://api-int.ocp4.example.com:6443");
    let tls_dir = tls.path().to_path_buf();
    let inventory = tokio::sync::watch::Sender::new(Inventory::default());
    tokio::spawn(async move {
        serve(
            source,
            &tls_dir,
            inventory.subscribe(),
            None,
            Listen::to(&Inventory::default()),
            Handle::new(),
            Handle::new(),
        )
        .await
    });

    // The approver: the machine of the inventory, not the stranger.
    let bootstrapper = as_service_account(&plane, NS, "node-bootstrapper").await;
    ask(&bootstrapper, "good", "system:node:master-0", csr::CLIENT_SIGNER, "client auth", &[]).await;
    ask(&bootstrapper, "evil", "system:node:evil", csr::CLIENT_SIGNER, "client auth", &[]).await;
    let csr = async |name: &str| {
        get(&client, "certificates.k8s.io/v1", "CertificateSigningRequest", None, name)
            .await
            .unwrap()
            .unwrap()
    };
    until("the certificate", async || csr("good").await["status"]["certificate"].as_str().map(String::from))
        .await;
    let event = until("the event", async || {
        get(&client, "v1", "Event", Some("default"), "evil.refused").await.unwrap()
    })
    .await;
    assert!(event["message"].as_str().unwrap().contains("no master or worker"));
    assert!(csr("evil").await["status"]["conditions"].is_null());

    // Another key for the same node: only once the administrator issued anew.
    let client_signer = csr::CLIENT_SIGNER;
    ask(&bootstrapper, "second", "system:node:master-0", client_signer, "client auth", &[]).await;
    let refused = until("the refusal", async || {
        let shown = machine_approver::show(&serde_json::from_value(csr("second").await).unwrap());
        (shown.verdict == "refused").then_some(shown.reason)
    })
    .await;
    assert!(refused.contains("another key"), "{refused}");
    admission::reissue(&client, "master-0", "new".into()).await.unwrap();
    until("the second certificate", async || {
        csr("second").await["status"]["certificate"].as_str().map(String::from)
    })
    .await;
    let record = &admission::read(&client).await.unwrap().nodes["master-0"];
    assert!(record.sha256 == "new" && record.spent.is_some(), "{record:?}");

    // The node registers.
    let taint = json!({"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"});
    apply(&client, "test", &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "master-0"}, "spec": {"taints": [taint]}})).await.unwrap();
    let node = as_user(&plane, "system:node:master-0", &["system:nodes", "system:authenticated"]).await;
    ask(
        &node,
        "serving",
        "system:node:master-0",
        csr::SERVING_SIGNER,
        "server auth",
        &["master-0", "127.0.0.1"],
    )
    .await;
    until("the serving certificate", async || {
        csr("serving").await["status"]["certificate"].as_str().map(String::from)
    })
    .await;
    let node = until("the node's config", async || {
        let node = get(&client, "v1", "Node", None, "master-0").await.unwrap().unwrap();
        node["metadata"]["annotations"][CURRENT_CONFIG].is_string().then_some(node)
    })
    .await;
    for label in ["master", "control-plane", "worker"] {
        assert_eq!(node["metadata"]["labels"][format!("node-role.kubernetes.io/{label}")], "");
    }
    let current = node["metadata"]["annotations"][CURRENT_CONFIG].as_str().unwrap();
    assert!(names.iter().any(|n| n == current), "{current} is not of {names:?}");

    // The pool counts it, and the operator vouches for the server.
    let pool = until("the pool", async || {
        let pool = get(&client, API_VERSION, "MachineConfigPool", None, "master").await.unwrap().unwrap();
        (pool["status"]["updatedMachineCount"] == 1).then_some(pool)
    })
    .await;
    assert_eq!(pool["spec"]["configuration"]["name"], current);
    for name in ["machine-config", "machine-approver"] {
        until(name, async || {
            let operator =
                get(&client, "config.openshift.io/v1", "ClusterOperator", None, name).await.unwrap()?;
            let conditions = operator["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let available = conditions.iter().find(|c| c["type"] == "Available").map(|c| &c["status"]);
            (available? == "True").then_some(())
        })
        .await;
    }
    let node = get(&client, "v1", "Node", None, "master-0").await.unwrap().unwrap();
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    assert!(!taints.iter().any(|t| t["key"] == "node-role.kubernetes.io/master"), "{taints:?}");

    // A user's MachineConfig is rendered and desired.
    let file = json!({"ignition": {"version": "3.2.0"}, "storage": {"files": [{"path": "/etc/mine", "contents": {"source": "data:,x"}}]}});
    put(&client, MachineConfig::of_role("99-mine", "master", file).to_value()).await;
    until("the new config", async || {
        let node = get(&client, "v1", "Node", None, "master-0").await.unwrap().unwrap();
        (node["metadata"]["annotations"][DESIRED_CONFIG] != current).then_some(())
    })
    .await;
    assert_eq!(plane.refused(), Vec::<String>::new());
}

/// Somebody has a node's credentials, and asks for others' certificates as fast as he can.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a built release"]
async fn a_flood_of_requests_keeps_nobody_waiting() {
    LocalSet::new().run_until(flooded()).await
}

async fn flooded() {
    let plane = ControlPlane::start().await.with_signer();
    let client = plane.client.clone();
    let tls = tempfile::tempdir().unwrap();
    prepare(&client, tls.path()).await;
    let approver = as_service_account(&plane, NS_APPROVER, "machine-approver-sa").await;
    spawn_local(machine_approver::operate(approver.into(), VERSION.into()));
    let bad = as_user(&plane, "system:node:bad", &["system:nodes", "system:authenticated"]).await;
    let signer = csr::SERVING_SIGNER;
    for hundred in 0..6 {
        let asked = (0..100).map(async |i| {
            let name = format!("aaa-{hundred}-{i:03}");
            ask(&bad, &name, "system:node:master-0", signer, "server auth", &["master-0"]).await;
        });
        futures::future::join_all(asked).await;
    }
    let bootstrapper = as_service_account(&plane, NS, "node-bootstrapper").await;
    let begun = std::time::Instant::now();
    let client_signer = csr::CLIENT_SIGNER;
    ask(&bootstrapper, "zzz", "system:node:master-0", client_signer, "client auth", &[]).await;
    until("the honest certificate", async || {
        let csr = get(&client, "certificates.k8s.io/v1", "CertificateSigningRequest", None, "zzz")
            .await
            .unwrap()?;
        csr["status"]["certificate"].as_str().map(String::from)
    })
    .await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let events = plane.list("v1", "Event", "").await;
    let told = events.iter().filter(|event| event["reason"] == "CSRNotApproved").count();
    assert!((1..=20).contains(&told), "{told} Events for 600 requests");
}
