//! A stage's description: data that the log, the records and `explain` all read.

use seedling_types::description::{Description, Kind, Text};
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stage {
    /// Name in the service record.
    pub name: &'static str,
    /// `<done>.done` in the working directory marks it finished; `None`: it is checked again on every run.
    pub done: Option<&'static str>,
    pub what: &'static str,
    pub why: &'static str,
    pub reads: &'static [&'static str],
    pub writes: &'static [&'static str],
    /// What shows that it worked: what its check function looks at.
    pub check: &'static str,
    /// What usually goes wrong, and what to do then.
    pub fails: &'static [&'static str],
    /// What bootkube.sh runs in this place.
    pub upstream: &'static str,
    /// Names of other descriptions.
    pub see: &'static [&'static str],
}

impl Stage {
    /// For tests, and to leave out what does not apply.
    pub const EMPTY: Self = Self {
        name: "",
        done: None,
        what: "",
        why: "",
        reads: &[],
        writes: &[],
        check: "",
        fails: &[],
        upstream: "",
        see: &[],
    };

    /// `number` is its place in the plan, from 1.
    pub fn describe(&self, number: usize) -> Description {
        let Self { what, why, reads, writes, check, fails, upstream, see, .. } = *self;
        let text = Text { what, why, reads, writes, check, fails, upstream, see };
        let done =
            self.done.map(|done| format!("/opt/openshift/{done}.done; remove it to run the stage again"));
        let done = done.unwrap_or("none: the stage is checked on every run".into());
        Description::new(Kind::Stage, self.name, &text).also(number.to_string()).fact("done file", done)
    }
}
