//! A worker that has nothing but a MAC address and an empty disk: it boots over the network, installs itself, joins, runs pods that others
//! reach, and boots from its disk from then on.

use crate::workers::create;
use crate::{Suite, diagnose, finish, start};
use anyhow::{Context, Result, ensure};
use seedling_e2e::{Lab, condition, judge, name, run, seedling, wait};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Emulated: seconds become minutes.
const MINUTES: Duration = Duration::from_secs(900);
const WORKER: &str = "worker-0";
/// When Ignition was through.
const STAMP: &str = "stat -c %Y /etc/.ignition-applied";
const MAC: &str = "52:54:00:5e:ed:1b";
const ADDRESS: &str = "192.168.100.21";

pub(crate) fn checks(suite: &mut Suite) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/qemu.sh");
    if !suite.check("qemu_is_installed", || run(Command::new(script).arg("packages")).map(drop)) {
        return;
    }
    let lab = Lab { name: "e2e-qemu".into() };
    let grown = suite.check("a_cluster_grows_with_a_worker_in_qemu", || {
        finish(start(&lab, &["--workers", "1", "--machines", "worker=qemu"])?)
    });
    if grown {
        suite.check("it_booted_over_the_network_and_installed_itself", || installed(&lab));
        suite.check("ignition_ran_exactly_once", || ignition_once(&lab));
        suite.check("it_is_a_machine_of_its_own", || own_machine(&lab));
        suite.check("a_pod_on_it_is_reached_from_a_node_and_from_a_pod", || reached(&lab));
        suite.check("it_is_entered_by_ssh", || by_ssh(&lab));
        suite.check("it_is_frozen_and_goes_on", || frozen(&lab));
        suite.check("switched_off_and_on_it_boots_from_its_disk", || from_disk(&lab));
        suite.check("the_lab_stops_and_starts", || stopped_and_started(&lab));
    }
    if !suite.failed.is_empty() {
        diagnose(&lab);
        println!("--- console of {WORKER}\n{}", console(&lab));
    }
    suite.check("lab_down_removes_it", || down(&lab));
}

fn console(lab: &Lab) -> String {
    let text = run(&mut lab.lab(&["logs", WORKER])).unwrap_or_else(|e| format!("{e:#}"));
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(80)..].join("\n")
}

/// What the helper saw of it, in this order.
fn installed(lab: &Lab) -> Result<()> {
    let node = lab.status()?["nodes"].as_array().into_iter().flatten().find(|n| n["name"] == WORKER).cloned();
    ensure!(node.is_some_and(|node| node["kind"] == "qemu"), "status does not say that it is QEMU's");
    judge::installed(&lab.events()?, WORKER, MAC, ADDRESS)?;
    let node = lab.get(&["node", WORKER])?;
    ensure!(condition(&node, "Ready") == Some("True"), "{:#}", node["status"]["conditions"]);
    let mounts = lab.exec(WORKER, &["cat", "/proc/mounts"])?;
    let on_disk = |line: &str| line.starts_with("/dev/vda") && line.contains(" /var/lib/kubelet ");
    ensure!(mounts.lines().any(on_disk), "it does not live on its disk:\n{mounts}");
    Ok(())
}

/// The helper gave its config once, and the machine-config servers too.
fn ignition_once(lab: &Lab) -> Result<()> {
    let given =
        lab.events()?.iter().filter(|e| e["path"] == format!("/ign/{MAC}") && e["status"] == 200).count();
    ensure!(given == 1, "the helper gave its config {given} times");
    let audit = "cat /var/log/machine-config-server/audit.log 2>/dev/null || true";
    let asked =
        judge::MASTERS.iter().map(|master| lab.shell(master, audit)).collect::<Result<Vec<_>>>()?.concat();
    let of_worker = |line: &&str| line.contains("\"node\":\"worker-0\"") && line.contains("\"status\":200");
    let served = asked.lines().filter(of_worker).count();
    ensure!(served == 1, "the machine-config servers gave its config {served} times");
    ensure!(lab.shell(WORKER, STAMP)?.lines().count() == 1, "Ignition has left no stamp");
    Ok(())
}

