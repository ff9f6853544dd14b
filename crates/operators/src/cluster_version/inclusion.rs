//! Which manifests of the payload belong into this cluster.

use super::payload::Manifest;
use serde_json::Value;
use std::collections::BTreeSet;

/// What the cluster is, as far as annotations ask.
#[derive(Clone, Debug, PartialEq)]
pub struct Inclusion {
    pub profile: String,
    /// `exclude.release.openshift.io/<id>`; empty: nobody.
    pub exclude: String,
    /// Empty: the default set.
    pub feature_set: String,
    pub gates: BTreeSet<String>,
    pub major: u64,
    /// `None`: all of them.
    pub capabilities: Option<BTreeSet<String>>,
    pub overrides: Vec<Override>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    pub kind: String,
    pub group: String,
    pub namespace: String,
    pub name: String,
}

impl Inclusion {
    /// From ClusterVersion `version` and FeatureGate `cluster`, either of which may be missing.
    pub fn of(cluster_version: &Value, feature_gate: &Value, version: &str) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let spec = &cluster_version["spec"];
        let details = list(&feature_gate["status"]["featureGates"]);
        let gates = details.iter().filter(|d| d["version"] == version).flat_map(|d| list(&d["enabled"]));
        let capabilities = (spec["capabilities"]["baselineCapabilitySet"] == "None")
            .then(|| list(&spec["capabilities"]["additionalEnabledCapabilities"]).iter().map(text).collect());
        let unmanaged = list(&spec["overrides"]).into_iter().filter(|o| o["unmanaged"] == true);
        Self {
            profile: "self-managed-high-availability".into(),
            exclude: String::new(),
            feature_set: text(&feature_gate["spec"]["featureSet"]),
            gates: gates.map(|g| text(&g["name"])).collect(),
            major: version.split('.').next().and_then(|m| m.parse().ok()).unwrap_or(0),
            capabilities,
            overrides: unmanaged
                .map(|o| Override {
                    kind: text(&o["kind"]),
                    group: text(&o["group"]),
                    namespace: text(&o["namespace"]),
                    name: text(&o["name"]),
                })
                .collect(),
        }
    }

    /// Why a manifest is left out; `None`: it belongs in.
    pub fn excluded(&self, m: &Manifest) -> Option<String> {
        if !self.exclude.is_empty()
            && m.annotation(&format!("exclude.release.openshift.io/{}", self.exclude)) == Some("true")
        {
            return Some(format!("excluded for {}", self.exclude));
        }
        if m.annotation(&format!("include.release.openshift.io/{}", self.profile)) != Some("true") {
            return Some(format!("not included in the profile {}", self.profile));
        }
        let sets = m.annotation("release.openshift.io/feature-set");
        let gates = m.annotation("release.openshift.io/feature-gate");
        if sets.is_some() && gates.is_some() {
            return Some("has both a feature-set and a feature-gate annotation".into());
        }
        let current = if self.feature_set.is_empty() { "Default" } else { &self.feature_set };
        if let Some(sets) = sets
            && !sets.split(',').any(|s| s.trim() == current || (s.trim().is_empty() && current == "Default"))
        {
            return Some(format!("not in the feature set {current}"));
        }
        let unmet = |gate: &&str| match gate.strip_prefix('-') {
            Some(gate) => self.gates.contains(gate),
            None => !self.gates.contains(*gate),
        };
        if let Some(gate) = gates.and_then(|g| g.split(',').map(str::trim).find(|g| unmet(g))) {
            return Some(format!("feature gate {gate}"));
        }
        if let Some(majors) = m.annotation("release.openshift.io/major-version")
            && !majors.split(',').any(|v| v.trim().parse() == Ok(self.major))
        {
            return Some(format!("for major version {majors}"));
        }
        if let (Some(wanted), Some(enabled)) =
            (m.annotation("capability.openshift.io/name"), &self.capabilities)
            && let Some(missing) = wanted.split('+').find(|c| !enabled.contains(*c))
        {
            return Some(format!("capability {missing} is not enabled"));
        }
        self.overrides.iter().any(|o| o.names(m)).then(|| "overridden as unmanaged".into())
    }
}

impl Override {
    fn names(&self, m: &Manifest) -> bool {
        (self.kind.as_str(), self.group.as_str(), self.namespace.as_str(), self.name.as_str())
            == (m.kind(), m.api_group(), m.namespace(), m.name())
    }
}

#[cfg(test)]
mod tests {
    use super::super::payload::tests::manifest;
    use super::*;
    use serde_json::json;

    fn with(annotations: &str) -> Manifest {
        let include = "include.release.openshift.io/self-managed-high-availability: 'true'";
        manifest(
            "0000_50_a_1.yaml",
            &format!(
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{namespace: ns, name: a, annotations: {{{include}, {annotations}}}}}\n"
            ),
        )
    }

    fn inclusion() -> Inclusion {
        let gates = json!({"status": {"featureGates": [
            {"version": "0.1.0", "enabled": [{"name": "Now"}], "disabled": [{"name": "Off"}]},
            {"version": "0.2.0", "enabled": [{"name": "Later"}]},
        ]}});
        Inclusion::of(&json!({}), &gates, "0.1.0")
    }

    #[test]
    fn annotations_decide() {
        let cases = [
            ("", None),
            ("release.openshift.io/feature-set: 'Default,TechPreviewNoUpgrade'", None),
            ("release.openshift.io/feature-set: ''", None),
            (
                "release.openshift.io/feature-set: TechPreviewNoUpgrade",
                Some("not in the feature set Default"),
            ),
            ("release.openshift.io/feature-gate: Now", None),
            ("release.openshift.io/feature-gate: 'Now,-Off'", None),
            ("release.openshift.io/feature-gate: Later", Some("feature gate Later")),
            ("release.openshift.io/feature-gate: -Now", Some("feature gate -Now")),
            (
                "release.openshift.io/feature-gate: Now, release.openshift.io/feature-set: Default",
                Some("has both a feature-set and a feature-gate annotation"),
            ),
            ("release.openshift.io/major-version: '5'", Some("for major version 5")),
            ("capability.openshift.io/name: Console+Build", None),
        ];
        for (annotations, expected) in cases {
            assert_eq!(inclusion().excluded(&with(annotations)).as_deref(), expected, "{annotations}");
        }
    }

    #[test]
    fn the_profile_must_be_named() {
        let bare = manifest("0000_50_a_1.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n");
        let expected = "not included in the profile self-managed-high-availability";
        assert_eq!(inclusion().excluded(&bare).as_deref(), Some(expected));
    }

    #[test]
    fn overrides_and_capabilities_come_from_the_cluster_version() {
        let version = json!({"spec": {
            "capabilities": {"baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["Build"]},
            "overrides": [
                {"kind": "Deployment", "group": "apps", "namespace": "ns", "name": "a", "unmanaged": true},
                {"kind": "Deployment", "group": "apps", "namespace": "ns", "name": "b", "unmanaged": false},
            ],
        }});
        let inclusion = Inclusion::of(&version, &Value::Null, "0.1.0");
        assert_eq!(inclusion.overrides.len(), 1);
        assert_eq!(inclusion.excluded(&with("")).as_deref(), Some("overridden as unmanaged"));
        let console = with("capability.openshift.io/name: Build+Console");
        assert_eq!(inclusion.excluded(&console).as_deref(), Some("capability Console is not enabled"));
    }
}
