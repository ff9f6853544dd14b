//! Two of three masters are lost for good: the third goes on alone, and they come back on new disks. Then the cluster goes back to a backup,
//! and they come back with the disks they had.

use crate::{finish, start};
use anyhow::{Context, Result, ensure};
use seedling_e2e::{Lab, judge, output, run, text, wait};
use serde_json::Value;
use std::time::Duration;

const ALIVE: &str = "master-2";
const LOST: [&str; 2] = ["master-0", "master-1"];
/// Two masters are installed anew, one after the other, and join.
const WHOLE_AGAIN: Duration = Duration::from_secs(900);
const API_AGAIN: Duration = Duration::from_secs(300);

pub(crate) fn grown(lab: &Lab) -> Result<()> {
    finish(start(lab, &[])?)?;
    let patience =
        ["-n", "openshift-config", "create", "configmap", "bring-up", "--from-literal=patience-minutes=1"];
    run(&mut lab.kubectl(&patience)).map(drop)
}

pub(crate) fn two_masters_lost(lab: &Lab) -> Result<()> {
    let refused = output(lab.lab(&["exec", ALIVE, "--"]).args(["seedling", "etcd", "restore", "--yes"]))?;
    let said = text(&refused.stderr);
    ensure!(!refused.status.success() && said.contains("still answers"), "beside a majority: {said}");
    for n in 0..20 {
        write(lab, &format!("acknowledged-{n}"))?;
    }
    lose(lab)?;
    let without = run(&mut lab.kubectl(&["create", "configmap", "nobody", "--request-timeout=10s"]));
    ensure!(without.is_err(), "something was written without a majority");
    print!("{}", lab.exec(ALIVE, &["seedling", "etcd", "restore", "--yes"])?);
    wait("the API to be there again", API_AGAIN, || write(lab, "after-the-restore").map(Some))?;
    let maps = names(lab)?;
    for n in 0..20 {
        ensure!(maps.contains(&format!("acknowledged-{n}")), "acknowledged-{n} is lost: {maps:?}");
    }
    let map = lab.get(&["configmap", "after-the-restore"])?;
    let version = map["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse::<u64>().ok());
    ensure!(version > Some(1_000_000_000), "informers would take {version:?} for the past");
    for master in LOST {
        run(&mut lab.lab(&["reinstall", master]))?;
    }
    three_voters(lab)
}

pub(crate) fn back_to_a_backup(lab: &Lab) -> Result<()> {
    write(lab, "before-the-backup")?;
    let made: Value = serde_json::from_str(&lab.exec(ALIVE, &["seedling", "etcd", "backup", "-o", "json"])?)?;
    let path = made["path"].as_str().context("no path was said")?;
    write(lab, "after-the-backup")?;
    lose(lab)?;
    print!("{}", lab.exec(ALIVE, &["seedling", "etcd", "restore", "--snapshot", path, "--yes"])?);
    wait("the API to be there again", API_AGAIN, || write(lab, "after-going-back").map(Some))?;
    let old = ["before-the-backup", "acknowledged-0"].map(String::from);
    let maps = names(lab)?;
    ensure!(old.iter().all(|name| maps.contains(name)), "not all of the backup is there: {maps:?}");
    ensure!(!maps.contains(&"after-the-backup".to_string()), "it did not go back: {maps:?}");
    // Two of three of the old cluster, with all that it knew.
    for master in LOST {
        run(&mut lab.lab(&["power", master, "on"]))?;
    }
    three_voters(lab)?;
    for master in LOST {
        let aside = lab.shell(master, "ls -d /var/lib/etcd/member.aside-*")?;
        ensure!(!aside.trim().is_empty(), "{master} kept nothing of what it had");
    }
    let maps = names(lab)?;
    ensure!(!maps.contains(&"after-the-backup".to_string()), "the old cluster is back: {maps:?}");
    ensure!(maps.contains(&"after-going-back".to_string()), "what was written since is lost: {maps:?}");
    Ok(())
}

fn write(lab: &Lab, name: &str) -> Result<()> {
    run(&mut lab.kubectl(&["create", "configmap", name, "--request-timeout=15s"])).map(drop)
}

fn names(lab: &Lab) -> Result<Vec<String>> {
    let maps = lab.items(&["configmaps"])?;
    Ok(maps.iter().filter_map(|m| m["metadata"]["name"].as_str().map(String::from)).collect())
}

/// Not before the one that stays has all that was acknowledged: a read that a majority agrees on, asked of itself.
fn lose(lab: &Lab) -> Result<()> {
    lab.shell(ALIVE, "crictl exec $(crictl ps -q --name '^etcd$') etcdctl get seedling.dev/members")?;
    for master in LOST {
        run(&mut lab.lab(&["power", master, "kill"]))?;
    }
    Ok(())
}

/// Nodes Ready, operators well, and all three masters' members one cluster.
fn three_voters(lab: &Lab) -> Result<()> {
    wait("three voters and operators that are well", WHOLE_AGAIN, || {
        let list = lab.shell(ALIVE, "crictl exec $(crictl ps -q --name '^etcd$') etcdctl member list")?;
        let voters = list.lines().filter(|l| l.contains(" started,") && l.ends_with(" false")).count();
        ensure!(voters == 3 && list.lines().count() == 3, "{list}");
        judge::whole(&lab.items(&["nodes"])?, &lab.items(&["clusteroperators"])?).map(Some)
    })?;
    lab.one_etcd_cluster()
}