/// Another kernel than everybody else's, with the disk and the memory that it was given.
fn own_machine(lab: &Lab) -> Result<()> {
    let kernel = lab.exec(WORKER, &["uname", "-r"])?;
    ensure!(kernel != lab.exec("master-0", &["uname", "-r"])?, "it runs {kernel}");
    let memory: u64 =
        lab.shell(WORKER, "awk '/MemTotal/ {print int($2 / 1024)}' /proc/meminfo")?.trim().parse()?;
    ensure!((1700..=2048).contains(&memory), "{memory} MiB");
    ensure!(lab.shell(WORKER, "cat /sys/class/net/eth0/address")?.trim() == MAC);
    Ok(())
}

fn pod(lab: &Lab, pod: &str, node: &str) -> Result<String> {
    let release: Value = serde_json::from_str(&run(seedling().args(["release", "info", "-o", "json"]))?)?;
    let script = "mkdir -p /tmp/www && hostname > /tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www";
    let container = json!({"name": "web", "image": release["images"]["tools"], "command": ["sh", "-c", script],
        "readinessProbe": {"httpGet": {"port": 8080, "path": "/"}, "periodSeconds": 2}});
    create(
        lab,
        &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod}, "spec": {
        "nodeName": node, "terminationGracePeriodSeconds": 1, "containers": [container]}}),
    )?;
    wait(&format!("{pod} to be Ready on {node}"), MINUTES, || {
        let found = lab.get(&["pod", pod])?;
        let address = found["status"]["podIP"].as_str().map(String::from);
        Ok(address.filter(|_| condition(&found, "Ready") == Some("True")))
    })
}

fn reached(lab: &Lab) -> Result<()> {
    let theirs = pod(lab, "on-worker", WORKER)?;
    let ours = pod(lab, "on-master", "master-1")?;
    let (to_theirs, to_ours) = (format!("http://{theirs}:8080/"), format!("http://{ours}:8080/"));
    wait("an answer of the pod on the worker to master-0", MINUTES, || {
        Ok((lab.exec("master-0", &["curl", "-sS", "-m", "5", &to_theirs])?.trim() == "on-worker")
            .then_some(()))
    })?;
    let asks = |from: &str, url: &str| run(&mut lab.kubectl(&["exec", from, "--", "wget", "-qO-", url]));
    ensure!(asks("on-master", &to_theirs)?.trim() == "on-worker");
    ensure!(asks("on-worker", &to_ours)?.trim() == "on-master");
    Ok(())
}

fn by_ssh(lab: &Lab) -> Result<()> {
    let pods = run(&mut lab.lab(&["ssh", WORKER, "--", "sudo", "crictl", "pods"]))?;
    ensure!(pods.contains("on-worker"), "{pods}");
    for node in [WORKER, "master-0"] {
        ensure!(run(&mut lab.lab(&["ssh", node, "--", "id", "-un"]))?.trim() == "core", "{node}");
        ensure!(run(&mut lab.lab(&["ssh", node, "--", "sudo", "id", "-un"]))?.trim() == "root", "{node}");
    }
    let said = run(&mut lab.lab(&["exec", WORKER, "--", "sh", "-c", "echo \"it's $0\"; exit 0"]))?;
    ensure!(said.trim() == "it's sh", "{said}");
    let kubelet = run(&mut lab.lab(&["logs", WORKER, "-u", "kubelet.service"]))?;
    ensure!(kubelet.contains("kubelet"), "{kubelet}");
    Ok(())
}

