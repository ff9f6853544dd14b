//! Watching a cluster grow: `wait-for`, with upstream's words and exit codes; the timeline; the shape of a committed report.
//!
//! In: a client and the asset directory's kubeconfig. Out: lines for people, milestones for programs, and an error that says
//! which exit code it is.

pub mod console;
pub mod figures;
pub mod journal;
pub mod report;
pub mod timeline;
pub mod wait;

pub use console::{Console, Level, say};
pub use report::Report;
pub use wait::{
    InstallParams, Milestone, News, WaitError, bootstrap_complete, install_complete,
    report_bootstrap_failure, report_install_failure,
};
