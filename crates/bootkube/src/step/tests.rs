//! The protocol, and a person at the keyboard.

use super::drive::drive;
use super::*;
use crate::resume::tests::lines;
use crate::step::look::ended;
use seedling_steps::Journal;
use seedling_steps::journal::{Event, Line};
use std::io;
use tempfile::TempDir;
use tokio::io::AsyncBufReadExt;

#[test]
fn where_bootkube_is() {
    for (journal, want) in [
        ("", At::Before),
        (".begin", At::Between),
        (".begin openshift-manifests/paused-for-you.begin", At::Paused("openshift-manifests")),
        (
            ".begin openshift-manifests/paused-for-you.begin openshift-manifests/paused-for-you openshift-manifests.begin",
            At::Works("openshift-manifests", None),
        ),
        (".begin cb-bootstrap.begin cb-bootstrap/api.begin", At::Works("cb-bootstrap", Some("api".into()))),
        (
            ".begin api-bootstrap.begin api-bootstrap.failed .failed",
            At::Failed("api-bootstrap", String::new()),
        ),
        // Started again, it is not failed any more.
        (".begin api-bootstrap.begin api-bootstrap.failed .failed .begin", At::Between),
        // An advisory stage that failed stops nothing.
        (
            ".begin resolve-api-url.begin resolve-api-url.failed cco-bootstrap.begin",
            At::Works("cco-bootstrap", None),
        ),
        // A bootkube that was killed waits for nobody.
        (".begin api-bootstrap/paused-for-you.begin .begin", At::Between),
        (".begin check-api-int-url.begin check-api-int-url .end", At::Complete),
    ] {
        assert_eq!(at(&lines(journal)), want, "{journal}");
    }
}

#[test]
fn how_a_stage_ended() {
    let all = lines(
        ".begin api-bootstrap.begin api-bootstrap.failed .failed .begin api-bootstrap.begin api-bootstrap",
    );
    assert_eq!(ended(&all, "api-bootstrap").map(|e| e.0), Some(Event::End));
    assert_eq!(ended(&all[..4], "api-bootstrap").map(|e| e.0), Some(Event::Failed));
    assert!(ended(&all[4..6], "api-bootstrap").is_none());
}

#[test]
fn the_file_says_who_may_run() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(allowed(root.path()).unwrap(), None);
    begin(root.path(), &through("api-bootstrap")).unwrap();
    assert_eq!(allowed(root.path()).unwrap().unwrap(), ["openshift-manifests", "api-bootstrap"]);
    allow(root.path(), "config-bootstrap").unwrap();
    allow(root.path(), "config-bootstrap").unwrap();
    forbid(root.path(), "api-bootstrap").unwrap();
    assert_eq!(allowed(root.path()).unwrap().unwrap(), ["openshift-manifests", "config-bootstrap"]);
    end(root.path()).unwrap();
    end(root.path()).unwrap();
    // Who ended it is not overruled by who still asks.
    allow(root.path(), "api-bootstrap").unwrap();
    assert_eq!(allowed(root.path()).unwrap(), None);
}

/// bootkube as its journal shows it: it pauses before a stage, and ends it when it may.
struct Scripted {
    root: TempDir,
    restarts: bool,
}

impl Node for Scripted {
    async fn root(&self) -> Result<PathBuf> {
        let root = self.root.path();
        let journal = Journal::of(root, "bootkube");
        if let At::Paused(stage) = at(&journal.read()?)
            && allowed(root)?.is_none_or(|a| a.iter().any(|name| name == stage))
        {
            journal.end(&format!("{stage}/{PAUSED}"))?;
            journal.begin(stage)?;
            journal.end(stage)?;
            let next = PLAN.iter().skip_while(|p| p.stage.name != stage).nth(1);
            next.map(|next| journal.begin(&format!("{}/{PAUSED}", next.stage.name))).transpose()?;
        }
        Ok(root.into())
    }
    async fn verify(&self, stage: &str) -> String {
        format!("checked {stage}\n")
    }
    async fn shell(&self) -> io::Result<()> {
        Ok(())
    }
    fn restarts(&self) -> bool {
        self.restarts
    }
}

async fn driven(node: &Scripted, keys: &str) -> (Ended, String) {
    let mut said = String::new();
    let mut input = keys.as_bytes().lines();
    let ended = drive(node, &mut input, &mut |text| said.push_str(text)).await.unwrap();
    (ended, said)
}

fn paused() -> Scripted {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("opt/openshift/manifests")).unwrap();
    std::fs::create_dir_all(root.path().join("opt/openshift/openshift")).unwrap();
    std::fs::write(root.path().join("opt/openshift/openshift/s.yaml"), "kind: Secret\nmetadata: {name: s}\n")
        .unwrap();
    std::fs::write(
        root.path().join("opt/openshift/openshift/c.yaml"),
        "kind: ConfigMap\nmetadata: {name: c}\n",
    )
    .unwrap();
    begin(root.path(), &[]).unwrap();
    let journal = Journal::of(root.path(), "bootkube");
    std::fs::create_dir_all(root.path().join("var/log/openshift")).unwrap();
    journal.append(&Line::now("bootkube", None, Event::Begin)).unwrap();
    journal.begin(&format!("openshift-manifests/{PAUSED}")).unwrap();
    Scripted { root, restarts: true }
}

#[tokio::test]
async fn a_person_looks_runs_and_quits() {
    let node = paused();
    let (ended, said) = driven(&node, "l\nl openshift/s.yaml\nl openshift/c.yaml\nx\n\nq\n").await;
    assert_eq!(ended, Ended::Quit);
    for part in [
        "1 of 22: openshift-manifests",
        "upstream  cp openshift/* manifests/",
        "/opt/openshift/openshift/c.yaml  36 bytes  ConfigMap c",
        "it holds a secret, which is not shown",
        "kind: ConfigMap\nmetadata",
        "`l FILE` shows a file; bootkube waits",
        "openshift-manifests: done\nchecked openshift-manifests\n",
        "2 of 22: api-bootstrap",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert!(!said.contains("kind: Secret"), "{said}");
    assert_eq!(allowed(node.root.path()).unwrap().unwrap(), ["openshift-manifests"]);
}

#[tokio::test]
async fn without_input_it_stays_paused_and_c_ends_step_mode() {
    let node = paused();
    assert_eq!(driven(&node, "").await.0, Ended::Quit);
    assert_eq!(allowed(node.root.path()).unwrap(), Some(vec![]));
    assert_eq!(driven(&node, "c\n").await.0, Ended::Continued);
    assert_eq!(allowed(node.root.path()).unwrap(), None);
}

#[tokio::test]
async fn every_stage_by_enter_is_a_whole_run() {
    let node = paused();
    let (ended, said) = driven(&node, &"\n".repeat(PLAN.len())).await;
    assert_eq!(ended, Ended::Complete, "{said}");
    assert!(said.contains("checked check-api-int-url"), "{said}");
}

#[tokio::test]
async fn what_failed_is_told_and_asked_again() {
    let node = Scripted { restarts: false, ..paused() };
    let journal = Journal::of(node.root.path(), "bootkube");
    for line in lines("openshift-manifests.begin openshift-manifests.failed .failed") {
        journal.append(&line).unwrap();
    }
    journal.end(&format!("openshift-manifests/{PAUSED}")).unwrap();
    let (ended, said) = driven(&node, "").await;
    assert!(ended == Ended::Failed && said.contains("openshift-manifests: failed: "), "{said}");
}
