//! What is wrong with an install-config or hosts.yaml: upstream's words, plus the place and a hint.

use super::go;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;

/// How every message of Go's decoder starts.
pub const DECODING: &str = "error unmarshaling JSON: while decoding JSON:";

/// At which step a problem was found. Upstream stops at the first step that finds any, and words the steps differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FoundAt {
    /// Not YAML.
    Yaml,
    /// A value that Go's decoder stops at.
    Stop,
    /// A value of the wrong kind.
    Decode,
    Unknown,
    Upconvert,
    Validate,
    Hosts,
    /// Said, but not refused.
    Warning,
}

/// A place in the file, from 1; column 0 is the whole line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub line: u64,
    pub column: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub step: FoundAt,
    /// `networking.clusterNetwork[0].cidr`; empty for the whole file.
    pub path: String,
    /// The complete sentence, e.g. `baseDomain: Invalid value: "x": …`.
    pub message: String,
    pub at: Option<Mark>,
    /// The line it is in.
    pub source: Option<String>,
    pub hint: Option<String>,
    /// For a name that does not exist: the field that was meant.
    pub meant: Option<String>,
}

impl Problem {
    pub fn new(step: FoundAt, path: &str, message: impl Into<String>) -> Self {
        Self {
            step,
            path: path.into(),
            message: message.into(),
            at: None,
            source: None,
            hint: None,
            meant: None,
        }
    }
    fn of(path: &str, kind: &str, detail: impl fmt::Display) -> Self {
        Self::new(FoundAt::Validate, path, format!("{path}: {kind}: {detail}"))
    }
    /// The value is shown as the caller wrote it.
    pub fn invalid(path: &str, value: impl fmt::Display, detail: impl fmt::Display) -> Self {
        Self::of(path, "Invalid value", format!("{value}: {detail}"))
    }
    pub fn invalid_text(path: &str, value: &str, detail: impl fmt::Display) -> Self {
        Self::invalid(path, go::quote(value), detail)
    }
    pub fn invalid_json(path: &str, value: &impl Serialize, detail: impl fmt::Display) -> Self {
        Self::invalid(path, go::json(value), detail)
    }
    pub fn required(path: &str, detail: impl fmt::Display) -> Self {
        Self::of(path, "Required value", detail)
    }
    pub fn unsupported(path: &str, value: &str, supported: &[&str]) -> Self {
        let all: Vec<_> = supported.iter().map(|s| go::quote(s)).collect();
        let detail = format!("{}: supported values: {}", go::quote(value), all.join(", "));
        Self::of(path, "Unsupported value", detail)
    }
    pub fn duplicate(path: &str, value: &str) -> Self {
        Self::of(path, "Duplicate value", go::quote(value))
    }
    pub fn forbidden(path: &str, detail: impl fmt::Display) -> Self {
        Self::of(path, "Forbidden", detail)
    }
    pub fn too_many(path: &str, count: usize, limit: usize) -> Self {
        Self::of(path, "Too many", format!("{count}: must have at most {limit} items"))
    }
    pub fn warning(path: &str, text: impl Into<String>) -> Self {
        Self::new(FoundAt::Warning, path, text)
    }
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
    /// Where the message names another field than the one in the file.
    pub fn at_field(mut self, path: &str) -> Self {
        self.path = path.into();
        self
    }
    /// Looks up the field, or the nearest around it that is in the file.
    pub fn locate(&mut self, places: &HashMap<String, Mark>, text: &str) {
        let wanted = self.path.to_lowercase();
        let mut path = wanted.as_str();
        while self.at.is_none() && !path.is_empty() {
            self.at = places.get(path).copied().or_else(|| places.get(&old_name(path)).copied());
            path = path.rfind(['.', '[']).map_or("", |at| &path[..at]);
        }
        let line = self.at.and_then(|at| usize::try_from(at.line).ok()?.checked_sub(1));
        self.source = line.and_then(|line| text.lines().nth(line)).map(|line| self.shown(line));
    }

    /// The line without what must not be seen in a log.
    fn shown(&self, line: &str) -> String {
        const SECRETS: &[&str] = &["auth", "secret", "password", "://"];
        let lower = line.to_lowercase();
        if line.len() <= 200 && !SECRETS.iter().any(|word| lower.contains(word)) {
            return line.to_string();
        }
        let start = self.at.map_or(0, |at| usize::try_from(at.column).unwrap_or_default().saturating_sub(1));
        let key = line.chars().take(start + self.width(line)).collect::<String>();
        if SECRETS.iter().any(|word| word != &"secret" && key.to_lowercase().contains(word)) {
            return "…".into();
        }
        format!("{key}…")
    }

    /// How many characters of the line are meant: the field's name if that is what stands there.
    fn width(&self, line: &str) -> usize {
        let start = self.at.map_or(0, |at| usize::try_from(at.column).unwrap_or_default().saturating_sub(1));
        let rest: String = line.chars().skip(start).collect();
        let name = self.path.rsplit(['.', ']']).next().unwrap_or_default();
        let is_name = !name.is_empty() && rest.to_lowercase().starts_with(&name.to_lowercase());
        if is_name { name.chars().count() } else { 1 }
    }

