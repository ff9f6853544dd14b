//! What the readers of the seeds type on the nodes, and what they must see.

use crate::Suite;
use anyhow::{Result, ensure};
use seedling_e2e::{Lab, judge, wait};
use std::time::Duration;

const NODE: &str = "bootstrap";

pub(crate) fn on_bootstrap(suite: &mut Suite, lab: &Lab) {
    let up = suite.check("healthz_answers_on_the_bootstrap_node", || {
        wait("healthz on localhost:6443", Duration::from_secs(120), || {
            let said = lab.exec(NODE, &["curl", "-sk", "https://localhost:6443/healthz"])?;
            Ok((said == "ok").then_some(()))
        })
    });
    if !up {
        return;
    }
    suite.check("bootkube_service_is_active", || {
        says(
            lab,
            NODE,
            "systemctl status bootkube.service --no-pager",
            &["bootkube.service", "active (running)"],
        )
    });
    suite.check("the_journal_has_the_milestones", || {
        let milestones = [
            "Starting bootkube.sh...",
            "Rendering etcd manifests...",
            "Rendering kube-apiserver manifests...",
            "Starting cluster-bootstrap...",
            "Waiting for API server to come up...",
            "API server is up",
            "Applying cluster manifests...",
            "Waiting for bootstrap to complete...",
        ];
        says(lab, NODE, "journalctl -b -u bootkube.service --no-pager", &milestones)
    });
    suite.check("static_pod_manifests_are_there", || {
        let files = [
            "etcd-member-pod.yaml",
            "kube-apiserver-pod.yaml",
            "kube-controller-manager-pod.yaml",
            "kube-scheduler-pod.yaml",
            "bootstrap-pod.yaml",
            "machineconfigoperator-bootstrap-pod.yaml",
        ];
        says(lab, NODE, "ls /etc/kubernetes/manifests", &files)
    });
    suite.check("ports_6443_and_22623_listen", || says(lab, NODE, "ss -ltnp", &[":6443", ":22623"]));
    suite.check("crictl_shows_the_temporary_control_plane", || {
        let pods = [
            "etcd-bootstrap-member",
            "bootstrap-kube-apiserver",
            "bootstrap-kube-controller-manager",
            "bootstrap-kube-scheduler",
            "bootstrap-cluster-version-operator",
            "bootstrap-machine-config-operator",
        ];
        says(lab, NODE, "crictl pods --state ready", &pods)
    });
    suite.check("etcdctl_works_in_the_etcd_container", || {
        let exec = "crictl exec $(crictl ps -q --name '^etcd$') etcdctl";
        let health = lab.shell(NODE, &format!("{exec} endpoint health --cluster 2>&1 || true"))?;
        judge::healthy_or_learning(&health)?;
        says(lab, NODE, &format!("{exec} member list"), &["etcd-bootstrap", "started"])
    });
    suite.check("kubectl_works_with_the_localhost_kubeconfig", || {
        let get = "kubectl --kubeconfig=/etc/kubernetes/kubeconfigs/localhost.kubeconfig get ns";
        let words = ["kube-system", "openshift-etcd", "openshift-machine-config-operator"];
        // The API answers some seconds before everything in manifests/ is created.
        wait("the cluster's namespaces", Duration::from_secs(60), || says(lab, NODE, get, &words).map(Some))
    });
}

pub(crate) fn on_master(suite: &mut Suite, lab: &Lab) {
    suite.check("the_kubelet_journal_is_there", || {
        let journal = lab.shell("master-0", "journalctl -b -u kubelet --no-pager | wc -l")?;
        ensure!(journal.trim().parse::<usize>()? > 10, "{journal} lines");
        Ok(())
    });
}

fn says(lab: &Lab, node: &str, script: &str, words: &[&str]) -> Result<()> {
    let said = lab.shell(node, script)?;
    for word in words {
        ensure!(said.contains(word), "`{script}` does not say {word:?}:\n{said}");
    }
    Ok(())
}
