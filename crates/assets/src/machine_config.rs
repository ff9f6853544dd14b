//! MachineConfigs that the installer adds for a role: SSH keys, kernel arguments.

use crate::config::InstallConfig;
use seedling_types::Role;
use serde_json::{Value, json};

pub fn of(config: &InstallConfig, role: Role) -> Vec<Value> {
    let mut configs = Vec::new();
    if config.without_hyperthreading.iter().any(|pool| pool == role.as_str()) {
        let arguments = json!(["nosmt", "smt-enabled=off"]);
        configs.push(machine_config(
            role,
            "disable-hyperthreading",
            json!({ "ignition": ignition() }),
            arguments,
        ));
    }
    let keys = config.merged.ssh_key.trim();
    if !keys.is_empty() {
        // Several keys are one entry with line breaks, as upstream writes them.
        let users = json!({ "users": [{ "name": "core", "sshAuthorizedKeys": [keys] }] });
        configs.push(machine_config(
            role,
            "ssh",
            json!({ "ignition": ignition(), "passwd": users }),
            Value::Null,
        ));
    }
    configs
}

fn ignition() -> Value {
    json!({ "version": seedling_ignition::VERSION })
}

fn machine_config(role: Role, what: &str, config: Value, kernel_arguments: Value) -> Value {
    let role = role.as_str();
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {
            "labels": { "machineconfiguration.openshift.io/role": role },
            "name": format!("99-{role}-{what}"),
        },
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
