//! Named checks, with what was seen: `verify` of a cluster that runs, `preflight` of the place where one is to grow.
//!
//! In: facts, gathered by commands on nodes, questions to the API, the network and this machine. Out: [`Finding`]s, each with the raw
//! evidence, the command that shows the same by hand, and the next step if it failed. Judging is pure; gathering is apart.

mod check;
pub mod helper;
pub mod preflight;
mod shell;
pub mod verify;

pub use check::{Check, Choice, Finding, Outcome, Report, UnknownName};
pub use shell::{Shell, Ssh};

/// Every check there is, by the command that makes it.
pub fn all() -> Vec<(&'static str, &'static [Check])> {
    vec![
        ("preflight", preflight::CHECKS),
        ("verify", verify::CHECKS),
        ("helper check", &helper::CHECKS[..helper::OWN]),
    ]
}
