//! What bootkube and the services beside it wait for, by name.

use seedling_steps::conditions;

conditions! {
    pub CONDITIONS;

    LEAVE_TO_RUN = "leave-to-run", "you to let the stage run": {
        what: "Step mode: bootkube waits before a stage until you let it run. There is no deadline.",
        why: "A person thinks as long as it takes.",
        check: "cat /opt/openshift/step/allowed",
        fails: &["nobody drives it any more: seedling lab up goes on without pauses; on the node remove /opt/openshift/step"],
        see: &["file./opt/openshift/step", "command.lab up", "command.bootkube"],
    }
    ONLY_ONE = "only-one-bootkube", "another bootkube on this node to end": {
        what: "One bootkube at a time works on a node.",
        why: "Two would write the same files and the same journal.",
        check: "pgrep -a seedling",
        fails: &["bootkube --only or --until of a person still runs"],
        see: &["component.bootkube"],
    }
    RELEASE_IMAGE = "release-image", "the release image IMAGE": {
        what: "release-image.service waits until the registry gives it the release's manifests.",
        why: "bootkube renders from them.",
        check: "curl -i http://HELPER:5000/v2/",
        fails: &["the registry does not answer, or has another release"],
        see: &["component.release-image", "port.5000"],
    }
    ETCD_HAS_LEADER = "etcd-has-leader", "etcd on localhost:2379 to have a leader": {
        what: "Stage wait-for-etcd waits until the first member leads.",
        why: "An API server that finds no etcd gives up, and is started again ever more slowly.",
        check: "crictl logs --tail 20 $(crictl ps -a -q --name '^etcd$' | head -n 1)",
        fails: &["the pod has not started; the disk is slow; the address in its certificate is another"],
        see: &["stage.wait-for-etcd", "component.etcd"],
    }
    ETCD_ALONE = "etcd-leads-alone", "etcd on this node to lead alone": {
        what: "bootkube lets the first member go on alone, after the only other one was lost for good.",
        why: "Two members of which one is gone have no majority.",
        check: "seedling node journal",
        fails: &["the lost machine comes back meanwhile: then nothing has to be done"],
        see: &["component.etcd", "stage.cb-bootstrap"],
    }
    API_ANSWERS = "api-answers", "the API on localhost:6443 to answer": {
        what: "Stage cb-bootstrap waits until the temporary API server answers anything at all.",
        why: "Nothing can be created before.",
        check: "crictl logs --tail 20 $(crictl ps -a -q --name '^kube-apiserver$' | head -n 1)",
        fails: &["its image is not there; etcd is gone; a certificate cannot be read"],
        see: &["stage.cb-bootstrap", "port.6443"],
    }
    MANIFESTS_CREATED = "manifests-created", "all manifests to be created": {
        what: "Stage cb-bootstrap creates every file of manifests/, again and again until each is there.",
        why: "Kinds must exist before their objects, and namespaces before what is in them; order sorts itself out.",
        check: "journalctl -u bootkube.service: the last line names what could not be created, and why",
        fails: &["a manifest of yours is refused by the API: its error is in the line"],
        see: &["stage.cb-bootstrap"],
    }
    SERVER_ANSWERS = "machine-config-server-answers", "the machine-config server on localhost:22623 to answer": {
        what: "Stage cb-bootstrap waits until this node's machine-config server answers.",
        why: "Masters get their configuration from it.",
        check: "curl -k https://localhost:22623/healthz",
        fails: &["its pod has not started: journalctl -u kubelet"],
        see: &["stage.mco-bootstrap", "port.22623"],
    }
    MASTERS = "masters-control-plane", "the masters' own control plane": {
        what: "Stage cb-bootstrap waits until the masters run API server, controllers, scheduler and version operator, on two of them at a revision.",
        why: "The temporary control plane may go only when another carries the cluster.",
        check: "kubectl get clusteroperators,nodes,csr",
        fails: &["a master has not joined (seedling csr); an operator is not Available (its message); a static pod does not become ready (crictl logs on that master)"],
        see: &["stage.cb-bootstrap", "component.installer"],
    }
    STOPPED = "container-stopped", "container CONTAINER to stop": {
        what: "Stage cb-bootstrap, at the end: waits until a container of the temporary control plane has stopped.",
        why: "Clients stop before the API server, so that nothing of theirs fails.",
        check: "crictl ps",
        fails: &["the kubelet does not run: systemctl status kubelet"],
        see: &["stage.cb-bootstrap"],
    }
    OVERRIDES_TAKEN = "overrides-taken", "ClusterVersion version to take the original overrides": {
        what: "Stage cvo-overrides asks through the load balancer until the API takes the patch.",
        why: "From here on the version operator looks after the installer's objects too.",
        check: "curl -k 'https://api-int.CLUSTER:6443/readyz?verbose'",
        fails: &["the load balancer does not lead to a master"],
        see: &["stage.cvo-overrides"],
    }
    VERSION_READ = "cluster-version-read", "an answer about ClusterVersion version": {
        what: "The check of stage cvo-overrides asks through the load balancer until somebody answers.",
        why: "The load balancer has just lost a server: the first question may find nobody.",
        check: "curl -k 'https://api-int.CLUSTER:6443/readyz?verbose'",
        fails: &["the load balancer does not lead to a master"],
        see: &["stage.cvo-overrides"],
    }
    ETCD_ON_MASTERS = "etcd-on-masters", "Etcd cluster to report EtcdRunningInCluster": {
        what: "Stage wait-for-ceo waits for the etcd operator.",
        why: "Taking the first member away too early loses the cluster.",
        check: "kubectl get etcd cluster -o yaml",
        fails: &["a master's member is a learner and does not catch up; a master is missing"],
        see: &["stage.wait-for-ceo", "component.etcd-operator"],
    }
    BOOTKUBE_DONE = "bootkube-done", ".bootkube.done to be written": {
        what: "progress.service waits until bootkube has ended.",
        why: "Only then is bootstrapping complete.",
        check: "journalctl -n 50 -u bootkube.service",
        fails: &["bootkube has failed or waits: its own condition says more"],
        see: &["component.progress", "component.bootkube"],
    }
    HIGHLY_AVAILABLE = "highly-available", "the API to be highly available and to take ConfigMap kube-system/bootstrap": {
        what: "progress.service waits until two masters' API servers have a revision, then reports.",
        why: "With one, the next restart of it would be an outage.",
        check: "kubectl get kubeapiserver cluster -o yaml",
        fails: &["the second master's API server does not become ready"],
        see: &["component.progress", "component.kube-apiserver-operator"],
    }
}
