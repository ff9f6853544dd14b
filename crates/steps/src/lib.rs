//! How things are done, step by step: a stage and its description, the node's journal, named conditions, atomic files.
//!
//! In: a list of stages and what they await. Out: the journal, records in upstream's format as a view of it, and errors that
//! say which condition was unmet, what was last seen and what to do next.

mod aside;
mod atomic;
mod awaited;
mod condition;
pub mod journal;
mod record;
mod script;
mod stage;

pub use aside::move_aside;
pub use atomic::{if_there, sweep, sync_directory, write_atomic, write_atomic_if_changed, write_whole};
pub use awaited::Awaited;
pub use condition::{
    Condition, NO_PROGRESS_VARIABLE, Probe, Unmet, configure_no_progress, no_progress, wait_for,
};
pub use journal::Journal;
pub use record::{Entry, Phase, Recorder, Result as StageResult, record, stage_seconds};
pub use script::{Printed, run_script};
pub use seedling_types::description::Text;
pub use seedling_types::paths::matches_pattern;
pub use stage::Stage;

/// `?` turns each of these errors into its variant. Without thiserror's `#[from]`, which would also make it the source: the text of these
/// variants has all causes already, and whoever prints sources would print them twice.
#[macro_export]
macro_rules! convert_errors {
    ($error:ident: $($from:ty => $variant:ident),+ $(,)?) => {$(
        impl From<$from> for $error {
            fn from(error: $from) -> Self {
                Self::$variant(error)
            }
        }
    )+};
}
