//! A new install-config: from answers to a few questions, and as a commented example to edit.

use super::explain::{describe, wrap};
use super::{Context, FoundAt, InstallConfig, Problem};
use serde_json::json;

/// What cannot be guessed, and what people most often choose.
#[derive(Clone, Debug)]
pub struct Answers {
    pub name: String,
    pub base_domain: String,
    pub pull_secret: String,
    pub ssh_key: String,
    pub masters: u32,
    pub workers: u32,
    pub machine_network: String,
}

impl Default for Answers {
    /// Valid as it is, so that each answer can be tried alone.
    fn default() -> Self {
        Self {
            name: "ocp4".into(),
            base_domain: "example.com".into(),
            pull_secret: r#"{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNz"}}}"#.into(),
            ssh_key: String::new(),
            masters: 3,
            workers: 0,
            machine_network: "10.0.0.0/16".into(),
        }
    }
}

impl Answers {
    /// As a file: JSON values are YAML, so nothing needs quoting by hand.
    pub fn to_yaml(&self) -> String {
        let value = |value: serde_json::Value| value.to_string();
        let ssh_key = match self.ssh_key.trim() {
            "" => String::new(),
            key => format!("sshKey: {}\n", value(json!(key))),
        };
        format!(
            "apiVersion: v1\nbaseDomain: {}\ncompute:\n- name: worker\n  replicas: {}\ncontrolPlane:\n  name: master\n  replicas: \
             {}\nmetadata:\n  name: {}\nnetworking:\n  machineNetwork:\n  - cidr: {}\nplatform:\n  none: {{}}\npullSecret: {}\n{ssh_key}",
            value(json!(self.base_domain)),
            self.workers,
            self.masters,
            value(json!(self.name)),
            value(json!(self.machine_network)),
            value(json!(self.pull_secret.trim())),
        )
    }

    /// What is wrong with the answers, in sentences.
    pub fn faults(&self) -> Vec<String> {
        let found = InstallConfig::parse(&self.to_yaml(), &Context::new("")).err().unwrap_or_default();
        found.into_iter().filter(|p| p.step != FoundAt::Warning).map(sentence).collect()
    }
}

fn sentence(problem: Problem) -> String {
    match problem.hint {
        Some(hint) => format!("{} ({hint})", problem.message),
        None => problem.message,
    }
}

/// Lines of the example: an indentation, a field's path and what to write. The comment is the field's description.
const EXAMPLE: &[(usize, &str, &str)] = &[
    (0, "apiVersion", "v1"),
    (0, "metadata", ""),
    (1, "metadata.name", "ocp4"),
    (0, "baseDomain", "example.com"),
    (0, "controlPlane", ""),
    (1, "controlPlane.name", "master"),
    (1, "controlPlane.replicas", "3"),
    (0, "compute", ""),
    (0, "compute.name", "worker"),
    (1, "compute.replicas", "0"),
    (0, "networking", ""),
    (1, "networking.machineNetwork", ""),
    (1, "networking.machineNetwork.cidr", "10.0.0.0/16"),
    (1, "networking.clusterNetwork", ""),
    (1, "networking.clusterNetwork.cidr", "10.128.0.0/14"),
    (2, "networking.clusterNetwork.hostPrefix", "23"),
    (1, "networking.serviceNetwork", "[172.30.0.0/16]"),
    (0, "platform", ""),
    (1, "platform.none", "{}"),
    (0, "pullSecret", r#"'{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNz"}}}'"#),
];
/// Shown, but commented out.
const FURTHER: &[(&str, &str)] = &[
    ("sshKey", "ssh-ed25519 AAAA… you@example.com"),
    ("additionalTrustBundle", "|\n#   -----BEGIN CERTIFICATE-----\n#   …\n#   -----END CERTIFICATE-----"),
    (
        "imageDigestSources",
        "\n# - source: quay.io/openshift-release-dev/ocp-release\n#   mirrors: [registry.example.com/ocp/release]",
    ),
    ("proxy", "\n#   httpProxy: http://proxy.example.com:3128\n#   noProxy: .example.com,10.0.0.0/16"),
];

/// An install-config that is valid as it stands, each field with its description.
pub fn example() -> String {
    let mut text = String::from(
        "# An install-config. Edit name, domain and pull secret; `seedling explain installconfig` describes every field.\n",
    );
    for (depth, path, value) in EXAMPLE {
        let indent = "  ".repeat(*depth);
        let name = path.rsplit('.').next().unwrap_or(path);
        // The first field of a list's item carries the dash.
        let dash = if matches!(
            *path,
            "compute.name" | "networking.machineNetwork.cidr" | "networking.clusterNetwork.cidr"
        ) {
            "- "
        } else {
            ""
        };
        comment(&mut text, path, &indent);
        let line = format!("{indent}{dash}{name}: {value}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    for (path, value) in FURTHER {
        comment(&mut text, path, "");
        text.push_str(&format!("# {path}: {value}\n").replace(": \n", ":\n"));
    }
    text
}

fn comment(text: &mut String, path: &str, indent: &str) {
    for line in wrap(describe(path).unwrap_or_default(), 100 - indent.len()) {
        text.push_str(&format!("{indent}# {line}\n"));
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_valid() {
        let config = InstallConfig::parse(&example(), &Context::new("rhel-10")).unwrap();
        assert_eq!((config.name.as_str(), config.masters, config.workers), ("ocp4", 3, 0));
        assert!(
            EXAMPLE.iter().all(|(_, path, _)| describe(path).is_some()),
            "an example names a field that is not there"
        );
    }

    #[test]
    fn answers_become_a_valid_file() {
        let answers = Answers {
            ssh_key:
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJD1L38PLq39QJkTAyV6NKX2AJyqiAQ9gfXq1yGBrzmh a: b\n"
                    .into(),
            ..Answers::default()
        };
        assert_eq!(answers.faults(), Vec::<String>::new());
        let config = InstallConfig::parse(&answers.to_yaml(), &Context::new("rhel-10")).unwrap();
        assert!(config.merged.ssh_key.ends_with(" a: b"));
    }

    #[test]
    fn a_wrong_answer_is_named() {
        let answers = Answers { base_domain: "no_domain".into(), ..Answers::default() };
        let faults = answers.faults();
        assert!(
            faults.len() == 1 && faults[0].starts_with("baseDomain: Invalid value: \"no_domain\":"),
            "{faults:?}"
        );
    }
}
