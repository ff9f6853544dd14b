//! What a bring-up was at, at a moment: bootkube's record, and the milestones of `lab up`.

use crate::Lab;
use seedling_machines::{Machine, Power};
use seedling_steps::journal::{Line, lines};
use seedling_steps::{Entry, Phase, record};
use seedling_types::paths;
use serde::{Deserialize, Serialize};
use std::time::Duration;

const FETCH_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// `bring-up.json`: what happened when. Rewritten at each milestone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BringUp {
    /// When the machines were switched on, in milliseconds since 1970.
    #[serde(default)]
    pub started_unix_millis: i64,
    /// In seconds since then.
    pub milestones: Vec<(String, f64)>,
    /// bootkube's, and how long each took.
    pub stages: Vec<(String, f64)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stages {
    /// In the order of time, milliseconds since 1970.
    pub bootkube: Vec<(i64, String)>,
    pub milestones: Vec<(i64, String)>,
}

impl Stages {
    pub fn of(record: &[Entry], bring_up: &BringUp) -> Self {
        let bootkube = record.iter().filter_map(|entry| {
            let text = match (entry.phase, &entry.stage) {
                (Phase::StageStart, Some(stage)) => stage.clone(),
                (Phase::StageEnd, Some(stage)) => format!("after {stage}"),
                (Phase::ServiceEnd, _) => "bootkube has ended".into(),
                _ => return None,
            };
            Some((entry.unix_millis?, text))
        });
        let start = bring_up.started_unix_millis;
        let milestones =
            bring_up.milestones.iter().map(|(name, s)| (start + (s * 1000.0) as i64, name.clone()));
        Self { bootkube: bootkube.collect(), milestones: milestones.collect() }
    }

    /// Bootkube's stage and the last milestone.
    pub fn at(&self, millis: i64) -> String {
        let last = |list: &[(i64, String)]| {
            list.iter().take_while(|(at, _)| *at <= millis).last().map(|(_, name)| name.clone())
        };
        match (last(&self.bootkube), last(&self.milestones)) {
            (Some(stage), Some(milestone)) => format!("{stage}; {milestone}"),
            (stage, milestone) => stage.or(milestone).unwrap_or_else(|| "unknown".into()),
        }
    }
}

impl Lab {
    pub fn bring_up_file(&self) -> std::path::PathBuf {
        self.dir.join("bring-up.json")
    }

    /// Empty before the first milestone.
    pub fn bring_up(&self) -> BringUp {
        let json = std::fs::read(self.bring_up_file()).unwrap_or_default();
        serde_json::from_slice(&json).unwrap_or_default()
    }

    /// A machine's journal, from its disk; empty before its first boot.
    pub fn journal(&self, node: &str) -> Vec<Line> {
        let path = self.machine(node).map(|machine| machine.on_disk(paths::JOURNAL));
        path.ok().and_then(|path| std::fs::read(path).ok()).map_or_else(Vec::new, |bytes| lines(&bytes))
    }

    /// A QEMU machine's disk cannot be read: of those that are on, the journal is copied to where a container's lies. One that does not
    /// answer keeps the copy it has.
    pub async fn fetch_journals(&self, within: Duration) {
        let fetch = async |machine: Machine| {
            let copy = machine.on_disk(paths::JOURNAL);
            let fresh = std::fs::metadata(&copy).and_then(|m| m.modified()).ok();
            let fresh = fresh.and_then(|at| at.elapsed().ok()).is_some_and(|age| age < FETCH_AGAIN_AFTER);
            let on = async || machine.inspect().await.is_ok_and(|seen| seen.power == Power::On);
            if fresh || !self.has_its_config(&machine) || !on().await {
                return;
            }
            let asked = tokio::time::timeout(within, machine.exec_output(&["cat", paths::JOURNAL]));
            if let (Ok(Ok(text)), Some(above)) = (asked.await, copy.parent()) {
                let written = std::fs::create_dir_all(above)
                    .and_then(|()| seedling_steps::write_atomic(&copy, text + "\n", 0o644));
                if let Err(error) = written {
                    tracing::warn!(path = %copy.display(), %error, "cannot keep a machine's journal");
                }
            }
        };
        let machines = self.machines().into_iter().filter(|machine| matches!(machine, Machine::Qemu(_)));
        futures::future::join_all(machines.map(fetch)).await;
    }

    /// bootkube's record, from the bootstrap machine's journal; empty before it starts.
    pub fn bootkube_record(&self) -> Vec<Entry> {
        let bootstrap = self.record.spec.inventory.bootstrap();
        bootstrap.map_or_else(Vec::new, |b| record(&self.journal(&b.name), "bootkube"))
    }

    pub fn stages(&self) -> Stages {
        Stages::of(&self.bootkube_record(), &self.bring_up())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_a_stage_and_a_milestone() {
        let entry = |phase: &str, stage: &str, millis: i64| -> Entry {
            let json =
                serde_json::json!({ "timestamp": "", "phase": phase, "stage": stage, "unixMillis": millis });
            serde_json::from_value(json).unwrap_or_else(|e| panic!("{e}"))
        };
        let record =
            [entry("stage start", "a", 100), entry("stage end", "a", 200), entry("stage start", "b", 250)];
        let bring_up = BringUp {
            started_unix_millis: 50,
            milestones: vec![("on".into(), 0.0), ("API".into(), 0.18)],
            stages: vec![],
        };
        let stages = Stages::of(&record, &bring_up);
        for (at, want) in [(10, "unknown"), (60, "on"), (150, "a; on"), (229, "after a; on"), (300, "b; API")]
        {
            assert_eq!(stages.at(at), want, "at {at}");
        }
    }
}
