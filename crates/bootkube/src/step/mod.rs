//! Step mode: a person lets each stage run.
//!
//! As long as `/opt/openshift/step/allowed` is there, bootkube runs only the stages whose names are in it, and waits before any other
//! without a deadline. Who shows the stages writes names into it: from the node itself or through the machine's file system. Either may be
//! killed at any moment; the file is whole, and a stage that was allowed runs again without being asked for.

mod drive;
mod look;
mod tell;

pub use drive::{Ended, Node, drive};
pub use look::{At, at};
pub use tell::evidence;

use crate::error::cannot;
use crate::{Context, PLAN, Result, conditions};
use seedling_steps::{Condition, Probe, Stage, if_there, wait_for, write_atomic};
use seedling_types::paths;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Of the part of a stage in which bootkube waits for a person.
pub const PAUSED: &str = "paused-for-you";
const POLL: Duration = Duration::from_millis(200);

/// In the file system of the node, wherever that is seen.
pub fn file(root: &Path) -> PathBuf {
    root.join(paths::STEP.trim_start_matches('/')).join("allowed")
}

/// The stages that may run; none: all of them, there is no step mode.
pub fn allowed(root: &Path) -> Result<Option<Vec<String>>> {
    let path = file(root);
    let text = if_there(std::fs::read_to_string(&path)).map_err(cannot("read", &path))?;
    Ok(text.map(|text| text.lines().map(str::to_string).collect()))
}

/// What the file holds when these may run.
pub fn text_of(stages: &[String]) -> String {
    stages.iter().map(|stage| format!("{stage}\n")).collect()
}

/// The names of all stages up to this one.
pub fn through(stage: &str) -> Vec<String> {
    let last = PLAN.iter().position(|step| step.stage.name == stage).unwrap_or(PLAN.len() - 1);
    PLAN[..=last].iter().map(|step| step.stage.name.to_string()).collect()
}

/// From now on only these run.
pub fn begin(root: &Path, stages: &[String]) -> Result<()> {
    let path = file(root);
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).map_err(cannot("make", dir))?;
    }
    write_atomic(&path, text_of(stages), 0o644).map_err(cannot("write", &path))
}

/// All may run, without pauses.
pub fn end(root: &Path) -> Result<()> {
    let path = file(root);
    if_there(std::fs::remove_file(&path)).map(drop).map_err(cannot("remove", path))
}

fn allow(root: &Path, stage: &str) -> Result<()> {
    change(root, |stages| {
        stages.retain(|known| known != stage);
        stages.push(stage.into());
    })
}

fn forbid(root: &Path, stage: &str) -> Result<()> {
    change(root, |stages| stages.retain(|known| known != stage))
}

/// Somebody may have ended step mode meanwhile: then it stays ended.
fn change(root: &Path, with: impl FnOnce(&mut Vec<String>)) -> Result<()> {
    let Some(mut stages) = allowed(root)? else { return Ok(()) };
    with(&mut stages);
    begin(root, &stages)
}

/// Returns at once, unless there is step mode and the stage may not run yet.
pub(crate) async fn leave_to_run(c: &Context, stage: &Stage) -> Result<()> {
    let may =
        || allowed(c.root()).map(|allowed| allowed.is_none_or(|a| a.iter().any(|name| name == stage.name)));
    if may()? {
        return Ok(());
    }
    let hint = format!("seedling lab up --step, or on the node: rm {}", file(Path::new("/")).display());
    // A person thinks as long as it takes.
    let condition = Condition::within(&conditions::LEAVE_TO_RUN, Duration::MAX, hint).on(&c.node);
    tracing::info!("stage {}: paused for you", stage.name);
    let waited = wait_for(&condition, POLL, async || match may() {
        Ok(true) => Probe::Met(()),
        Ok(false) => Probe::Unmet(format!("paused for you before stage {}", stage.name)),
        Err(e) => Probe::Unmet(e.to_string()),
    });
    c.journal.step(&format!("{}/{PAUSED}", stage.name), waited).await?;
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
#[path = "tests.rs"]
mod tests;
