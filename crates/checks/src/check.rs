//! A check, what it found, and both for people.

use serde::Serialize;
use std::fmt::Write;

/// What is asked, and why; its name is stable, `--only` and `--ignore` take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: &'static str,
    /// What it is about: findings are shown by it.
    pub subject: &'static str,
    pub what: &'static str,
    pub why: &'static str,
    /// What to do when it fails.
    pub next: &'static str,
}

/// A row of a table of checks.
pub(crate) const fn check(
    subject: &'static str,
    name: &'static str,
    what: &'static str,
    why: &'static str,
    next: &'static str,
) -> Check {
    Check { name, subject, what, why, next }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Ok,
    Failed,
    /// It could not be asked.
    Unknown,
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Failed => "FAILED",
            Outcome::Unknown => "unknown",
        }
    }
}

/// One check in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    #[serde(flatten)]
    pub check: Check,
    /// The node, operator or connection it was asked of.
    pub on: String,
    pub result: Outcome,
    /// In one line.
    pub says: String,
    /// The text as it was seen.
    pub evidence: String,
    /// The command that shows the same.
    pub by_hand: String,
    /// What to do here, where that is more than what the check says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_here: Option<String>,
    pub ignored: bool,
}

impl Finding {
    pub fn new(check: &Check, on: &str, result: Outcome, says: impl Into<String>) -> Self {
        let (evidence, by_hand, next_here) = Default::default();
        let (on, says) = (on.into(), says.into());
        Self { check: *check, on, result, says, evidence, by_hand, next_here, ignored: false }
    }

    /// Ok if nothing is wrong; else what is.
    pub fn of(check: &Check, on: &str, well: impl Into<String>, wrong: Vec<String>) -> Self {
        match wrong.is_empty() {
            true => Self::new(check, on, Outcome::Ok, well),
            false => Self::new(check, on, Outcome::Failed, wrong.join("; ")),
        }
    }

    pub fn seen(self, evidence: impl Into<String>, by_hand: impl Into<String>) -> Self {
        Self { evidence: evidence.into(), by_hand: by_hand.into(), ..self }
    }

    /// What to do about it, if it is not what the check always says.
    pub fn or_next(self, next: impl FnOnce() -> String) -> Self {
        let next_here = (self.result != Outcome::Ok).then(next);
        Self { next_here, ..self }
    }

    pub fn next(&self) -> &str {
        self.next_here.as_deref().unwrap_or(self.check.next)
    }

    fn is_green(&self) -> bool {
        self.ignored || self.result == Outcome::Ok
    }
}

/// Which checks are wanted.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// None: all.
    pub only: Vec<String>,
    /// They are made and shown, and do not count.
    pub ignore: Vec<String>,
}

/// A name that no check has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    pub name: String,
    pub known: Vec<&'static str>,
}

impl std::fmt::Display for UnknownName {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "there is no check {:?}; there are {}", self.name, self.known.join(", "))
    }
}

impl std::error::Error for UnknownName {}

impl Choice {
    pub fn check(&self, checks: &[Check]) -> Result<(), UnknownName> {
        let known: Vec<_> = checks.iter().map(|c| c.name).collect();
        match self.only.iter().chain(&self.ignore).find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(UnknownName { name: name.clone(), known }),
            None => Ok(()),
        }
    }

    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

/// All findings of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Everything that counts is green.
    pub ok: bool,
    pub findings: Vec<Finding>,
}

impl Report {
    pub fn new(findings: Vec<Finding>, choice: &Choice) -> Self {
        let mut findings: Vec<_> = findings.into_iter().filter(|f| choice.wants(f.check.name)).collect();
        for finding in &mut findings {
            finding.ignored = choice.ignore.iter().any(|name| name == finding.check.name);
        }
        // A run that looked at nothing proves nothing.
        Self { ok: !findings.is_empty() && findings.iter().all(Finding::is_green), findings }
    }

