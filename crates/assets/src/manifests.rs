//! `manifests/` and `openshift/`: the objects a cluster starts with. Field order is upstream's, which sorts.

use crate::config::InstallConfig;
use crate::identity::Identity;
use crate::store::Files;
use crate::yaml::to_yaml;
use crate::{CreateError, machine_config};
use base64::{Engine, engine::general_purpose::STANDARD};
use seedling_pki::CertKey;
use serde_json::{Value, json};
use time::format_description::well_known::Rfc3339;

pub struct Inputs<'a> {
    pub config: &'a InstallConfig,
    pub identity: &'a Identity,
    pub root_ca: &'a CertKey,
    pub machine_config_server: &'a CertKey,
    /// Version of the release.
    pub version: &'a str,
}

fn files(folder: &str, objects: Vec<(String, Value)>) -> Result<Files, CreateError> {
    objects.into_iter().map(|(name, object)| Ok((format!("{folder}/{name}"), to_yaml(&object)?))).collect()
}

/// Asset "Common Manifests".
pub fn common(i: &Inputs) -> Result<Files, CreateError> {
    let objects = objects(i)?.into_iter().map(|(name, object)| (name.to_string(), object)).collect();
    files("manifests", objects)
}

fn objects(i: &Inputs) -> Result<Vec<(&'static str, Value)>, CreateError> {
    let (config, domain) = (i.config, &i.config.domain);
    let cluster = |kind: &str, spec: Value, status: Value| {
        json!({
            "apiVersion": "config.openshift.io/v1", "kind": kind, "metadata": { "name": "cluster" }, "spec": spec, "status": status,
        })
    };
    let networks: Vec<_> = config
        .networks
        .cluster
        .iter()
        .map(|n| json!({ "cidr": n.cidr, "hostPrefix": n.host_prefix }))
        .collect();
    let anywhere = json!({ "nodeSelector": null, "tolerations": null });
    let mcs = "openshift-machine-config-operator";
    Ok(vec![
        ("cluster-config.yaml", cluster_config(config)?),
        (
            "cluster-dns-02-config.yml",
            cluster(
                "DNS",
                json!({ "baseDomain": domain, "platform": { "aws": null, "type": "" } }),
                json!({}),
            ),
        ),
        ("cluster-infrastructure-02-config.yml", infrastructure(i)),
        (
            "cluster-ingress-02-config.yml",
            cluster(
                "Ingress",
                json!({ "domain": domain.apps(), "loadBalancer": { "platform": { "type": "" } } }),
                json!({ "defaultPlacement": if config.masters == 1 { "ControlPlane" } else { "Workers" } }),
            ),
        ),
        (
            "cluster-network-02-config.yml",
            cluster(
                "Network",
                json!({
                    "clusterNetwork": networks,
                    "externalIP": { "policy": {} },
                    "networkDiagnostics": { "mode": "", "sourcePlacement": anywhere, "targetPlacement": anywhere },
                    "networkType": config.networks.network_type,
                    "serviceNetwork": config.networks.service,
                }),
                json!({}),
            ),
        ),
        ("cluster-proxy-01-config.yaml", cluster("Proxy", json!({ "trustedCA": { "name": "" } }), json!({}))),
        (
            "cluster-scheduler-02-config.yml",
            cluster(
                "Scheduler",
                json!({
                    "mastersSchedulable": config.masters_schedulable(),
                    "policy": { "name": "" },
                    "profileCustomizations": { "dynamicResourceAllocation": "" },
                }),
                json!({}),
            ),
        ),
        (
            "cvo-overrides.yaml",
            json!({
                "apiVersion": "config.openshift.io/v1",
                "kind": "ClusterVersion",
                "metadata": { "namespace": "openshift-cluster-version", "name": "version" },
                "spec": { "channel": channel(i.version), "clusterID": i.identity.cluster_id },
            }),
        ),
        (
            "kube-cloud-config.yaml",
            secret("kube-system", "kube-cloud-cfg", "Opaque", json!({ "config": "" })),
        ),
        (
            "kube-system-configmap-root-ca.yaml",
            config_map("kube-system", "root-ca", json!({ "ca.crt": i.root_ca.cert })),
        ),
        (
            "machine-config-server-ca-configmap.yaml",
            annotated(
                config_map(mcs, "machine-config-server-ca", json!({ "ca-bundle.crt": i.root_ca.cert })),
                "ca-bundle",
                "CA bundle that stores all valid CAs for the MachineConfigServer TLS certificate",
                json!({}),
            ),
        ),
        (
            "machine-config-server-ca-secret.yaml",
            annotated(
                tls_secret(mcs, "machine-config-server-ca", i.root_ca),
                "signer",
                "CA used to sign the MachineConfigServer TLS certificate",
                issued(i.root_ca)?,
            ),
        ),
        (
            "machine-config-server-tls-secret.yaml",
            annotated(
                tls_secret(mcs, "machine-config-server-tls", i.machine_config_server),
                "target",
                "Secret containing the MachineConfigServer TLS certificate and key",
                with(
                    issued(i.machine_config_server)?,
                    "auth.openshift.io/certificate-hostnames",
                    domain.api_int(),
                ),
            ),
        ),
        (
            "openshift-config-secret-pull-secret.yaml",
            secret(
                "openshift-config",
                "pull-secret",
                "kubernetes.io/dockerconfigjson",
                json!({ ".dockerconfigjson": STANDARD.encode(&config.merged.pull_secret) }),
            ),
        ),
    ])
}

