//! From the MachineConfigs of a pool to its one rendered config, and its name.

use super::{MachineConfig, ROLE_LABEL, Spec, sorted};
use md5::{Digest, Md5};
use seedling_ignition::merge_json;
use seedling_ignition::translate::NEWEST;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum RenderError {
    #[error("no MachineConfig matches the selector of pool {0}; it must select the label {ROLE_LABEL}")]
    NothingSelected(String),
    #[error("MachineConfig {name}: Ignition spec {version:?} is not supported; use 3.1.0 to 3.5.0")]
    Version { name: String, version: String },
    #[error("{file}: {message}")]
    Unreadable { file: String, message: String },
    #[error(transparent)]
    Missing(#[from] seedling_types::release::MissingComponent),
}

/// The fixed salt before the digested spec, as upstream's.
const SALT: [u8; 80] = [
    0x10, 0x7c, 0xce, 0xe4, 0x8b, 0x38, 0xaf, 0xaf, 0x4f, 0xe5, 0x86, 0x76, 0x9d, 0x9a, 0xd3, 0x6e, 0x19,
    0x5d, 0x2f, 0xfd, 0xac, 0x6a, 0x25, 0x07, 0xae, 0x0d, 0xa0, 0xb9, 0x6e, 0x11, 0x57, 0x34, 0xdb, 0x83,
    0x0c, 0xce, 0xda, 0x8d, 0x74, 0x87, 0xbc, 0xb5, 0xc0, 0x97, 0xe9, 0x3e, 0x7e, 0xa5, 0x40, 0x53, 0xb3,
    0x77, 0x0f, 0xa8, 0xd0, 0xc5, 0x92, 0x6b, 0x3a, 0xe3, 0x85, 0xbc, 0xee, 0x1a, 0x21, 0x1a, 0xeb, 0xca,
    0x20, 0xad, 0x1f, 0xea, 0x29, 0x90, 0x94, 0x4f, 0x06, 0xce, 0x17, 0x16,
];

/// `rendered-<pool>-<md5 of salt and the spec's YAML>`.
pub fn rendered_name(pool: &str, spec_yaml: &str) -> String {
    let digest = Md5::new().chain_update(SALT).chain_update(spec_yaml).finalize();
    format!("rendered-{pool}-{}", digest.iter().map(|b| format!("{b:02x}")).collect::<String>())
}

/// The MachineConfigs a pool is made of; rendered ones are never sources.
pub fn selected<'a>(pool: &Value, configs: &'a [MachineConfig]) -> Vec<&'a MachineConfig> {
    let selector = &pool["spec"]["machineConfigSelector"];
    configs.iter().filter(|mc| !mc.is_rendered() && matches(selector, &mc.metadata.labels)).collect()
}

/// An empty selector matches nothing.
fn matches(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    let same = |(key, value): (&String, &Value)| labels.get(key).map(String::as_str) == value.as_str();
    let holds = |expression: &Value| {
        let label = labels.get(expression["key"].as_str().unwrap_or_default()).map(String::as_str);
        let listed = expression["values"]
            .as_array()
            .is_some_and(|v| v.iter().any(|v| v.as_str() == label && label.is_some()));
        match expression["operator"].as_str() {
            Some("In") => listed,
            Some("NotIn") => !listed,
            Some("Exists") => label.is_some(),
            Some("DoesNotExist") => label.is_none(),
            _ => false,
        }
    };
    let (labels, expressions) =
        (selector["matchLabels"].as_object(), selector["matchExpressions"].as_array());
    (labels.is_some_and(|l| !l.is_empty()) || expressions.is_some_and(|e| !e.is_empty()))
        && labels.into_iter().flatten().all(same)
        && expressions.into_iter().flatten().all(holds)
}

/// Merges what the pool selects. `controller` gives the OS image where no MachineConfig sets one.
pub fn render(
    pool: &Value,
    configs: &[MachineConfig],
    controller: &Value,
    version: &str,
) -> Result<MachineConfig, RenderError> {
    let name = pool["metadata"]["name"].as_str().unwrap_or_default();
    let mut sources = selected(pool, configs);
    if sources.is_empty() {
        return Err(RenderError::NothingSelected(name.into()));
    }
    // A custom pool builds on the workers', so those come first; within a role the name decides.
    let of_worker = |mc: &MachineConfig| mc.metadata.labels.get(ROLE_LABEL).is_some_and(|r| r == "worker");
    sources.sort_by_key(|mc| (!of_worker(mc), mc.metadata.name.clone()));
    let os_image = |key: &str| controller["spec"][key].as_str().unwrap_or_default().to_string();
    let mut spec = Spec {
        os_image_url: os_image("baseOSContainerImage"),
        base_os_extensions_container_image: os_image("baseOSExtensionsContainerImage"),
        config: json!({}),
        kernel_type: "default".into(),
        ..Spec::default()
    };
    for mc in sources {
        check_version(mc)?;
        add(&mut spec, mc.spec.clone());
    }
    spec.config["ignition"]["version"] = json!(NEWEST.to_string());
    let files = spec.config.pointer_mut("/storage/files").and_then(Value::as_array_mut);
    for file in files.into_iter().flatten().filter_map(Value::as_object_mut) {
        if !file.contains_key("append") {
            file.entry("overwrite").or_insert(json!(true));
        }
    }
    spec.config = sorted(spec.config);
    let mut rendered = MachineConfig::new(rendered_name(name, &yaml(&spec)), spec);
    rendered.metadata.annotations = BTreeMap::from([
        ("machineconfiguration.openshift.io/generated-by-controller-version".into(), version.into()),
        ("machineconfiguration.openshift.io/release-image-version".into(), version.into()),
    ]);
    Ok(rendered)
}

