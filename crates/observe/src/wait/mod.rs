//! `wait-for bootstrap-complete` and `wait-for install-complete`: followed by watches, with deadlines that only count while
//! nothing moves. Upstream's fixed limits are printed as they are, and mean: without progress.

mod bootstrap;
mod describe;
mod install;
mod milestone;
mod operators;
mod text;

pub use bootstrap::bootstrap_complete;
pub use describe::CONDITIONS;
pub use install::{InstallParams, install_complete};
pub use milestone::{Milestone, News};

use crate::Level;
use kube::Client;
use seedling_steps::Condition;
use std::path::Path;
use std::time::Duration;
use thiserror::Error;
use tokio::time::Instant;

#[derive(Debug, Error)]
pub enum WaitError {
    /// The message says what a person should suspect; `cause` what was last seen.
    #[error("{hint}")]
    Bootstrap { cause: String, hint: &'static str },
    #[error("{0}")]
    Install(String),
    #[error("These cluster operators were not stable: [{0}]")]
    Unstable(String),
}

const API: &str = "Failed waiting for Kubernetes API. This error usually happens when there is a problem on the bootstrap \
                   host that prevents creating a temporary control plane.";
const BOOTSTRAP: &str = "Failed to wait for bootstrapping to complete. This error usually happens when there is a problem \
                         with control plane hosts that prevents the control plane operators from creating the control plane.";

impl WaitError {
    pub fn exit_code(&self) -> u8 {
        match self {
            WaitError::Bootstrap { .. } => 5,
            WaitError::Install(_) => 6,
            WaitError::Unstable(_) => 7,
        }
    }
}

/// How often it is looked whether anything has moved.
const LOOK: Duration = Duration::from_millis(250);

/// Counts only while what is seen stays the same.
struct Deadline {
    no_progress: Duration,
    last: Instant,
    seen: String,
}

impl Deadline {
    /// `limit` is upstream's, and the default.
    fn new(limit: Duration) -> Self {
        let no_progress = seedling_steps::no_progress(limit);
        Self { no_progress, last: Instant::now(), seen: String::new() }
    }
    fn saw(&mut self, what: String) {
        if self.seen != what {
            self.seen = what;
            self.last = Instant::now();
        }
    }
    fn at(&self) -> Instant {
        self.last + self.no_progress
    }
}

/// Gives up when what is heard of the milestone stays the same for as long as `limit` says; then that is the error.
async fn patiently(
    milestone: Milestone,
    client: &Client,
    limit: Duration,
    mut hear: impl FnMut(&str),
) -> Result<String, String> {
    let mut last = String::new();
    let instead = |news: &News| {
        if last != news.text {
            last.clone_from(&news.text);
            hear(&last);
        }
        last.clone()
    };
    let condition = Condition::new(milestone.awaited(), limit, "").quiet();
    milestone.wait(client, &condition, LOOK, instead).await.map_err(|unmet| unmet.last_seen)
}

/// The command that shows who does not come on.
fn next(dir: &Path) -> String {
    format!("kubectl --kubeconfig={} get nodes,clusteroperators,csr", dir.join("auth/kubeconfig").display())
}

/// What upstream prints when `bootstrap-complete` fails, and which nodes are not ready.
pub async fn report_bootstrap_failure(
    client: &Client,
    dir: &Path,
    error: &WaitError,
    on: &mut impl FnMut(Level, String),
) {
    operators::tell_conditions(client, on).await;
    operators::tell_nodes(client, on).await;
    let mut line = |level, text: &str| on(level, text.into());
    line(Level::Info, "Use the following commands to gather logs from the cluster");
    line(Level::Info, "seedling lab logs bootstrap");
    line(Level::Info, &next(dir));
    if let WaitError::Bootstrap { cause, .. } = error {
        line(Level::Error, &format!("Bootstrap failed to complete: {cause}"));
    }
    line(Level::Error, &error.to_string());
}

/// What upstream prints when `install-complete` fails.
pub async fn report_install_failure(
    client: &Client,
    dir: &Path,
    error: &WaitError,
    on: &mut impl FnMut(Level, String),
) {
    operators::tell_nodes(client, on).await;
    on(Level::Info, format!("Look at what makes no progress: {}", next(dir)));
    if let WaitError::Install(_) = error {
        operators::tell_conditions(client, on).await;
        for text in [
            "Cluster initialization failed because one or more operators are not functioning properly.",
            "The cluster should be accessible for troubleshooting as detailed in the documentation linked below,",
            "https://docs.openshift.com/container-platform/latest/support/troubleshooting/troubleshooting-installations.html",
            "The 'wait-for install-complete' subcommand can then be used to continue the installation",
        ] {
            on(Level::Error, text.into());
        }
    }
    on(Level::Error, error.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_upstreams() {
        let bootstrap = WaitError::Bootstrap { cause: "x".into(), hint: API };
        assert_eq!(bootstrap.exit_code(), 5);
        assert!(bootstrap.to_string().starts_with("Failed waiting for Kubernetes API. This error usually"));
        assert_eq!(WaitError::Install("x".into()).exit_code(), 6);
        let unstable = WaitError::Unstable("dns, etcd".into());
        assert_eq!(
            (unstable.exit_code(), unstable.to_string().as_str()),
            (7, "These cluster operators were not stable: [dns, etcd]")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_moves_with_progress() {
        let mut deadline = Deadline::new(Duration::from_secs(60));
        deadline.saw("1 of 3".into());
        tokio::time::advance(Duration::from_secs(50)).await;
        deadline.saw("1 of 3".into());
        assert_eq!(deadline.at() - Instant::now(), Duration::from_secs(10));
        deadline.saw("2 of 3".into());
        assert_eq!(deadline.at() - Instant::now(), Duration::from_secs(60));
    }
}
