//! The payload's programs, one group after the other.

use crate::bill::GROUPS;
use crate::build::hold;
use crate::error::Result;
use crate::gobuild;
use crate::progress::{Plan, Progress};
use crate::toolchain::Toolchain;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Compiles the programs that are not in the cache: the long part of a build, and the one that needs no binary of ours.
pub fn compile(source: &Path, cache: &Path) -> Result<()> {
    let _held = hold(source, cache)?;
    let progress = Progress::start();
    compile_missing(&Toolchain::find(cache, &progress)?, source, cache, &progress)
}

pub(crate) fn compile_missing(
    go: &Toolchain,
    source: &Path,
    cache: &Path,
    progress: &Progress,
) -> Result<()> {
    let missing: Vec<_> = GROUPS
        .iter()
        .map(|group| Ok((group, gobuild::place(source, cache, group)?)))
        .filter(|found: &Result<_>| !found.as_ref().is_ok_and(|(_, place)| place.exists()))
        .collect::<Result<_, _>>()?;
    let mut plan = Plan::of(missing.iter().map(|(group, _)| *group));
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // While the first group is compiled, what the others are made of is downloaded.
        scope.spawn(|| {
            for (group, _) in missing.iter().skip(1).take_while(|_| !ended.load(Ordering::Relaxed)) {
                gobuild::fetch(go, source, group);
            }
        });
        let built = missing.iter().try_for_each(|(group, _)| {
            let start = Instant::now();
            gobuild::build(go, source, cache, group, &plan, progress)?;
            plan.finished(start.elapsed());
            Ok(())
        });
        ended.store(true, Ordering::Relaxed);
        built
    })
}
