//! What the nodes wrote down, and that a node founds one cluster.

use crate::Suite;
use anyhow::{Result, ensure};
use seedling_e2e::{Lab, judge, output, run, text};

const ON_BOOTSTRAP: [(&str, &str); 7] = [
    ("boot", "ignition/files"),
    ("release-image", "pull-release-image"),
    ("bootkube", "cluster/founded"),
    ("bootkube", "cb-bootstrap/machine-config-server"),
    ("bootkube", "cb-bootstrap/hand-over"),
    ("bootkube", "wait-for-ceo"),
    ("progress", "report-bootstrap-complete"),
];
const ON_A_MASTER: [(&str, &str); 7] = [
    ("boot", "ignition/files"),
    ("first-boot", "disk-and-clock"),
    ("kubelet-join", "certificate"),
    ("installer/etcd-pod", "revision-1/files"),
    ("installer/kube-apiserver-pod", "revision-1/manifest"),
    ("etcd-join", "data"),
    ("etcd-wait", "voter"),
];

pub(crate) fn checks(suite: &mut Suite, lab: &Lab) {
    suite.check("every_node_has_a_journal_of_its_steps", || journals(lab));
}

fn journals(lab: &Lab) -> Result<()> {
    let masters = judge::MASTERS.map(|master| (master, &ON_A_MASTER[..]));
    let expected: Vec<_> = [("bootstrap", &ON_BOOTSTRAP[..])].into_iter().chain(masters).collect();
    judge::journals(&serde_json::from_str(&run(&mut lab.lab(&["journal", "-o", "json"]))?)?, &expected)
}

/// On a bootstrap node that has done its work, and whose lab is not needed any more.
pub(crate) fn second_cluster(lab: &Lab) -> Result<()> {
    run(&mut lab.lab(&["power", "bootstrap", "on"]))?;
    let wipe = "rm -rf /var/lib/etcd/member; exec seedling bootkube";
    let asked = output(&mut lab.lab(&["exec", "bootstrap", "--", "sh", "-c", wipe]))?;
    let said = text(&asked.stderr);
    ensure!(asked.status.code() == Some(5) && said.contains("its data in /var/lib/etcd is gone"), "{said}");
    let swap = "sed -i 's/infrastructureName: .*/infrastructureName: other-abcde/' \
                /opt/openshift/manifests/cluster-infrastructure-02-config.yml; exec seedling bootkube";
    let asked = output(&mut lab.lab(&["exec", "bootstrap", "--", "sh", "-c", swap]))?;
    let said = text(&asked.stderr);
    ensure!(asked.status.code() == Some(5) && said.contains("a node founds one cluster"), "{said}");
    Ok(())
}
