//! Step mode in a real terminal (tmux), on a bootstrap node that is only a directory: stages that write files need no more.
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SEEDLING: &str = env!("CARGO_BIN_EXE_seedling");

fn release() -> Value {
    let image = |name: &str| format!("registry.seedling.internal/seedling/{name}@sha256:{}", "0".repeat(64));
    let programs =
        ["seedling", "kubectl", "containerd", "containerd-shim-runc-v2", "ctr", "crictl", "runc", "kubelet"];
    let images = ["pause", "seedling", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];
    let images: BTreeMap<_, _> = images.iter().map(|name| (*name, image(name))).collect();
    let binaries = programs.map(|name| (name, json!({"sha512": "0".repeat(128), "size": 1})));
    json!({
        "version": "5.0.0", "kubernetesVersion": "1.36.4", "releaseImage": image("release"), "images": images,
        "binaries": BTreeMap::from(binaries), "components": {},
    })
}

/// An asset directory with Ignition files.
fn assets() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    put("release.json", &release().to_string());
    put(
        "install-config.yaml",
        "apiVersion: v1\nbaseDomain: example.com\nmetadata: {name: ocp4}\nplatform: {none: {}}\n\
         pullSecret: '{\"auths\":{\"r\":{\"auth\":\"eA==\"}}}'\nsshKey: ssh-ed25519 \
         AAAAC3NzaC1lZDI1NTE5AAAAIJD1L38PLq39QJkTAyV6NKX2AJyqiAQ9gfXq1yGBrzmh core\n",
    );
    put(
        "hosts.yaml",
        "hosts:\n- {name: b, role: bootstrap, mac: '52:54:00:a4:db:5f', address: 192.168.100.10}\n\
         - {name: m1, role: master, mac: '52:54:00:8b:a1:17', address: 192.168.100.11}\n\
         - {name: m2, role: master, mac: '52:54:00:ea:8b:9d', address: 192.168.100.12}\n\
         - {name: m3, role: master, mac: '52:54:00:f8:87:c7', address: 192.168.100.13}\n",
    );
    let dir_name = dir.path().display().to_string();
    let made = seedling(&["create", "ignition-configs", "--dir", &dir_name, "--release", &dir_name]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    dir
}

/// What Ignition and release-image.service leave on the bootstrap node.
fn node() -> TempDir {
    let (assets, root) = (assets(), tempfile::tempdir().unwrap());
    let ignition: Value =
        serde_json::from_str(&fs::read_to_string(assets.path().join("bootstrap.ign")).unwrap()).unwrap();
    for file in ignition["storage"]["files"].as_array().unwrap() {
        let source =
            file.pointer("/contents/source").and_then(Value::as_str).and_then(seedling_ignition::decode);
        if let (Some(contents), Some(path)) = (source, file["path"].as_str()) {
            put(root.path(), path, &contents);
        }
    }
    let manifests = [
        ("0000_00_cluster-version-operator_01.yaml", "Namespace"),
        ("0000_10_config_01_infrastructures.crd.yaml", "CustomResourceDefinition"),
    ];
    for (name, kind) in manifests {
        put(
            root.path(),
            &format!("/opt/openshift/release-manifests/{name}"),
            format!("kind: {kind}\n").as_bytes(),
        );
    }
    root
}

fn put(root: &Path, path: &str, contents: &[u8]) {
    let path = root.join(path.trim_start_matches('/'));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, contents).unwrap();
}

fn seedling(args: &[&str]) -> Output {
    Command::new(SEEDLING).args(args).stdin(Stdio::null()).output().unwrap()
}

/// A terminal of its own, gone with the test.
struct Terminal(String);