    /// By subject; what is not green says everything, the rest a line each.
    pub fn table(&self) -> String {
        let mut text = String::new();
        let mut subjects: Vec<_> = self.findings.iter().map(|f| f.check.subject).collect();
        subjects.dedup();
        let width = |of: fn(&Finding) -> usize| self.findings.iter().map(of).max().unwrap_or_default();
        let (name, on) = (width(|f| f.check.name.len()), width(|f| f.on.chars().count()).min(WIDEST));
        for subject in subjects {
            let _ = writeln!(text, "{subject}");
            for finding in self.findings.iter().filter(|f| f.check.subject == subject) {
                let ignored = if finding.ignored { " (ignored)" } else { "" };
                let _ = writeln!(
                    text,
                    "  {:<7}  {:<name$}  {:<on$}  {}{ignored}",
                    finding.result.as_str(),
                    finding.check.name,
                    finding.on,
                    finding.says
                );
                // What could not be asked says why, and nothing else is known of it.
                let hearsay =
                    finding.result == Outcome::Unknown && finding.says.contains(finding.evidence.trim());
                if finding.result != Outcome::Ok && !hearsay {
                    text += &details(finding);
                }
            }
        }
        let count = |which: Outcome| self.findings.iter().filter(|f| f.result == which && !f.ignored).count();
        let ignored = self.findings.iter().filter(|f| f.ignored && f.result != Outcome::Ok).count();
        let _ = write!(
            text,
            "\n{} ok, {} failed, {} unknown",
            count(Outcome::Ok),
            count(Outcome::Failed),
            count(Outcome::Unknown)
        );
        if ignored > 0 {
            let _ = write!(text, ", {ignored} ignored");
        }
        text + "\n"
    }
}

/// A longer place pushes its own line only.
const WIDEST: usize = 44;
/// Lines of evidence that are shown; all of it is in the JSON.
const SHOWN: usize = 8;

fn details(finding: &Finding) -> String {
    let mut text = String::new();
    let evidence = Some(finding.evidence.trim_end()).filter(|evidence| *evidence != finding.says);
    let mut lines = evidence.unwrap_or_default().lines();
    for line in lines.by_ref().take(SHOWN) {
        let _ = writeln!(text, "           | {line}");
    }
    let more = lines.count();
    if more > 0 {
        let _ = writeln!(text, "           | … {more} more lines with -o json");
    }
    if !finding.by_hand.is_empty() {
        let _ = writeln!(text, "           by hand: {}", finding.by_hand);
    }
    let _ = writeln!(text, "           next:    {}", finding.next());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Check =
        Check { name: "a-works", subject: "A", what: "does A work?", why: "B needs it", next: "start A" };
    const B: Check = Check { name: "b", subject: "B", what: "B?", why: "", next: "look at B" };

    fn report(ignore: &[&str]) -> Report {
        let findings = vec![
            Finding::of(&A, "node-0", "works", vec![]).seen("ok", "ask-a"),
            Finding::of(&A, "node-10", "works", vec!["it is down".into()]).seen("refused\n", "ask-a 10"),
            Finding::new(&B, "", Outcome::Unknown, "nobody answered"),
        ];
        Report::new(
            findings,
            &Choice { only: vec![], ignore: ignore.iter().map(|s| s.to_string()).collect() },
        )
    }

    #[test]
    fn what_is_not_green_says_everything() {
        let expected = "\
A
  ok       a-works  node-0   works
  FAILED   a-works  node-10  it is down
           | refused
           by hand: ask-a 10
           next:    start A
B
  unknown  b                 nobody answered

1 ok, 1 failed, 1 unknown
";
        assert_eq!(report(&[]).table(), expected);
    }

    #[test]
    fn only_all_green_is_ok_and_ignored_ones_do_not_count() {
        assert!(!report(&[]).ok && !report(&["b"]).ok);
        assert!(report(&["b", "a-works"]).ok);
        assert!(report(&["b"]).table().ends_with("1 ok, 1 failed, 0 unknown, 1 ignored\n"));
        assert!(!Report::new(vec![], &Choice::default()).ok, "nothing was looked at");
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let choice = Choice { only: vec!["c".into()], ignore: vec![] };
        let error = choice.check(&[A, B]).err().map(|e| e.to_string());
        assert_eq!(error.as_deref(), Some("there is no check \"c\"; there are a-works, b"));
        assert!(Choice { only: vec!["a-works".into()], ignore: vec!["b".into()] }.check(&[A, B]).is_ok());
    }
}
