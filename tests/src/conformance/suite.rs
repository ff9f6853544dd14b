//! Which tests, how they are run, and what each came to. Choosing and judging are pure.

use super::Programs;
use anyhow::{Context, Result, ensure};
use seedling_e2e::run;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How many shares the list is cut into.
pub(crate) const SHARES: u64 = 10;

/// Names of all conformance tests, as the suite itself lists them.
pub(crate) fn list(programs: &Programs) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Entry {
        codename: String,
    }
    let yaml = run(Command::new(&programs.suite).arg("--list-conformance-tests"))?;
    let entries: Vec<Entry> = serde_saphyr::from_str(&yaml).context("the suite's list")?;
    ensure!(!entries.is_empty(), "the suite lists no conformance tests");
    Ok(entries.into_iter().map(|e| e.codename).collect())
}

/// The share a test belongs to: by its name, so that it stays there when others come or go.
pub(crate) fn share_of(name: &str) -> u64 {
    let digest = Sha256::digest(name);
    digest.iter().take(8).fold(0, |n: u64, b| n << 8 | u64::from(*b)) % SHARES
}

/// Tests that disturb others, or are disturbed by them.
pub(crate) fn is_serial(name: &str) -> bool {
    name.contains("[Serial]") || name.contains("[Disruptive]")
}

/// Exactly these. Before a name ginkgo has the suite's description.
fn focus(names: &[&String]) -> String {
    let quoted = names.iter().map(|name| {
        let quote = |c: char| if c.is_ascii_punctuation() { format!("\\{c}") } else { c.into() };
        name.chars().map(quote).collect::<String>()
    });
    format!("({})$", quoted.collect::<Vec<_>>().join("|"))
}

pub(crate) struct Run<'a> {
    pub programs: &'a Programs,
    pub kubeconfig: &'a Path,
    pub kubectl: &'a Path,
    pub nodes: usize,
    /// For logs and the suite's own reports.
    pub out: &'a Path,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Passed,
    Failed,
    Panicked,
    Skipped,
    /// Never run, or not to its end.
    #[serde(other)]
    CutOff,
}

pub(crate) type Seen = BTreeMap<String, (State, String)>;

impl Run<'_> {
    /// Runs them side by side in so many processes, and says what each came to. What is not through in time is cut off.
    pub(crate) fn run(
        &self,
        what: &str,
        names: &[&String],
        processes: usize,
        within: Duration,
    ) -> Result<Seen> {
        if names.is_empty() {
            return Ok(Seen::new());
        }
        let report = self.out.join(format!("{what}.json"));
        let log = self.out.join(format!("{what}.log"));
        eprintln!(
            "{what}: {} tests in {processes} processes, at most {} min; the log is {}",
            names.len(),
            within.as_secs() / 60,
            log.display()
        );
        if report.exists() {
            fs::remove_file(&report)?; // an earlier run's
        }
        let started = Instant::now();
        let output = File::create(&log)?;
        // It ends with us: whoever interrupts this wants its tests to stop as well.
        let mut ginkgo = Command::new("setpriv");
        ginkgo.args(["--pdeathsig", "TERM"]).arg(self.programs.tools.join("ginkgo"));
        ginkgo.args(["--no-color", "--keep-going", &format!("--procs={processes}")]);
        ginkgo.arg(format!("--timeout={}s", within.as_secs())).arg(format!("--focus={}", focus(names)));
        ginkgo.arg(format!("--output-dir={}", self.out.display())).arg(format!("--json-report={what}.json"));
        ginkgo.arg(&self.programs.suite).arg("--");
        ginkgo.arg(format!("--kubeconfig={}", self.kubeconfig.display()));
        ginkgo.arg(format!("--kubectl-path={}", self.kubectl.display()));
        ginkgo.args(["--provider=local", "--non-blocking-taints=node-role.kubernetes.io/master"]);
        ginkgo
            .arg(format!("--num-nodes={}", self.nodes))
            .arg(format!("--e2e-output-dir={}", self.out.display()));
        ginkgo.current_dir(self.out).stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let status = ginkgo.status().context("ginkgo")?;
        eprintln!("{what}: {status} after {} s", started.elapsed().as_secs());
        // Without a report nothing is known of any test.
        if report.exists() { read(&report) } else { Ok(Seen::new()) }
    }
}

