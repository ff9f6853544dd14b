//! A cause, what proves it, and what to do next.

use serde::Serialize;

/// The chain of a bring-up, in its order. What breaks early explains what is broken later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    Power,
    Address,
    Names,
    Ignition,
    Node,
    Images,
    Etcd,
    Api,
    MachineConfig,
    Join,
    Network,
    Operators,
    Handoff,
}

/// A line of a file in the bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    pub file: String,
    /// From one; none if the whole file says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    pub text: String,
}

impl Evidence {
    pub fn place(&self) -> String {
        self.line.map_or_else(|| self.file.clone(), |line| format!("{}:{line}", self.file))
    }
}

/// What a rule has found: the sentence and what it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub says: String,
    pub evidence: Vec<Evidence>,
    /// Instead of the rule's own, where more is known.
    pub next: Option<String>,
}

impl Finding {
    pub fn new(says: impl Into<String>, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        Self { says: says.into(), evidence: evidence.into_iter().collect(), next: None }
    }

    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

/// A finding and the rule it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    pub rule: &'static str,
    pub link: Link,
    pub cause: String,
    pub evidence: Vec<Evidence>,
    pub next: String,
}

impl Cause {
    /// For the end of a failed command.
    pub fn sentence(&self) -> String {
        format!("cause: {}; next: {}", self.cause, self.next)
    }
}
