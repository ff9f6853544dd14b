//! What a thing of the page is, for people who click on it. The one place that knows where descriptions come from.

use seedling_bootkube::PLAN;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Description {
    pub(crate) title: String,
    pub(crate) what: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) reads: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) writes: Vec<String>,
    /// What shows that it worked.
    pub(crate) check: String,
    /// The command that shows the same; `LAB` and `NODE` are filled in by the page.
    pub(crate) command: String,
}

/// By `station/<name>`, `stage/<name>`, `step`, `member`, `pod`, `certificate`.
pub(crate) fn descriptions() -> BTreeMap<String, Description> {
    let mut all: BTreeMap<String, Description> = OTHERS
        .iter()
        .map(|(key, title, what, check, command)| {
            let text = |text: &str| text.to_string();
            let description = Description {
                title: text(title),
                what: text(what),
                check: text(check),
                command: text(command),
                ..Default::default()
            };
            (text(key), description)
        })
        .collect();
    for step in PLAN {
        let stage = &step.stage;
        let list = |items: &[&str]| items.iter().map(ToString::to_string).collect();
        let description = Description {
            title: stage.name.into(),
            what: stage.why.into(),
            reads: list(stage.reads),
            writes: list(stage.writes),
            check: stage.check.into(),
            command: "seedling lab logs --name LAB NODE --unit bootkube".into(),
        };
        all.insert(format!("stage/{}", stage.name), description);
    }
    all
}

type Row = (&'static str, &'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const OTHERS: [Row; 14] = [
    ("station/power", "Power", "The machine is switched on. Its first process brings up the network card and asks for an address.",
     "the helper hears it ask by DHCP", "seedling lab status --name LAB"),
    ("station/address", "Address", "DHCP: the helper answers the MAC addresses of the inventory, and no others.",
     "the helper sent DHCP ACK", "seedling lab logs --name LAB"),
    ("station/ignition", "Ignition", "Ignition fetches its config over HTTP, by the machine's MAC address. Bootstrap gets everything; the others get a pointer: \
      the address of the machine-config server, the CA to trust and a token of their own.",
     "the helper answered 200", "seedling lab logs --name LAB NODE"),
    ("station/config", "Machine config", "The machine asks the machine-config server on port 22623 for the rest of its configuration. Until somebody serves there, the \
      load balancer holds the connection. Workers are served by masters only.",
     "the server's audit log says allowed", "seedling lab exec --name LAB bootstrap -- cat /var/log/machine-config-server/audit.log"),
    ("station/software", "Software", "Ignition fetches kubelet, containerd, kubectl and Seedling from the helper, checks their digests, writes files and units; \
      then systemd starts.",
     "a service of the machine has written to the journal", "seedling lab logs --name LAB NODE --journal"),
    ("station/kubelet", "Kubelet", "Before its kubelet starts, the machine asks the API for a certificate. The approver compares the request with the inventory.",
     "the certificate is there, and the kubelet starts", "seedling csr --lab LAB"),
    ("station/etcd", "etcd", "Bootstrap founds etcd alone. Each master joins as a learner, gets the data and is promoted to a voter.",
     "this machine's member votes", "seedling lab journal --name LAB NODE"),
    ("station/api", "API server", "The API server runs as a static pod. The load balancer takes it when /readyz answers.",
     "the load balancer takes the machine's port 6443", "seedling kubectl --lab LAB get pods -n openshift-kube-apiserver -o wide"),
    ("station/ready", "In the cluster", "A master or worker is done when its Node is Ready. Bootstrap is done when bootkube has handed the cluster over.",
     "the Node's condition Ready is True; for bootstrap: bootkube has ended", "seedling kubectl --lab LAB get nodes -o wide"),
    ("step", "A step of the journal", "Everything that works on a node writes a line before each step and one after it, to /var/log/openshift/journal.jsonl.",
     "the line after the step says that it ended well", "seedling lab journal --name LAB NODE"),
    ("member", "etcd member", "etcd starts with one member on bootstrap, grows to one more than there are masters, and ends with the masters alone. A learner gets \
      the data but has no vote; it is promoted when it has caught up.",
     "all members name the same leader", "seedling lab exec --name LAB NODE -- sh -c 'crictl exec $(crictl ps -q --name ^etcd$) etcdctl member list -w table'"),
    ("pod", "Static pod", "The kubelet runs it from a file, without a scheduler. On masters, installer pods write one numbered revision after the other, manifest last.",
     "every master runs the newest revision", "seedling kubectl --lab LAB get etcds,kubeapiservers,kubecontrollermanagers,kubeschedulers -o yaml"),
    ("certificate", "Certificate", "Its life from when it was made to when it ends. Operators renew leaves and signers before that.",
     "it is renewed before it ends", "seedling certs list --lab LAB"),
    ("critical", "Critical path", "Backwards from the end: at each moment, the work that everything else waited for. Shortening anything else does not make the bring-up \
      shorter.", "its parts follow each other without gaps", "seedling timeline --name LAB"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::STATIONS;

    #[test]
    fn every_station_and_stage_is_described() {
        let all = descriptions();
        let keys = STATIONS
            .iter()
            .map(|s| format!("station/{s}"))
            .chain(PLAN.iter().map(|s| format!("stage/{}", s.stage.name)));
        for key in keys {
            let found = all.get(&key).unwrap_or_else(|| panic!("{key}"));
            assert!(
                !found.what.is_empty() && !found.check.is_empty() && found.command.contains("LAB"),
                "{key}"
            );
        }
    }
}
