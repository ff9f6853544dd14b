//! Workers: they wait for the masters, join, get pods; one more is added to the living cluster, and leaves it as budgets allow. And control
//! planes of other sizes than three.

use crate::{Suite, by_hand, diagnose, finish, start};
use anyhow::{Context, Result, ensure};
use seedling_e2e::{Lab, condition, judge, name, output, run, seedling, text, wait};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

const MINUTES: Duration = Duration::from_secs(240);
const MASTER: &str = "node-role.kubernetes.io/master";
const WORKER: &str = "node-role.kubernetes.io/worker";

pub(crate) fn checks(suite: &mut Suite) {
    let lab = Lab { name: "e2e-workers".into() };
    let grown =
        suite.check("a_cluster_grows_with_a_worker", || finish(start(&lab, &["--workers", "1", "--probe"])?));
    if grown {
        suite.check("a_worker_waits_for_the_masters", || waited(&lab));
        suite.check("a_worker_is_no_master_and_masters_take_no_pods", || roles(&lab));
        suite.check("masters_take_pods_as_the_scheduler_config_says", || schedulable(&lab));
        suite.check("a_machine_is_added_without_a_gap", || added(&lab));
        suite.check("an_add_that_was_killed_is_run_again", || killed_add(&lab));
        suite.check("a_worker_leaves_as_budgets_allow", || leaves(&lab));
        suite.check("a_remove_that_was_killed_is_run_again", || killed_remove(&lab));
        suite.check("masters_stay", || masters_stay(&lab));
        suite.check("a_machine_elsewhere_is_expected_and_forgotten", || by_hand::elsewhere(&lab));
        suite.check("a_request_is_approved_by_hand", || by_hand::approved(&lab));
        suite.check("everything_is_settled_at_the_end", || settled(&lab, &["worker-0"]));
    }
    if !suite.failed.is_empty() {
        diagnose(&lab);
    }
    suite.check("lab_down_removes_it", || run(&mut lab.lab(&["down"])).map(drop));
    suite.check("a_control_plane_of_another_size_grows", another_size);
}

/// 1, 4 or 5, by date.
fn another_size() -> Result<()> {
    let day = std::time::UNIX_EPOCH.elapsed()?.as_secs() / 86_400;
    let masters = [5, 1, 4][day as usize % 3];
    println!("{masters} masters");
    let lab = Lab { name: "e2e-size".into() };
    finish(start(&lab, &["--masters", &masters.to_string(), "--probe"])?)?;
    let nodes = lab.items(&["nodes"])?;
    ensure!(nodes.len() == masters, "{} nodes", nodes.len());
    ensure!(nodes.iter().all(|node| condition(node, "Ready") == Some("True")), "{nodes:#?}");
    judge::settled(&lab.items(&["clusteroperators"])?)?;
    lab.one_etcd_cluster()
}

/// Its first questions went to the bootstrap machine, in vain; its config came from a master.
fn waited(lab: &Lab) -> Result<()> {
    let connections =
        lab.events()?.into_iter().filter(|e| e["event"] == "connection" && e["host"] == "worker-0");
    let backends: Vec<_> = connections.filter_map(|e| e["backend"].as_str().map(String::from)).collect();
    ensure!(backends.first().is_some_and(|b| b == "bootstrap" || b == "none"), "{backends:?}");
    ensure!(backends.last().is_some_and(|b| b.starts_with("master-")), "{backends:?}");
    let audit =
        |node: &str| lab.shell(node, "cat /var/log/machine-config-server/audit.log 2>/dev/null || true");
    let allowed: Vec<_> = judge::MASTERS
        .iter()
        .map(|master| audit(master))
        .collect::<Result<Vec<_>>>()?
        .concat()
        .lines()
        .filter(|line| line.contains("\"node\":\"worker-0\"") && line.contains("\"status\":200"))
        .map(String::from)
        .collect();
    ensure!(allowed.len() == 1, "a worker gets its config once: {allowed:#?}");
    Ok(())
}

fn taints(node: &Value) -> Vec<&str> {
    let taints = node["spec"]["taints"].as_array();
    taints.into_iter().flatten().filter_map(|taint| taint["key"].as_str()).collect()
}

fn wears(node: &Value, label: &str) -> bool {
    node["metadata"]["labels"].get(label).is_some()
}

fn roles(lab: &Lab) -> Result<()> {
    for node in lab.items(&["nodes"])? {
        let is_worker = name(&node).starts_with("worker-");
        ensure!(wears(&node, WORKER) == is_worker && wears(&node, MASTER) != is_worker, "{node:#}");
        ensure!(taints(&node).contains(&MASTER) != is_worker, "{}: {:?}", name(&node), taints(&node));
    }
    on_every_node(lab)?;
    let json = run(seedling().args(["csr", "--lab", &lab.name, "-o", "json"]))?;
    let requests: Vec<Value> = serde_json::from_str(&json)?;
    for kind in ["client", "serving"] {
        let one = requests.iter().find(|r| r["node"] == "worker-0" && r["kind"] == kind);
        let one = one.with_context(|| format!("no {kind} request of worker-0"))?;
        ensure!(one["verdict"] == "approved" && one["issued"] == true, "{one:#}");
    }
    let pool = lab.get(&["machineconfigpool", "worker"])?;
    ensure!(pool["status"]["readyMachineCount"] == 1, "{:#}", pool["status"]);
    Ok(())
}

