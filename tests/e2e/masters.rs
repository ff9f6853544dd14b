//! Trouble after the handoff: each master killed and brought back, a revision rolled while its operator is killed.

use crate::Suite;
use anyhow::{Context, Result, ensure};
use seedling_e2e::{Lab, judge, run, wait};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const WHOLE_AGAIN: Duration = Duration::from_secs(240);

pub(crate) fn checks(suite: &mut Suite, lab: &Lab) {
    for (check, node) in [
        ("the_cluster_survives_master_0", "master-0"),
        ("the_cluster_survives_master_1", "master-1"),
        ("the_cluster_survives_master_2", "master-2"),
    ] {
        suite.check(check, || survives(lab, node));
    }
    suite.check("a_master_comes_back_on_a_new_disk", || reinstalled(lab, "master-1"));
    suite.check("revision_2_rolls_one_node_at_a_time_while_its_operator_is_killed", || roll(lab));
    suite.check("an_installer_that_never_starts_is_made_again", || never_started(lab));
    suite.check("a_deleted_daemon_set_comes_back", || {
        run(&mut lab.kubectl(&["-n", "openshift-dns", "delete", "daemonset", "dns-default"]))?;
        wait("the DNS daemon set", Duration::from_secs(60), || {
            let set = lab.get(&["-n", "openshift-dns", "daemonset", "dns-default"])?;
            Ok((set["status"]["numberReady"] == 3).then_some(()))
        })
    });
}

fn survives(lab: &Lab, node: &str) -> Result<()> {
    run(&mut lab.lab(&["power", node, "kill"]))?;
    let answered = answers_without(lab, node);
    run(&mut lab.lab(&["power", node, "on"]))?;
    answered?;
    whole(lab)
}

/// Its member has forgotten what it agreed to: another one takes its place.
fn reinstalled(lab: &Lab, node: &str) -> Result<()> {
    let before = member(lab, node)?;
    run(&mut lab.lab(&["reinstall", node]))?;
    another_member(lab, node, &before)?;
    whole(lab)
}

/// The member on a master, as a line that begins with its id.
pub(crate) fn member(lab: &Lab, node: &str) -> Result<String> {
    let list = lab.shell("master-0", "crictl exec $(crictl ps -q --name '^etcd$') etcdctl member list")?;
    let line = list.lines().find(|line| line.contains(&format!(" {node},"))).map(str::to_string);
    line.with_context(|| format!("{node} is no member:\n{list}"))
}

pub(crate) fn another_member(lab: &Lab, node: &str, before: &str) -> Result<()> {
    wait("another member", WHOLE_AGAIN, || {
        let now = member(lab, node).ok();
        Ok(now.and_then(|now| now.split(',').next().filter(|id| !before.starts_with(id)).map(drop)))
    })
}

/// Through the load balancer, reads and writes. Where the dead node led etcd, the others first elect a new leader.
fn answers_without(lab: &Lab, node: &str) -> Result<()> {
    let mut attempt = 0;
    let mut write = || {
        attempt += 1;
        let map = format!("while-{node}-is-off-{attempt}");
        run(&mut lab.kubectl(&["create", "configmap", &map, "--request-timeout=15s"]))
    };
    wait("a new etcd leader", Duration::from_secs(60), || write().map(Some))?;
    for _ in 0..10 {
        run(&mut lab.kubectl(&["get", "--raw=/readyz", "--request-timeout=15s"]))?;
        write()?;
    }
    Ok(())
}

/// Nodes Ready, operators available, settled and not degraded, one etcd cluster.
pub(crate) fn whole(lab: &Lab) -> Result<()> {
    lab.whole(WHOLE_AGAIN)
}

/// Watches the schedulers of all masters: at every moment at least two are ready.
fn roll(lab: &Lab) -> Result<()> {
    let rolling = AtomicBool::new(true);
    let (seen, rolled) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let schedulers = ["pods", "-n", "openshift-kube-scheduler", "-l", "app=openshift-kube-scheduler"];
            let mut roll = judge::Roll::default();
            loop {
                // The last look is at the end of it.
                let over = !rolling.load(Ordering::Relaxed);
                roll.look(lab.items(&schedulers), "2");
                if over {
                    return roll;
                }
            }
        });
        let rolled = (|| -> Result<()> {
            redeploy(lab, "end to end test")?;
            wait("the first master at revision 2", WHOLE_AGAIN, || {
                Ok((at_revision(lab, 2)? >= 1).then_some(()))
            })?;
            run(&mut lab.kubectl(&[
                "-n",
                "openshift-kube-scheduler-operator",
                "delete",
                "pod",
                "--all",
                "--grace-period=0",
                "--force",
            ]))?;
            wait("all masters at revision 2", WHOLE_AGAIN, || Ok((at_revision(lab, 2)? == 3).then_some(())))
        })();
        rolling.store(false, Ordering::Relaxed);
        (watcher.join(), rolled)
    });
    rolled?;
    seen.map_err(|_| anyhow::anyhow!("the watcher ended early"))?.one_at_a_time()?;
    whole(lab)
}

/// From now on installers' containers are made and never started; it is over with the machine's power.
const START_NO_INSTALLER: &str = r#"
cat > /run/start-no-installer << 'EOF' && chmod 755 /run/start-no-installer
#!/bin/sh
for id; do :; done
config=/run/containerd/io.containerd.runtime.v2.task/k8s.io/$id/config.json
case " $* " in *" start "*) grep -q '"io.kubernetes.cri.container-name":"installer"' "$config" && exec sleep 600;; esac
exec /run/real-runc "$@"
EOF
runc=$(command -v runc) && cp "$runc" /run/real-runc && mount --bind /run/start-no-installer "$runc"
"#;

/// The machine goes down after the installer's container was made and before it was started.
fn never_started(lab: &Lab) -> Result<()> {
    lab.shell("master-0", START_NO_INSTALLER)?;
    redeploy(lab, "made and never started")?;
    wait("the installer's container to be made", WHOLE_AGAIN, || {
        let made = lab.shell("master-0", "crictl ps -a -q --state created --name '^installer$'")?;
        Ok((!made.trim().is_empty()).then_some(()))
    })?;
    run(&mut lab.lab(&["power", "master-0", "kill"]))?;
    run(&mut lab.lab(&["power", "master-0", "on"]))?;
    wait("all masters at revision 3", WHOLE_AGAIN, || Ok((at_revision(lab, 3)? == 3).then_some(())))?;
    let operator = "deployment/kube-scheduler-operator";
    let log = run(&mut lab.kubectl(&["-n", "openshift-kube-scheduler-operator", "logs", operator]))?;
    ensure!(log.contains("installer-3-master-0 would never start"), "it was started after all:\n{log}");
    whole(lab)
}

fn redeploy(lab: &Lab, reason: &str) -> Result<()> {
    let patch = serde_json::json!({"spec": {"forceRedeploymentReason": reason}}).to_string();
    run(&mut lab.kubectl(&["patch", "kubescheduler", "cluster", "--type=merge", "-p", &patch])).map(drop)
}

fn at_revision(lab: &Lab, revision: i64) -> Result<usize> {
    let settings = lab.get(&["kubescheduler", "cluster"])?;
    let nodes = settings["status"]["nodeStatuses"].as_array().cloned().unwrap_or_default();
    Ok(nodes.iter().filter(|n| n["currentRevision"] == revision).count())
}
