//! The tutorial's second half, at a real terminal (tmux): stage by stage, one of them broken and repaired, then without pauses.

use anyhow::{Context, Result, ensure};
use seedling_e2e::{Lab, output, run, seedling, text, wait};
use std::process::Command;
use std::time::Duration;

const SOCKET: &str = "seedling-e2e-step";
const LIMIT: Duration = Duration::from_secs(240);
const KEY: &str = "/opt/openshift/tls/csr-signer.key";

pub(crate) fn stepped(lab: &Lab) -> Result<()> {
    // Up to a stage without a terminal, and there it stays.
    run(&mut lab.lab(&["up", "--until", "config-bootstrap"]))?;
    run(&mut lab.lab(&["exec", "bootstrap", "--", "seedling", "stage", "verify", "config-bootstrap"]))?;
    let status = run(&mut lab.lab(&["status"]))?;
    ensure!(status.contains("bootkube: 4 stages done, at cvo-bootstrap/paused-for-you"), "{status}");
    ensure!(status.contains(": started ") && status.contains("goes on from here"), "{status}");
    on_the_node(lab)?;

    let program = seedling().get_program().to_string_lossy().into_owned();
    let terminal =
        Terminal::run(&format!("{program} lab up --name {} --step; echo ended $?; exec cat", lab.name))?;
    for next in ["6 of 22: etcd-bootstrap", "7 of 22: kube-apiserver-bootstrap"] {
        terminal.until(next, 1)?;
        terminal.enter("")?;
    }
    let eighth = "8 of 22: kube-controller-manager-bootstrap";
    terminal.until(eighth, 1)?;
    lab.shell("bootstrap", &format!("mv {KEY} /root/"))?;
    terminal.enter("")?;
    terminal.until(&format!("cannot read {KEY}"), 1)?;
    terminal.until(eighth, 2)?;
    lab.shell("bootstrap", &format!("mv /root/csr-signer.key {KEY}"))?;
    terminal.enter("")?;
    terminal.until("✓ the pod's manifest and the signers' Secrets are written", 1)?;
    terminal.until("9 of 22: kube-scheduler-bootstrap", 1)?;
    terminal.enter("c")?;
    terminal.until("ended 0", 1)?;
    lab.one_etcd_cluster()
}

/// The fifth stage by hand: looked at, refused while the service works, rendered alone, run alone.
fn on_the_node(lab: &Lab) -> Result<()> {
    const STAGE: &str = "cvo-bootstrap";
    let tried = |words: &[&str]| -> Result<(bool, String)> {
        let output = output(lab.lab(&["exec", "bootstrap", "--", "timeout", "60", "seedling"]).args(words))?;
        Ok((output.status.success(), text(&output.stdout) + &text(&output.stderr)))
    };
    let to = ["--asset-input-dir", "/opt/openshift", "--asset-output-dir", "/root/alone"];
    for (works, says, words) in [
        (true, "paused for you", &["stage", "list"][..]),
        (true, "5 of 22: cvo-bootstrap", &["bootkube", "--step"]),
        (false, "cvo-bootstrap: not ok", &["stage", "verify", STAGE]),
        (false, "another bootkube works on this node", &["bootkube", "--only", STAGE]),
        (
            true,
            "/root/alone/opt/openshift/bootstrap-manifests/bootstrap-pod.yaml",
            &[&["render", STAGE], &to[..]].concat(),
        ),
        (false, "renders nothing", &[&["render", "wait-for-etcd"], &to[..]].concat()),
    ] {
        let (worked, said) = tried(words)?;
        ensure!(worked == works && said.contains(says), "{words:?}: {said}");
    }
    lab.exec("bootstrap", &["systemctl", "stop", "bootkube.service"])?;
    let (worked, said) = tried(&["bootkube", "--only", STAGE])?;
    lab.exec("bootstrap", &["systemctl", "start", "bootkube.service"])?;
    ensure!(worked, "{said}");
    run(&mut lab.lab(&["exec", "bootstrap", "--", "seedling", "stage", "verify", STAGE])).map(drop)
}

/// Gone with the check.
struct Terminal;

impl Terminal {
    fn run(command: &str) -> Result<Self> {
        tmux(&["-f", "/dev/null", "new-session", "-d", "-s", "step", "-x", "160", "-y", "200", command])?;
        Ok(Self)
    }

    fn enter(&self, line: &str) -> Result<()> {
        if !line.is_empty() {
            tmux(&["send-keys", "-t", "step", line])?;
        }
        tmux(&["send-keys", "-t", "step", "Enter"]).map(drop)
    }

    /// Until the screen has it so often.
    fn until(&self, what: &str, times: usize) -> Result<()> {
        let mut screen = String::new();
        let seen = wait(what, LIMIT, || {
            screen = tmux(&["capture-pane", "-p", "-J", "-S", "-2000", "-t", "step"])?;
            Ok((screen.matches(what).count() >= times).then_some(()))
        });
        seen.with_context(|| format!("the screen:\n{screen}"))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = tmux(&["kill-server"]);
    }
}

fn tmux(args: &[&str]) -> Result<String> {
    let output = Command::new("tmux").args(["-L", SOCKET]).args(args).output().context("tmux")?;
    Ok(text(&output.stdout))
}
