//! Masters join: the machine-config server, certificates, the pod network.

use super::{Finding, Link, Rule};
use crate::facts::Machine;

fn stuck(machine: &&Machine) -> bool {
    !machine.first_boot_done && machine.power != "off"
}

pub(super) const MCS_PORT_BLOCKED: Rule = Rule {
    name: "machine-config-port-blocked",
    link: Link::MachineConfig,
    cause: "masters do not reach the machine-config server on port 22623",
    next: "let the load balancer pass port 22623 of api-int to the bootstrap machine and the masters",
    messages: &[
        "GET https://api-int:22623/config/master: dial tcp: i/o timeout",
        "22623: connect: connection refused",
        "has not reached the machine-config server on 22623",
    ],
    find: |facts| {
        let machine = facts.masters().filter(stuck).find(|machine| machine.position == "noMcsFetch")?;
        let said = facts
            .last_where(&format!("{}console.log", machine.dir()), "", |line| line.contains("22623"))
            .or_else(|| {
                facts.last_where(&format!("{}ignition.log", machine.dir()), "", |line| line.contains("22623"))
            });
        Some(Finding::new(
            format!(
                "{} does not reach the machine-config server: port 22623 of api-int is blocked",
                machine.name
            ),
            said,
        ))
    },
};

pub(super) const MCS_WRONG_CA: Rule = Rule {
    name: "machine-config-wrong-ca",
    link: Link::MachineConfig,
    cause: "a machine's pointer config trusts another authority than the one that signed the machine-config server",
    next: "boot the machine with the Ignition files of this cluster: those it has are of another `create ignition-configs`",
    messages: &[
        "x509: certificate signed by unknown authority",
        "tls: failed to verify certificate: unknown authority 22623",
        "wrong CA",
    ],
    find: |facts| {
        facts.machines.iter().filter(stuck).find_map(|machine| {
            let words = &["unknown authority"];
            let said = facts.last(&format!("{}console.log", machine.dir()), "", words)
                .or_else(|| facts.last(&format!("{}ignition.log", machine.dir()), "", words))?;
            let says = format!("{} has the Ignition file of another cluster: the certificate of the machine-config server is signed by an authority that it does not know", machine.name);
            Some(Finding::new(says, [said]))
        })
    },
};

pub(super) const MCS_REFUSED: Rule = Rule {
    name: "machine-config-refused",
    link: Link::MachineConfig,
    cause: "the machine-config server refuses a machine: its token is spent, missing or of another machine",
    next: "give it a new token: `seedling node reissue NAME`; the audit log says why it was refused",
    messages: &[
        "GET /config/master 403 Forbidden",
        "asks the machine-config server in vain",
        "machine-config server 403",
        "token spent",
    ],
    find: |facts| {
        let machine = facts.masters().find(stuck)?;
        let said = facts.last_where("", "machine-config-server-audit.log", |line| {
            line.contains(&machine.address)
                && (line.contains("403") || line.contains("\"granted\":false") || line.contains("refused"))
        });
        let console = facts.last_where(&format!("{}console.log", machine.dir()), "", |line| {
            line.contains("22623") && line.contains("403")
        });
        let any = said.is_some() || console.is_some();
        any.then(|| {
            Finding::new(
                format!("the machine-config server refuses {}{}", machine.name, why(said.as_ref())),
                said.into_iter().chain(console),
            )
        })
    },
};

/// The audit log's reason.
fn why(audit: Option<&crate::Evidence>) -> String {
    let reason = audit.and_then(|line| line.text.split_once("\"reason\":\"")?.1.split('"').next());
    reason.map_or_else(String::new, |reason| format!(": {reason}"))
}

pub(super) const CSR_NOT_APPROVED: Rule = Rule {
    name: "csr-not-approved",
    link: Link::Join,
    cause: "nobody approves the certificate that a node asks for",
    next: "`seedling csr` says why; approve it by hand with `seedling csr approve NAME`, and look whether approve-csr.service runs",
    messages: &[
        "this node's certificate to be issued: no progress",
        "CSR stays pending",
        "certificate signing request is not approved",
        "CSRNotApproved",
        "csr Pending",
    ],
    find: |facts| {
        let waiting = facts.masters().find(|machine| {
            facts
                .steps(machine)
                .open()
                .any(|(who, step)| who.contains("kubelet-join") && step.name.contains("certificate"))
        })?;
        let step = facts.last_where(&format!("{}journal.jsonl", waiting.dir()), "", |line| {
            line.contains("kubelet-join") && line.contains("certificate")
        });
        let approver = facts.last_where("unit-status/approve-csr.service.txt", "", |line| {
            line.trim_start().starts_with("Active: ")
        });
        Some(Finding::new(
            format!("nobody approves the certificate that {} asks for", waiting.name),
            step.into_iter().chain(approver),
        ))
    },
};

pub(super) const CNI_BROKEN: Rule = Rule {
    name: "cni-broken",
    link: Link::Network,
    cause: "the pod network does not start on a node",
    next: "look at the pods of openshift-network on that node, and at /etc/cni/net.d and /opt/cni/bin there",
    messages: &[
        "cni plugin not initialized",
        "NetworkPluginNotReady",
        "network is not ready: container runtime network not ready",
        "failed to find plugin in path /opt/cni/bin",
        "NetworkReady=false",
    ],
    find: |facts| {
        let said = facts.last_where("control-plane/", "journals/kubelet.log", |line| {
            line.contains("cni plugin not initialized")
                || line.contains("failed to find plugin")
                || line.contains("NetworkPluginNotReady")
        })?;
        let enough = facts.count(
            "control-plane/",
            "journals/kubelet.log",
            &["cni plugin not initialized", "failed to find plugin"],
        ) > 5;
        enough.then(|| Finding::new("the pod network does not start", [said]))
    },
};
