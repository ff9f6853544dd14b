//! Used in the place of openshift-install: what it answered on the command line (`store-behaviour.txt`), exit code and text.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

const CONFIG: &str = "apiVersion: v1\nbaseDomain: alchemy.com\ncompute: [{name: worker, replicas: 0}]\nmetadata: {name: ocp4}\n\
                      platform: {none: {}}\npullSecret: '{\"auths\":{\"r.example.com\":{\"auth\":\"dTpw\"}}}'\n";

/// A working directory; the asset directory in it is `s`, as recorded.
struct Place(TempDir);

struct Answer {
    code: i32,
    stdout: String,
    lines: Vec<String>,
}

impl Place {
    fn new(config: &str) -> Self {
        let place = Self(TempDir::new().unwrap());
        fs::create_dir(place.path("s")).unwrap();
        fs::write(place.path("s/install-config.yaml"), config).unwrap();
        place
    }
    fn empty() -> Self {
        Self(TempDir::new().unwrap())
    }
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    fn run(&self, line: &str) -> Answer {
        self.run_with(line, &[])
    }
    fn run_with(&self, line: &str, variables: &[(&str, &str)]) -> Answer {
        Answer::of(self.command(line).envs(variables.iter().copied()).output().unwrap())
    }
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_seedling"));
        command.args(line.split(' ')).current_dir(self.0.path()).stdin(Stdio::null());
        command.env("SEEDLING_CACHE", self.path("no-release"));
        command
    }
    fn files(&self) -> Vec<String> {
        let mut names: Vec<_> = entries(&self.path("s")).collect();
        names.sort();
        names
    }
}

impl Answer {
    fn of(done: Output) -> Self {
        Self {
            code: done.status.code().unwrap(),
            stdout: String::from_utf8(done.stdout).unwrap(),
            lines: String::from_utf8(done.stderr).unwrap().lines().map(str::to_string).collect(),
        }
    }
}

fn entries(dir: &Path) -> impl Iterator<Item = String> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap())
}

/// The one line, with its exit code, and nothing on standard output.
fn refused(answer: &Answer, code: i32, line: &str) {
    assert_eq!((answer.code, answer.lines.first().map(String::as_str)), (code, Some(line)));
    assert_eq!(answer.stdout, "");
}

/// Upstream ends with 1 here; 2 tells wrong usage from a failure. The program's name is its own.
#[test]
fn wrong_usage() {
    let place = Place::new(CONFIG);
    let cases = [
        ("create manifests x --dir s", "accepts 0 arg(s), received 1"),
        ("create manifests --wibble --dir s", "unknown flag: --wibble"),
        ("create manifests -w --dir s", "unknown shorthand flag: 'w' in -w"),
        ("wibble", "unknown command \\\"wibble\\\" for \\\"seedling\\\""),
    ];
    for (line, want) in cases {
        let answer = place.run(line);
        assert_eq!(answer.code, 2, "{line}");
        let (time, rest) = answer.lines[0].split_at("time=\"2026-11-15T20:01:41Z\"".len());
        assert!(time.starts_with("time=\"2") && time.ends_with("Z\""), "{time}");
        assert_eq!(rest, format!(" level=fatal msg=\"Error executing seedling: {want}\""));
        assert!(
            answer.lines[1..].iter().all(|line| line.starts_with("level=info msg=")),
            "{:?}",
            answer.lines
        );
    }
    assert_eq!(place.files(), ["install-config.yaml"]);
}

#[test]
fn log_levels() {
    let place = Place::new(CONFIG);
    let why = "level=fatal msg=invalid log-level: not a valid logrus Level: \"wibble\"";
    for line in ["create manifests", "wait-for install-complete", "destroy cluster", "gather bootstrap"] {
        refused(&place.run(&format!("{line} --dir s --log-level wibble")), 1, why);
    }
    assert_eq!(place.files(), ["install-config.yaml"]);
    let answer = place.run("create manifests --dir s --log-level error");
    assert_eq!((answer.code, answer.lines.len()), (0, 0), "{:?}", answer.lines);
    let log = fs::read_to_string(place.path("s/.openshift_install.log")).unwrap();
    assert!(log.contains("level=info msg=\"Manifests created in: s, s/manifests and s/openshift\""), "{log}");
    let answer = place.run("create manifests --dir s --log-level DEBUG");
    assert!(
        answer.lines.contains(&"level=info msg=Manifests created in: s, s/manifests and s/openshift".into())
    );
}

/// As cobra takes them.
#[test]
fn flags_stand_anywhere() {
    for line in ["--dir s create install-config", "create --dir=s --log-level info install-config"] {
        let place = Place::new(CONFIG);
        let answer = place.run(line);
        let done = "level=info msg=Install-Config created in: s".to_string();
        assert!(answer.code == 0 && answer.lines.contains(&done), "{line}: {:?}", answer.lines);
    }
}

/// Upstream starts a survey that nobody can answer, and says EOF.
#[test]
fn nothing_to_start_from() {
    let place = Place::empty();
    let answer = place.run("create manifests --dir s");
    let why = "level=fatal msg=failed to fetch Install Config: s has neither an install-config.yaml nor the state of an earlier run";
    refused(&answer, 1, why);
    assert_eq!(place.files(), [".openshift_install.log"], "the directory is made, with the log");
}