    /// `file:line:column: field`, the line with a mark below, the hint. `told`: the message was already printed further up.
    fn lines(&self, told: bool) -> Vec<String> {
        let file = if self.step == FoundAt::Hosts { "hosts.yaml" } else { "install-config.yaml" };
        let place = match self.at {
            Some(Mark { line, column: 0 }) => format!("{file}:{line}"),
            Some(Mark { line, column }) => format!("{file}:{line}:{column}"),
            None => file.to_string(),
        };
        let message =
            || self.message.trim_start_matches(DECODING).trim_start().lines().collect::<Vec<_>>().join(" ");
        let what = match (told, self.path.as_str()) {
            (false, path) if path.is_empty() || self.message.starts_with(path) => message(),
            (false, path) => format!("{path}: {}", message()),
            (true, "") => "here".into(),
            (true, path) if self.at.is_none() => format!("{path} is not in the file"),
            (true, path) => path.to_string(),
        };
        let mut lines = vec![format!("{place}: {what}")];
        if let (Some(source), Some(at)) = (&self.source, self.at.filter(|at| at.column > 0)) {
            let number = at.line.to_string();
            let indent: String = source
                .chars()
                .take(usize::try_from(at.column - 1).unwrap_or_default())
                .map(|c| if c == '\t' { '\t' } else { ' ' })
                .collect();
            lines.push(format!(" {number} | {source}"));
            lines.push(format!(" {} | {indent}{}", " ".repeat(number.len()), "^".repeat(self.width(source))));
        }
        lines.extend(self.hint.iter().map(|hint| format!("   = hint: {hint}")));
        lines
    }
}

/// A field that the file has under its old name.
fn old_name(path: &str) -> String {
    const MOVED: &[(&str, &str)] = &[
        ("networking.clusternetwork", "networking.clusternetworks"),
        ("networking.machinenetwork", "networking.machinecidr"),
        ("networking.servicenetwork", "networking.servicecidr"),
        ("networking.networktype", "networking.type"),
        ("platform.baremetal.apivips", "platform.baremetal.apivip"),
        ("platform.baremetal.ingressvips", "platform.baremetal.ingressvip"),
    ];
    let moved = MOVED.iter().find_map(|(new, old)| {
        let rest = path.strip_prefix(new)?;
        (rest.is_empty() || rest.starts_with(['[', '.'])).then(|| format!("{old}{rest}"))
    });
    moved.unwrap_or_default()
}

/// First upstream's sentences, as upstream would print them; then every problem with its place.
pub fn report(problems: &[Problem]) -> Vec<String> {
    let of = |step: FoundAt| problems.iter().filter(move |p| p.step == step);
    let decoded = || problems.iter().find(|p| matches!(p.step, FoundAt::Decode | FoundAt::Unknown));
    // Upstream goes no further than the first step that fails, and in all but the last no further than its first problem.
    let stopped = of(FoundAt::Yaml)
        .next()
        .or(of(FoundAt::Stop).next())
        .or_else(decoded)
        .or(of(FoundAt::Upconvert).next());
    let told: Vec<&Problem> = stopped.map_or_else(|| of(FoundAt::Validate).collect(), |first| vec![first]);
    let hosts: Vec<&Problem> = of(FoundAt::Hosts).collect();
    let sentences = [&told, &hosts].into_iter().filter_map(|found| sentence(found));
    let mut lines: Vec<String> =
        sentences.flat_map(|text| text.lines().map(str::to_string).collect::<Vec<_>>()).collect();
    for problem in problems.iter().filter(|p| p.step != FoundAt::Warning) {
        let told = told.iter().chain(&hosts).any(|p| p.message == problem.message);
        lines.extend(problem.lines(told));
    }
    lines
}

/// What is said beside the problems.
pub fn warnings(problems: &[Problem]) -> Vec<String> {
    problems.iter().filter(|p| p.step == FoundAt::Warning).map(|p| p.message.clone()).collect()
}

/// Several problems of a step are one list, each once.
fn sentence(found: &[&Problem]) -> Option<String> {
    let step = found.first()?.step;
    let mut messages: Vec<&str> = Vec::new();
    for problem in found {
        if !messages.contains(&problem.message.as_str()) {
            messages.push(&problem.message);
        }
    }
    let all = if let [one] = messages[..] { one.to_string() } else { format!("[{}]", messages.join(", ")) };
    Some(match step {
        FoundAt::Yaml | FoundAt::Stop | FoundAt::Decode => {
            format!("failed to unmarshal install-config.yaml: {all}")
        }
        FoundAt::Unknown => format!(
            "failed to parse first occurrence of unknown field: failed to unmarshal install-config.yaml: {all}"
        ),
        FoundAt::Upconvert => format!("failed to upconvert install config: {all}"),
        FoundAt::Validate => format!("invalid \"install-config.yaml\" file: {all}"),
        FoundAt::Hosts => format!("invalid \"hosts.yaml\" file: {all}"),
        FoundAt::Warning => all,
    })
}