/// Pods of the network and of DNS.
fn on_every_node(lab: &Lab) -> Result<()> {
    let nodes = lab.items(&["nodes"])?.len();
    for (namespace, set) in [
        ("openshift-dns", "dns-default"),
        ("openshift-network", "flannel"),
        ("openshift-network", "kube-proxy"),
    ] {
        wait(&format!("{set} on {nodes} nodes"), MINUTES, || {
            let found = lab.get(&["-n", namespace, "daemonset", set])?;
            Ok((found["status"]["numberReady"] == nodes).then_some(()))
        })?;
    }
    Ok(())
}

fn schedulable(lab: &Lab) -> Result<()> {
    for on in [true, false] {
        let patch = json!({"spec": {"mastersSchedulable": on}}).to_string();
        run(&mut lab.kubectl(&["patch", "scheduler", "cluster", "--type=merge", "-p", &patch]))?;
        wait("labels and taints to follow", Duration::from_secs(30), || {
            let nodes = lab.items(&["nodes"])?;
            let mut masters = nodes.iter().filter(|node| wears(node, MASTER));
            Ok(masters.all(|m| wears(m, WORKER) == on && taints(m).contains(&MASTER) != on).then_some(()))
        })?;
    }
    Ok(())
}

/// A watch that was open before sees the new Node, the helper is the same process, and nobody was refused.
fn added(lab: &Lab) -> Result<()> {
    let helper = || Ok::<_, anyhow::Error>(lab.status()?["helper"]["pid"].clone());
    let before = helper()?;
    let mut watch = lab.kubectl(&["get", "nodes", "--watch", "-o", "name"]).stdout(Stdio::piped()).spawn()?;
    let asked = Instant::now();
    let added = run(&mut lab.lab(&["add", "worker-1", "-o", "json"]));
    println!("added after {:.1} s", asked.elapsed().as_secs_f32());
    let ended = watch.try_wait()?;
    watch.kill()?;
    let seen = text(&watch.wait_with_output()?.stdout);
    let host: Value = serde_json::from_str(&added?)?;
    ensure!(host["name"] == "worker-1" && host["role"] == "worker", "{host:#}");
    ensure!(ended.is_none() && seen.contains("node/worker-1"), "the watch was cut off: {ended:?}\n{seen}");
    ensure!(helper()? == before, "the helper was started again");
    let reloaded = lab.events()?.iter().filter(|e| e["event"] == "reloaded").count();
    ensure!(reloaded == 1, "{reloaded} times");
    let address = host["address"].as_str().context("no address")?;
    let found = lab.shell("master-0", "getent hosts worker-1.lab.seedling.lab")?;
    ensure!(found.starts_with(address), "{found}");
    // Done again, nothing is done.
    run(&mut lab.lab(&["add", "worker-1"]))?;
    run(&mut lab.lab(&["up"]))?;
    settled(lab, &["worker-0", "worker-1"])?;
    on_every_node(lab)
}

/// At different moments: before the cluster knows it, and while the machine boots.
fn killed_add(lab: &Lab) -> Result<()> {
    for millis in [60, 1500] {
        let mut add = lab.lab(&["add", "worker-2"]).stderr(Stdio::null()).spawn()?;
        std::thread::sleep(Duration::from_millis(millis));
        add.kill()?;
        add.wait()?;
    }
    run(&mut lab.lab(&["add", "worker-2"]))?;
    settled(lab, &["worker-0", "worker-1", "worker-2"])
}

