//! The only other voter dies while the cluster grows: the bootstrap member goes on with its data, and takes it in again.

use crate::{finish, start};
use anyhow::{Context, Result, ensure};
use seedling_e2e::{Lab, run, wait};
use std::time::Duration;

pub(crate) fn restored(lab: &Lab) -> Result<()> {
    let up = start(lab, &["--masters", "1", "--probe"])?;
    let minutes = Duration::from_secs(180);
    let patience =
        ["-n", "openshift-config", "create", "configmap", "bring-up", "--from-literal=patience-minutes=1"];
    wait("the API to take a ConfigMap", minutes, || run(&mut lab.kubectl(&patience)).map(Some))?;
    let members = "crictl exec $(crictl ps -q --name '^etcd$') etcdctl member list";
    wait("two voters", minutes, || {
        let list = lab.shell("bootstrap", members)?;
        Ok((list.lines().filter(|l| l.contains(" started,") && l.ends_with(" false")).count() == 2)
            .then_some(()))
    })?;
    run(&mut lab.lab(&["power", "master-0", "kill"]))?;
    let mut answered = false;
    wait("etcd to lead alone", minutes, || {
        let log = run(&mut lab.lab(&["logs", "bootstrap", "--unit", "bootkube.service"]))?;
        // Killed between two messages, the master leaves a log of which bootstrap cannot know everything: then a person is asked.
        if let Some((_, shown)) = log.split_once("--accept-loss=").filter(|_| !answered) {
            let shown = shown.split_whitespace().next().context("nothing is shown")?;
            println!("asked, and answered: {shown}");
            lab.exec("bootstrap", &["seedling", "bootkube", &format!("--accept-loss={shown}")])?;
            answered = true;
        }
        Ok(log.contains("etcd leads again").then_some(()))
    })?;
    run(&mut lab.lab(&["power", "master-0", "on"]))?;
    // With its prober: a lost write would fail it.
    finish(up)?;
    let nodes = lab.items(&["nodes"])?;
    ensure!(nodes.len() == 1, "{} nodes", nodes.len());
    lab.one_etcd_cluster()
}