#[test]
fn create_cluster() {
    let place = Place::new(CONFIG);
    let why = "level=fatal msg=failed to fetch Cluster Infrastructure Variables: failed to generate asset \"Cluster Infrastructure \
               Variables\": cannot create the cluster because \"none\" is a UPI platform";
    refused(&place.run("create cluster --dir s"), 1, why);
    assert_eq!(place.files(), ["install-config.yaml"], "upstream has eaten it by now");
}

#[test]
fn gather_without_an_address() {
    let place = Place::new(CONFIG);
    place.run("create manifests --dir s");
    let why = "level=fatal msg=error getting infrastructure provider: platform \"none\" does not support automated infrastructure \
               provisioning";
    refused(&place.run("gather bootstrap --dir s"), 1, why);
    // Nobody listens there; what is left out is said, and no archive is kept.
    let answer = place.run("gather bootstrap --dir s --bootstrap 127.0.0.99");
    let said = answer.lines.join("\n");
    assert!(answer.code == 1 && said.contains("127.0.0.99: left out: "), "{said}");
    assert!(said.contains("level=fatal msg=no machine answered by ssh"), "{said}");
    assert!(place.files().iter().all(|name| !name.contains("log-bundle")), "{:?}", place.files());
}

#[test]
fn wait_for_without_a_kubeconfig() {
    let place = Place::empty();
    fs::create_dir(place.path("s")).unwrap();
    let why = "level=fatal msg=loading kubeconfig: stat s/auth/kubeconfig: no such file or directory";
    for what in ["bootstrap-complete", "install-complete"] {
        refused(&place.run(&format!("wait-for {what} --dir s")), 1, why);
    }
    assert_eq!(place.files(), [".openshift_install.log"]);
}

#[test]
fn destroy() {
    let place = Place::empty();
    fs::create_dir(place.path("s")).unwrap();
    let preparing = "level=fatal msg=failed while preparing to destroy cluster:";
    let missing = format!("{preparing} open s/metadata.json: no such file or directory");
    refused(&place.run("destroy cluster --dir s"), 1, &missing);
    let metadata = r#"{"clusterName":"ocp4","clusterID":"x","infraID":"ocp4-x","featureSet":"","customFeatureSet":null}"#;
    fs::write(place.path("s/metadata.json"), metadata).unwrap();
    let why = "no platform configured in metadata";
    refused(&place.run("destroy cluster --dir s"), 1, &format!("{preparing} {why}"));
    refused(&place.run("destroy bootstrap --dir s"), 1, &format!("level=fatal msg={why}"));
    assert_eq!(place.files(), [".openshift_install.log", "metadata.json"], "nothing is taken away");
}

/// A program that calls it, and a field of tomorrow.
#[test]
fn an_invoker_and_an_unknown_field() {
    let config = format!("{CONFIG}wibble: 1\n");
    let unknown = "failed to parse first occurrence of unknown field: failed to unmarshal install-config.yaml: error unmarshaling \
                   JSON: while decoding JSON: json: unknown field \"wibble\"";
    let place = Place::new(&config);
    let answer = place.run("create manifests --dir s");
    let why = "failed to fetch Master Machines: failed to load asset \"Install Config\": failed to create install config";
    refused(&answer, 3, &format!("level=error msg={why}: {unknown}"));
    assert!(answer.lines.iter().all(|line| line.starts_with("level=error msg=")), "{:?}", answer.lines);

    let answer = place.run_with("create manifests --dir s", &[("OPENSHIFT_INSTALL_INVOKER", "hive")]);
    assert_eq!(answer.code, 0, "{:?}", answer.lines);
    assert!(answer.lines.contains(&format!("level=warning msg={unknown}")), "{:?}", answer.lines);
    let passed_over =
        "Attempting to unmarshal while ignoring unknown keys because strict unmarshaling failed";
    assert!(answer.lines.contains(&format!("level=info msg={passed_over}")), "{:?}", answer.lines);
    let noted = fs::read_to_string(place.path("s/openshift/openshift-install-manifests.yaml")).unwrap();
    assert!(noted.contains("invoker: hive"), "{noted}");
}

/// While it looks for large primes.
#[test]
fn interrupted() {
    let place = Place::new(CONFIG);
    let mut command = place.command("create manifests --dir s --key-algorithm rsa-8192");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let id = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
    let catches = || {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).unwrap();
        u64::from_str_radix(mask, 16).unwrap() & (1 << 14) != 0
    };
    while !catches() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM).unwrap();
    let answer = Answer::of(child.wait_with_output().unwrap());
    refused(&answer, 8, "level=warning msg=Received interrupt signal");
    assert_eq!(place.files(), ["install-config.yaml"]);
}

#[test]
fn what_prints_data() {
    let place = Place::empty();
    for (line, part) in [
        ("graph", "digraph"),
        ("completion bash", "_seedling"),
        ("explain installconfig.platform.none", "RESOURCE:"),
        ("--help", "Exit codes:"),
        ("create --help", "single-node-ignition-config"),
    ] {
        let answer = place.run(line);
        assert!(answer.code == 0 && answer.stdout.contains(part), "{line}: {}", answer.stdout);
    }
}
