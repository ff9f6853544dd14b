//! What belongs to a pool of machines: their user data, their MachineConfigs, and on bare metal hosts and Machines.

use super::{files, hardware_profile, secret};
use crate::config::InstallConfig;
use crate::config::baremetal::Host;
use crate::identity::Identity;
use crate::store::Files;
use crate::yaml::to_yaml;
use crate::{Result, machine_config, shape};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

const MACHINE_API: &str = "openshift-machine-api";

/// Assets "Master Machines", "Arbiter Machines" and "Worker Machines".
pub(crate) fn machines(
    config: &InstallConfig,
    identity: &Identity,
    pool: &str,
    pointer: &str,
) -> Result<Files> {
    let data =
        json!({ "disableTemplating": STANDARD.encode("true\n"), "userData": STANDARD.encode(pointer) });
    let user_data = user_data(config, pool);
    let mut objects =
        vec![(machine_config::user_data_name(pool), secret(MACHINE_API, &user_data, "Opaque", data))];
    for config in machine_config::of(config, pool) {
        let name = config["metadata"]["name"].as_str().unwrap_or_default();
        objects.push((format!("99_openshift-machineconfig_{name}.yaml"), config));
    }
    if pool == "master" {
        objects.extend(fencing(config));
    }
    if let Some(baremetal) = shape::baremetal(config) {
        let bare = Bare { config, identity, pool, user_data: &user_data };
        let hosts = baremetal.hosts.as_deref().unwrap_or_default();
        objects.extend(bare.objects(hosts)?);
    }
    files("openshift", objects)
}

/// The operator that manages user data knows it by another name, where there is one.
fn user_data(config: &InstallConfig, pool: &str) -> String {
    let managed = pool == "arbiter" || shape::baremetal(config).is_some();
    format!("{pool}-user-data{}", if managed { "-managed" } else { "" })
}

/// How each of two masters may be switched off by the other.
fn fencing(config: &InstallConfig) -> Vec<(String, Value)> {
    let given = config.merged.control_plane.fencing.iter().flat_map(|fencing| &fencing.credentials);
    let object = |(i, c): (usize, &crate::config::model::FencingCredential)| {
        let object = json!({
            "apiVersion": "v1",
            "data": {
                "address": STANDARD.encode(&c.address),
                "certificateVerification": STANDARD.encode(&c.certificate_verification),
                "password": STANDARD.encode(&c.password),
                "username": STANDARD.encode(&c.username),
            },
            "kind": "Secret",
            "metadata": {
                "annotations": { "openshift.io/fencing-credentials": "hostname" },
                "name": format!("fencing-credentials-{}", c.host_name),
                "namespace": "openshift-etcd",
            },
        });
        (format!("99_openshift-etcd_fencing-credentials-secrets-{i}.yaml"), object)
    };
    given.enumerate().map(object).collect()
}

struct Bare<'a> {
    config: &'a InstallConfig,
    identity: &'a Identity,
    pool: &'a str,
    user_data: &'a str,
}

