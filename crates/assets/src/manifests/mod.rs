//! `manifests/` and `openshift/`: the objects a cluster starts with. Field order is upstream's, which sorts.
//!
//! Here are those of `manifests/`; `openshift` has the rest, `machines` what belongs to a pool of machines.

mod infrastructure;
mod machines;
mod openshift;

pub(crate) use machines::machines;
pub(crate) use openshift::{OPENSHIFT, OPENSHIFT_INSTALL};

use crate::certificates::pair;
use crate::config::model::ContentSource;
use crate::config::{ClusterNetwork, InstallConfig};
use crate::graph::{Asset, Found, Id, Parents};
use crate::identity::Identity;
use crate::store::{Files, one};
use crate::yaml::to_yaml;
use crate::{Message, Result, certificates, identity, install_config, shape};
use base64::{Engine, engine::general_purpose::STANDARD};
use ipnet::IpNet;
use seedling_pki::CertKey;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use time::format_description::well_known::Rfc3339;

pub(crate) const MANIFESTS: Id = "manifests.Manifests";
pub(crate) const CLUSTER_API: Id = "clusterapi.Cluster";
/// Marks `manifests/` as a whole set that an earlier run wrote.
pub(crate) const WHOLE_SET: &str = "manifests/cluster-config.yaml";
const USER_CA: &str = "user-ca-bundle";

pub(crate) fn assets() -> Vec<Asset> {
    let needs = [
        identity::CLUSTER_ID,
        install_config::ID,
        certificates::ROOT_CA,
        certificates::MACHINE_CONFIG_SERVER,
    ];
    let common = Asset::new(MANIFESTS, "Common Manifests", &needs, common).loaded(|given, known| {
        let found = given.store.manifests("manifests")?;
        let whole = found.contains_key(WHOLE_SET) || (known.is_none() && !found.is_empty());
        Ok(whole.then(|| Found::all_of(found)))
    });
    let cluster_api =
        Asset::new(CLUSTER_API, "Cluster API Manifests", &[], |_, _| Ok(one("000_capi-namespace.yaml", "")));
    [common, cluster_api].into_iter().chain(openshift::assets()).collect()
}

struct Inputs<'a> {
    config: &'a InstallConfig,
    identity: &'a Identity,
    root_ca: &'a CertKey,
    machine_config_server: &'a CertKey,
    /// Version of the release.
    version: &'a str,
}

fn files(folder: &str, objects: Vec<(String, Value)>) -> Result<Files> {
    objects.into_iter().map(|(name, object)| Ok((format!("{folder}/{name}"), to_yaml(&object)?))).collect()
}

fn common(made: &Parents, say: &mut Vec<Message>) -> Result<Files> {
    let config = made.config()?;
    if config.masters_schedulable() {
        say.push(Message::warning(
            "Making control-plane schedulable by setting MastersSchedulable to true for Scheduler cluster settings",
        ));
    }
    let (root_ca, server) = (pair(made, "root-ca")?, pair(made, "machine-config-server")?);
    for (what, pair) in [("CA", &root_ca), ("TLS", &server)] {
        let (from, until) = seedling_pki::validity(&pair.cert)?;
        let [from, until] = [from, until].map(|time| time.format(&Rfc3339).unwrap_or_default());
        let text = format!("Successfully populated MCS {what} cert information: root-ca {until} {from}");
        say.push(Message::info(text));
    }
    let inputs = Inputs {
        config,
        identity: &Identity::of(made)?,
        root_ca: &root_ca,
        machine_config_server: &server,
        version: &made.run().version,
    };
    let objects = objects(&inputs)?.into_iter().chain(asked_for(config));
    files("manifests", objects.map(|(name, object)| (name.to_string(), object)).collect())
}