fn frozen(lab: &Lab) -> Result<()> {
    let power = || {
        let nodes = lab.status()?["nodes"].clone();
        let node = nodes.as_array().into_iter().flatten().find(|node| node["name"] == WORKER).cloned();
        Ok::<_, anyhow::Error>(node.context("no such node")?["power"].clone())
    };
    run(&mut lab.lab(&["power", WORKER, "pause"]))?;
    ensure!(power()? == "paused", "{}", power()?);
    run(&mut lab.lab(&["power", WORKER, "on"]))?;
    ensure!(power()? == "on", "{}", power()?);
    lab.exec(WORKER, &["true"]).map(drop)
}

fn ready(lab: &Lab, booted_before: &str) -> Result<()> {
    wait(&format!("{WORKER} to be Ready again"), MINUTES, || {
        let node = lab.get(&["node", WORKER])?;
        let booted = node["status"]["nodeInfo"]["bootID"].as_str() != Some(booted_before);
        Ok((booted && condition(&node, "Ready") == Some("True")).then_some(()))
    })
}

fn boot_id(lab: &Lab) -> Result<String> {
    Ok(lab.exec(WORKER, &["cat", "/proc/sys/kernel/random/boot_id"])?.trim().into())
}

/// What says that it was installed, or that somebody gave it a config.
fn installations(lab: &Lab) -> Result<usize> {
    let of_install = |e: &&Value| {
        (e["event"] == "boot" && e["host"] == WORKER && e["state"] != "disk")
            || e["path"] == format!("/ign/{MAC}")
            || (e["path"] == "/boot/rootfs.squashfs" && e["remote"] == ADDRESS)
    };
    Ok(lab.events()?.iter().filter(of_install).count())
}

fn from_disk(lab: &Lab) -> Result<()> {
    let (before, booted, stamp) = (installations(lab)?, boot_id(lab)?, lab.shell(WORKER, STAMP)?);
    run(&mut lab.lab(&["power", WORKER, "off"]))?;
    let clean = console(lab);
    ensure!(clean.contains("Power down") || clean.contains("Powering off"), "it was cut off:\n{clean}");
    run(&mut lab.lab(&["power", WORKER, "on"]))?;
    ready(lab, &booted)?;
    ensure!(installations(lab)? == before, "it was installed again");
    ensure!(lab.shell(WORKER, STAMP)? == stamp, "Ignition ran again");
    let arguments = lab.exec(WORKER, &["cat", "/proc/cmdline"])?;
    ensure!(!arguments.contains("ignition.firstboot"), "it took this for its first boot: {arguments}");
    wait("its pod to answer again", MINUTES, || {
        let address = lab.get(&["pod", "on-worker"])?["status"]["podIP"].as_str().map(String::from);
        let url = format!("http://{}:8080/", address.context("no address")?);
        Ok((lab.exec("master-0", &["curl", "-sS", "-m", "5", &url])?.trim() == "on-worker").then_some(()))
    })
}

fn stopped_and_started(lab: &Lab) -> Result<()> {
    let booted = boot_id(lab)?;
    run(&mut lab.lab(&["stop"]))?;
    let nodes = lab.status()?["nodes"].clone();
    ensure!(nodes.as_array().into_iter().flatten().all(|node| node["power"] == "off"), "{nodes:#}");
    run(&mut lab.lab(&["start"]))?;
    ready(lab, &booted)?;
    wait("every operator to be well again", MINUTES, || {
        let nodes = lab.items(&["nodes"])?;
        ensure!(nodes.len() == 4, "{:?}", nodes.iter().map(name).collect::<Vec<_>>());
        judge::settled(&lab.items(&["clusteroperators"])?).map(Some)
    })
}

fn down(lab: &Lab) -> Result<()> {
    let dir = lab.dir();
    run(&mut lab.lab(&["down"]))?;
    ensure!(!dir.exists(), "{} is there", dir.display());
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        ensure!(!command.contains("qemu-system") || !command.contains(&lab.name), "still runs: {command}");
    }
    let namespaces = run(Command::new("ip").arg("netns"))?;
    ensure!(!namespaces.contains(&lab.name), "{namespaces}");
    Ok(())
}
