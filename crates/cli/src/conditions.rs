//! What commands wait for themselves, by name.

use seedling_steps::conditions;

conditions! {
    pub(crate) CONDITIONS;

    NODE_READY = "node-ready", "NODE to be Ready": {
        what: "wait-for node, lab add and node add wait until a machine has become a Node that is Ready. Meanwhile they say what it lacks.",
        why: "Until then no pod runs there.",
        check: "kubectl get nodes; seedling csr",
        fails: &["it has not asked for its certificate: look at its console; nobody has approved it: seedling csr approve"],
        see: &["command.wait-for node", "component.kubelet-join", "component.machine-approver"],
    }
    STAGE_ENDED = "stage-ended", "bootkube to end stage STAGE": {
        what: "lab up --until waits until bootkube has ended the stage, and leaves it there.",
        why: "You look at what the stage has made before the next one runs.",
        check: "seedling lab journal",
        fails: &["the stage waits: its own condition says for what"],
        see: &["command.lab up", "component.bootkube"],
    }
    CERTIFICATES_RENEWED = "certificates-renewed", "every certificate to be renewed and in use": {
        what: "certs renew waits until the operators have made new certificates and every master runs with them.",
        why: "A certificate that is renewed and not yet in use can still end.",
        check: "seedling certs list; kubectl get clusteroperators",
        fails: &["a master is off, or an operator is not Available: its message says why"],
        see: &["command.certs renew", "component.installer"],
    }
    POWERED = "machine-powered", "MACHINE to be STATE": {
        what: "node power waits until the machine's controller says that it is on, or off.",
        why: "A controller takes the order before the machine obeys.",
        check: "seedling node power MACHINE status",
        fails: &["the system does not shut down: look at its console, or seedling node power MACHINE kill"],
        see: &["command.node power"],
    }
}
