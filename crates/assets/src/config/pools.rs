//! Machine pools: control plane, arbiter, compute, and the credentials with which two masters fence each other.

use super::Merged;
use super::features::Gates;
use super::model::{FencingCredential, Pool};
use super::problem::Problem;
use serde_json::{Map, Value};

const RELEASE_ARCHITECTURE: &str = "amd64";
const ARCHITECTURES: &[&str] = &["amd64", "arm64", "ppc64le", "s390x"];
const FENCING: &str = "controlPlane.fencing.credentials";

pub(super) fn check(merged: &Merged, platform: &str, problems: &mut Vec<Problem>) {
    let masters = merged.control_plane.replicas.unwrap_or_default();
    if masters == 0 {
        let why = "number of control plane replicas must be positive";
        problems.push(Problem::invalid("controlPlane.replicas", 0, why).hint("3 survive the loss of one"));
    }
    pool(&merged.control_plane, "controlPlane", platform, problems);
    let gates = Gates::of(merged);
    if gates.enabled("DualReplica") {
        fencing(merged, problems);
    }
    if let Some(arbiter) = &merged.arbiter {
        if gates.enabled("HighlyAvailableArbiter") {
            check_arbiter(arbiter, masters, platform, problems);
        } else {
            let why =
                "HighlyAvailableArbiter feature must be enabled in order to use arbiter cluster deployment";
            problems.push(
                Problem::forbidden("arbiter", why).hint("add HighlyAvailableArbiter=true to featureGates"),
            );
        }
    }
    compute(merged, platform, problems);
    release(merged, problems);
}

fn check_arbiter(arbiter: &Pool, masters: i64, platform: &str, problems: &mut Vec<Problem>) {
    let path = "arbiter.replicas";
    if arbiter.replicas == Some(0) {
        let why = "number of arbiter replicas must be positive";
        problems.push(Problem::invalid(path, 0, why).hint("write replicas: 1"));
    }
    if masters < 2 {
        let why = "number of controlPlane replicas must be at least 2 for arbiter deployments";
        problems.push(
            Problem::invalid(path, masters, why)
                .at_field("controlPlane.replicas")
                .hint("2 masters, 1 arbiter"),
        );
    }
    pool(arbiter, "arbiter", platform, problems);
}

fn compute(merged: &Merged, platform: &str, problems: &mut Vec<Problem>) {
    for (i, compute) in merged.compute.iter().enumerate() {
        let path = format!("compute[{i}]");
        let name = format!("{path}.name");
        match compute.name.as_str() {
            "worker" => {}
            "edge" => problems.push(Problem::unsupported(&name, "edge", &["worker"]).hint("name it worker")),
            other => {
                problems.push(Problem::unsupported(&name, other, &["worker", "edge"]).hint("name it worker"))
            }
        }
        if merged.compute[..i].iter().any(|before| before.name == compute.name) {
            problems.push(Problem::duplicate(&name, &compute.name).hint("keep one pool"));
        }
        if compute.architecture != merged.control_plane.architecture {
            let why = "heteregeneous multi-arch is not supported; compute pool architecture must match control plane";
            let path = format!("{path}.architecture");
            problems.push(Problem::invalid_json(&path, &compute.architecture, why).hint("leave it out"));
        }
        pool(compute, &path, platform, problems);
    }
}

/// Every release of Seedling is built for one architecture. Pools that differ from the control plane, or name no architecture at
/// all, were refused above, with upstream's words only.
fn release(merged: &Merged, problems: &mut Vec<Problem>) {
    let master = &merged.control_plane.architecture;
    let agreed = merged.compute.iter().all(|pool| pool.architecture == *master);
    if master == RELEASE_ARCHITECTURE || !agreed || !ARCHITECTURES.contains(&master.as_str()) {
        return;
    }
    let mut refuse = |path: String, what: &str| {
        let why = format!(
            "cannot create {master} {what} node from a single architecture {RELEASE_ARCHITECTURE} release payload"
        );
        problems.push(Problem::invalid_json(&path, master, why).hint("leave it out"));
    };
    refuse("controlPlane.architecture".into(), "controlPlane");
    for i in 0..merged.compute.len() {
        refuse(format!("compute[{i}].architecture"), "compute");
    }
}

fn pool(pool: &Pool, path: &str, platform: &str, problems: &mut Vec<Problem>) {
    let replicas = pool.replicas.unwrap_or_default();
    if replicas < 0 {
        let why = "number of replicas must not be negative";
        problems.push(Problem::invalid(&format!("{path}.replicas"), replicas, why).hint("0 or more"));
    }
    if !["Enabled", "Disabled"].contains(&pool.hyperthreading.as_str()) {
        let path = format!("{path}.hyperthreading");
        problems.push(Problem::unsupported(&path, &pool.hyperthreading, &["Disabled", "Enabled"]));
    }
    if !ARCHITECTURES.contains(&pool.architecture.as_str()) {
        let path = format!("{path}.architecture");
        problems.push(Problem::unsupported(&path, &pool.architecture, ARCHITECTURES).hint("leave it out"));
    }
    disks(pool, &format!("{path}.diskSetup"), problems);
    for (name, value) in pool.platform.iter().filter(|(name, _)| *name != platform) {
        let path = format!("{path}.platform.{name}");
        let why = format!("cannot specify {name:?} for machine pool when cluster is using {platform:?}");
        problems.push(Problem::invalid_json(&path, &whole(name, value), why).hint("remove it"));
    }
}

