//! What is wrong with an install-config or hosts.yaml: upstream's words, plus the line and a hint.

use std::collections::BTreeMap;
use std::fmt;

/// At which step a problem was found; upstream words the steps differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Unmarshal,
    Unknown,
    Upconvert,
    Validate,
    Hosts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub step: Step,
    /// `networking.clusterNetwork[0].cidr`; empty for the whole file.
    pub path: String,
    /// The complete sentence, e.g. `baseDomain: Invalid value: "x": …`.
    pub message: String,
    pub line: Option<u64>,
    pub hint: Option<String>,
}

impl Problem {
    pub fn new(step: Step, path: &str, message: impl Into<String>) -> Self {
        Self { step, path: path.into(), message: message.into(), line: None, hint: None }
    }
    pub fn invalid(path: &str, value: impl fmt::Display, detail: impl fmt::Display) -> Self {
        Self::new(Step::Validate, path, format!("{path}: Invalid value: {value}: {detail}"))
    }
    pub fn unsupported(path: &str, value: &str, supported: &[&str]) -> Self {
        let supported: Vec<_> = supported.iter().map(|s| format!("{s:?}")).collect();
        let text =
            format!("{path}: Unsupported value: {value:?}: supported values: {}", supported.join(", "));
        Self::new(Step::Validate, path, text)
    }
    pub fn forbidden(path: &str, detail: &str) -> Self {
        Self::new(Step::Validate, path, format!("{path}: Forbidden: {detail}"))
    }
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// Sets the line of the field, or of the nearest field around it that is in the file.
    pub fn locate(&mut self, lines: &BTreeMap<String, u64>) {
        let mut path = self.path.as_str();
        while self.line.is_none() && !path.is_empty() {
            self.line = lines.get(path).copied();
            path = path.rfind(['.', '[']).map_or("", |at| &path[..at]);
        }
    }
}

/// One sentence per step, as upstream prints them; then a line per problem that says where and what to do.
pub fn report(problems: &[Problem]) -> Vec<String> {
    let mut lines = Vec::new();
    let steps: BTreeMap<Step, Vec<&Problem>> = problems.iter().fold(BTreeMap::new(), |mut steps, p| {
        steps.entry(p.step).or_insert_with(Vec::new).push(p);
        steps
    });
    for (step, found) in steps {
        let mut messages: Vec<&str> = Vec::new();
        for problem in found {
            if !messages.contains(&problem.message.as_str()) {
                messages.push(&problem.message);
            }
        }
        let all =
            if let [one] = messages[..] { one.to_string() } else { format!("[{}]", messages.join(", ")) };
        let wrapped = match step {
            Step::Unmarshal => format!("failed to unmarshal install-config.yaml: {all}"),
            Step::Unknown => format!(
                "failed to parse first occurrence of unknown field: failed to unmarshal install-config.yaml: error \
                 unmarshaling JSON: while decoding JSON: {all}"
            ),
            Step::Upconvert => format!("failed to upconvert install config: {all}"),
            Step::Validate => format!("invalid \"install-config.yaml\" file: {all}"),
            Step::Hosts => format!("invalid \"hosts.yaml\" file: {all}"),
        };
        lines.extend(wrapped.lines().map(str::to_string));
    }
    for problem in problems {
        let file = if problem.step == Step::Hosts { "hosts.yaml" } else { "install-config.yaml" };
        let line = problem.line.map(|l| format!(", line {l}")).unwrap_or_default();
        let path = if problem.path.is_empty() { String::new() } else { format!(": {}", problem.path) };
        if let Some(hint) = &problem.hint {
            lines.push(format!("{file}{line}{path}: hint: {hint}"));
        } else if problem.line.is_some() {
            lines.push(format!("{file}{line}{path}"));
        }
    }
    lines
}
