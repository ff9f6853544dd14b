//! The prober at work beside something else, and what it leaves in a lab's directory.

use super::{Log, Options, ProbeError, Report, Stages, judge, probe};
use crate::{Lab, Result, at};
use seedling_machines::Progress;
use seedling_observe::{Milestone, News};
use seedling_steps::{Condition, write_atomic};
use std::path::Path;
use std::time::Duration;
use tokio::sync::watch;

/// When neither the first answer nor the end comes.
const NO_PROGRESS: Duration = Duration::from_secs(600);
/// Writes a second: enough to fall into a gap of a tenth of a second, and no burden to a cluster that is growing.
pub const RATE: u32 = 20;

/// Until `work` ends.
pub async fn beside<T>(
    kubeconfig: &Path,
    rate: u32,
    work: impl Future<Output = T>,
) -> (T, Result<Log, ProbeError>) {
    let (stop, stopped) = watch::channel(false);
    let options = Options { kubeconfig: kubeconfig.into(), rate, first_answer_within: NO_PROGRESS };
    let work = async {
        let done = work.await;
        stop.send_replace(true);
        done
    };
    tokio::join!(work, probe(options, stopped))
}

pub async fn install_complete(kubeconfig: &Path) -> Result<(), ProbeError> {
    let client = seedling_cluster::connect(Some(kubeconfig)).await?;
    let complete = Milestone::Initialized;
    let condition = Condition::new(complete.awaited(), NO_PROGRESS, "seedling lab status");
    let instead = |news: &News| match news.text.as_str() {
        "" => "no ClusterVersion yet".into(),
        text => text.into(),
    };
    complete.wait(&client, &condition, Duration::from_secs(1), instead).await?;
    Ok(())
}

impl Log {
    /// With the stages of the lab's bring-up, if it is one.
    pub fn report(&self, lab: Option<&Lab>) -> Result<Report, ProbeError> {
        if self.requests.is_empty() {
            return Err(ProbeError::NeverReady);
        }
        Ok(judge(self, &lab.map_or_else(Stages::default, Lab::stages)))
    }
}

/// Into the lab's directory, and one line for people.
pub fn write_report(log: Result<Log, ProbeError>, lab: &Lab, say: Progress<'_>) -> Result<Report> {
    let log = log.map_err(Box::new)?;
    let report = log.report(Some(lab)).map_err(Box::new)?;
    let (path, history) = (lab.dir.join("probe.json"), lab.probe_history());
    at(&path, write_atomic(&path, serde_json::to_vec_pretty(&report)?, 0o644))?;
    if !report.writes.red.is_empty() {
        at(&history, write_atomic(&history, serde_json::to_vec(&log.operations)?, 0o644))?;
    }
    say(&format!("{}; see {}", report.summary(), path.display()));
    Ok(report)
}