impl Bare<'_> {
    fn objects(&self, hosts: &[Host]) -> Result<Vec<(String, Value)>> {
        let mut objects = Vec::new();
        if self.pool == "worker" {
            let replicas = self.config.workers;
            objects.push((
                "99_openshift-cluster-api_worker-machineset-0.yaml".into(),
                self.machine_set(replicas),
            ));
            return Ok(objects);
        }
        let replicas = if self.pool == "master" { self.config.masters } else { self.config.arbiters };
        for i in 0..replicas {
            objects
                .push((format!("99_openshift-cluster-api_{}-machines-{i}.yaml", self.pool), self.machine(i)));
        }
        if self.pool == "master" {
            for (i, host) in hosts.iter().enumerate() {
                let file = |what: &str| format!("99_openshift-cluster-api_{what}-{i}.yaml");
                objects.push((file("host-bmc-secrets"), bmc_secret(host)));
                if let Some(network) = &host.network_config {
                    let data = json!({ "nmstate": STANDARD.encode(to_yaml(network)?) });
                    objects.push((
                        file("host-network-config-secrets"),
                        plain_secret(&network_secret(host), data),
                    ));
                }
                objects.push((file("hosts"), self.host(i, host)));
            }
        }
        Ok(objects)
    }

    fn stream(&self) -> &str {
        &self.config.merged.os_image_stream
    }

    fn labels(&self, pool: &str) -> Value {
        json!({
            "machine.openshift.io/cluster-api-cluster": self.identity.infra_id,
            "machine.openshift.io/cluster-api-machine-role": pool,
            "machine.openshift.io/cluster-api-machine-type": pool,
            "machineconfiguration.openshift.io/osstream": self.stream(),
        })
    }

    fn spec(&self) -> Value {
        let other = if self.stream() == "rhel-9" { "rhel-10" } else { "rhel-9" };
        let selector = json!({ "key": "coreos.openshift.io/stream", "operator": "notin", "values": [other] });
        json!({
            "lifecycleHooks": {},
            "metadata": {},
            "providerSpec": { "value": {
                "apiVersion": "baremetal.cluster.k8s.io/v1alpha1",
                "customDeploy": { "method": "install_coreos" },
                "hostSelector": { "matchExpressions": [selector] },
                "image": { "checksum": "", "url": "" },
                "kind": "BareMetalMachineProviderSpec",
                "metadata": {},
                "userData": { "name": self.user_data },
            } },
        })
    }

    fn machine(&self, i: u32) -> Value {
        json!({
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "Machine",
            "metadata": {
                "labels": self.labels(self.pool),
                "name": format!("{}-{}-{i}", self.identity.infra_id, self.pool),
                "namespace": MACHINE_API,
            },
            "spec": self.spec(),
            "status": {},
        })
    }

    fn machine_set(&self, replicas: u32) -> Value {
        let name = format!("{}-worker-0", self.identity.infra_id);
        let mut labels = self.labels("worker");
        labels["machine.openshift.io/cluster-api-machineset"] = name.clone().into();
        json!({
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "MachineSet",
            "metadata": { "labels": self.labels("worker"), "name": name, "namespace": MACHINE_API },
            "spec": {
                "replicas": replicas,
                "selector": { "matchLabels": {
                    "machine.openshift.io/cluster-api-cluster": self.identity.infra_id,
                    "machine.openshift.io/cluster-api-machineset": name,
                } },
                "template": { "metadata": { "labels": labels }, "spec": self.spec() },
            },
            "status": { "replicas": 0 },
        })
    }

    fn host(&self, i: usize, host: &Host) -> Value {
        let mut bmc =
            json!({ "address": host.bmc.address, "credentialsName": format!("{}-bmc-secret", host.name) });
        if host.bmc.disable_certificate_verification {
            bmc["disableCertificateVerification"] = true.into();
        }
        let mut labels = json!({ "coreos.openshift.io/stream": self.stream() });
        let mut spec = json!({
            "architecture": if self.config.merged.control_plane.architecture == "arm64" { "aarch64" } else { "x86_64" },
            "bmc": bmc,
            "bootMACAddress": host.boot_mac_address,
            "bootMode": host.boot_mode,
            "hardwareProfile": hardware_profile(&host.hardware_profile),
            "online": true,
        });
        if let Some(hints) = &host.root_device_hints {
            spec["rootDeviceHints"] = json!(hints);
        }
        if host.network_config.is_some() {
            spec["preprovisioningNetworkDataName"] = network_secret(host).into();
        }
        // The first hosts become masters; the others wait for the machine operator.
        if i < self.config.masters as usize && ["master", ""].contains(&host.role.as_str()) {
            labels["installer.openshift.io/role"] = "control-plane".into();
            spec["consumerRef"] = json!({
                "apiVersion": "machine.openshift.io/v1beta1",
                "kind": "Machine",
                "name": format!("{}-master-{i}", self.identity.infra_id),
                "namespace": MACHINE_API,
            });
            spec["customDeploy"] = json!({ "method": "install_coreos" });
            spec["userData"] = json!({ "name": self.user_data });
        }
        let never = json!({ "end": null, "start": null });
        json!({
            "apiVersion": "metal3.io/v1alpha1",
            "kind": "BareMetalHost",
            "metadata": { "labels": labels, "name": host.name, "namespace": MACHINE_API },
            "spec": spec,
            "status": {
                "errorCount": 0,
                "errorMessage": "",
                "goodCredentials": {},
                "hardwareProfile": "",
                "operationHistory": { "deprovision": never, "inspect": never, "provision": never, "register": never },
                "operationalStatus": "",
                "poweredOn": false,
                "provisioning": { "ID": "", "image": { "url": "" }, "state": "" },
                "triedCredentials": {},
            },
        })
    }
}

fn bmc_secret(host: &Host) -> Value {
    let data = json!({
        "password": STANDARD.encode(&host.bmc.password), "username": STANDARD.encode(&host.bmc.username),
    });
    plain_secret(&format!("{}-bmc-secret", host.name), data)
}

fn network_secret(host: &Host) -> String {
    format!("{}-network-config-secret", host.name)
}

fn plain_secret(name: &str, data: Value) -> Value {
    json!({
        "apiVersion": "v1", "data": data, "kind": "Secret", "metadata": { "name": name, "namespace": MACHINE_API },
    })
}