impl Terminal {
    fn run(command: &str) -> Self {
        let terminal = Self(format!("seedling-{}-{:p}", std::process::id(), command));
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            "step",
            "-x",
            "160",
            "-y",
            "200",
            command,
        ]);
        terminal
    }

    fn tmux(&self, args: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.0]).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys", "-t", "step"], keys].concat());
    }

    /// The screen, as soon as it has this.
    fn until(&self, text: &str) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.tmux(&["capture-pane", "-p", "-J", "-S", "-400", "-t", "step"]);
            if screen.contains(text) {
                return screen;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{text:?} is not on the screen:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// A shell around it, so that what it said last stays on the screen.
fn step(root: &Path) -> Terminal {
    Terminal::run(&format!(
        "env -u SHELL {SEEDLING} bootkube --step --root {}; echo ended $?; exec cat",
        root.display()
    ))
}

#[test]
fn a_person_goes_through_the_stages_in_a_terminal() {
    let root = node();
    let terminal = step(root.path());
    terminal.until("1 of 22: openshift-manifests");
    terminal.until("[q] quit >");
    terminal.keys(&["l", "Enter"]);
    terminal.until("`l FILE` shows a file.");
    terminal.keys(&["Enter"]);
    let screen = terminal.until("2 of 22: api-bootstrap");
    assert!(screen.contains("✓ each file of openshift/ is in manifests/"), "{screen}");
    assert!(root.path().join("opt/openshift/openshift-manifests.done").exists());
    assert!(!root.path().join("opt/openshift/api-bootstrap.done").exists());

    // While it waits, another terminal sees it waiting and cannot run a stage of its own.
    let dir = root.path().display().to_string();
    let listed = String::from_utf8(seedling(&["stage", "list", "--root", &dir]).stdout).unwrap();
    let line = listed.lines().find(|line| line.contains("api-bootstrap")).unwrap_or_default();
    assert!(line.contains("paused for you"), "{listed}");
    let other = seedling(&["bootkube", "--only", "api-bootstrap", "--root", &dir]);
    assert!(String::from_utf8_lossy(&other.stderr).contains("another bootkube works on this node"));

    terminal.keys(&["q", "Enter"]);
    terminal.until("ended 0");

    // Killed or left, it goes on where it was.
    let terminal = step(root.path());
    terminal.until("2 of 22: api-bootstrap");
    terminal.keys(&["Enter"]);
    terminal.until("3 of 22: auth-api-bootstrap");
}

#[test]
fn what_is_broken_is_said_and_can_be_repaired() {
    let root = node();
    let dir = root.path().display().to_string();
    let until = seedling(&["bootkube", "--until", "config-bootstrap", "--root", &dir]);
    assert!(until.status.success(), "{}", String::from_utf8_lossy(&until.stderr));
    assert!(!root.path().join("opt/openshift/.bootkube.done").exists());
    let verify = || seedling(&["stage", "verify", "config-bootstrap", "--root", &dir]);
    assert!(verify().status.success());

    let bundle = root.path().join("opt/openshift/tls/client-ca-bundle.crt");
    let good = fs::read(&bundle).unwrap();
    fs::write(&bundle, "").unwrap();
    let bad = verify();
    let said = String::from_utf8(bad.stdout).unwrap();
    assert!(bad.status.code() == Some(1) && said.contains("config-bootstrap: not ok\n  ✗ "), "{said}");
    let only = seedling(&["bootkube", "--only", "config-bootstrap", "--root", &dir]);
    assert!(only.status.success(), "{}", String::from_utf8_lossy(&only.stderr));
    assert!(verify().status.success());
    assert_eq!(fs::read(&bundle).unwrap(), good);
}

#[test]
fn without_a_terminal_it_says_so_and_a_wrong_stage_is_wrong_usage() {
    let root = node();
    let dir = root.path().display().to_string();
    let refused = seedling(&["bootkube", "--step", "--root", &dir]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && said.contains("needs a terminal"), "{said}");
    let wrong = seedling(&["stage", "verify", "etcd-bootstrp"]);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.status.code() == Some(2) && said.contains("etcd-bootstrap"), "{said}");
    let unknown = seedling(&["explain", "etcd-bootstrp"]);
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(unknown.status.code() == Some(2) && said.contains("stage.etcd-bootstrap"), "{said}");
}

#[test]
fn a_stage_is_rendered_alone_from_an_asset_directory() {
    let (assets, out) = (assets(), tempfile::tempdir().unwrap());
    let render = |stage: &str| {
        let (from, to) = (assets.path().display().to_string(), out.path().display().to_string());
        seedling(&["render", stage, "--asset-input-dir", &from, "--asset-output-dir", &to])
    };
    let made = render("etcd-bootstrap");
    let listed = String::from_utf8(made.stdout).unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let pod = out.path().join("etc/kubernetes/manifests/etcd-member-pod.yaml");
    assert!(pod.exists() && listed.contains(&pod.display().to_string()), "{listed}");
    assert!(listed.lines().all(|file| file.contains("etcd")), "{listed}");
    assert!(!out.path().join(".render-scratch").exists());

    // What it reads of another stage is made first, and is not among its files.
    let made = render("kube-controller-manager-bootstrap");
    let (listed, said) = (String::from_utf8(made.stdout).unwrap(), String::from_utf8(made.stderr).unwrap());
    assert!(made.status.success() && said.contains("config-bootstrap"), "{said}");
    assert!(
        listed.contains("kube-controller-manager-pod.yaml") && !listed.contains("csr-signer.key"),
        "{listed}"
    );

    let refused = render("cb-bootstrap");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("asks a running cluster"));
}
