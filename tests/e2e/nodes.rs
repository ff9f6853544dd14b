//! What a node owes its pods and its users, asked of the grown cluster.

use crate::Suite;
use anyhow::{Context, Result, ensure};
use seedling_e2e::{Lab, condition, name, run, wait};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

pub(crate) fn checks(suite: &mut Suite, lab: &Lab) {
    suite.check("finished_installers_are_gone", || finished(lab));
    suite.check("every_kubelet_has_figures_of_its_disks", || disks(lab));
    suite.check("nodes_share_the_machine", || shares(lab));
    suite.check("the_issuers_keys_can_be_fetched_where_it_says", || issuer(lab));
    suite.check("a_pod_has_users_of_its_own", || own_users(lab));
    suite.check("a_node_opens_no_disk_of_the_machine_below", || confined(lab));
    suite.check("a_privileged_pod_opens_no_disk_of_the_machine_below", || privileged(lab));
    suite.check("a_pod_that_fills_the_disk_is_evicted", || evicted(lab));
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
    let script = "id -u; cat /proc/self/uid_map; echo mine > /data/file; stat -c %u /data/file";
    let container =
        json!({"command": ["sh", "-c", script], "volumeMounts": [{"name": "data", "mountPath": "/data"}]});
    let spec = json!({"hostUsers": false, "volumes": [{"name": "data", "emptyDir": {}}]});
    let (pod, said) = to_its_end(lab, "own-users", spec, container)?;
    ensure!(pod["status"]["phase"] == "Succeeded", "{:#}", pod["status"]);
    let words: Vec<_> = said.split_whitespace().collect();
    // id, then a line of the map: inside, outside, how many; then whose the file is.
    ensure!(words.len() == 5 && words[0] == "0" && words[1] == "0" && words[4] == "0", "{said}");
    ensure!(words[2].parse::<u64>()? >= 65_536, "root of the pod is {} on the node", words[2]);
    Ok(())
}

/// Makes the first disk of the machine below, and reads of it.
fn read_a_disk() -> Result<String> {
    let partitions = std::fs::read_to_string("/proc/partitions")?;
    let words: Vec<_> = partitions.lines().nth(2).context("no disk")?.split_whitespace().collect();
    Ok(format!("mknod /disk b {} {} && head -c 1 /disk 2>&1 | tail -n 1; rm /disk", words[0], words[1]))
}

/// Root on a node tries what root on the machine can do; each worked once.
fn confined(lab: &Lab) -> Result<()> {
    let said = lab.shell("master-0", &read_a_disk()?)?;
    ensure!(said.contains("Operation not permitted"), "the disk: {said:?}");
    for (file, word, refused) in [
        ("/sys/fs/cgroup/devices/devices.allow", "b *:* rwm", "Operation not permitted"),
        ("/proc/sys/kernel/core_pattern", "|/tmp/mine", "Read-only file system"),
        ("/proc/sysrq-trigger", "h", "Read-only file system"),
    ] {
        let script =
            format!("if [ -e {file} ]; then echo '{word}' | dd of={file} 2>&1; else echo absent; fi; true");
        let said = lab.shell("master-0", &script)?;
        ensure!(said.contains(refused) || said.trim() == "absent", "{file}: {said:?}");
    }
    let status = lab.shell("master-0", "cat /proc/1/status")?;
    let field =
        |name: &str| status.lines().find_map(|l| l.strip_prefix(name)).map(str::trim).context("no field");
    ensure!(field("Seccomp:")? == "2", "no filter for system calls");
    let by_handle = 1 << 2; // CAP_DAC_READ_SEARCH
    ensure!(
        u64::from_str_radix(field("CapBnd:")?, 16)? & by_handle == 0,
        "files by handle, whatever the root is"
    );
    Ok(())
}

fn privileged(lab: &Lab) -> Result<()> {
    let container = json!({"command": ["sh", "-c", read_a_disk()?], "securityContext": {"privileged": true}});
    let (_, said) = to_its_end(lab, "to-the-disk", json!({}), container)?;
    ensure!(said.contains("Operation not permitted"), "{said:?}");
    Ok(())
}

/// It writes more than its limit; the kubelet must see that and evict it.
fn evicted(lab: &Lab) -> Result<()> {
    let container = json!({
        "command": ["sh", "-c", "dd if=/dev/zero of=/file bs=1M count=20; sleep 600"],
        "resources": {"limits": {"ephemeral-storage": "1Mi"}},
    });
    let (pod, _) = to_its_end(lab, "too-much", json!({}), container)?;
    ensure!(pod["status"]["reason"] == "Evicted", "{:#}", pod["status"]);
    Ok(())
}

/// A pod of one container, with a shell; as it was when it had ended, and what it said. It is gone afterwards.
fn to_its_end(lab: &Lab, name: &str, mut spec: Value, mut container: Value) -> Result<(Value, String)> {
    let map = lab.get(&["configmap", "-n", "openshift-config", "release"])?;
    let release: Value = serde_json::from_str(map["data"]["release.json"].as_str().context("no release")?)?;
    container["name"] = json!("shell");
    container["image"] = release["images"]["tools"].clone();
    spec["containers"] = json!([container]);
    spec["restartPolicy"] = json!("Never");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec});
    let mut apply = lab.kubectl(&["apply", "-f", "-"]);
    let mut child = apply.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    child.stdin.take().context("no stdin")?.write_all(pod.to_string().as_bytes())?;
    ensure!(child.wait()?.success(), "the pod was refused");
    let ended = wait("the pod to end", Duration::from_secs(120), || {
        let pod = lab.get(&["pod", "-n", "default", name])?;
        let ended = ["Succeeded", "Failed"].iter().any(|phase| pod["status"]["phase"] == *phase);
        Ok(ended.then_some(pod))
    });
    let said = run(&mut lab.kubectl(&["logs", "-n", "default", name])).unwrap_or_default();
    run(&mut lab.kubectl(&["delete", "pod", "-n", "default", name, "--now"]))?;
    Ok((ended?, said))
}
