//! What is waited for in a cluster, whoever waits, by name.

use seedling_steps::conditions;

conditions! {
    pub CONDITIONS;

    PODS_ELSEWHERE = "pods-elsewhere", "the pods of NODE to be elsewhere": {
        what: "lab remove and node remove evict the node's pods until only those are left that belong to the node itself.",
        why: "Pods that just vanish are an outage; evicted ones run elsewhere first, as their disruption budgets ask.",
        check: "kubectl get pods -A -o wide --field-selector spec.nodeName=NODE; kubectl get poddisruptionbudgets -A",
        fails: &["a disruption budget allows no eviction, or no other node has room: the message names the pods"],
        see: &["command.lab remove", "command.node remove"],
    }
}
