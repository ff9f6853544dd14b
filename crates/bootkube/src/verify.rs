//! A stage's check at any time, with what it is about as evidence.

use crate::step::evidence;
use crate::{Context, PLAN, PlannedStage, Result};
use seedling_steps::journal::fold;
use seedling_types::description::on_node;
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
        Ok(seen) => seen.map_err(|error| format!("{error}{}", undone_since(&context, step))),
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

/// A later stage that has removed what this one wrote, as it should.
fn undone_since(c: &Context, step: &PlannedStage) -> String {
    let Ok(lines) = c.journal.read() else { return String::new() };
    let state = fold(&lines);
    let removes = |later: &&PlannedStage| {
        let removed = later.stage.writes.iter().filter(|declared| declared.ends_with("(removed)"));
        removed.clone().any(|declared| step.stage.writes.iter().any(|own| on_node(own) == on_node(declared)))
    };
    let later = PLAN.iter().skip_while(|other| other.stage.name != step.stage.name).skip(1).filter(removes);
    let done = later.filter(|later| state.is_done(c.journal.who(), later.stage.name));
    done.map(|later| format!(" ({} has removed it since)", later.stage.name)).collect()
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
