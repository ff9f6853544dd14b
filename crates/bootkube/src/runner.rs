//! Works the plan: skips what is done, records what it does, and can be killed anywhere.

use crate::error::cannot;
use crate::resume::{Resume, resume};
use crate::{Context, Error, Outcome, PLAN, PlannedStage, Result, conditions, step};
use seedling_steps::journal::Line;
use seedling_steps::{Condition, Journal, Probe, Recorder, sweep, wait_for};
use seedling_types::paths;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

const SERVICE: &str = "bootkube";

/// How much of the plan a person wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent<'a> {
    Whole,
    /// Up to this stage, and no further.
    Until(&'a str),
    /// This stage alone, whether it was done or not.
    Only(&'a str),
}

/// The service: it waits for a bootkube that a person started.
pub async fn run_stages(root: &Path) -> Result<()> {
    let condition = Condition::within(&conditions::ONLY_ONE, Duration::MAX, "pgrep -a seedling");
    let lock = wait_for(&condition, Duration::from_millis(500), async || match lock(root) {
        Ok(Some(lock)) => Probe::Met(Ok(lock)),
        Ok(None) => Probe::Unmet("it runs".into()),
        Err(e) => Probe::Met(Err(e)),
    });
    let _lock = lock.await??;
    run_plan(root, PLAN).await
}

/// A person's: refused while another bootkube works.
pub async fn run_extent(root: &Path, extent: Extent<'_>) -> Result<()> {
    let _lock = lock(root)?.ok_or(Error::Running)?;
    let place = |stage: &str| PLAN.iter().position(|step| step.stage.name == stage);
    let plan = match extent {
        Extent::Whole => Some(PLAN),
        Extent::Until(stage) => place(stage).map(|last| &PLAN[..=last]),
        Extent::Only(stage) => place(stage).map(|at| &PLAN[at..=at]),
    };
    let Some(plan) = plan else { return Err(Error::Seen(format!("the plan has no such stage: {extent:?}"))) };
    run_part(root, plan, extent).await
}

/// Only one bootkube works on a node; nobody, if another does. Released when it is dropped, also by being killed.
pub fn lock(root: &Path) -> Result<Option<File>> {
    let path = root.join(paths::OPT_OPENSHIFT.trim_start_matches('/')).join(".bootkube.lock");
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(cannot("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(cannot("lock", &path)(error)),
    }
}

pub async fn run_plan(root: &Path, plan: &[PlannedStage]) -> Result<()> {
    run_part(root, plan, Extent::Whole).await
}

async fn run_part(root: &Path, plan: &[PlannedStage], extent: Extent<'_>) -> Result<()> {
    println!("Starting bootkube.sh...");
    let before = Journal::of(root, SERVICE).read()?;
    let recorder = Recorder::start(root, SERVICE)?;
    let worked = work(root, plan, extent, &recorder, &before).await;
    recorder.service_end(worked.as_ref().err().map(ToString::to_string))?;
    if worked.is_ok() && extent == Extent::Whole {
        println!("bootkube.service complete");
    }
    worked
}

async fn work(
    root: &Path,
    plan: &[PlannedStage],
    extent: Extent<'_>,
    recorder: &Recorder,
    before: &[Line],
) -> Result<()> {
    let context = Context::load(root)?;
    context.pins().pin()?;
    for dir in [paths::OPT_OPENSHIFT, paths::ETC_KUBERNETES] {
        let dir = context.path(dir);
        sweep(&dir).map_err(cannot("sweep", &dir))?;
    }
    for planned in plan {
        let name = planned.stage.name;
        let done = planned.stage.done.map(|done| context.dir(&format!("{done}.done")));
        let mark_done = || done.as_ref().map_or(Ok(()), |done| context.write(done, "", 0o644));
        let resumed = match extent {
            Extent::Only(_) => Resume::Run,
            _ => resume(before, SERVICE, &planned.stage, done.as_ref().is_some_and(|done| done.exists())),
        };
        match resumed {
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
        // Who names a stage has let it run.
        if !matches!(extent, Extent::Only(_)) {
            step::leave_to_run(&context, &planned.stage).await?;
        }
        recorder.stage_start(name)?;
        tracing::info!("stage {name}: {}", planned.stage.why);
        let started = Instant::now();
        let outcome = planned.work(&context).await;
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
    match extent {
        Extent::Whole => context.write(&context.dir(".bootkube.done"), "", 0o644),
        _ => Ok(()),
    }
}
