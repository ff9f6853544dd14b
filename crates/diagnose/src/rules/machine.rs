//! Machines themselves: power, disks, the container runtime, the kubelet, ports.

use super::{Facts, Finding, Link, Rule};
use crate::facts::{MACHINES, Machine, evidence};
use crate::services::Service;

pub(super) const MACHINE_FROZEN: Rule = Rule {
    name: "machine-frozen",
    link: Link::Power,
    cause: "a machine is frozen: none of its processes runs",
    next: "switch it off and on: `seedling lab power NODE kill`, then `seedling lab power NODE on`",
    messages: &["frozen", "the machine is paused"],
    find: |facts| {
        let machine = facts.machines.iter().find(|machine| machine.power == "paused")?;
        Some(Finding::new(
            format!("{} is frozen: none of its processes runs", machine.name),
            [power(facts, machine)],
        ))
    },
};

pub(super) const HELPER_DOWN: Rule = Rule {
    name: "helper-down",
    link: Link::Power,
    cause: "the helper does not run: machines have no DHCP, DNS, registry and load balancer",
    next: "start it again: `seedling lab up`, or the service that runs `seedling helper keep`",
    messages: &["helper not running", "the helper ended at once", "the helper does not run"],
    find: |facts| {
        let said = facts.last_where("helper/running.txt", "", |line| line.trim() == "0")?;
        Some(Finding::new(
            "the helper does not run: machines have no DHCP, DNS, registry and load balancer",
            [said],
        ))
    },
};

pub(super) const BOOTSTRAP_OFF: Rule = Rule {
    name: "bootstrap-off",
    link: Link::Api,
    cause: "the bootstrap machine went off before the masters carried the cluster",
    next: "switch it on: it continues where it was (`seedling lab power bootstrap on`), then run `seedling lab up` again",
    messages: &["bootstrap switched off", "bootstrap machine powered off", "no route to host bootstrap"],
    find: |facts| {
        let bootstrap = facts.bootstrap().filter(|machine| machine.power == "off")?;
        let steps = facts.steps(bootstrap);
        // The normal end: bootkube is through.
        let record = facts.text("bootstrap/services/bootkube.json").unwrap_or_default();
        let done = Service::parse(record.as_bytes()).is_ok_and(|service| service.successful);
        let open: Vec<_> = steps.open().map(|(who, step)| format!("{who} was at {}", step.name)).collect();
        let at = if open.is_empty() { String::new() } else { format!(" ({})", open.join(", ")) };
        let says = format!("{} is off, and bootkube had not finished{at}", bootstrap.name);
        (!done).then(|| Finding::new(says, [power(facts, bootstrap)]))
    },
};

pub(super) const MAJORITY_OFF: Rule = Rule {
    name: "majority-off",
    link: Link::Power,
    cause: "so many masters are off that etcd has no majority: nothing can be written, and the API does not answer",
    next: "switch the masters on; if they are lost for good: docs/disaster-recovery.md",
    messages: &["etcd has no leader", "two masters are off", "etcdserver: leader changed", "lost quorum"],
    find: |facts| {
        let (off, all) =
            (facts.masters().filter(|m| m.power == "off").collect::<Vec<_>>(), facts.masters().count());
        // Until the masters carry the cluster, the bootstrap machine does.
        let alone = facts.bootstrap().is_none_or(|bootstrap| bootstrap.power == "off");
        let names: Vec<_> = off.iter().map(|machine| machine.name.as_str()).collect();
        let says =
            format!("{} of {all} masters are off ({}), so etcd has no majority", off.len(), names.join(", "));
        let next = format!("switch one on: `seedling lab power {} on`", names.first()?);
        let lost = alone && all - off.len() <= all / 2;
        lost.then(|| Finding::new(says, off.iter().map(|machine| power(facts, machine))).next(next))
    },
};

pub(super) const MASTER_OFF: Rule = Rule {
    name: "master-off",
    link: Link::Join,
    cause: "a master is off, and the control plane waits for it",
    next: "switch it on (`seedling lab power NODE on`); if it is lost for good, wait for the operators' patience or reinstall it",
    messages: &[
        "master is switched off",
        "master powered off",
        "still waiting for three healthy etcd members",
    ],
    find: |facts| {
        let off: Vec<_> = facts.masters().filter(|machine| machine.power == "off").collect();
        let names: Vec<_> = off.iter().map(|machine| machine.name.as_str()).collect();
        let first = off.first()?;
        let next = format!("switch it on: `seedling lab power {} on`", first.name);
        let says = format!("{} is off, and the control plane waits for it", names.join(", "));
        Some(Finding::new(says, [power(facts, first)]).next(next))
    },
};

