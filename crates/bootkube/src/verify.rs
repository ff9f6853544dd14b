//! A stage's check at any time, with what it is about as evidence.

use crate::step::evidence;
use crate::{Context, PlannedStage, Result};
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

/// A check that is a wait in itself is asked what it sees now.
const ANSWERS_WITHIN: Duration = Duration::from_secs(12);

pub struct Verdict {
    pub stage: &'static str,
    pub check: &'static str,
    /// What was seen instead, if it does not hold.
    pub holds: Result<(), String>,
    /// The files that are there of what the stage writes.
    pub evidence: Vec<String>,
}

/// On the node itself: some checks ask its etcd, its API or its DNS.
pub async fn verify(root: &Path, step: &PlannedStage) -> Result<Verdict> {
    let context = Context::load(root)?;
    let seen = timeout(ANSWERS_WITHIN, (step.check)(&context)).await;
    let holds = match seen {
        Ok(seen) => seen.map_err(|error| error.to_string()),
        Err(_) => {
            Err(format!("it is waited for, and did not come about within {} s", ANSWERS_WITHIN.as_secs()))
        }
    };
    Ok(Verdict {
        stage: step.stage.name,
        check: step.stage.check,
        holds,
        evidence: evidence(root, &step.stage),
    })
}

impl Verdict {
    /// For a terminal.
    pub fn text(&self) -> String {
        let verdict = match &self.holds {
            Ok(()) => format!("  ✓ {}", self.check),
            Err(seen) => format!("  ✗ {}\n    seen: {seen}", self.check),
        };
        let evidence: String = self.evidence.iter().map(|line| format!("    {line}\n")).collect();
        format!("{verdict}\n{evidence}")
    }
}