fn objects(i: &Inputs) -> Result<Vec<(&'static str, Value)>> {
    let (config, domain) = (i.config, &i.config.domain);
    let cluster = |kind: &str, spec: Value, status: Value| {
        json!({
            "apiVersion": "config.openshift.io/v1", "kind": kind, "metadata": { "name": "cluster" }, "spec": spec, "status": status,
        })
    };
    let mcs = "openshift-machine-config-operator";
    let mut served = issued(i.machine_config_server)?;
    served["auth.openshift.io/certificate-hostnames"] = hostnames(config).into();
    let pull_secret = json!({ ".dockerconfigjson": STANDARD.encode(&config.merged.pull_secret) });
    let scheduler = json!({
        "mastersSchedulable": config.masters_schedulable(),
        "policy": { "name": "" },
        "profileCustomizations": { "dynamicResourceAllocation": "" },
    });
    #[rustfmt::skip] // A row is a line.
    let objects = vec![
        ("cluster-config.yaml", cluster_config(config)?),
        ("cluster-dns-02-config.yml", cluster("DNS", json!({ "baseDomain": domain, "platform": { "aws": null, "type": "" } }), json!({}))),
        ("cluster-infrastructure-02-config.yml", infrastructure::infrastructure(config, i.identity)),
        ("cluster-ingress-02-config.yml", cluster("Ingress", json!({ "domain": domain.apps(), "loadBalancer": { "platform": { "type": "" } } }),
            json!({ "defaultPlacement": default_placement(config) }))),
        ("cluster-network-02-config.yml", cluster("Network", network(config), json!({}))),
        ("cluster-proxy-01-config.yaml", proxy(config)),
        ("cluster-scheduler-02-config.yml", cluster("Scheduler", scheduler, json!({}))),
        ("cvo-overrides.yaml", cluster_version(i)),
        ("kube-cloud-config.yaml", secret("kube-system", "kube-cloud-cfg", "Opaque", json!({ "config": "" }))),
        ("kube-system-configmap-root-ca.yaml", config_map("kube-system", "root-ca", json!({ "ca.crt": i.root_ca.cert }))),
        ("machine-config-server-ca-configmap.yaml", annotated(
            config_map(mcs, "machine-config-server-ca", json!({ "ca-bundle.crt": i.root_ca.cert })),
            "ca-bundle", "CA bundle that stores all valid CAs for the MachineConfigServer TLS certificate", json!({}))),
        ("machine-config-server-ca-secret.yaml", annotated(tls_secret(mcs, "machine-config-server-ca", i.root_ca),
            "signer", "CA used to sign the MachineConfigServer TLS certificate", issued(i.root_ca)?)),
        ("machine-config-server-tls-secret.yaml", annotated(tls_secret(mcs, "machine-config-server-tls", i.machine_config_server),
            "target", "Secret containing the MachineConfigServer TLS certificate and key", served)),
        ("openshift-config-secret-pull-secret.yaml", secret("openshift-config", "pull-secret", "kubernetes.io/dockerconfigjson", pull_secret)),
    ];
    Ok(objects)
}

/// Objects that only some install-configs ask for.
fn asked_for(config: &InstallConfig) -> Vec<(&'static str, Value)> {
    let given = &config.merged;
    let mut objects = Vec::new();
    if let Some(subnet) = given.networking.join_subnet() {
        objects.push(("cluster-network-03-config.yml", ovn_kubernetes(config, subnet)));
    }
    if !given.image_digest_sources.is_empty() {
        let mirrors = given.image_digest_sources.iter().map(|source| {
            let mut entry = json!({ "mirrors": source.mirrors, "source": source.source });
            if !source.source_policy.is_empty() {
                entry["mirrorSourcePolicy"] = source.source_policy.clone().into();
            }
            entry
        });
        let spec = json!({ "imageDigestMirrors": mirrors.collect::<Vec<_>>() });
        objects.push((
            "image-digest-mirror-set.yaml",
            json!({
                "apiVersion": "config.openshift.io/v1",
                "kind": "ImageDigestMirrorSet",
                "metadata": { "name": "image-digest-mirror" },
                "spec": spec,
                "status": {},
            }),
        ));
    }
    if !given.image_content_sources.is_empty() {
        let mirror = |source: &ContentSource| json!({ "mirrors": source.mirrors, "source": source.source });
        let mirrors: Vec<_> = given.image_content_sources.iter().map(mirror).collect();
        objects.push((
            "image-content-source-policy.yaml",
            json!({
                "apiVersion": "operator.openshift.io/v1alpha1",
                "kind": "ImageContentSourcePolicy",
                "metadata": { "name": "image-policy" },
                "spec": { "repositoryDigestMirrors": mirrors },
            }),
        ));
    }
    if !given.additional_trust_bundle.is_empty() {
        let data = json!({ "ca-bundle.crt": given.additional_trust_bundle });
        let mut object = config_map("openshift-config", USER_CA, data);
        object["metadata"]["annotations"] = json!({ "openshift.io/owning-component": "End User" });
        objects.push(("user-ca-bundle-config.yaml", object));
    }
    if shape::enabled(config, "ConfigurablePKI") {
        objects.push(("cluster-pki-02-config.yaml", pki(config)));
    }
    objects
}

fn pki(config: &InstallConfig) -> Value {
    let management = match &config.merged.pki {
        Some(pki) => json!({ "mode": "Custom", "custom": pki }),
        None => json!({ "mode": "Default" }),
    };
    json!({
        "apiVersion": "config.openshift.io/v1alpha1",
        "kind": "PKI",
        "metadata": { "name": "cluster" },
        "spec": { "certificateManagement": management },
    })
}

fn cluster_networks(config: &InstallConfig) -> Vec<Value> {
    let entry = |n: &ClusterNetwork| json!({ "cidr": n.cidr, "hostPrefix": n.host_prefix });
    config.networks.cluster.iter().map(entry).collect()
}