/// Two pods, of which both have to be there; so one moves after the other.
fn leaves(lab: &Lab) -> Result<()> {
    let release: Value = serde_json::from_str(&run(seedling().args(["release", "info", "-o", "json"]))?)?;
    let script = "trap 'exit 0' TERM; while :; do sleep 1; done";
    let container =
        json!({"name": "idle", "image": release["images"]["tools"], "command": ["sh", "-c", script]});
    let labels = json!({"app": "kept"});
    let spread = json!([{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels}}]);
    let objects = [
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "kept"}, "spec": {
            "replicas": 3, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {
                "terminationGracePeriodSeconds": 1, "topologySpreadConstraints": spread, "containers": [container]}}}}),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "kept"},
            "spec": {"minAvailable": 3, "selector": {"matchLabels": labels}}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lonely"}, "spec": {
            "nodeName": "worker-2", "terminationGracePeriodSeconds": 1, "containers": [container]}}),
    ];
    for object in &objects {
        create(lab, object)?;
    }
    wait("a pod on each worker", MINUTES, || {
        let pods = lab.items(&["pods", "-l", "app=kept"])?;
        let ready = pods.iter().filter(|p| condition(p, "Ready") == Some("True"));
        let nodes: std::collections::BTreeSet<_> =
            ready.filter_map(|p| p["spec"]["nodeName"].as_str()).collect();
        Ok((nodes.len() == 3 && nodes.iter().all(|n| n.starts_with("worker-"))).then_some(()))
    })?;
    let refused = output(&mut lab.lab(&["remove", "worker-2"]))?;
    let said = text(&refused.stderr);
    ensure!(
        !refused.status.success() && said.contains("default/lonely") && said.contains("--force"),
        "{said}"
    );
    let remove = lab.lab(&["remove", "worker-2", "--force"]).stderr(Stdio::piped()).spawn()?;
    std::thread::sleep(Duration::from_secs(5));
    ensure!(lab.items(&["pods", "-l", "app=kept"])?.len() == 3, "the budget was not respected");
    ensure!(lab.get(&["node", "worker-2"])?["spec"]["unschedulable"] == true, "worker-2 is not cordoned");
    run(&mut lab.kubectl(&[
        "patch",
        "poddisruptionbudget",
        "kept",
        "--type=merge",
        "-p",
        r#"{"spec":{"minAvailable":2}}"#,
    ]))?;
    let removed = remove.wait_with_output()?;
    ensure!(removed.status.success(), "{}", text(&removed.stderr));
    gone(lab, "worker-2")
}

pub(crate) fn create(lab: &Lab, object: &Value) -> Result<()> {
    let mut create = lab.kubectl(&["create", "-f", "-"]).stdin(Stdio::piped()).spawn()?;
    create.stdin.take().context("no stdin")?.write_all(object.to_string().as_bytes())?;
    ensure!(create.wait()?.success(), "cannot create {object}");
    Ok(())
}

/// Nothing is left of it, here or there.
fn gone(lab: &Lab, machine: &str) -> Result<()> {
    let nodes = lab.items(&["nodes"])?;
    ensure!(!nodes.iter().any(|node| name(node) == machine), "its Node is there");
    let tokens = lab.get(&["-n", "openshift-machine-config-operator", "secret", "node-tokens"])?;
    ensure!(tokens["data"].get(machine).is_none(), "its token is there");
    let map = lab.get(&["-n", "openshift-config", "configmap", "cluster-inventory"])?;
    ensure!(
        !map["data"]["hosts.yaml"].as_str().unwrap_or_default().contains(machine),
        "the inventory has it"
    );
    for path in ["assets/hosts.yaml", "helper.yaml", "lab.json"] {
        ensure!(!std::fs::read_to_string(lab.dir().join(path))?.contains(machine), "{path} has it");
    }
    for path in [format!("nodes/{machine}"), format!("assets/nodes/{machine}.ign")] {
        ensure!(!lab.dir().join(&path).exists(), "{path} is there");
    }
    let namespaces = run(std::process::Command::new("ip").arg("netns"))?;
    ensure!(!namespaces.contains(&format!("{}-{machine}", lab.name)), "{namespaces}");
    Ok(())
}

fn killed_remove(lab: &Lab) -> Result<()> {
    for millis in [300, 1500] {
        let mut remove = lab.lab(&["remove", "worker-1"]).stderr(Stdio::null()).spawn()?;
        std::thread::sleep(Duration::from_millis(millis));
        remove.kill()?;
        remove.wait()?;
    }
    run(&mut lab.lab(&["remove", "worker-1"]))?;
    gone(lab, "worker-1")?;
    run(&mut lab.lab(&["remove", "worker-1"])).map(drop)
}

fn masters_stay(lab: &Lab) -> Result<()> {
    for (arguments, wanted) in [
        (&["remove", "master-0"][..], "it is a master"),
        (&["remove", "bootstrap"], "is off"),
        (&["add", "master-0"], "is a master"),
        (&["add", "master-3", "--role", "master"], "[possible values: worker]"),
        (&["up", "--masters", "2"], "fencing"),
    ] {
        let said = output(&mut lab.lab(arguments))?;
        let text = text(&said.stderr);
        ensure!(!said.status.success() && text.contains(wanted), "{arguments:?}: {text}");
    }
    Ok(())
}

/// Three masters and these workers are Ready, and every operator is well.
fn settled(lab: &Lab, workers: &[&str]) -> Result<()> {
    let wanted: Vec<_> = judge::MASTERS.iter().chain(workers).copied().collect();
    wait("nodes and operators to be settled", MINUTES, || {
        let nodes = lab.items(&["nodes"])?;
        let names: Vec<_> = nodes.iter().map(name).collect();
        ensure!(names == wanted, "nodes are {names:?}");
        ensure!(nodes.iter().all(|node| condition(node, "Ready") == Some("True")), "not all are Ready");
        judge::settled(&lab.items(&["clusteroperators"])?).map(Some)
    })
}
