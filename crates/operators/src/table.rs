//! All operators: what `seedling operator NAME` runs, and under which lease.

use crate::daemon_set::{DNS, NETWORK};
use crate::runtime::lead::{Operator, Run};
use crate::*;
use seedling_types::names::*;

/// By name.
#[rustfmt::skip] // A row is a line.
pub static OPERATORS: [Operator; 9] = [
    row("cluster-version", cluster_version::LEASE, |c| Box::pin(cluster_version::run(c))),
    row("dns", (NS_DNS_OPERATOR, "dns-operator-lock"), |c| Box::pin(daemon_set::run(c, &DNS))),
    row("etcd", (NS_ETCD_OPERATOR, "etcd-operator-lock"), |c| Box::pin(etcd::run(c))),
    row("kube-apiserver", (NS_KAS_OPERATOR, "kube-apiserver-operator-lock"), |c| Box::pin(kube_apiserver::run(c))),
    row("kube-controller-manager", (NS_KCM_OPERATOR, "kube-controller-manager-operator-lock"), |c| Box::pin(kube_controller_manager::run(c))),
    row("kube-scheduler", (NS_SCHEDULER_OPERATOR, "kube-scheduler-operator-lock"), |c| Box::pin(kube_scheduler::run(c))),
    row("machine-approver", (NS_APPROVER, "machine-approver-lock"), |c| Box::pin(machine_approver::run(c))),
    row("machine-config", (NS_MCO, "machine-config-operator-lock"), |c| Box::pin(machine_config::run(c))),
    row("network", (NS_NETWORK_OPERATOR, "network-operator-lock"), |c| Box::pin(daemon_set::run(c, &NETWORK))),
];

const fn row(name: &'static str, lease: (&'static str, &'static str), run: Run) -> Operator {
    Operator { name, lease, run }
}
