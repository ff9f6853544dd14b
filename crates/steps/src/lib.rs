//! How things are done, step by step: a stage and its description, the service record, named conditions, atomic files.
//!
//! In: a list of stages and what they await. Out: records in upstream's format, done files, and errors that say which
//! condition was unmet, what was last seen and what to do next.

mod atomic;
mod condition;
mod record;
mod stage;

pub use atomic::{write_atomic, write_atomic_if_changed};
pub use condition::{Condition, Probe, Unmet, wait_for};
pub use record::{Entry, Phase, Recorder, Result as StageResult, stage_seconds};
pub use stage::Stage;
