//! A stage's description: data that the log, the records and `explain` all read.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stage {
    /// Name in the service record.
    pub name: &'static str,
    /// `<done>.done` in the working directory marks it finished; `None`: it is checked anew on every run.
    pub done: Option<&'static str>,
    pub why: &'static str,
    pub reads: &'static [&'static str],
    pub writes: &'static [&'static str],
    /// What shows that it worked.
    pub check: &'static str,
}
