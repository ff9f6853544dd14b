//! What a ClusterOperator's own status means for the version.

use super::board::Trouble;
use super::graph::Mode;
use super::payload::Manifest;
use seedling_api::config::OperandVersion;
use seedling_api::{ClusterOperator, Conditions};
use serde_json::{Value, json};

/// What stands in the way of `wanted`, whose `status.versions` are to be reached; `None`: nothing.
pub(super) fn trouble(wanted: &Manifest, live: Option<&ClusterOperator>, mode: Mode) -> Option<Trouble> {
    let name = wanted.name().to_string();
    let Some(live) = live.filter(|live| live.is("Available")) else {
        return Some(Trouble::NotAvailable(name));
    };
    let reached = live.status.as_ref().map(|status| status.versions.as_slice()).unwrap_or_default();
    if !versions(wanted).iter().all(|version| reached.contains(version)) {
        return Some(Trouble::Updating(name));
    }
    // A degraded operator may still finish an installation: reported by the operator itself, not waited for.
    if mode != Mode::Initializing && live.is("Degraded") {
        return Some(Trouble::Degraded(name));
    }
    None
}

fn versions(wanted: &Manifest) -> Vec<OperandVersion> {
    serde_json::from_value(wanted.object["status"]["versions"].clone()).unwrap_or_default()
}

/// The object as it is created before its operator runs: everyone sees what is awaited, and which objects belong to it.
pub(super) fn precreated(manifest: &Manifest) -> Value {
    let mut object = manifest.object.clone();
    let related = object["status"]["relatedObjects"].take();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
        fields.entry("spec").or_insert_with(|| json!({}));
    }
    if !related.is_null() {
        object["status"] = json!({ "relatedObjects": related });
    }
    object
}

#[cfg(test)]
mod tests {
    use super::super::payload::tests::manifest;
    use super::*;

    #[test]
    fn available_with_the_right_version_is_no_trouble() {
        let wanted = manifest(
            "0000_70_dns-operator_05_clusteroperator.yaml",
            "apiVersion: config.openshift.io/v1\nkind: ClusterOperator\nmetadata: {name: dns}\n\
             status: {versions: [{name: operator, version: 0.1.0}]}\n",
        );
        let live = |available: &str, degraded: &str, version: &str| -> ClusterOperator {
            let live = json!({"metadata": {}, "status": {
                "conditions": [{"type": "Available", "status": available}, {"type": "Degraded", "status": degraded}],
                "versions": [{"name": "other", "version": "9"}, {"name": "operator", "version": version}],
            }});
            serde_json::from_value(live).unwrap_or_else(|e| panic!("{e}"))
        };
        let dns = || "dns".to_string();
        let cases = [
            (live("True", "False", "0.1.0"), Mode::Initializing, None),
            (live("True", "True", "0.1.0"), Mode::Initializing, None),
            (live("True", "True", "0.1.0"), Mode::Updating, Some(Trouble::Degraded(dns()))),
            (live("True", "False", "0.0.9"), Mode::Initializing, Some(Trouble::Updating(dns()))),
            (live("Unknown", "False", "0.1.0"), Mode::Reconciling, Some(Trouble::NotAvailable(dns()))),
            (ClusterOperator::default(), Mode::Initializing, Some(Trouble::NotAvailable(dns()))),
        ];
        for (live, mode, expected) in cases {
            assert_eq!(trouble(&wanted, Some(&live), mode), expected, "{live:?} {mode:?}");
        }
        assert_eq!(trouble(&wanted, None, Mode::Updating), Some(Trouble::NotAvailable("dns".into())));
        assert_eq!((precreated(&wanted).get("status"), &precreated(&wanted)["spec"]), (None, &json!({})));
    }
}
