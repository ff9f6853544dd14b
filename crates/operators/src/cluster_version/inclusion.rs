//! Which manifests of the payload belong into this cluster.

use super::payload::Manifest;
use seedling_api::config::{FeatureGateSpec, Override};
use seedling_api::{ClusterVersion, FeatureGate};
use std::collections::BTreeSet;

/// What the cluster is, as far as annotations ask.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Inclusion {
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

impl Inclusion {
    /// From ClusterVersion `version` and FeatureGate `cluster`, either of which may be missing.
    pub(super) fn of(cluster_version: &ClusterVersion, feature_gate: &FeatureGate, version: &str) -> Self {
        let spec = cluster_version.spec.clone().unwrap_or_default();
        let details = feature_gate.status.clone().unwrap_or_default().feature_gates.into_iter();
        let gates = details.filter(|d| d.version == version).flat_map(|d| d.enabled);
        let capabilities = spec.capabilities.unwrap_or_default();
        let none_but = (capabilities.baseline_capability_set.as_deref() == Some("None"))
            .then(|| capabilities.additional_enabled_capabilities.unwrap_or_default());
        let FeatureGateSpec { feature_set } = feature_gate.spec.clone().unwrap_or_default();
        Self {
            profile: "self-managed-high-availability".into(),
            exclude: String::new(),
            feature_set,
            gates: gates.map(|gate| gate.name).collect(),
            major: version.split('.').next().and_then(|m| m.parse().ok()).unwrap_or(0),
            capabilities: none_but.map(|names| names.into_iter().collect()),
            overrides: spec.overrides.unwrap_or_default().into_iter().filter(|o| o.unmanaged).collect(),
        }
    }

    /// Why a manifest is left out; `None`: it belongs in.
    pub(super) fn excluded(&self, m: &Manifest) -> Option<String> {
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
        self.overrides.iter().any(|o| names(o, m)).then(|| "overridden as unmanaged".into())
    }
}

fn names(o: &Override, m: &Manifest) -> bool {
    (o.kind.as_str(), o.group.as_str(), o.namespace.as_str(), o.name.as_str())
        == (m.kind(), m.api_group(), m.namespace(), m.name())
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
        let gates = json!({"metadata": {}, "status": {"featureGates": [
            {"version": "0.1.0", "enabled": [{"name": "Now"}], "disabled": [{"name": "Off"}]},
            {"version": "0.2.0", "enabled": [{"name": "Later"}]},
        ]}});
        let gates = serde_json::from_value(gates).unwrap_or_else(|e| panic!("{e}"));
        Inclusion::of(&ClusterVersion::default(), &gates, "0.1.0")
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
        let version = json!({"metadata": {}, "spec": {
            "capabilities": {"baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["Build"]},
            "overrides": [
                {"kind": "Deployment", "group": "apps", "namespace": "ns", "name": "a", "unmanaged": true},
                {"kind": "Deployment", "group": "apps", "namespace": "ns", "name": "b", "unmanaged": false},
            ],
        }});
        let version = serde_json::from_value(version).unwrap_or_else(|e| panic!("{e}"));
        let inclusion = Inclusion::of(&version, &FeatureGate::default(), "0.1.0");
        assert_eq!(inclusion.overrides.len(), 1);
        assert_eq!(inclusion.excluded(&with("")).as_deref(), Some("overridden as unmanaged"));
        let console = with("capability.openshift.io/name: Build+Console");
        assert_eq!(inclusion.excluded(&console).as_deref(), Some("capability Console is not enabled"));
    }
}
