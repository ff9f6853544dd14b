//! What a node owes its pods and its users, asked of the grown cluster.

use crate::Suite;
use anyhow::{Context, Result, ensure};
use seedling_e2e::{Lab, condition, name, run, wait};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

pub fn checks(suite: &mut Suite, lab: &Lab) {
    suite.check("finished_installers_are_gone", || finished(lab));
    suite.check("every_kubelet_has_figures_of_its_disks", || disks(lab));
    suite.check("nodes_share_the_machine", || shares(lab));
    suite.check("the_issuers_keys_can_be_fetched_where_it_says", || issuer(lab));
    suite.check("a_pod_has_users_of_its_own", || own_users(lab));
}

fn finished(lab: &Lab) -> Result<()> {
    wait("no finished pods", Duration::from_secs(90), || {
        let pods = lab.items(&["pods", "-A", "--field-selector=status.phase=Succeeded"])?;
        ensure!(pods.is_empty(), "{} are left: {:?}", pods.len(), pods.iter().map(name).collect::<Vec<_>>());
        Ok(Some(()))
    })
}

fn nodes(lab: &Lab) -> Result<Vec<Value>> {
    let nodes = lab.items(&["nodes"])?;
    ensure!(nodes.len() == 3, "{} nodes", nodes.len());
    Ok(nodes)
}

/// Without them nothing is ever evicted.
fn disks(lab: &Lab) -> Result<()> {
    for node in nodes(lab)? {
        let path = format!("/api/v1/nodes/{}/proxy/stats/summary", name(&node));
        let summary: Value = serde_json::from_str(&run(&mut lab.kubectl(&["get", "--raw", &path]))?)?;
        for place in
            ["/node/fs/capacityBytes", "/node/fs/availableBytes", "/node/runtime/imageFs/capacityBytes"]
        {
            let bytes =
                summary.pointer(place).and_then(Value::as_u64).with_context(|| format!("no {place}"))?;
            ensure!(bytes > 0, "{place} is 0");
        }
        ensure!(condition(&node, "DiskPressure") == Some("False"), "{node:#}");
    }
    Ok(())
}

/// All nodes' memory and disk together are not more than the machine has.
fn shares(lab: &Lab) -> Result<()> {
    let nodes = nodes(lab)?;
    for what in ["memory", "ephemeral-storage"] {
        let bytes = |node: &Value, of: &str| -> Result<u64> {
            let text = node["status"][of][what].as_str().with_context(|| format!("no {of} of {what}"))?;
            let (number, factor) = text.strip_suffix("Ki").map_or((text, 1), |n| (n, 1024));
            Ok(number.parse::<u64>().with_context(|| text.to_string())? * factor)
        };
        let capacity = bytes(&nodes[0], "capacity")?;
        let given = nodes.iter().map(|node| bytes(node, "allocatable")).sum::<Result<u64>>()?;
        ensure!(given < capacity, "{what}: {given} of {capacity} bytes are given away");
    }
    let cpu = |node: &Value| {
        (node["status"]["capacity"]["cpu"].clone(), node["status"]["allocatable"]["cpu"].clone())
    };
    ensure!(nodes.iter().map(cpu).all(|(has, gives)| has != gives), "all of the CPU is given away");
    Ok(())
}

/// As a verifier of tokens does it: the document, then the keys at the address it names, over TLS.
fn issuer(lab: &Lab) -> Result<()> {
    let document = run(&mut lab.kubectl(&["get", "--raw", "/.well-known/openid-configuration"]))?;
    let document: Value = serde_json::from_str(&document)?;
    let uri = document["jwks_uri"].as_str().context("no jwks_uri")?;
    let map = lab.get(&["configmap", "-n", "default", "kube-root-ca.crt"])?;
    let ca = map["data"]["ca.crt"].as_str().context("no ca.crt")?;
    let token = run(&mut lab.kubectl(&["create", "token", "default"]))?;
    let script = format!(
        "cat > /run/issuer-ca.crt << 'EOF'\n{ca}\nEOF\ncurl -sS --fail --cacert /run/issuer-ca.crt -H 'Authorization: Bearer {}' {uri}; \
         result=$?; rm /run/issuer-ca.crt; exit $result",
        token.trim()
    );
    let keys: Value = serde_json::from_str(&lab.shell("master-0", &script)?)?;
    ensure!(keys["keys"].as_array().is_some_and(|keys| !keys.is_empty()), "{keys}");
    Ok(())
}

/// Its root is nobody on the node.
fn own_users(lab: &Lab) -> Result<()> {
    let images = lab.get(&["configmap", "-n", "openshift-config", "release"])?;
    let release: Value =
        serde_json::from_str(images["data"]["release.json"].as_str().context("no release")?)?;
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "own-users", "namespace": "default"},
        "spec": {
            "hostUsers": false,
            "restartPolicy": "Never",
            "containers": [{
                "name": "shell",
                "image": release["images"]["tools"],
                "command": ["sh", "-c", "id -u; cat /proc/self/uid_map; echo mine > /data/file; stat -c %u /data/file"],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    });
    let mut apply = lab.kubectl(&["apply", "-f", "-"]);
    let mut child = apply.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    child.stdin.take().context("no stdin")?.write_all(pod.to_string().as_bytes())?;
    ensure!(child.wait()?.success(), "the pod was refused");
    let ended = wait("the pod to end", Duration::from_secs(60), || {
        let pod = lab.get(&["pod", "-n", "default", "own-users"])?;
        Ok(pod["status"]["phase"]
            .as_str()
            .filter(|p| ["Succeeded", "Failed"].contains(p))
            .map(str::to_string))
    });
    let said = run(&mut lab.kubectl(&["logs", "-n", "default", "own-users"]));
    let seen = run(&mut lab.kubectl(&["describe", "pod", "-n", "default", "own-users"]));
    run(&mut lab.kubectl(&["delete", "pod", "-n", "default", "own-users", "--now"]))?;
    ensure!(ended? == "Succeeded", "{}", seen?);
    let said = said?;
    let words: Vec<_> = said.split_whitespace().collect();
    // id, then a line of the map: inside, outside, how many; then whose the file is.
    ensure!(words.len() == 5 && words[0] == "0" && words[1] == "0" && words[4] == "0", "{said}");
    ensure!(words[2].parse::<u64>()? >= 65_536, "root of the pod is {} on the node", words[2]);
    Ok(())
}
