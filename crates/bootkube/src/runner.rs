//! Works the plan: skips what is done, records what it does, and can be killed anywhere.

use crate::error::cannot;
use crate::resume::{Resume, resume};
use crate::{Context, Outcome, PLAN, PlannedStage, Result};
use seedling_steps::journal::Line;
use seedling_steps::{Journal, Recorder, sweep};
use seedling_types::paths;
use std::path::Path;
use std::time::Instant;

const SERVICE: &str = "bootkube";

pub async fn run_stages(root: &Path) -> Result<()> {
    run_plan(root, PLAN).await
}

pub async fn run_plan(root: &Path, plan: &[PlannedStage]) -> Result<()> {
    println!("Starting bootkube.sh...");
    let before = Journal::of(root, SERVICE).read()?;
    let recorder = Recorder::start(root, SERVICE)?;
    let worked = work(root, plan, &recorder, &before).await;
    recorder.service_end(worked.as_ref().err().map(ToString::to_string))?;
    if worked.is_ok() {
        println!("bootkube.service complete");
    }
    worked
}

async fn work(root: &Path, plan: &[PlannedStage], recorder: &Recorder, before: &[Line]) -> Result<()> {
    let context = Context::load(root)?;
    context.pins().pin()?;
    for dir in [paths::OPT_OPENSHIFT, paths::ETC_KUBERNETES] {
        let dir = context.path(dir);
        sweep(&dir).map_err(cannot("sweep", &dir))?;
    }
    for step in plan {
        let name = step.stage.name;
        let done = step.stage.done.map(|done| context.dir(&format!("{done}.done")));
        let mark_done = || done.as_ref().map_or(Ok(()), |done| context.write(done, "", 0o644));
        match resume(before, SERVICE, &step.stage, done.as_ref().is_some_and(|done| done.exists())) {
            Resume::Run => {}
            Resume::Again => tracing::info!("stage {name}: its done file was removed, so it runs again"),
            Resume::Skip => {
                tracing::info!("stage {name}: already done");
                continue;
            }
            Resume::ByHand => {
                recorder.stage_skipped(name, "it was not done, but has a done file")?;
                continue;
            }
            Resume::Finish => {
                mark_done()?;
                continue;
            }
        }
        recorder.stage_start(name)?;
        tracing::info!("stage {name}: {}", step.stage.why);
        let started = Instant::now();
        let outcome = step.work(&context).await;
        let took = started.elapsed().as_secs_f32();
        match outcome {
            Ok(Outcome::Done | Outcome::Advisory) => {
                tracing::info!("stage {name}: done in {took:.2}s");
                recorder.stage_end(name, None)?;
            }
            Ok(Outcome::NotInPayload(component)) => {
                let note = format!("{component} is not in the payload");
                tracing::info!("stage {name}: {note}");
                recorder.stage_skipped(name, &note)?;
            }
            Ok(Outcome::Failed(seen)) => {
                tracing::warn!("stage {name}: {seen}");
                recorder.stage_end(name, Some(seen))?;
            }
            Err(error) => {
                let error = error.in_stage(name);
                tracing::error!("failed after {took:.2}s: {error}");
                recorder.stage_end(name, Some(error.to_string()))?;
                return Err(error);
            }
        }
        mark_done()?;
    }
    context.write(&context.dir(".bootkube.done"), "", 0o644)
}