fn network(config: &InstallConfig) -> Value {
    let anywhere = json!({ "nodeSelector": null, "tolerations": null });
    let mut spec = json!({
        "clusterNetwork": cluster_networks(config),
        "externalIP": { "policy": {} },
        "networkDiagnostics": { "mode": "", "sourcePlacement": anywhere, "targetPlacement": anywhere },
    });
    if let Some(observability) = &config.merged.networking.network_observability {
        spec["networkObservability"] = json!({ "installationPolicy": observability.installation_policy });
    }
    spec["networkType"] = config.networks.network_type.clone().into();
    spec["serviceNetwork"] = json!(config.networks.service);
    spec
}

/// The network operator's own object, with the join subnet that the user chose.
fn ovn_kubernetes(config: &InstallConfig, subnet: IpNet) -> Value {
    json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "Network",
        "metadata": { "name": "cluster" },
        "spec": {
            "clusterNetwork": cluster_networks(config),
            "defaultNetwork": {
                "ovnKubernetesConfig": { "egressIPConfig": {}, "ipv4": { "internalJoinSubnet": subnet } },
                "type": "OVNKubernetes",
            },
            "disableNetworkDiagnostics": false,
            "managementState": "Managed",
            "observedConfig": null,
            "serviceNetwork": config.networks.service,
            "unsupportedConfigOverrides": null,
        },
        "status": { "readyReplicas": 0 },
    })
}

fn proxy(config: &InstallConfig) -> Value {
    let given = &config.merged;
    let trusted = !given.additional_trust_bundle.is_empty()
        && (given.additional_trust_bundle_policy == "Always" || given.proxy.is_some());
    let mut object = json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "Proxy",
        "metadata": { "name": "cluster" },
        "spec": { "trustedCA": { "name": if trusted { USER_CA } else { "" } } },
        "status": {},
    });
    if let Some(proxy) = &given.proxy {
        let computed = shape::no_proxy(config, &proxy.no_proxy);
        for (key, asked, real) in [
            ("httpProxy", &proxy.http_proxy, &proxy.http_proxy),
            ("httpsProxy", &proxy.https_proxy, &proxy.https_proxy),
            ("noProxy", &proxy.no_proxy, &computed),
        ] {
            for (part, value) in [("spec", asked), ("status", real)] {
                if !value.is_empty() {
                    object[part][key] = value.clone().into();
                }
            }
        }
    }
    object
}

fn cluster_version(i: &Inputs) -> Value {
    let mut spec = json!({ "channel": channel(i.version), "clusterID": i.identity.cluster_id });
    if let Some(capabilities) = &i.config.merged.capabilities {
        spec["capabilities"] = json!(capabilities);
    }
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": { "namespace": "openshift-cluster-version", "name": "version" },
        "spec": spec,
    })
}

/// On a single node of platform none, the router can be nowhere else.
fn default_placement(config: &InstallConfig) -> &'static str {
    let single = config.masters == 1 && shape::baremetal(config).is_none();
    if single { "ControlPlane" } else { "Workers" }
}

/// Names of the machine-config server's certificate, sorted.
fn hostnames(config: &InstallConfig) -> String {
    let vips = shape::api_vips(config).into_iter().map(|address| address.to_string());
    let names: BTreeSet<_> = vips.chain([config.domain.api_int()]).collect();
    names.into_iter().collect::<Vec<_>>().join(",")
}

/// The install-config for people to read, without what is secret in it.
fn cluster_config(config: &InstallConfig) -> Result<Value> {
    let mut shown = config.merged.clone();
    shown.pull_secret.clear();
    for host in shown.platform.baremetal.iter_mut().flat_map(|b| b.hosts.iter_mut().flatten()) {
        (host.bmc.username, host.bmc.password) = (String::new(), String::new());
        host.hardware_profile = hardware_profile(&host.hardware_profile);
    }
    for credential in shown.control_plane.fencing.iter_mut().flat_map(|f| &mut f.credentials) {
        (credential.username, credential.password) = (String::new(), String::new());
    }
    let description = "The install-config content used to create the cluster.  The cluster configuration may have evolved since \
                       installation, so check cluster configuration resources directly if you are interested in the current \
                       cluster state.";
    let mut object =
        config_map("kube-system", "cluster-config-v1", json!({ "install-config": to_yaml(&shown)? }));
    object["metadata"]["annotations"] = json!({ "kubernetes.io/description": description });
    Ok(object)
}

/// Hosts without a profile of their own are of an unknown one.
fn hardware_profile(given: &str) -> String {
    if given == "default" { "unknown".into() } else { given.into() }
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

fn issued(pair: &CertKey) -> Result<Value> {
    let (from, until) = seedling_pki::validity(&pair.cert)?;
    let rfc3339 = |time: time::OffsetDateTime| time.format(&Rfc3339).unwrap_or_default();
    Ok(json!({
        "auth.openshift.io/certificate-issuer": "root-ca",
        "auth.openshift.io/certificate-not-after": rfc3339(until),
        "auth.openshift.io/certificate-not-before": rfc3339(from),
    }))
}
