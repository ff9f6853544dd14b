//! What the nodes wrote down, and that a node founds one cluster.

use crate::Suite;
use anyhow::{Context, Result, ensure};
use seedling_e2e::{Lab, output, run, text};
use serde_json::Value;

const ON_BOOTSTRAP: [(&str, &str); 6] = [
    ("boot", "ignition/files"),
    ("release-image", "pull-release-image"),
    ("bootkube", "cluster/founded"),
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

pub fn checks(suite: &mut Suite, lab: &Lab) {
    suite.check("every_node_has_a_journal_of_its_steps", || journals(lab));
}

fn journals(lab: &Lab) -> Result<()> {
    let journals: Value = serde_json::from_str(&run(&mut lab.lab(&["journal", "-o", "json"]))?)?;
    for journal in journals.as_array().context("no array")? {
        let node = journal["node"].as_str().unwrap_or_default();
        let expected = if node == "bootstrap" { &ON_BOOTSTRAP[..] } else { &ON_A_MASTER[..] };
        for (who, step) in expected {
            let fate = fate(journal, who, step);
            ensure!(fate.as_deref() == Some("done"), "{node}: {who} {step} is {fate:?}");
        }
    }
    Ok(())
}

fn fate(journal: &Value, who: &str, step: &str) -> Option<String> {
    let service = journal["services"].as_array()?.iter().find(|s| s["name"] == who)?;
    let step = service["steps"].as_array()?.iter().find(|s| s["name"] == step)?;
    step["fate"].as_str().map(str::to_string)
}

/// On a bootstrap node that has done its work, and whose lab is not needed any more.
pub fn second_cluster(lab: &Lab) -> Result<()> {
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
