//! What a person does who has no lab: a machine elsewhere is added and removed, a certificate is approved.

use crate::workers::create;
use anyhow::{Context, Result, bail, ensure};
use seedling_e2e::{Lab, output, run, seedling, text, wait};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;

const MINUTES: Duration = Duration::from_secs(240);

/// With a kubeconfig, as for a cluster that is no lab's.
pub(crate) fn elsewhere(lab: &Lab) -> Result<()> {
    let dir = lab.dir().join("elsewhere");
    std::fs::create_dir_all(&dir)?;
    let hosts = "# rack 1\nhosts:\n- {name: far-1, role: worker, mac: '52:54:00:00:00:98', address: 192.168.100.199}\n";
    std::fs::write(dir.join("hosts.yaml"), hosts)?;
    let kubeconfig = run(&mut lab.lab(&["kubeconfig"]))?;
    let node = |arguments: &[&str]| {
        let mut command = seedling();
        command.args(arguments).env("KUBECONFIG", kubeconfig.trim()).current_dir(&dir);
        command
    };
    let add = ["node", "add", "far-0", "--mac", "52:54:00:00:00:99", "--address", "192.168.100.200"];
    let pointer = run(&mut node(&add))?;
    let first = std::fs::read(dir.join(pointer.trim()))?;
    run(&mut node(&add))?;
    ensure!(std::fs::read(dir.join("nodes/far-0.ign"))? == first, "a pointer that is good was made anew");
    let text_of = |file: &str| std::fs::read_to_string(dir.join(file));
    ensure!(
        text_of("hosts.yaml")?.starts_with(hosts) && text_of("hosts.yaml")?.contains("far-0"),
        "{}",
        text_of("hosts.yaml")?
    );
    let map = lab.get(&["-n", "openshift-config", "configmap", "cluster-inventory"])?;
    ensure!(map["data"]["hosts.yaml"].as_str().unwrap_or_default().contains("far-0"), "{map:#}");
    let taken = output(&mut node(&[
        "node",
        "add",
        "far-2",
        "--mac",
        "52:54:00:00:00:97",
        "--address",
        "192.168.100.200",
    ]))?;
    ensure!(
        !taken.status.success() && text(&taken.stderr).contains("already used"),
        "{}",
        text(&taken.stderr)
    );
    let mut waits = node(&["wait-for", "node", "far-0"]).stderr(Stdio::piped()).spawn()?;
    std::thread::sleep(Duration::from_secs(3));
    waits.kill()?;
    let said = text(&waits.wait_with_output()?.stderr);
    ensure!(said.contains("has not asked for its certificate"), "{said}");
    run(&mut node(&["wait-for", "node", "worker-0"]))?;
    run(&mut node(&["node", "remove", "far-0"]))?;
    ensure!(
        text_of("hosts.yaml")? == hosts && !dir.join("nodes/far-0.ign").exists(),
        "{}",
        text_of("hosts.yaml")?
    );
    let stays = output(&mut node(&["node", "remove", "master-1"]))?;
    ensure!(
        !stays.status.success() && text(&stays.stderr).contains("it is a master"),
        "{}",
        text(&stays.stderr)
    );
    Ok(())
}

/// The approver leaves a stranger's request pending; `--pending` leaves it alone too, its name does not.
pub(crate) fn approved(lab: &Lab) -> Result<()> {
    let key = "openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout /dev/null -subj /O=system:nodes/CN=system:node:stranger -addext subjectAltName=DNS:stranger 2>/dev/null | base64 -w0";
    let request = run(std::process::Command::new("sh").args(["-c", key]))?;
    create(
        lab,
        &json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "stranger"},
        "spec": {"request": request.trim(), "signerName": "kubernetes.io/kubelet-serving",
            "usages": ["digital signature", "server auth"]}}),
    )?;
    let csr = |arguments: &[&str]| {
        let mut command = seedling();
        command.arg("csr").args(arguments).args(["--lab", &lab.name]);
        command
    };
    let verdict = || -> Result<String> {
        let requests: Vec<Value> = serde_json::from_str(&run(csr(&["list"]).args(["-o", "json"]))?)?;
        let one = requests.iter().find(|r| r["name"] == "stranger").context("it is not listed")?;
        Ok(one["verdict"].as_str().unwrap_or_default().into())
    };
    wait("the approver's verdict", MINUTES, || Ok((verdict()? == "refused").then_some(())))?;
    let left = output(&mut csr(&["approve", "--pending"]))?;
    ensure!(
        left.status.success() && text(&left.stderr).contains("stranger is left alone"),
        "{}",
        text(&left.stderr)
    );
    ensure!(verdict()? == "refused", "it was approved");
    ensure!(run(&mut csr(&["approve", "stranger"]))?.contains("stranger approved"), "nothing was said");
    ensure!(verdict()? == "approved", "it was not approved");
    if output(&mut csr(&["approve", "nobody"]))?.status.success() {
        bail!("nobody was approved");
    }
    Ok(())
}
