//! What the end-to-end test and the benchmarks share: the program as a user has it, and the lab it grows.

pub mod book;
#[cfg(test)]
mod declared_tests;
pub mod judge;
pub mod prober;
pub mod soak;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The binary that `make` built; its release is in the cache.
pub fn seedling() -> Command {
    let target =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/x86_64-unknown-linux-gnu/release/seedling");
    Command::new(std::env::var_os("SEEDLING").map_or(target, PathBuf::from))
}

/// Runs to the end; stdout as text, or an error with both streams.
pub fn run(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} ended with {}\n{}{}", output.status, text(&output.stdout), text(&output.stderr));
    }
    Ok(text(&output.stdout))
}

pub fn output(command: &mut Command) -> Result<Output> {
    command.stdin(Stdio::null()).output().with_context(|| format!("{command:?}"))
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Asks until the answer is there; the condition's name is the error.
pub fn wait<T>(what: &str, at_most: Duration, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let start = Instant::now();
    let mut last = String::from("nothing");
    loop {
        match ask() {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => {}
            Err(e) => last = format!("{e:#}"),
        }
        if start.elapsed() > at_most {
            bail!("{what}: not so within {} s; last error: {last}", at_most.as_secs());
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

const STATIC_PODS_RUN: &str = "for pod in etcd kube-apiserver kube-controller-manager kube-scheduler; do test -n \"$(crictl ps -q --name ^$pod$)\" || exit 1; done";

/// A lab by name; removed when dropped.
pub struct Lab {
    pub name: String,
}

impl Lab {
    pub fn lab(&self, args: &[&str]) -> Command {
        let mut command = seedling();
        command.arg("lab").arg(args[0]).args(["--name", &self.name]).args(&args[1..]);
        command
    }
    pub fn exec(&self, node: &str, args: &[&str]) -> Result<String> {
        run(self.lab(&["exec", node, "--"]).args(args))
    }
    pub fn shell(&self, node: &str, script: &str) -> Result<String> {
        self.exec(node, &["sh", "-c", script])
    }
    pub fn kubectl(&self, args: &[&str]) -> Command {
        let mut command = seedling();
        command.args(["kubectl", "--lab", &self.name]).args(args);
        command
    }
    pub fn get(&self, args: &[&str]) -> Result<Value> {
        let json = run(self.kubectl(&["get", "-o", "json"]).args(args))?;
        Ok(serde_json::from_str(&json)?)
    }
    pub fn items(&self, args: &[&str]) -> Result<Vec<Value>> {
        Ok(self.get(args)?["items"].as_array().cloned().unwrap_or_default())
    }
    pub fn status(&self) -> Result<Value> {
        Ok(serde_json::from_str(&run(&mut self.lab(&["status", "-o", "json"]))?)?)
    }
    /// Everything is there, also where the API has not yet noticed that something is not: pods run on every master, and its member votes.
    pub fn whole(&self, within: Duration) -> Result<()> {
        wait("the cluster to be whole", within, || {
            for master in judge::MASTERS {
                self.shell(master, STATIC_PODS_RUN).with_context(|| format!("static pods of {master}"))?;
            }
            self.one_etcd_cluster()?;
            judge::whole(&self.items(&["nodes"])?, &self.items(&["clusteroperators"])?).map(Some)
        })
    }
    pub fn one_etcd_cluster(&self) -> Result<()> {
        let lab = seedling_lab::Labs::from_env().open(&self.name)?;
        Ok(tokio::runtime::Runtime::new()?.block_on(seedling_lab::members::agree(&lab))?)
    }
    pub fn dir(&self) -> PathBuf {
        let state = std::env::var_os("SEEDLING_STATE")
            .map_or_else(|| PathBuf::from("/var/lib/seedling"), PathBuf::from);
        state.join("labs").join(&self.name)
    }
    pub fn events(&self) -> Result<Vec<Value>> {
        let log = std::fs::read_to_string(self.dir().join("helper-events.jsonl"))?;
        Ok(log.lines().filter_map(|l| serde_json::from_str(l).ok()).collect())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if std::env::var_os("SEEDLING_KEEP_LAB").is_none()
            && let Err(e) = run(&mut self.lab(&["down"]))
        {
            eprintln!("lab down: {e:#}");
        }
    }
}

/// The condition of an object, `True` or `False`.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    object["status"]["conditions"].as_array()?.iter().find(|c| c["type"] == kind)?["status"].as_str()
}

pub fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
