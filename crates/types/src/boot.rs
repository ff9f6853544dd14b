//! How far a machine that boots over the network has installed itself, and what it boots next. One small file a machine, beside the
//! doors, written by the helper at the machine's own reports and by whoever wants it installed again.
//!
//! Pure: the time is given, in seconds since 1970.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BootState {
    pub install: Install,
    pub since: i64,
    /// What the machine said of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Install {
    #[default]
    Wanted,
    Installing,
    Installed,
    Failed,
}

impl Install {
    pub fn as_str(self) -> &'static str {
        match self {
            Install::Wanted => "wanted",
            Install::Installing => "installing",
            Install::Installed => "installed",
            Install::Failed => "failed",
        }
    }
}

/// A step of a machine's boot, for the event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BootStep {
    /// It was given the script, or the menu, that installs it.
    Install,
    /// It was told to boot from its disk.
    Disk,
    /// Somebody wants it installed again.
    Wanted,
    Installing,
    Installed,
    Failed,
}

impl From<Install> for BootStep {
    fn from(install: Install) -> Self {
        match install {
            Install::Wanted => BootStep::Wanted,
            Install::Installing => BootStep::Installing,
            Install::Installed => BootStep::Installed,
            Install::Failed => BootStep::Failed,
        }
    }
}

/// What a machine says of itself: the body of its report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    pub state: Reported,
    #[serde(default)]
    pub message: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reported {
    Installing,
    Installed,
    Failed,
}

/// What a machine that boots over the network is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The live system, which installs it.
    Install,
    Disk,
}

/// Of a machine's message, in characters: it comes from the network and goes into a file.
const LONGEST_MESSAGE: usize = 500;

impl BootState {
    /// One that failed, or was switched off in between, starts over.
    pub fn next(&self) -> Next {
        match self.install {
            Install::Wanted | Install::Installing | Install::Failed => Next::Install,
            Install::Installed => Next::Disk,
        }
    }

    /// `None`: nothing new. What is installed stays so until somebody wants it otherwise: a late report changes nothing.
    pub fn report(&self, report: &Report, now: i64) -> Option<Self> {
        let install = match report.state {
            Reported::Installing => Install::Installing,
            Reported::Installed => Install::Installed,
            Reported::Failed => Install::Failed,
        };
        let message = report.message.as_ref().map(|text| text.chars().take(LONGEST_MESSAGE).collect());
        let known = self.install == install && self.message == message;
        (self.install != Install::Installed && !known).then_some(Self { install, since: now, message })
    }

    /// It installs itself at its next boot, whatever is on its disk.
    pub fn wanted(now: i64) -> Self {
        Self { install: Install::Wanted, since: now, message: None }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// Words in, the state and what it boots next out.
    fn story(words: &str) -> String {
        let mut state = BootState::default();
        for (now, word) in (1..).zip(words.split_whitespace()) {
            state = match word {
                "wanted" => BootState::wanted(now),
                word => {
                    let (word, message) = word.split_once(':').unwrap_or((word, ""));
                    let message = Some(message.to_string()).filter(|text| !text.is_empty());
                    let state_word = serde_json::from_value(word.into()).unwrap();
                    state.report(&Report { state: state_word, message }, now).unwrap_or(state)
                }
            };
        }
        let message = state.message.clone().map(|text| format!(" ({text})")).unwrap_or_default();
        format!("{} since {}{message}: {:?}", state.install.as_str(), state.since, state.next())
    }

    #[test]
    fn a_machine_installs_itself_once_and_again_when_somebody_wants_it() {
        let table = [
            ("", "wanted since 0: Install"),
            ("installing", "installing since 1: Install"),
            ("installing installing", "installing since 1: Install"),
            ("installing installed", "installed since 2: Disk"),
            ("installed", "installed since 1: Disk"),
            ("installing installed installed", "installed since 2: Disk"),
            ("installing installed installing", "installed since 2: Disk"),
            ("installed failed:late", "installed since 1: Disk"),
            ("installing failed:disk", "failed since 2 (disk): Install"),
            ("failed:disk failed:net", "failed since 2 (net): Install"),
            ("failed:disk installing installed", "installed since 3: Disk"),
            ("installed wanted", "wanted since 2: Install"),
            ("installed wanted installing installed", "installed since 4: Disk"),
        ];
        for (words, want) in table {
            assert_eq!(story(words), want, "{words}");
        }
    }

    #[test]
    fn the_files_are_small_and_plain() {
        let state: BootState = serde_json::from_str(r#"{"install":"wanted","since":5}"#).unwrap();
        assert_eq!(state, BootState::wanted(5));
        assert_eq!(serde_json::to_string(&state).unwrap(), r#"{"install":"wanted","since":5}"#);
        let long = Report { state: Reported::Failed, message: Some("ä".repeat(9000)) };
        assert_eq!(state.report(&long, 6).unwrap().message.unwrap().chars().count(), LONGEST_MESSAGE);
        for bad in ["", "{}", r#"{"state":"wanted"}"#, r#"{"state":"installed","more":1}"#] {
            assert!(serde_json::from_str::<Report>(bad).is_err(), "{bad}");
        }
    }
}
