//! Stage 13: what a master is made of, and the server that hands it out.

use super::{names, written};
use crate::error::in_file;
use crate::{Context, Outcome, Result, conditions};
use seedling_api::named_in;
use seedling_components::Outside;
use seedling_components::machine_config::{
    AUDIT_DIR, Inputs, cluster_manifests, read_machine_configs, render_bootstrap,
};
use seedling_components::node::NodeParams;
use seedling_components::pod::{container, host_path, mount, on_host, words};
use seedling_steps::{Condition, Probe, Stage, wait_for};
use seedling_types::names::{NODE_TOKENS_SECRET, NS_MCO};
use seedling_types::{Admission, paths, ports};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::time::Duration;

pub(crate) const STAGE: Stage = Stage {
    name: "mco-bootstrap",
    done: Some("mco-bootstrap"),
    what: "Renders the masters' and workers' configuration, and starts the server that hands it to them.",
    why: "a master knows nothing but this server's address and CA; all it needs comes from here",
    reads: &[
        "tls/root-ca.crt",
        "tls/kube-apiserver-complete-client-ca-bundle.crt",
        "tls/kubelet-client-signer.crt",
        "tls/machine-config-server.*",
        "auth/kubeconfig-kubelet",
        "openshift/* (MachineConfigs)",
        "manifests/cluster-config.yaml",
        "manifests/* (pull secret, mirrors, trust bundle, proxy)",
        "release.json",
        "node-tokens.json",
    ],
    writes: &[
        "/etc/mcs/bootstrap/*",
        "/etc/mcs/kubeconfig",
        "/etc/mcs/node-tokens.json",
        "/etc/ssl/mcs/tls.*",
        "/etc/kubernetes/manifests/machineconfigoperator-bootstrap-pod.yaml",
        "manifests/*machine-config*",
        "manifests/*machineconfig*",
        "manifests/csr-*-role-binding.yaml",
        "manifests/kube-apiserver-serving-ca-configmap.yaml",
    ],
    check: "what the server runs from and hands out is written; it takes a second to start, so cb-bootstrap asks its /healthz",
    fails: &[
        "a MachineConfig of yours that cannot be merged: the error names it",
        "masters stay in their first boot: is 22623 reachable through the load balancer, and does api-int resolve?",
    ],
    upstream: "podman run … machine-config-operator bootstrap --root-ca=/assets/tls/root-ca.crt --kube-ca=… --dest-dir=/assets/mco-bootstrap …, then cp mco-bootstrap/bootstrap/machineconfigoperator-bootstrap-pod.yaml /etc/kubernetes/manifests/",
    see: &[
        "component.machine-config-server",
        "port.22623",
        "file./etc/mcs/bootstrap",
        "seed.003.12",
        "condition.machine-config-server-answers",
    ],
};

/// Nothing may move for this long: the kubelet starts the server in a second or two.
const NO_PROGRESS: Duration = Duration::from_secs(1200);

