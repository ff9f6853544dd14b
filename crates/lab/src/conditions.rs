//! What labs wait for, by name, beside the milestones of a bring-up: its helper, its processes, and what proves it (prober, chaos).

use seedling_steps::conditions;

conditions! {
    pub CONDITIONS;

    HELPER_LISTENS = "helper-listens", "the helper to listen": {
        what: "lab up and helper install wait until every server of the helper listens.",
        why: "A machine that is switched on before finds nobody who gives it an address.",
        check: "seedling helper check; of a lab: seedling lab status",
        fails: &["a port is taken, or the config is wrong: its log says which"],
        see: &["component.helper", "command.helper install", "command.lab up"],
    }
    HELPER_TAKES_CONFIG = "helper-takes-config", "the helper to take up its config": {
        what: "A command that has changed the helper's config waits until the helper goes by it.",
        why: "A machine that was just added must find its address and its Ignition.",
        check: "seedling helper status; of a lab: seedling lab status",
        fails: &["the helper refuses the config, and goes by the one before: its log says why"],
        see: &["component.helper", "command.lab add", "command.node add"],
    }
    PROCESSES_ENDED = "lab-processes-ended", "processes of the lab to end": {
        what: "lab down waits until the helper and its keeper have ended.",
        why: "What still runs holds the lab's directories and its addresses.",
        check: "ps -ef | grep seedling",
        fails: &["a process does not end: the pid is in the message; end it by hand"],
        see: &["command.lab down", "component.helper"],
    }
    ONE_CLUSTER = "etcd-one-cluster", "etcd's members to be one cluster": {
        what: "Tests and chaos ask every master's etcd until all say the same: members, leader, term and the hash of the data.",
        why: "After a fault nobody may have gone on alone, and nobody may have lost anything.",
        check: "etcdctl member list -w table in etcd's container of each master",
        fails: &["an election or a compaction is under way, for a moment; after a minute the members disagree in earnest"],
        see: &["component.etcd", "command.chaos"],
    }
    PROBER_READY = "prober-api-ready", "the API to be ready": {
        what: "The prober waits for the first readyz.",
        why: "What fails before there is an API is no fault; what fails after it is.",
        check: "kubectl get --raw /readyz",
        fails: &["the bring-up has stopped, or the kubeconfig is another cluster's"],
        see: &["command.probe", "port.6443"],
    }
    PROBER_NAMESPACE = "prober-namespace-made", "the prober's namespace to be made": {
        what: "The prober makes its namespaces; those of a run that was cut off are removed first.",
        why: "What another run has written must not be counted.",
        check: "kubectl get namespaces",
        fails: &["an old namespace does not go: kube-controller-manager does not lead"],
        see: &["command.probe"],
    }
    PROBER_TOLD = "prober-watch-tells", "the watch to tell of every write": {
        what: "The prober, at the end, gives its watch the time to tell of the last writes.",
        why: "A write that a watch does not tell of is reported as missing.",
        check: "the prober's report",
        fails: &["the watch has lost an event: the report names it"],
        see: &["command.probe"],
    }
    PROBER_COUNTED = "prober-writes-counted", "what was written to be counted": {
        what: "The prober, at the end, lists what it wrote.",
        why: "A write that was acknowledged and is not there is data lost.",
        check: "kubectl get --raw /readyz",
        fails: &["the API does not answer any more"],
        see: &["command.probe"],
    }
    PROBER_READ = "prober-object-read", "a shared object to be read": {
        what: "The prober, at the end, reads every object that its rivals wrote at the same time.",
        why: "The last value tells whether all saw the same order of writes.",
        check: "kubectl get --raw /readyz",
        fails: &["the API does not answer any more"],
        see: &["command.probe"],
    }
    VICTIM_RUNS = "victim-runs", "PROCESS to run on MACHINE": {
        what: "chaos waits until the process that it is to strike runs.",
        why: "A strike at nobody would prove nothing.",
        check: "seedling lab exec MACHINE -- ps -ef",
        fails: &["it does not live at this step of the bring-up"],
        see: &["command.chaos"],
    }
    HELPER_RUNS = "helper-runs", "the helper to run": {
        what: "chaos waits until there is a helper to strike.",
        why: "A strike at nobody would prove nothing.",
        check: "seedling lab status",
        fails: &["its keeper has not started it again: see the helper's log"],
        see: &["command.chaos", "component.helper"],
    }
    FAULT_MOMENT = "fault-moment", "the moment of the fault": {
        what: "chaos diagnose waits until the bring-up has come to the step at which the fault belongs.",
        why: "The same fault shows itself differently at another moment.",
        check: "the bring-up's log beside the report",
        fails: &["the bring-up stopped before, for another reason"],
        see: &["command.chaos diagnose"],
    }
}