/// Asset "Openshift Manifests".
pub fn openshift(config: &InstallConfig, password_hash: &str) -> Result<Files, CreateError> {
    let hash = STANDARD.encode(password_hash);
    let objects = [
        (
            "99_feature-gate.yaml",
            json!({
                "apiVersion": "config.openshift.io/v1",
                "kind": "FeatureGate",
                "metadata": { "name": "cluster" },
                "spec": {},
                "status": { "featureGates": null },
            }),
        ),
        (
            "99_kubeadmin-password-secret.yaml",
            json!({
                "apiVersion": "v1",
                "data": { "kubeadmin": hash },
                "kind": "Secret",
                "metadata": { "name": "kubeadmin", "namespace": "kube-system" },
            }),
        ),
        (
            "99_osimagestream.yaml",
            json!({
                "apiVersion": "machineconfiguration.openshift.io/v1",
                "kind": "OSImageStream",
                "metadata": { "name": "cluster" },
                "spec": { "defaultStream": config.merged.os_image_stream },
            }),
        ),
    ];
    files("openshift", objects.map(|(name, object)| (name.to_string(), object)).into())
}

/// Asset "OpenShift Install (Manifests)": who made this cluster.
pub fn install(version: &str, invoker: &str) -> Result<Files, CreateError> {
    let data = json!({ "invoker": invoker, "version": version });
    let object = config_map("openshift-config", "openshift-install-manifests", data);
    files("openshift", vec![("openshift-install-manifests.yaml".into(), object)])
}

/// Assets "Master Machines", "Arbiter Machines" and "Worker Machines".
pub fn machines(
    config: &InstallConfig,
    _identity: &Identity,
    pool: &str,
    pointer: &str,
) -> Result<Files, CreateError> {
    let data =
        json!({ "disableTemplating": STANDARD.encode("true\n"), "userData": STANDARD.encode(pointer) });
    let user_data = secret("openshift-machine-api", &format!("{pool}-user-data"), "Opaque", data);
    let mut objects = vec![(machine_config::user_data_name(pool), user_data)];
    for config in machine_config::of(config, pool) {
        let name = config["metadata"]["name"].as_str().unwrap_or_default();
        objects.push((format!("99_openshift-machineconfig_{name}.yaml"), config));
    }
    files("openshift", objects)
}

fn cluster_config(config: &InstallConfig) -> Result<Value, CreateError> {
    let mut shown = config.merged.clone();
    shown.pull_secret.clear();
    let description = "The install-config content used to create the cluster.  The cluster configuration may have evolved since \
                       installation, so check cluster configuration resources directly if you are interested in the current \
                       cluster state.";
    let mut object =
        config_map("kube-system", "cluster-config-v1", json!({ "install-config": to_yaml(&shown)? }));
    object["metadata"]["annotations"] = json!({ "kubernetes.io/description": description });
    Ok(object)
}

fn infrastructure(i: &Inputs) -> Value {
    let config = i.config;
    let of = |replicas| if replicas == 1 { "SingleReplica" } else { "HighlyAvailable" };
    let (masters, workers) = (config.masters, config.workers);
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "Infrastructure",
        "metadata": { "name": "cluster" },
        "spec": { "cloudConfig": { "name": "" }, "platformSpec": { "type": "None" } },
        "status": {
            "apiServerInternalURI": format!("https://{}:6443", config.domain.api_int()),
            "apiServerURL": format!("https://{}:6443", config.domain.api()),
            "controlPlaneTopology": of(masters),
            "cpuPartitioning": "None",
            "etcdDiscoveryDomain": "",
            "infrastructureName": i.identity.infra_id,
            "infrastructureTopology": of(if workers == 0 { masters } else { workers }),
            "platform": "None",
            "platformStatus": { "type": "None" },
        },
    })
}

/// `stable-` and the first two numbers of the version.
fn channel(version: &str) -> String {
    let numbers: Vec<_> = version.split('.').take(2).collect();
    format!("stable-{}", numbers.join("."))
}

fn config_map(namespace: &str, name: &str, data: Value) -> Value {
    json!({ "apiVersion": "v1", "data": data, "kind": "ConfigMap", "metadata": { "name": name, "namespace": namespace } })
}

fn secret(namespace: &str, name: &str, kind: &str, data: Value) -> Value {
    json!({
        "apiVersion": "v1", "data": data, "kind": "Secret", "metadata": { "name": name, "namespace": namespace }, "type": kind,
    })
}

fn tls_secret(namespace: &str, name: &str, pair: &CertKey) -> Value {
    let data = json!({ "tls.crt": STANDARD.encode(&pair.cert), "tls.key": STANDARD.encode(&pair.key) });
    secret(namespace, name, "kubernetes.io/tls", data)
}

/// The machine-config operator rotates these; it finds them by label and reads their dates.
fn annotated(mut object: Value, kind: &str, description: &str, more: Value) -> Value {
    let metadata = &mut object["metadata"];
    metadata["labels"] = json!({ "auth.openshift.io/managed-certificate-type": kind });
    metadata["annotations"]["openshift.io/description"] = description.into();
    metadata["annotations"]["openshift.io/owning-component"] = "Machine Config Operator".into();
    for (key, value) in more.as_object().into_iter().flatten() {
        metadata["annotations"][key] = value.clone();
    }
    object
}

fn with(mut object: Value, key: &str, value: String) -> Value {
    object[key] = value.into();
    object
}

fn issued(pair: &CertKey) -> Result<Value, CreateError> {
    let (from, until) = seedling_pki::validity(&pair.cert)?;
    let rfc3339 = |time: time::OffsetDateTime| time.format(&Rfc3339).unwrap_or_default();
    Ok(json!({
        "auth.openshift.io/certificate-issuer": "root-ca",
        "auth.openshift.io/certificate-not-after": rfc3339(until),
        "auth.openshift.io/certificate-not-before": rfc3339(from),
    }))
}