/// Go prints a struct with the fields that are not optional, given or not.
fn whole(platform: &str, given: &Value) -> Value {
    let mut all: Map<String, Value> = match platform {
        "aws" => serde_json::from_str(
            r#"{"type":"","rootVolume":{"iops":0,"size":0,"type":""},"metadataService":{}}"#,
        )
        .unwrap_or_default(),
        _ => Map::new(),
    };
    for (key, value) in given.as_object().into_iter().flatten() {
        all.insert(key.clone(), value.clone());
    }
    Value::Object(all)
}

fn disks(pool: &Pool, path: &str, problems: &mut Vec<Problem>) {
    let (mut etcd, mut swap) = (false, false);
    for (i, disk) in pool.disk_setup.iter().enumerate() {
        let mut refuse = |field: &str, why: &str| {
            let shown = crate::yaml::to_yaml(disk).unwrap_or_default();
            let problem = Problem::invalid_text(&format!("{path}.{field}"), &shown, why);
            problems.push(problem.at_field(&format!("{path}[{i}]")));
        };
        match disk.kind.as_str() {
            "user-defined" => match &disk.user_defined {
                None => refuse("userDefined", "userDefined configuration must be created"),
                Some(own) if own.platform_disk_id.len() > 12 => {
                    refuse("userDefined.platformDiskID", "cannot be longer than 12 characters");
                }
                Some(_) => {}
            },
            "etcd" if etcd => problems.push(Problem::too_many(&format!("{path}.etcd"), 2, 1)),
            "etcd" if disk.etcd.is_none() => refuse("etcd", "etcd configuration must be created"),
            "etcd" if pool.name != "master" => refuse("etcd", "cannot specify etcd on worker machine pools"),
            "etcd" => etcd = true,
            "swap" if pool.name == "master" => refuse("swap", "swap is unsupported on control plane nodes"),
            "swap" if swap => problems.push(Problem::too_many(&format!("{path}.swap"), 2, 1)),
            "swap" if disk.swap.is_none() => refuse("swap", "swap configuration must be created"),
            "swap" => swap = true,
            other => {
                let path = format!("{path}[{i}].type");
                problems.push(Problem::unsupported(&path, other, &["etcd", "swap", "user-defined"]));
            }
        }
    }
}

/// Two masters without an arbiter must be able to switch each other off; others need not.
fn fencing(merged: &Merged, problems: &mut Vec<Problem>) {
    let credentials = merged.control_plane.fencing.as_ref().map_or(&[][..], |f| &f.credentials);
    let count = credentials.len();
    let two = merged.control_plane.replicas == Some(2) && merged.arbiter.is_none();
    for (i, credential) in credentials.iter().enumerate() {
        each_credential(i, credential, &credentials[..i], problems);
    }
    if two && count != 2 {
        let why = format!(
            "there should be exactly two fencing credentials to support the two node cluster, instead {count} credentials were found"
        );
        problems
            .push(Problem::forbidden(FENCING, why).hint("one for each master; or 3 masters, or an arbiter"));
    } else if !two && count > 0 {
        let why = format!(
            "there should not be any fencing credentials configured for a non dual replica control plane (Two Nodes Fencing) \
             cluster, instead {count} credentials were found"
        );
        problems.push(Problem::forbidden(FENCING, why).hint("remove controlPlane.fencing"));
    }
}

fn each_credential(
    i: usize,
    own: &FencingCredential,
    before: &[FencingCredential],
    problems: &mut Vec<Problem>,
) {
    let path = |field: &str| format!("{FENCING}[{i}].{field}");
    type Get = fn(&FencingCredential) -> &str;
    let fields: [(&str, &str, Get, bool, bool); 5] = [
        ("hostName", "HostName", |c| &c.host_name, false, true),
        ("macAddress", "MACAddress", |c| &c.mac_address, false, true),
        ("username", "Username", |c| &c.username, true, false),
        ("password", "Password", |c| &c.password, true, false),
        ("address", "Address", |c| &c.address, true, true),
    ];
    for (name, go, get, required, unique) in fields {
        let value = get(own);
        if value.is_empty() {
            if required {
                problems.push(Problem::required(&path(name), format!("missing {go}")));
            }
        } else if unique && before.iter().any(|other| get(other) == value) {
            problems.push(Problem::duplicate(&path(name), value));
        }
    }
    if own.host_name.is_empty() && own.mac_address.is_empty() {
        let why = "at least one of hostname or macaddress must be provided";
        problems.push(Problem::required(&format!("{FENCING}[{i}]"), why).hint("add hostName"));
    }
    if !own.address.is_empty() && !own.address.contains("redfish") {
        let why = "fencing only supports redfish-compatible BMC addresses";
        problems.push(
            Problem::invalid_text(&path("address"), &own.address, why)
                .hint("e.g. redfish+https://192.168.1.1/redfish/v1/Systems/1"),
        );
    }
    let verification = own.certificate_verification.as_str();
    if !["", "Enabled", "Disabled"].contains(&verification) {
        problems.push(Problem::unsupported(
            &path("certificateVerification"),
            verification,
            &["Enabled", "Disabled"],
        ));
    }
}
