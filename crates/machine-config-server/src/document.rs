//! The Ignition config a machine gets: the pool's rendered config, and what makes the machine a node of this cluster.

use base64::{Engine, engine::general_purpose::STANDARD};
use seedling_components::machine_config::{CURRENT_CONFIG, DESIRED_CONFIG, MachineConfig, STATE};
use seedling_ignition::translate::{NEWEST, Untranslatable, Version, translate};
use seedling_types::paths;
use serde_json::{Value, json};

/// What a config is put together from.
#[derive(PartialEq)]
pub struct Parts {
    pub rendered: MachineConfig,
    pub controller_config: Value,
    /// With which the kubelet asks for its first certificate.
    pub kubeconfig: String,
}

/// So that one that is shared is known to be itself without a look at what it has.
impl Eq for Parts {}

pub(crate) fn document(parts: &Parts, version: Version) -> Result<Value, Untranslatable> {
    let name = &parts.rendered.metadata.name;
    let mut config = parts.rendered.spec.config.clone();
    let ca = parts.controller_config.pointer("/spec/kubeAPIServerServingCAData").and_then(Value::as_str);
    let ca = ca.and_then(|data| STANDARD.decode(data).ok()).unwrap_or_default();
    let annotations = json!({
        CURRENT_CONFIG: name,
        DESIRED_CONFIG: name,
        "machineconfiguration.openshift.io/firstPivotConfig": name,
        STATE: "Done",
    });
    put(&mut config, paths::KUBELET_CA, 0o644, &ca);
    put(
        &mut config,
        "/etc/machine-config-daemon/node-annotations.json",
        0o644,
        annotations.to_string().as_bytes(),
    );
    // Upstream's is 0644; it holds a key.
    put(&mut config, paths::KUBELET_BOOTSTRAP_KUBECONFIG, 0o600, parts.kubeconfig.as_bytes());
    put(&mut config, "/etc/mcs-machine-config-content.json", 0o644, &indented(&parts.rendered));
    let encapsulated = encapsulate(&parts.rendered, &mut config, version)?;
    put(&mut config, "/etc/ignition-machine-config-encapsulated.json", 0o644, &indented(&encapsulated));
    translate(&config, version)
}

/// The MachineConfig without its Ignition part: what is left for the node to do itself. Kernel arguments go there when the
/// client's Ignition is too old for them.
fn encapsulate(
    rendered: &MachineConfig,
    config: &mut Value,
    version: Version,
) -> Result<MachineConfig, Untranslatable> {
    let mut rest = rendered.clone();
    rest.spec.config = json!({"ignition": {"version": NEWEST.to_string()}});
    let too_old = matches!(version, Version::V2_2 | Version::V3(0..=2));
    if too_old && let Some(arguments) = config.as_object_mut().and_then(|c| c.remove("kernelArguments")) {
        let list = |member: &str| {
            arguments[member].as_array().into_iter().flatten().filter_map(Value::as_str).map(String::from)
        };
        if list("shouldNotExist").next().is_some() {
            let what = "kernelArguments.shouldNotExist has no other place".into();
            return Err(Untranslatable { version: version.to_string(), what });
        }
        rest.spec.kernel_arguments.extend(list("shouldExist"));
    }
    Ok(rest)
}

fn put(config: &mut Value, path: &str, mode: u32, contents: &[u8]) {
    let file =
        json!({"contents": {"source": data_url(contents)}, "mode": mode, "overwrite": true, "path": path});
    let more = json!({"storage": {"files": [file]}});
    *config = seedling_ignition::merge_json(config.take(), more);
}

/// `data:,` with everything escaped that is not a letter or digit: the form upstream's server uses.
fn data_url(contents: &[u8]) -> String {
    let mut url = String::from("data:,");
    for byte in contents {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                url.push(char::from(*byte))
            }
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

fn indented(mc: &MachineConfig) -> Vec<u8> {
    serde_json::to_vec_pretty(mc).unwrap_or_default()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn parts(config: Value) -> Parts {
        let mut rendered = MachineConfig::of_role("rendered-master-1", "master", config);
        rendered.spec.kernel_arguments = vec!["quiet".into()];
        let controller_config = json!({"spec": {"kubeAPIServerServingCAData": STANDARD.encode("CA\n")}});
        Parts { rendered, controller_config, kubeconfig: "secret".into() }
    }

    fn paths_of(config: &Value) -> Vec<&str> {
        config["storage"]["files"].as_array().unwrap().iter().map(|f| f["path"].as_str().unwrap()).collect()
    }

    #[test]
    fn the_files_of_a_joining_node() {
        let own = json!({"ignition": {"version": "3.5.0"}, "storage": {"files": [{"path": "/etc/own"}]}});
        let config = document(&parts(own), Version::V3(2)).unwrap();
        let wanted = [
            "/etc/own",
            "/etc/kubernetes/kubelet-ca.crt",
            "/etc/machine-config-daemon/node-annotations.json",
            "/etc/kubernetes/kubeconfig",
            "/etc/mcs-machine-config-content.json",
            "/etc/ignition-machine-config-encapsulated.json",
        ];
        assert_eq!(paths_of(&config), wanted);
        assert_eq!(config["ignition"]["version"], "3.2.0");
        assert_eq!(config["storage"]["files"][1]["contents"]["source"], "data:,CA%0A");
        assert_eq!(config["storage"]["files"][3]["mode"], 0o600);
    }

    #[test]
    fn kernel_arguments_move_for_an_old_client() {
        let kargs =
            |member: &str| json!({"ignition": {"version": "3.5.0"}, "kernelArguments": {member: ["a=b"]}});
        let old = document(&parts(kargs("shouldExist")), Version::V3(2)).unwrap();
        assert!(old.get("kernelArguments").is_none());
        let last = old["storage"]["files"].as_array().unwrap().last().unwrap();
        assert!(last["contents"]["source"].as_str().unwrap().contains("a%3Db"));
        assert!(
            document(&parts(kargs("shouldExist")), Version::V3(3)).unwrap().get("kernelArguments").is_some()
        );
        assert!(document(&parts(kargs("shouldNotExist")), Version::V2_2).is_err());
    }
}
