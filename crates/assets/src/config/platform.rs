//! `platform`: exactly one that Seedling installs on, and the rules of bare metal.

use super::Merged;
use super::baremetal::{Baremetal, Host};
use super::capabilities::enabled;
use super::model::Platform;
use super::problem::{DECODING, Problem};
use super::text::subdomain_faults;
use super::vips::not_an_ip;
use serde_json::Value;
use std::collections::HashSet;
use std::net::IpAddr;

/// Where several are given, the first of these counts.
#[rustfmt::skip]
const ORDER: &[&str] = &[
    "aws", "azure", "baremetal", "gcp", "ibmcloud", "none", "external", "powervc", "openstack", "vsphere", "ovirt",
    "powervs", "nutanix",
];
/// Those that upstream has rules for; only they notice that they are not alone.
const WITH_RULES: &[&str] =
    &["aws", "azure", "gcp", "ibmcloud", "openstack", "powervs", "vsphere", "baremetal", "ovirt", "nutanix"];
const ALL: &str =
    "aws, azure, baremetal, external, gcp, ibmcloud, none, nutanix, openstack, powervc, powervs, vsphere";
const BAREMETAL: &str = "platform.baremetal";

/// The name of the platform that counts.
pub(super) fn active(platform: &Platform) -> &'static str {
    ORDER.iter().find(|name| given(platform, name)).copied().unwrap_or("")
}

fn given(platform: &Platform, name: &str) -> bool {
    match name {
        "none" => platform.none.is_some(),
        "baremetal" => platform.baremetal.is_some(),
        other => platform.other.contains_key(other),
    }
}

pub(super) fn check(merged: &Merged, problems: &mut Vec<Problem>) {
    let platform = &merged.platform;
    let active = active(platform);
    match active {
        "none" | "baremetal" => {}
        "" | "ovirt" => {
            let why = format!("must specify one of the platforms ({ALL})");
            problems.push(Problem::invalid_text("platform", active, why).hint("write platform: {none: {}}"));
        }
        other => {
            let hint = "seedling installs on machines that you own";
            problems.push(Problem::unsupported("platform", other, &["baremetal", "none"]).hint(hint));
        }
    }
    for name in WITH_RULES.iter().filter(|name| given(platform, name)) {
        if *name != active {
            let why = format!(
                "must only specify a single type of platform; cannot use both {active:?} and {name:?}"
            );
            problems.push(Problem::invalid_text("platform", active, why).hint(format!("keep {active}")));
        }
        match (*name, platform.other.get(*name), &platform.baremetal) {
            ("vsphere", Some(vsphere), _) if active != "vsphere" && vsphere.get("vcenters").is_none() => {
                problems.push(Problem::required("platform.vsphere.vcenters", "must be defined"));
            }
            ("baremetal", _, Some(b)) => baremetal(merged, b, problems),
            _ => {}
        }
    }
}

fn baremetal(merged: &Merged, b: &Baremetal, problems: &mut Vec<Problem>) {
    let path = |field: &str| format!("{BAREMETAL}.{field}");
    let networks = ["Disabled", "Managed", "Unmanaged"];
    if !networks.contains(&b.provisioning_network.as_str()) {
        problems.push(Problem::unsupported(&path("provisioningNetwork"), &b.provisioning_network, &networks));
    }
    for (field, address) in [
        ("bootstrapProvisioningIP", &b.bootstrap_provisioning_ip),
        ("clusterProvisioningIP", &b.cluster_provisioning_ip),
    ] {
        if !address.is_empty() && address.parse::<IpAddr>().is_err() {
            problems.push(not_an_ip(&path(field), address));
        }
    }
    if enabled(merged).contains("MachineAPI") {
        if b.hosts.is_none() {
            let why = "bare metal hosts are missing";
            problems.push(Problem::invalid(&path("hosts"), "null", why).hint("list the machines"));
        }
        hosts(merged, b.hosts.as_deref().unwrap_or_default(), &path("hosts"), problems);
    }
    if let Some(balancer) = &b.load_balancer
        && !["OpenShiftManagedDefault", "UserManaged"].contains(&balancer.kind.as_str())
    {
        let problem =
            Problem::invalid_json(&path("loadBalancer.type"), &balancer.kind, "invalid load balancer type");
        problems.push(problem.hint("OpenShiftManagedDefault or UserManaged"));
    }
}

fn hosts(merged: &Merged, hosts: &[Host], path: &str, problems: &mut Vec<Problem>) {
    if let Err(why) = enough(merged, hosts, problems) {
        problems.push(Problem::required(path, why).hint("add hosts, or lower the number of replicas"));
    }
    unique(hosts, path, problems);
    for (i, host) in hosts.iter().enumerate() {
        boot_mode(host, &format!("{path}[{i}].bootMode"), problems);
    }
    for (i, host) in hosts.iter().enumerate() {
        root_device(host, &format!("{path}[{i}].rootDeviceHints.deviceName"), problems);
    }
    for (i, host) in hosts.iter().enumerate() {
        network_config(host, &format!("{path}[{i}].networkConfig"), problems);
    }
    for (i, host) in hosts.iter().enumerate() {
        let faults = subdomain_faults(&host.name);
        if !faults.is_empty() {
            let problem = Problem::invalid_text(&format!("{path}[{i}].name"), &host.name, faults.join("\n"));
            problems.push(problem.hint("use lower-case letters, digits and '-'"));
        }
    }
    let fencing = merged.control_plane.fencing.as_ref().is_some_and(|f| !f.credentials.is_empty());
    if merged.control_plane.replicas == Some(2) && fencing {
        for (i, host) in hosts.iter().enumerate().filter(|(_, host)| host.role == "master") {
            if !host.bmc.address.contains("redfish") {
                let why = "fencing only supports redfish-compatible BMC addresses";
                problems.push(Problem::invalid_text(
                    &format!("{path}[{i}].bmc.address"),
                    &host.bmc.address,
                    why,
                ));
            }
        }
    }
}

