//! A stage's description: data that the log, the records and `explain` all read.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stage {
    /// Name in the service record.
    pub name: &'static str,
    /// `<done>.done` in the working directory marks it finished; `None`: it is checked again on every run.
    pub done: Option<&'static str>,
    pub why: &'static str,
    pub reads: &'static [&'static str],
    pub writes: &'static [&'static str],
    /// What shows that it worked: what its check function looks at.
    pub check: &'static str,
}

/// Whether a declared path means this one: `*` is any part of it.
pub fn matches_pattern(declared: &str, path: &str) -> bool {
    let Some((start, rest)) = declared.split_once('*') else { return path == declared };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let inside = path.strip_prefix(start).and_then(|path| path.strip_suffix(end));
    inside.is_some_and(|inside| inside.contains(middle))
}
