//! `capabilities`: the optional parts of a payload, and which of them go together.

use super::Merged;
use super::model::Capabilities;
use super::problem::Problem;
use serde_json::{Map, json};
use std::collections::BTreeSet;

/// Each capability and the first baseline that has it: 11 is v4.11, 99 only vCurrent.
const KNOWN: &[(&str, u8)] = &[
    ("Build", 14),
    ("CSISnapshot", 12),
    ("CloudControllerManager", 16),
    ("CloudCredential", 15),
    ("ClusterAPI", 99),
    ("CompatibilityRequirements", 99),
    ("Console", 12),
    ("DeploymentConfig", 14),
    ("ImageRegistry", 14),
    ("Ingress", 16),
    ("Insights", 12),
    ("MachineAPI", 11),
    ("NodeTuning", 13),
    ("OperatorLifecycleManager", 15),
    ("OperatorLifecycleManagerV1", 18),
    ("Storage", 12),
    ("baremetal", 11),
    ("marketplace", 11),
    ("openshift-samples", 11),
];
const SETS: &[&str] =
    &["None", "v4.11", "v4.12", "v4.13", "v4.14", "v4.15", "v4.16", "v4.17", "v4.18", "vCurrent"];
const ADDITIONAL: &str = "capabilities.additionalEnabledCapabilities";

/// Everything that is switched on; all of it where nothing is said.
pub(super) fn enabled(merged: &Merged) -> BTreeSet<&str> {
    match &merged.capabilities {
        Some(given) => enabled_by(given),
        None => KNOWN.iter().map(|(name, _)| *name).collect(),
    }
}

fn enabled_by(given: &Capabilities) -> BTreeSet<&str> {
    let baseline: u8 = match given.baseline_capability_set.as_str() {
        "" | "vCurrent" => u8::MAX,
        set if SETS.contains(&set) => set.trim_start_matches("v4.").parse().unwrap_or_default(),
        _ => 0,
    };
    let of_baseline = KNOWN.iter().filter(|(_, since)| *since <= baseline).map(|(name, _)| *name);
    of_baseline.chain(given.additional_enabled_capabilities.iter().map(String::as_str)).collect()
}

/// The names.
pub(super) fn check_names(merged: &Merged, problems: &mut Vec<Problem>) {
    let Some(given) = &merged.capabilities else { return };
    if !SETS.contains(&given.baseline_capability_set.as_str()) {
        let path = "capabilities.baselineCapabilitySet";
        let problem = Problem::unsupported(path, &given.baseline_capability_set, SETS);
        problems.push(problem.hint("vCurrent is everything"));
    }
    let known: Vec<_> = KNOWN.iter().map(|(name, _)| *name).collect();
    for (i, name) in given.additional_enabled_capabilities.iter().enumerate() {
        if !known.contains(&name.as_str()) {
            problems.push(Problem::unsupported(&format!("{ADDITIONAL}[{i}]"), name, &known));
        }
    }
}

/// What needs what.
pub(super) fn check_needs(merged: &Merged, problems: &mut Vec<Problem>) {
    let Some(given) = &merged.capabilities else { return };
    let all = enabled_by(given);
    let mut refuse = |why: &str, hint: &str| {
        // Go shows a list that was not given as null. The path lacks its start upstream as well.
        let names = Some(&given.additional_enabled_capabilities).filter(|names| !names.is_empty());
        let problem = Problem::invalid_json("additionalEnabledCapabilities", &names, why);
        problems.push(problem.at_field(ADDITIONAL).hint(hint));
    };
    if given.baseline_capability_set == "None"
        && merged.platform.baremetal.is_some()
        && !all.contains("baremetal")
    {
        refuse("platform baremetal requires the baremetal capability", "add baremetal");
    }
    if all.contains("marketplace") && !all.contains("OperatorLifecycleManager") {
        let why = "the marketplace capability requires the OperatorLifecycleManager capability";
        refuse(why, "add OperatorLifecycleManager");
    }
    if !all.contains("Ingress") {
        // In the order of Go's fields.
        let (baseline, more) = (&given.baseline_capability_set, &given.additional_enabled_capabilities);
        let shown =
            [("baselineCapabilitySet", json!(baseline)), ("additionalEnabledCapabilities", json!(more))];
        let given_ones = shown.into_iter().filter(|(_, value)| *value != json!("") && *value != json!([]));
        let shown: Map<_, _> = given_ones.map(|(name, value)| (name.to_string(), value)).collect();
        let problem = Problem::invalid_json("capabilities", &shown, "the Ingress capability is required");
        problems.push(problem.hint("add Ingress to additionalEnabledCapabilities"));
    }
}