/// As many hosts as replicas, role by role; hosts without a role fill up in the same order.
fn enough(merged: &Merged, hosts: &[Host], problems: &mut Vec<Problem>) -> Result<(), String> {
    let replicas = |pool: &super::model::Pool| pool.replicas.unwrap_or_default();
    let wanted = [
        ("ControlPlane", "master", replicas(&merged.control_plane)),
        ("Arbiter", "arbiter", merged.arbiter.as_ref().map_or(0, replicas)),
        ("Compute", "worker", merged.compute.iter().map(replicas).fold(0, i64::saturating_add)),
    ];
    let mut found = [0_i64; 3];
    for host in hosts {
        let own = wanted.iter().position(|(_, role, _)| *role == host.role);
        if own.is_none() {
            let text = format!("Host {} hasn't any role configured", host.name);
            problems.push(Problem::warning(BAREMETAL, text));
        }
        let open = || (0..3).find(|i| found[*i] < wanted[*i].2);
        if let Some(i) = own.or_else(open) {
            found[i] += 1;
        }
    }
    for (found, (name, _, wanted)) in found.into_iter().zip(wanted) {
        if found < wanted {
            return Err(format!(
                "not enough hosts found ({found}) to support all the configured {name} replicas ({wanted})"
            ));
        }
    }
    Ok(())
}

/// Names and MAC addresses are there, once each.
fn unique(hosts: &[Host], path: &str, problems: &mut Vec<Problem>) {
    let (mut names, mut macs) = (HashSet::new(), HashSet::new());
    for (i, host) in hosts.iter().enumerate() {
        for (field, go, value, seen) in [
            ("name", "Name", &host.name, &mut names),
            ("bootMACAddress", "BootMACAddress", &host.boot_mac_address, &mut macs),
        ] {
            let path = format!("{path}[{i}].{field}");
            if value.is_empty() {
                problems.push(Problem::required(&path, format!("missing {go}")));
            } else if !seen.insert(value.clone()) {
                problems.push(Problem::duplicate(&path, value));
            }
        }
    }
}

fn boot_mode(host: &Host, path: &str, problems: &mut Vec<Problem>) {
    let address = &host.bmc.address;
    let scheme = address.split_once("://").map_or("ipmi", |(scheme, _)| scheme);
    match host.boot_mode.as_str() {
        "UEFI" | "legacy" => {}
        "UEFISecureBoot" if ["ipmi", "libvirt"].contains(&scheme) => {
            let why = "driver ipmi does not support UEFI secure boot";
            problems.push(Problem::invalid_json(path, &host.boot_mode, why).hint("write UEFI"));
        }
        "UEFISecureBoot" => {}
        other => problems.push(Problem::unsupported(path, other, &["UEFI", "UEFISecureBoot", "legacy"])),
    }
}

fn root_device(host: &Host, path: &str, problems: &mut Vec<Problem>) {
    let Some(name) = host.root_device_hints.as_ref().map(|h| &h.device_name).filter(|n| !n.is_empty()) else {
        return;
    };
    let below = name.strip_prefix("/dev/").unwrap_or(name);
    if below == name {
        let why = "Device Name of root device hint must be a /dev/ path";
        problems.push(Problem::invalid_text(path, name, why).hint(format!("e.g. /dev/{name}")));
    }
    if below.strip_prefix("disk/by-path/").unwrap_or(below).contains('/') {
        let why = "Device Name of root device hint must be path in /dev/ or /dev/disk/by-path/";
        problems.push(Problem::invalid_text(path, name, why));
    }
}

fn network_config(host: &Host, path: &str, problems: &mut Vec<Problem>) {
    let Some(config) = &host.network_config else { return };
    let kind = match config {
        Value::Object(_) => None,
        Value::Array(_) => Some("array"),
        Value::String(_) => Some("string"),
        Value::Number(_) => Some("number"),
        Value::Bool(_) => Some("bool"),
        Value::Null => return,
    };
    if let Some(kind) = kind {
        // Upstream reads it twice.
        let why = format!(
            "{DECODING} json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        );
        let hint = "a map as NMState has it, with a list of interfaces";
        let first = Problem::invalid_json(path, config, format!("Not a valid yaml: {why}"));
        problems.push(first.hint(hint));
        let why = format!("failed to unmarshal NMState config: {why}");
        problems.push(Problem::invalid_text(path, &config.to_string(), why).hint(hint));
    }
    let interfaces = config.get("interfaces").and_then(Value::as_array);
    for (i, interface) in interfaces.into_iter().flatten().enumerate() {
        let path = format!("{path}.interfaces[{i}].mtu");
        let Some(mtu) = interface.get("mtu") else { continue };
        let got = match mtu {
            Value::Number(_) => continue,
            Value::String(text) if text.parse::<i64>().is_ok() => " (not quoted string)",
            Value::String(_) => "",
            Value::Bool(_) => ", got bool",
            Value::Null => ", got <nil>",
            Value::Array(_) => ", got []interface {}",
            Value::Object(_) => ", got map[string]interface {}",
        };
        let problem = Problem::invalid_json(&path, mtu, format!("mtu must be an integer{got}"));
        problems.push(problem.hint("e.g. 1500"));
    }
}