pub(crate) async fn run(c: &Context) -> Result<Outcome> {
    println!("Rendering MCO manifests...");
    let mut texts = Vec::new();
    for name in names(&c.dir("openshift"))? {
        let file = format!("openshift/{name}");
        texts.push((c.dir(&file).display().to_string(), c.read(&file)?));
    }
    let mut manifests = Vec::new();
    for name in names(&c.dir("manifests"))? {
        manifests.push(c.read(&format!("manifests/{name}"))?);
    }
    let (root_ca, kube_ca) =
        (c.read("tls/root-ca.crt")?, c.read("tls/kube-apiserver-complete-client-ca-bundle.crt")?);
    let kube_ca = kube_ca + &c.read("tls/kubelet-client-signer.crt")?;
    let inputs = Inputs {
        node: NodeParams {
            domain: &c.config.domain,
            release: &c.release,
            service_networks: c.config.service_networks.clone(),
            pod_networks: c.config.pod_cidrs(),
        },
        outside: Outside::of_manifests(manifests.iter().map(String::as_str)),
        root_ca: &root_ca,
        kube_ca: &kube_ca,
        extra: read_machine_configs(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())))?,
    };
    for (name, contents) in render_bootstrap(&inputs)? {
        c.write(&c.path(paths::MCS_BOOTSTRAP).join(name), contents, 0o600)?;
    }
    for (name, contents) in cluster_manifests(&inputs)? {
        c.write(&c.dir("manifests").join(name), contents, 0o600)?;
    }
    let admission: Admission =
        serde_json::from_str(&c.read("node-tokens.json")?).map_err(in_file("node-tokens.json"))?;
    c.write(&c.path(paths::MCS_NODE_TOKENS), serde_json::to_string(&admission)?, 0o600)?;
    c.manifest("machine-config-node-tokens.yaml", &node_tokens(&admission)?)?;
    c.write(&c.path("/etc/mcs/kubeconfig"), c.read("auth/kubeconfig-kubelet")?, 0o600)?;
    for part in ["crt", "key"] {
        let pair = c.read(&format!("tls/machine-config-server.{part}"))?;
        c.write(&c.path(paths::MCS_TLS).join(format!("tls.{part}")), pair, 0o600)?;
    }
    let volumes = [
        ("mcs", "/etc/mcs", "Directory"),
        ("tls", paths::MCS_TLS, "Directory"),
        ("hosts", "/opt/openshift/hosts.yaml", "File"),
        ("audit", AUDIT_DIR, "DirectoryOrCreate"),
    ];
    let command = words(&["/usr/bin/seedling", "machine-config-server", "bootstrap"]);
    let mounts = volumes.map(|(name, path, _)| mount(name, path, name != "audit"));
    let server = container("machine-config-server", c.release.image("seedling")?, command, mounts.into());
    let volumes = volumes.map(|(name, path, kind)| host_path(name, path, kind));
    let pod = on_host(named_in(NS_MCO, "bootstrap-machine-config-operator"), 5, vec![server], volumes.into());
    c.start_pod("machineconfigoperator-bootstrap-pod.yaml", &pod)?;
    Ok(Outcome::Done)
}

pub(crate) async fn check(c: &Context) -> Result<()> {
    written(c, &STAGE)
}

/// The server answers, with the certificate that the masters were told to trust. Nobody waits for it before: until the API is there, it
/// is of use to no master.
pub(crate) async fn answers(c: &Context) -> Result<()> {
    let name = c.config.domain.api_int();
    let url = format!("https://{name}:{}/healthz", ports::MCS);
    let ca = reqwest::Certificate::from_pem(c.read("tls/root-ca.crt")?.as_bytes())?;
    let http = reqwest::Client::builder()
        .tls_certs_only([ca])
        .no_proxy()
        .resolve(&name, (Ipv4Addr::LOCALHOST, ports::MCS).into())
        .timeout(Duration::from_secs(2))
        .build()?;
    let condition = Condition::new(
        &conditions::SERVER_ANSWERS,
        NO_PROGRESS,
        "crictl logs --tail 20 $(crictl ps -a -q --name '^machine-config-server$' | head -n 1)",
    )
    .on(&c.node);
    let answered =
        wait_for(&condition, Duration::from_millis(250), async || match http.get(&url).send().await {
            Ok(answer) if answer.status() == 200 => Probe::Met(()),
            Ok(answer) => Probe::Unmet(format!("/healthz answered {}", answer.status())),
            Err(e) if e.is_connect() => Probe::Unmet("no connection".into()),
            Err(e) => Probe::Unmet(e.to_string()),
        });
    Ok(answered.await?)
}

/// What the machine-config servers and the approver of the masters go by: digests, and which of them are spent.
fn node_tokens(admission: &Admission) -> Result<Value> {
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": NS_MCO, "name": NODE_TOKENS_SECRET},
        "stringData": admission.entries()?,
    }))
}