fn add(spec: &mut Spec, mc: Spec) {
    spec.config = merge_json(spec.config.take(), if mc.config.is_null() { json!({}) } else { mc.config });
    spec.extensions.extend(mc.extensions);
    spec.kernel_arguments.extend(mc.kernel_arguments);
    spec.fips |= mc.fips;
    for (have, new) in [
        (&mut spec.kernel_type, mc.kernel_type),
        (&mut spec.os_image_url, mc.os_image_url),
        (&mut spec.base_os_extensions_container_image, mc.base_os_extensions_container_image),
    ] {
        if !new.is_empty() {
            *have = new;
        }
    }
}

fn check_version(mc: &MachineConfig) -> Result<(), RenderError> {
    let version = mc.spec.config["ignition"]["version"].as_str().unwrap_or_default();
    let known = ["", "3.1.0", "3.2.0", "3.3.0", "3.4.0", "3.5.0"].contains(&version);
    let error = || RenderError::Version { name: mc.metadata.name.clone(), version: version.into() };
    if known { Ok(()) } else { Err(error()) }
}

fn yaml(spec: &Spec) -> String {
    // A Value of strings, numbers, lists and maps always has a YAML form.
    serde_saphyr::to_string(spec).unwrap_or_default()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::machine_config::pool;

    fn file(path: &str, text: &str) -> Value {
        json!({"ignition": {"version": "3.2.0"}, "storage": {"files": [{"path": path, "contents": {"source": text}}]}})
    }

    fn rendered(configs: &[MachineConfig], name: &str) -> MachineConfig {
        render(&pool(name), configs, &json!({}), "0.1.0").unwrap()
    }

    #[test]
    fn the_name_is_md5_of_salt_and_yaml() {
        // md5 of the 80 bytes of salt alone, and with one line after it, by another implementation.
        assert_eq!(rendered_name("master", ""), "rendered-master-700188197863063935efbc7c9ae4e300");
        assert_eq!(
            rendered_name("worker", "fips: false\n"),
            "rendered-worker-823c12692669779ca7f2fc463594175a"
        );
    }

    #[test]
    fn later_names_win_and_roles_stay_apart() {
        let configs = [
            MachineConfig::of_role("99-b", "master", file("/a", "data:,late")),
            MachineConfig::of_role("00-a", "master", file("/a", "data:,early")),
            MachineConfig::of_role("00-a", "worker", file("/w", "data:,w")),
        ];
        let files = rendered(&configs, "master").spec.config["storage"]["files"].clone();
        assert_eq!(files, json!([{"contents": {"source": "data:,late"}, "overwrite": true, "path": "/a"}]));
    }

    #[test]
    fn a_custom_pool_builds_on_the_workers() {
        let mut infra = pool("infra");
        infra["spec"]["machineConfigSelector"] = json!({"matchExpressions": [{"key": ROLE_LABEL, "operator": "In", "values": ["worker", "infra"]}]});
        let configs = [
            MachineConfig::of_role("00-infra", "infra", file("/a", "data:,infra")),
            MachineConfig::of_role("99-worker", "worker", file("/a", "data:,worker")),
        ];
        let spec = render(&infra, &configs, &json!({}), "0.1.0").unwrap().spec;
        assert_eq!(spec.config["storage"]["files"][0]["contents"]["source"], "data:,infra");
    }

    #[test]
    fn what_an_api_server_does_to_a_config_does_not_change_the_name() {
        let given = MachineConfig::of_role("00-a", "master", file("/a", "data:,x"));
        let mut stored = sorted(given.to_value());
        for member in ["extensions", "kernelArguments"] {
            stored["spec"][member] = Value::Null;
        }
        stored["metadata"]["uid"] = json!("1");
        let stored: MachineConfig = serde_json::from_value(stored).unwrap();
        assert_eq!(rendered(&[given], "master"), rendered(&[stored], "master"));
    }

    #[test]
    fn nothing_selected_and_foreign_versions_are_errors() {
        assert!(matches!(render(&pool("x"), &[], &json!({}), ""), Err(RenderError::NothingSelected(_))));
        let v2 = MachineConfig::of_role("a", "master", json!({"ignition": {"version": "2.2.0"}}));
        assert!(matches!(render(&pool("master"), &[v2], &json!({}), ""), Err(RenderError::Version { .. })));
        let mut none = pool("master");
        none["spec"]["machineConfigSelector"] = json!({});
        let mc = MachineConfig::of_role("a", "master", json!({}));
        assert!(render(&none, &[mc], &json!({}), "").is_err());
    }
}
