//! Disks that give back something else than was written, below a running etcd. The database has no sums that would tell.

use crate::Suite;
use crate::masters::{another_member, member, whole};
use anyhow::{Result, ensure};
use seedling_e2e::{Lab, run, wait};
use std::time::Duration;

pub(crate) fn checks(suite: &mut Suite, lab: &Lab) {
    suite.check("a_value_that_a_disk_changed_is_found_and_its_member_replaced", || changed(lab, "master-1"));
    suite.check("a_database_that_cannot_be_read_is_replaced", || unreadable(lab, "master-2"));
}

const RIGHT: &str = "what-was-written-0123456789";
const WRONG: &str = "what-was-NEVER!!-0123456789";
const DATABASE: &str = "/var/lib/etcd/member/snap/db";

/// The member answers as before, and is wrong.
fn changed(lab: &Lab, node: &str) -> Result<()> {
    run(&mut lab.kubectl(&["create", "configmap", "damaged", &format!("--from-literal=key={RIGHT}")]))?;
    wait("the value on disk", Duration::from_secs(30), || {
        Ok(lab.shell(node, &format!("grep -ac {RIGHT} {DATABASE}")).ok())
    })?;
    let before = member(lab, node)?;
    let change = format!(
        "for at in $(grep -abo {RIGHT} {DATABASE} | cut -d: -f1); do \
           printf {WRONG} | dd of={DATABASE} bs=1 seek=$at conv=notrunc status=none; done"
    );
    // etcd writes the youngest page anew, elsewhere, with every commit: one between finding and changing saves the value.
    wait("a wrong answer of the member", Duration::from_secs(60), || {
        lab.shell(node, &change)?;
        Ok(value(lab, node)?.contains(WRONG).then_some(()))
    })?;
    another_member(lab, node, &before)?;
    whole(lab)?;
    for node in ["master-0", "master-1", "master-2"] {
        let value = value(lab, node)?;
        ensure!(value.contains(RIGHT) && !value.contains(WRONG), "{node} has {value:?}");
    }
    Ok(())
}

/// As this member has it.
fn value(lab: &Lab, node: &str) -> Result<String> {
    let get = "get /registry/configmaps/default/damaged --consistency=s --print-value-only";
    lab.shell(node, &format!("crictl exec $(crictl ps -q --name '^etcd$') etcdctl {get} | tr -d '\\000'"))
}

/// etcd ends as soon as it reads one of the pages, and after every start.
fn unreadable(lab: &Lab, node: &str) -> Result<()> {
    let before = member(lab, node)?;
    let zero = format!(
        "pages=$(($(stat -c %s {DATABASE}) / 4096)); for page in $(seq 3 3 $pages); do \
           dd if=/dev/zero of={DATABASE} bs=4096 count=1 seek=$page conv=notrunc status=none; done; \
         crictl ps -q --name '^etcd$' | xargs -r crictl stop"
    );
    lab.shell(node, &zero)?;
    another_member(lab, node, &before)?;
    whole(lab)?;
    let journal = run(&mut lab.lab(&["journal", node]))?;
    let asked = journal.lines().any(|line| line.contains("etcd-join") && line.contains("replacement"));
    ensure!(asked, "it was not its own words that it was replaced for:\n{journal}");
    let aside = lab.shell(node, "find /var/lib/etcd -name db | wc -l")?;
    ensure!(aside.trim() != "1", "the old data is gone");
    Ok(())
}
