//! Works the plan: skips what is done, records what it does, and can be killed anywhere.

use crate::{Context, Outcome, PLAN};
use anyhow::{Context as _, Result};
use seedling_steps::{Recorder, write_atomic};
use seedling_types::paths;
use std::path::Path;
use std::time::Instant;

pub async fn run(root: &Path) -> Result<()> {
    println!("Starting bootkube.sh...");
    let records = root.join(paths::SERVICE_RECORDS.trim_start_matches('/'));
    let mut recorder = Recorder::start(&records, "bootkube").context("cannot write the service record")?;
    let worked = work(root, &mut recorder).await;
    recorder.service_end(worked.as_ref().err().map(|e| format!("{e:#}")))?;
    if worked.is_ok() {
        println!("bootkube.service complete");
    }
    worked
}

async fn work(root: &Path, recorder: &mut Recorder) -> Result<()> {
    let context = Context::load(root)?;
    for step in PLAN {
        let name = step.stage.name;
        let done = step.stage.done.map(|done| context.dir(&format!("{done}.done")));
        if done.as_ref().is_some_and(|done| done.exists()) {
            tracing::info!("stage {name}: already done");
            continue;
        }
        recorder.stage_start(name)?;
        tracing::info!("stage {name}: {}", step.stage.why);
        let started = Instant::now();
        let outcome = (step.run)(&context).await;
        let took = started.elapsed().as_secs_f32();
        match outcome {
            Ok(Outcome::Done) => {
                tracing::info!("stage {name}: done in {took:.2}s");
                recorder.stage_end(name, None)?;
            }
            Ok(Outcome::NotInPayload(component)) => {
                let note = format!("{component} is not in the payload");
                tracing::info!("stage {name}: {note}");
                recorder.stage_skipped(name, &note)?;
            }
            Ok(Outcome::Failed) => recorder.stage_end(name, Some(step.stage.check.into()))?,
            Err(error) => {
                tracing::error!("stage {name} failed after {took:.2}s: {error:#}");
                recorder.stage_end(name, Some(format!("{error:#}")))?;
                return Err(error.context(format!("stage {name}")));
            }
        }
        if let Some(done) = done {
            write_atomic(&done, "", 0o644)?;
        }
    }
    write_atomic(&context.dir(".bootkube.done"), "", 0o644)?;
    Ok(())
}