fn power(facts: &Facts, machine: &Machine) -> crate::Evidence {
    let name = format!("\"{}\"", machine.name);
    facts
        .last_where(MACHINES, "", |line| line.contains(&name))
        .unwrap_or_else(|| evidence(MACHINES, None, &format!("{}: {}", machine.name, machine.power)))
}

const NO_SPACE: &[&str] = &["no space left on device", "No space left on device"];

pub(super) const DISK_FULL: Rule = Rule {
    name: "disk-full",
    link: Link::Node,
    cause: "a disk is full",
    next: "make room on it (`df -h` on the machine), then what failed is tried again by itself",
    messages: &["no space left on device", "disk is full", "DiskPressure", "write: no space left"],
    find: |facts| {
        for machine in &facts.machines {
            let dir = machine.dir();
            let said = facts.last(&dir, ".log", NO_SPACE);
            let full = facts.last_where(&format!("{dir}checks/disk.txt"), "", |line| {
                let mut fields = line.split_whitespace().rev();
                let (path, used) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
                path.starts_with("/var") && matches!(used, "100%" | "99%")
            });
            if said.is_none() && full.is_none() {
                continue;
            }
            let place = full.as_ref().and_then(|e| e.text.split_whitespace().last().map(str::to_string));
            let of = place.map_or_else(|| "a disk".to_string(), |place| format!("the disk of {place}"));
            return Some(Finding::new(
                format!("{of} on {} is full", machine.name),
                said.into_iter().chain(full),
            ));
        }
        None
    },
};

/// `systemctl status`, of the bootstrap machine at the bundle's root.
fn unit_status(machine: &Machine, unit: &str) -> String {
    match machine.role.as_str() {
        "bootstrap" => format!("unit-status/{unit}.service.txt"),
        _ => format!("{}unit-status/{unit}.service.txt", machine.dir()),
    }
}

/// A unit that somebody stopped, or that ended and is not started again.
fn stopped(facts: &Facts, unit: &str) -> Option<Finding> {
    facts.machines.iter().find_map(|machine| {
        let down = facts.last_where(&unit_status(machine, unit), "", |line| {
            let line = line.trim_start();
            line.starts_with("Active: inactive") || line.starts_with("Active: failed")
        })?;
        // Before its first start it is inactive as well.
        let ran = facts
            .text(&format!("{}journals/{unit}.log", machine.dir()))
            .is_some_and(|text| text.lines().count() > 2);
        ran.then(|| Finding::new(format!("{unit} does not run on {}", machine.name), [down]))
    })
}

pub(super) const CONTAINERD_DOWN: Rule = Rule {
    name: "containerd-down",
    link: Link::Node,
    cause: "the container runtime does not run on a machine",
    next: "on the machine: `systemctl status containerd`, `journalctl -u containerd`, then `systemctl unmask containerd; systemctl restart containerd`",
    messages: &[
        "containerd.sock: connect: no such file or directory",
        "containerd.sock: connect: connection refused",
        "container runtime is down",
    ],
    find: |facts| stopped(facts, "containerd"),
};

pub(super) const KUBELET_DOWN: Rule = Rule {
    name: "kubelet-down",
    link: Link::Join,
    cause: "the kubelet does not run on a machine",
    next: "on the machine: `systemctl status kubelet`, `journalctl -u kubelet`, then `systemctl unmask kubelet; systemctl restart kubelet`",
    messages: &["Kubelet stopped posting node status", "kubelet does not run", "NodeStatusUnknown"],
    find: |facts| stopped(facts, "kubelet"),
};

pub(super) const PORT_TAKEN: Rule = Rule {
    name: "port-taken",
    link: Link::Etcd,
    cause: "another program has a port that the control plane needs",
    next: "on the machine: `ss -tlnp` says which program has the port; stop it",
    messages: &["bind: address already in use", "listen tcp 0.0.0.0:6443: bind", "port is already allocated"],
    find: |facts| {
        facts.machines.iter().find_map(|machine| {
            let said = facts.last(
                &format!("{}containers/", machine.dir()),
                ".log",
                &["bind: address already in use"],
            )?;
            let port = said
                .text
                .rsplit_once(": bind")
                .and_then(|(head, _)| head.rsplit(':').next())
                .unwrap_or_default();
            let port: String = port.chars().filter(char::is_ascii_digit).collect();
            let says = format!("another program on {} has port {port}", machine.name);
            let next = format!(
                "on {}: `ss -tlnp 'sport = :{port}'` says which program has it; stop it",
                machine.name
            );
            // An old container of the same pod may still have it for a moment; only the last attempt's log is kept.
            let attempt =
                said.file.trim_end_matches(".log").rsplit('-').next().and_then(|n| n.parse::<u32>().ok());
            attempt.is_some_and(|attempt| attempt > 1).then(|| Finding::new(says, [said]).next(next))
        })
    },
};