fn read(report: &Path) -> Result<Seen> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Suite {
        spec_reports: Option<Vec<Spec>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Spec {
        container_hierarchy_texts: Option<Vec<String>>,
        leaf_node_text: String,
        leaf_node_type: String,
        state: State,
        #[serde(default)]
        failure: Failure,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "PascalCase", default)]
    struct Failure {
        message: String,
    }
    let suites: Vec<Suite> = serde_json::from_slice(&fs::read(report)?)?;
    let specs = suites
        .into_iter()
        .flat_map(|s| s.spec_reports.unwrap_or_default())
        .filter(|s| s.leaf_node_type == "It");
    let seen = specs.map(|s| {
        let words = s.container_hierarchy_texts.unwrap_or_default().into_iter().chain([s.leaf_node_text]);
        (words.collect::<Vec<_>>().join(" "), (s.state, s.failure.message))
    });
    Ok(seen.collect())
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Verdict {
    pub passed: usize,
    /// Name → what was wrong.
    pub failed: BTreeMap<String, String>,
    /// The suite itself says that the test does not apply.
    pub skipped: Vec<String>,
    /// Asked for and not seen to its end.
    pub missed: Vec<String>,
}

impl Verdict {
    pub(crate) fn green(&self) -> bool {
        self.failed.is_empty() && self.missed.is_empty() && self.passed > 0
    }
}

pub(crate) fn judge(asked: &[String], seen: &Seen) -> Verdict {
    let mut verdict = Verdict::default();
    for name in asked {
        match seen.get(name) {
            Some((State::Passed, _)) => verdict.passed += 1,
            Some((State::Failed | State::Panicked, message)) => {
                let short: String = message.chars().take(400).collect();
                verdict.failed.insert(name.clone(), short);
            }
            // One that was left out by the focus has no message; one that skips itself says why.
            Some((State::Skipped, why)) if !why.is_empty() => verdict.skipped.push(name.clone()),
            _ => verdict.missed.push(name.clone()),
        }
    }
    verdict
}

pub(crate) fn kubectl(release: &Path) -> PathBuf {
    release.join("bin/kubectl")
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const HOST_PORT: &str =
        "[sig-scheduling] SchedulerPredicates [Serial] validates hostPort (0.0.0.0) [Conformance]";

    #[test]
    fn shares_are_all_of_the_list() {
        let names: Vec<_> = (0..446).map(|n| format!("[sig-x] test number {n} [Conformance]")).collect();
        let sizes = (0..SHARES).map(|share| names.iter().filter(|n| share_of(n) == share).count());
        let sizes: Vec<_> = sizes.collect();
        assert_eq!(sizes.iter().sum::<usize>(), 446);
        assert!(sizes.iter().all(|size| (25..70).contains(size)), "{sizes:?}");
        assert_eq!(share_of(HOST_PORT), share_of(HOST_PORT));
    }

    #[test]
    fn a_focus_means_these_words_only() {
        let (one, two) = (HOST_PORT.to_string(), "[sig-x] a.b [Conformance]".to_string());
        assert_eq!(focus(&[&two]), r"(\[sig\-x\] a\.b \[Conformance\])$");
        assert!(focus(&[&one, &two]).contains(r"\(0\.0\.0\.0\) \[Conformance\]|\[sig\-x\]"));
        assert!(is_serial(&one) && !is_serial(&two));
    }

    #[test]
    fn what_was_not_seen_to_its_end_is_missed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.json");
        let spec = |name: &str, state: &str, message: &str| {
            serde_json::json!({"ContainerHierarchyTexts": ["[sig-x]"], "LeafNodeText": name, "LeafNodeType": "It",
                "State": state, "Failure": {"Message": message}})
        };
        let suite = serde_json::json!([{"SpecReports": [
            {"ContainerHierarchyTexts": null, "LeafNodeText": "", "LeafNodeType": "SynchronizedBeforeSuite", "State": "passed"},
            spec("good", "passed", ""), spec("bad", "failed", "no route"), spec("worse", "panicked", "nil"),
            spec("slow", "timedout", ""), spec("cut", "interrupted", ""), spec("late", "skipped", ""),
            spec("foreign", "skipped", "only on Windows"),
        ]}]);
        fs::write(&path, suite.to_string()).unwrap();
        let seen = read(&path).unwrap();
        let names = ["good", "bad", "worse", "slow", "cut", "late", "foreign", "unheard of"];
        let verdict = judge(&names.map(|n| format!("[sig-x] {n}")), &seen);
        assert_eq!((verdict.passed, verdict.failed.len()), (1, 2));
        assert_eq!(verdict.failed["[sig-x] bad"], "no route");
        assert_eq!(verdict.skipped, ["[sig-x] foreign"]);
        let missed = ["slow", "cut", "late", "unheard of"].map(|n| format!("[sig-x] {n}"));
        assert_eq!(verdict.missed, missed);
        assert!(!verdict.green());
        assert!(!Verdict::default().green(), "nothing was asked");
        assert!(Verdict { passed: 1, ..Verdict::default() }.green());
    }
}
