//! MachineConfigs that the installer adds for a role: SSH keys, kernel arguments.

use crate::config::InstallConfig;
use crate::shape;
use serde_json::{Value, json};

/// Which pool's machines a file of `openshift/` belongs to.
pub(crate) fn pool_of(path: &str) -> Option<&'static str> {
    let name = path.strip_prefix("openshift/")?;
    let of = |pool: &str| {
        let starts =
            [format!("99_openshift-cluster-api_{pool}-"), format!("99_openshift-machineconfig_99-{pool}-")];
        starts.iter().any(|start| name.starts_with(start))
            || name == format!("99_openshift-machineconfig_99-dual-stack-{pool}.yaml")
    };
    // Hosts and their fencing are written along with the masters.
    const WITH_MASTERS: [&str; 3] =
        ["99_openshift-cluster-api_hosts-", "99_openshift-cluster-api_host-", "99_openshift-etcd_fencing-"];
    if WITH_MASTERS.iter().any(|start| name.starts_with(start)) {
        return Some("master");
    }
    ["master", "arbiter", "worker"].into_iter().find(|pool| of(pool))
}

pub(crate) fn user_data_name(pool: &str) -> String {
    format!("99_openshift-cluster-api_{pool}-user-data-secret.yaml")
}

pub(crate) fn user_data(pool: &str) -> String {
    format!("openshift/{}", user_data_name(pool))
}

/// What a user added to a pool's pointer config.
pub(crate) fn of_pointer(pool: &str, config: Value) -> Value {
    machine_config(pool, &format!("99-installer-ignition-{pool}"), config, Value::Null)
}

pub(crate) fn of(config: &InstallConfig, pool: &str) -> Vec<Value> {
    let plain = || json!({ "ignition": ignition() });
    let mut configs = Vec::new();
    if config.without_hyperthreading.iter().any(|without| without == pool) {
        let arguments = json!(["nosmt", "smt-enabled=off"]);
        configs.push(machine_config(pool, &format!("99-{pool}-disable-hyperthreading"), plain(), arguments));
    }
    let keys = &config.merged.ssh_key;
    if !keys.is_empty() {
        // Several keys are one entry with line breaks, as upstream writes them.
        let users = json!({ "users": [{ "name": "core", "sshAuthorizedKeys": [keys] }] });
        let ssh = json!({ "ignition": ignition(), "passwd": users });
        configs.push(machine_config(pool, &format!("99-{pool}-ssh"), ssh, Value::Null));
    }
    if config.merged.fips {
        let mut object = machine_config(pool, &format!("99-{pool}-fips"), plain(), Value::Null);
        object["spec"]["fips"] = true.into();
        configs.push(object);
    }
    if shape::dual_stack(config) {
        configs.push(machine_config(
            pool,
            &format!("99-dual-stack-{pool}"),
            plain(),
            json!(["ip=dhcp,dhcp6"]),
        ));
    }
    configs
}

fn ignition() -> Value {
    json!({ "version": seedling_ignition::VERSION })
}

fn machine_config(pool: &str, name: &str, config: Value, kernel_arguments: Value) -> Value {
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": { "labels": { "machineconfiguration.openshift.io/role": pool }, "name": name },
        "spec": {
            "baseOSExtensionsContainerImage": "",
            "config": config,
            "extensions": null,
            "fips": false,
            "kernelArguments": kernel_arguments,
            "kernelType": "",
            "osImageURL": "",
        },
    })
}
