//! The table of faults: what is done, when, and which rule names it.

use super::answer::Answer;
use crate::chaos::When;
use seedling_machines::Disk;

/// When it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// Network and helper are there, no machine is on.
    Prepared,
    Milestone(&'static str),
    /// bootkube has begun it.
    Stage(&'static str),
    /// On the first master's disk.
    File(&'static str),
}

impl Moment {
    /// What was done before is watched from the machines' first moment on.
    pub(super) fn when(self) -> When {
        match self {
            Moment::Prepared => When::Milestone(SWITCHED_ON),
            Moment::Milestone(words) => When::Milestone(words),
            Moment::Stage(stage) => When::Stage(stage.into()),
            Moment::File(path) => When::File(path),
        }
    }
}

/// What is done.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Nothing,
    /// A machine's MAC address in the helper's inventory is another.
    OtherMac(&'static str),
    /// The helper's names are those of another domain.
    OtherDomain,
    /// Packets like these do not arrive at the helper.
    HelperLoses(&'static str),
    /// Somebody else answers on a port of the helper.
    HelperAnswers(u16, Answer),
    /// Somebody has a port of a machine.
    Takes(&'static str, u16),
    /// A machine's Ignition file in the asset directory is changed.
    Ignition(&'static str, Change),
    /// An image of the release is changed in the registry.
    Image(&'static str, Change),
    /// A root shell on a machine.
    Shell(&'static str, &'static str),
    Off(&'static str),
    Freeze(&'static str),
    Unplug(&'static str),
    Slow(&'static str),
    Fill(&'static str, Disk),
    /// A program on a machine is stopped, and stays there.
    Stop(&'static str, &'static str),
    HelperOff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Gone,
    /// It trusts another authority.
    OtherAuthority,
    OtherToken,
    /// A proxy that is not there.
    Proxy,
    /// Its content is another than its digest says.
    Damaged,
}

#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub name: &'static str,
    /// For people.
    pub what: &'static str,
    /// The rules that name it; with none, nothing may be found.
    pub expects: &'static [&'static str],
    pub(super) masters: u8,
    /// For `lab up`.
    pub(super) with: &'static [&'static str],
    pub(super) moment: Moment,
    /// Seconds after which it shows.
    pub(super) shows_after: u64,
    pub(super) act: Act,
}

const SWITCHED_ON: &str = "machines switched on";
const ON: Moment = Moment::Milestone(SWITCHED_ON);
const API: Moment = Moment::Milestone("the API to answer");
const JOINED: Moment = Moment::Milestone("all masters to join");
const BOOTED: Moment = Moment::File("/etc/.ignition-applied");
const PULLS: &[&str] = &["--seed-images=false"];

const fn fault(
    name: &'static str,
    what: &'static str,
    expects: &'static [&'static str],
    moment: Moment,
    shows_after: u64,
    act: Act,
) -> Fault {
    Fault { name, what, expects, masters: 1, with: &[], moment, shows_after, act }
}

impl Fault {
    const fn with(self, with: &'static [&'static str]) -> Self {
        Self { with, ..self }
    }
    const fn masters(self, masters: u8) -> Self {
        Self { masters, ..self }
    }
}

/// Secrets in the journal of a machine, each with a word that must not be in the bundle.
const PLANT: &str = r#"systemd-cat -t planted -p err sh -c 'echo "joins with canary.0123456789canary and token: canary-one"
echo "Authorization: Bearer 0123456789abcdefcanary"
echo "-----BEGIN PRIVATE KEY-----"; echo "MIIEcanary"; echo "-----END PRIVATE KEY-----"
echo "core:\$6\$salt\$canaryabcdefghijklmnopqrstuvwxyz"
printf "users:\n- user: {client-key-data: canary-key-data}\n" | base64 -w0; echo
echo "planted"'"#;
/// What is left of them, and what must not be.
pub(super) const PLANTED: (&str, &str) = ("planted[", "canary");

pub const FAULTS: &[Fault] = &[
    fault(
        "none",
        "nothing is broken, and secrets are written into a journal",
        &[],
        JOINED,
        25,
        Act::Shell("master-0", PLANT),
    ),
    fault(
        "wrong-mac",
        "the inventory has another MAC address for master-0",
        &["mac-unknown"],
        Moment::Prepared,
        15,
        Act::OtherMac("master-0"),
    ),
    fault(
        "wrong-mac-bootstrap",
        "the inventory has another MAC address for bootstrap",
        &["mac-unknown"],
        Moment::Prepared,
        15,
        Act::OtherMac("bootstrap"),
    ),
    fault(
        "dhcp-down",
        "no DHCP packet reaches the helper",
        &["no-dhcp"],
        Moment::Prepared,
        15,
        Act::HelperLoses("udp dport 67"),
    ),
    fault(
        "cable",
        "master-0's network cable is out",
        &["machine-unreachable"],
        BOOTED,
        20,
        Act::Unplug("master-0"),
    ),
    fault(
        "dns-missing",
        "api-int has no DNS record",
        &["dns-record-missing"],
        Moment::Prepared,
        20,
        Act::OtherDomain,
    ),
    fault(
        "dns-wrong",
        "api-int points at an address where nobody is",
        &["dns-record-wrong"],
        Moment::Prepared,
        30,
        Act::HelperAnswers(53, Answer::Dns([192, 168, 100, 99])),
    ),
    fault(
        "dns-down",
        "no DNS query reaches the helper",
        &["dns-silent"],
        Moment::Prepared,
        30,
        Act::HelperLoses("udp dport 53"),
    ),
    fault(
        "http-down",
        "the HTTP server of the Ignition files is not reached",
        &["ignition-server-unreachable"],
        Moment::Prepared,
        20,
        Act::HelperLoses("tcp dport 8080"),
    ),
    fault(
        "ignition-missing",
        "the helper has no Ignition file for master-0",
        &["ignition-file-missing"],
        Moment::Prepared,
        15,
        Act::Ignition("master-0", Change::Gone),
    ),
    fault(
        "helper-down",
        "the helper ends once the machines have booted",
        &["helper-down"],
        BOOTED,
        20,
        Act::HelperOff,
    ),
    fault(
        "registry-down",
        "the registry is not reached",
        &["registry-unreachable"],
        Moment::Prepared,
        30,
        Act::HelperLoses("tcp dport 5000"),
    )
    .with(PULLS),
    fault(
        "pull-secret",
        "the registry answers 401",
        &["pull-unauthorized"],
        Moment::Prepared,
        25,
        Act::HelperAnswers(5000, Answer::Status(401)),
    )
    .with(PULLS),
    fault(
        "image-missing",
        "the registry does not have etcd's image",
        &["image-missing"],
        Moment::Prepared,
        30,
        Act::Image("etcd", Change::Gone),
    )
    .with(PULLS),
    fault(
        "wrong-digest",
        "the registry has something else under the digest of etcd's image",
        &["image-damaged"],
        Moment::Prepared,
        30,
        Act::Image("etcd", Change::Damaged),
    )
    .with(PULLS),
    fault(
        "proxy",
        "the bootstrap machine is told to use a proxy that is not there",
        &["proxy-unreachable"],
        Moment::Prepared,
        40,
        Act::Ignition("bootstrap", Change::Proxy),
    )
    .with(PULLS),
    fault(
        "certificates-expired",
        "the assets were made two days ago",
        &["certificate-expired"],
        Moment::Prepared,
        35,
        Act::Nothing,
    )
    .with(&["--made-hours-ago=48"]),
    fault(
        "clock-off",
        "the assets were made on a machine whose clock is two days ahead",
        &["clock-off"],
        Moment::Prepared,
        35,
        Act::Nothing,
    )
    .with(&["--made-hours-ago=-48"]),
    fault(
        "wrong-ca",
        "master-0's Ignition file trusts another authority",
        &["machine-config-wrong-ca"],
        Moment::Prepared,
        30,
        Act::Ignition("master-0", Change::OtherAuthority),
    ),
    fault(
        "wrong-token",
        "master-0's Ignition file has a token that was never issued",
        &["machine-config-refused"],
        Moment::Prepared,
        30,
        Act::Ignition("master-0", Change::OtherToken),
    ),
    fault(
        "disk-full",
        "etcd's disk on the bootstrap machine is full",
        &["disk-full"],
        ON,
        25,
        Act::Fill("bootstrap", Disk::Etcd),
    )
    .with(&["--etcd-disk", "256"]),
    fault(
        "disk-full-master",
        "containerd's disk on master-0 is full",
        &["disk-full"],
        BOOTED,
        35,
        Act::Fill("master-0", Disk::Containerd),
    )
    .with(&["--containerd-disk", "3072"]),
    fault(
        "disk-slow",
        "the bootstrap machine's disk writes 25 times a second",
        &["disk-slow"],
        Moment::Stage("cb-bootstrap"),
        35,
        Act::Slow("bootstrap"),
    ),
    fault(
        "etcd-frozen",
        "etcd on the bootstrap machine is stopped",
        &["etcd-silent"],
        API,
        30,
        Act::Stop("bootstrap", "etcd"),
    ),
    fault(
        "port-taken",
        "another program has port 6443 of the bootstrap machine",
        &["port-taken"],
        ON,
        40,
        Act::Takes("bootstrap", 6443),
    ),
    fault(
        "apiserver-flag",
        "the API server's manifest has a flag that it does not know",
        &["static-pod-crashes"],
        Moment::Stage("wait-for-etcd"),
        25,
        Act::Shell(
            "bootstrap",
            "sed -i 's/^    - kube-apiserver$/&\\n    - --no-such-flag=1/' /opt/openshift/bootstrap-manifests/kube-apiserver-pod.yaml",
        ),
    ),
    fault(
        "static-pod-broken",
        "the API server's manifest is not YAML",
        &["static-pod-unreadable"],
        Moment::Stage("wait-for-etcd"),
        25,
        Act::Shell(
            "bootstrap",
            "echo '{broken: [' > /opt/openshift/bootstrap-manifests/kube-apiserver-pod.yaml",
        ),
    ),
    fault(
        "bootstrap-off",
        "the bootstrap machine goes off before the masters carry etcd",
        &["bootstrap-off"],
        JOINED,
        15,
        Act::Off("bootstrap"),
    ),
    fault(
        "bootstrap-frozen",
        "the bootstrap machine is frozen",
        &["machine-frozen"],
        API,
        15,
        Act::Freeze("bootstrap"),
    ),
    fault(
        "manifest-yaml",
        "a manifest is not YAML",
        &["manifest-unreadable"],
        Moment::Stage("wait-for-etcd"),
        30,
        Act::Shell(
            "bootstrap",
            "printf 'apiVersion: v1\\nkind: [ConfigMap\\n' > /opt/openshift/manifests/99_broken.yaml",
        ),
    ),
    fault(
        "manifest-refused",
        "a manifest has a name that the API refuses",
        &["manifest-refused"],
        Moment::Stage("wait-for-etcd"),
        35,
        Act::Shell(
            "bootstrap",
            "printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: Not_A_Name, namespace: kube-system}\\n' > /opt/openshift/manifests/99_refused.yaml",
        ),
    ),
    fault(
        "api-port",
        "the load balancer loses port 6443",
        &["api-port-blocked"],
        Moment::Prepared,
        45,
        Act::HelperLoses("tcp dport 6443"),
    ),
    fault(
        "mcs-port",
        "the load balancer loses port 22623",
        &["machine-config-port-blocked"],
        Moment::Prepared,
        30,
        Act::HelperLoses("tcp dport 22623"),
    ),
    fault(
        "master-dead",
        "master-1 of three goes off after its first boot",
        &["master-off"],
        JOINED,
        20,
        Act::Off("master-1"),
    )
    .masters(3),
    fault(
        "containerd-down",
        "containerd on master-0 is stopped for good",
        &["containerd-down"],
        JOINED,
        25,
        Act::Shell("master-0", "systemctl disable --now containerd"),
    ),
    fault(
        "kubelet-down",
        "the kubelet on master-0 is stopped for good",
        &["kubelet-down"],
        JOINED,
        20,
        Act::Shell("master-0", "systemctl disable --now kubelet"),
    ),
    fault(
        "csr",
        "nobody approves certificates",
        &["csr-not-approved"],
        Moment::Stage("cb-bootstrap"),
        40,
        Act::Shell("bootstrap", "systemctl disable --now approve-csr"),
    ),
    fault(
        "cni",
        "the pod network's configuration cannot be written on master-0",
        &["cni-broken"],
        BOOTED,
        45,
        Act::Shell("master-0", "mkdir -p /etc/cni/net.d && mount -t tmpfs -o ro tmpfs /etc/cni/net.d"),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_fault_has_a_name_and_a_rule_that_exists() {
        let names: BTreeSet<_> = FAULTS.iter().map(|fault| fault.name).collect();
        assert_eq!(names.len(), FAULTS.len());
        assert!(FAULTS.len() > 25);
        let rules: BTreeSet<_> = seedling_diagnose::RULES.iter().map(|rule| rule.name).collect();
        for fault in FAULTS {
            assert!(fault.expects.iter().all(|rule| rules.contains(rule)), "{}", fault.name);
        }
    }
}
