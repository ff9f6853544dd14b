//! Feature sets and gates, and which of them an install-config needs.

use super::Merged;
use super::model::Fields;
use super::problem::Problem;
use std::collections::BTreeMap;

const SETS: &[&str] = &["", "CustomNoUpgrade", "DevPreviewNoUpgrade", "OKD", "TechPreviewNoUpgrade"];

/// The gates that fields of an install-config depend on, and the sets that have them: default, tech preview, dev preview.
const GATES: &[(&str, [bool; 3])] = &[
    ("BGPBasedVIPManagement", [false, false, true]),
    ("ConfigurablePKI", [false, true, true]),
    ("DualReplica", [true, true, true]),
    ("HighlyAvailableArbiter", [true, true, true]),
    ("MultiDiskSetup", [false, true, true]),
    ("OSStreams", [true, true, true]),
    ("OnPremDNSRecords", [false, true, true]),
];

/// Which gates are open.
pub(super) struct Gates<'a> {
    set: &'a str,
    custom: BTreeMap<&'a str, bool>,
}

impl<'a> Gates<'a> {
    pub(super) fn of(fields: &'a Fields) -> Self {
        Self { set: &fields.feature_set, custom: custom(&fields.feature_gates) }
    }
    pub(super) fn enabled(&self, gate: &str) -> bool {
        let column = match self.set {
            "CustomNoUpgrade" => return self.custom.get(gate).copied().unwrap_or(false),
            "TechPreviewNoUpgrade" => 1,
            "DevPreviewNoUpgrade" => 2,
            _ => 0,
        };
        GATES.iter().any(|(name, sets)| *name == gate && sets[column])
    }
}

/// `Name=bool`, the last of a name wins.
pub(super) fn custom(gates: &[String]) -> BTreeMap<&str, bool> {
    gates
        .iter()
        .filter_map(|gate| gate.split_once('='))
        .filter_map(|(name, on)| Some((name, boolean(on)?)))
        .collect()
}

/// What Go's `ParseBool` takes.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

pub(super) fn check(merged: &Merged, problems: &mut Vec<Problem>) {
    let before = problems.len();
    let set = merged.feature_set.as_str();
    if !SETS.contains(&set) {
        problems.push(Problem::unsupported("featureSet", set, SETS).hint("leave it out for the default set"));
    }
    if set == "OKD" {
        let why = "OKD featureset is not supported on OpenShift clusters";
        problems.push(Problem::forbidden("featureSet", why).hint("leave it out for the default set"));
    }
    if !merged.feature_gates.is_empty() && set != "CustomNoUpgrade" {
        let why = "featureGates can only be used with the CustomNoUpgrade feature set";
        problems.push(Problem::forbidden("featureGates", why).hint("write featureSet: CustomNoUpgrade"));
    }
    for (i, gate) in merged.feature_gates.iter().enumerate() {
        let parts: Vec<_> = gate.split('=').collect();
        let why = match parts[..] {
            [_, on] if boolean(on).is_some() => continue,
            [_, _] => "must match the format <feature-name>=<bool>, could not parse boolean value",
            _ => "must match the format <feature-name>=<bool>",
        };
        let problem = Problem::invalid_text(&format!("featureGates[{i}]"), gate, why);
        problems.push(problem.hint("e.g. ConfigurablePKI=true"));
    }
    // Whether a gate is open can be said only if the sets are right.
    if problems.len() == before {
        gated(merged, problems);
    }
}

fn gated(merged: &Merged, problems: &mut Vec<Problem>) {
    let baremetal = merged.platform.baremetal.as_ref();
    #[rustfmt::skip] // A row is a line.
    let used = [
        ("OnPremDNSRecords", "platform.baremetal.dnsRecordsType", baremetal.is_some_and(|b| b.dns_records_type == "External")),
        ("BGPBasedVIPManagement", "platform.baremetal.bgpVIPConfig", baremetal.is_some_and(|b| b.bgp_vip_config.is_some())),
        ("DualReplica", "controlPlane.fencing", merged.control_plane.fencing.is_some()),
        ("MultiDiskSetup", "controlPlane.diskSetup", !merged.control_plane.disk_setup.is_empty()),
        ("MultiDiskSetup", "compute.diskSetup", merged.compute.iter().any(|pool| !pool.disk_setup.is_empty())),
        ("OSStreams", "osImageStream", !merged.os_image_stream.is_empty()),
        ("ConfigurablePKI", "pki", merged.pki.is_some()),
    ];
    let gates = Gates::of(merged);
    for (gate, field, _) in used.iter().filter(|(gate, _, used)| *used && !gates.enabled(gate)) {
        let why = format!(
            "this field is protected by the {gate} feature gate which must be enabled through either the TechPreviewNoUpgrade or \
             CustomNoUpgrade feature set"
        );
        problems.push(
            Problem::forbidden(field, why).hint("remove it, or write featureSet: TechPreviewNoUpgrade"),
        );
    }
}
