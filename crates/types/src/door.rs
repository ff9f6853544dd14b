//! The door to a machine's Ignition config: when the helper hands it out, and when no more. One small file a machine, read at every
//! request and written by whoever switches the machine on, so that a killed helper continues where it was.
//!
//! Pure: the time is given, in seconds since 1970.

use crate::Role;
use serde::{Deserialize, Serialize};

/// A machine that asked for an address starts to boot, or so it seems: long enough for firmware, kernel and a slow network.
pub const BOOT_SECONDS: i64 = 600;
/// A person opens the door before going to the machine.
pub const PERSON_SECONDS: i64 = 3600;
/// Fetches of the bootstrap node's config that may begin before one is complete.
const MOST_STARTED: u32 = 8;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Door {
    pub open: Option<Open>,
    /// The time at which a fetch was complete, or the machine went on with what it had.
    pub served: Option<i64>,
    /// The handoff: this config is not given any more.
    pub over: Option<Over>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Open {
    pub by: Opener,
    /// Without it, until the machine has its config.
    pub until: Option<i64>,
    /// Fetches that began.
    #[serde(default)]
    pub started: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Opener {
    /// It was switched on.
    PowerOn,
    /// It asked for an address as a machine does that boots.
    Dhcp,
    /// `seedling helper open`.
    Person,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Over {
    /// sha256 of the config: another cluster's has a door of its own.
    pub config: String,
    pub since: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    NotBooting,
    Served,
    TooOften,
    Over,
}

impl Refusal {
    /// What comes back later, and what never does.
    pub fn status(self) -> u16 {
        match self {
            Refusal::NotBooting | Refusal::TooOften => 403,
            Refusal::Served | Refusal::Over => 410,
        }
    }

    /// `host` is the machine's name.
    pub fn sentence(self, host: &str) -> String {
        let why = match self {
            Refusal::NotBooting => "it is given only while its machine boots",
            Refusal::Served => "it was given already since its machine was switched on",
            Refusal::TooOften => "too many fetches began and did not end",
            Refusal::Over => "the masters carry the cluster, and it is not needed any more",
        };
        format!(
            "the configuration of {host} is not given now: {why}; `seedling helper open {host}` opens once"
        )
    }
}

impl Door {
    /// The lab switched a machine on that has not finished its first boot.
    pub fn power_on(self) -> Self {
        Self { open: Some(Open { by: Opener::PowerOn, until: None, started: 0 }), served: None, ..self }
    }

    /// `None`: as open as before. Written at most once in half the time, so that a flood of packets is none of writes.
    pub fn dhcp(&self, now: i64) -> Option<Self> {
        let enough = |open: &Open| open.until.is_none_or(|until| until - now > BOOT_SECONDS / 2);
        if self.served.is_none() && self.open.as_ref().is_some_and(enough) {
            return None;
        }
        let open = Open { by: Opener::Dhcp, until: Some(now + BOOT_SECONDS), started: 0 };
        Some(Self { open: Some(open), served: None, over: self.over.clone() })
    }

    pub fn person(self, now: i64) -> Self {
        let open = Open { by: Opener::Person, until: Some(now + PERSON_SECONDS), started: 0 };
        Self { open: Some(open), served: None, ..self }
    }

    /// The masters carry the cluster. Nothing to write if that is known of this config.
    pub fn over(&self, config: &str, now: i64) -> Option<Self> {
        let known = self.over.as_ref().is_some_and(|over| over.config == config);
        let over = Over { config: config.into(), since: now };
        (!known).then_some(Self { over: Some(over), open: None, served: self.served })
    }

    /// Whether a fetch may begin; then with what to write down first.
    pub fn fetch(&self, role: Role, config: &str, now: i64) -> Result<Self, Refusal> {
        let open = self.open.as_ref();
        let by_person = open.is_some_and(|open| open.by == Opener::Person);
        if !by_person && self.over.as_ref().is_some_and(|over| over.config == config) {
            return Err(Refusal::Over);
        }
        if self.served.is_some() {
            return Err(Refusal::Served);
        }
        let Some(open) = open.filter(|open| open.until.is_none_or(|until| now < until)) else {
            return Err(Refusal::NotBooting);
        };
        // A machine that waits for its machine-config server starts from its pointer again and again.
        if role == Role::Bootstrap && open.started >= MOST_STARTED {
            return Err(Refusal::TooOften);
        }
        let open = Open { started: open.started.saturating_add(1), ..open.clone() };
        Ok(Self { open: Some(open), ..self.clone() })
    }

    /// The bootstrap node's config reached its machine.
    pub fn complete(self, now: i64) -> Self {
        Self { open: None, served: Some(now), ..self }
    }

    /// Node software was fetched: the machine has its config, and boots on. `None`: nothing to write.
    pub fn software(&self, now: i64) -> Option<Self> {
        let asked = self.open.as_ref().is_some_and(|open| open.started > 0);
        asked.then(|| self.clone().complete(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60;

    /// What happens, a word each, at minute 0, 1, 2, …; a fetch says whether it was given.
    fn story(role: Role, words: &str) -> String {
        let mut door = Door::default();
        let mut said = Vec::new();
        for (minute, word) in words.split(' ').enumerate() {
            let now = 1_000_000 + i64::try_from(minute).unwrap_or_default() * MINUTE;
            let (word, config) = word.split_once(':').unwrap_or((word, "one"));
            match word {
                "on" => door = door.power_on(),
                "dhcp" => door = door.dhcp(now).unwrap_or(door),
                "person" => door = door.person(now),
                "over" => door = door.over(config, now).unwrap_or(door),
                "software" => door = door.software(now).unwrap_or(door),
                "wait" => {}
                // A fetch that ends, or one that is cut off.
                "get" | "cut" => match door.fetch(role, config, now) {
                    Ok(next) if word == "get" && role == Role::Bootstrap => {
                        door = next.complete(now);
                        said.push("given".to_string());
                    }
                    Ok(next) => {
                        door = next;
                        said.push("given".to_string());
                    }
                    Err(refusal) => said.push(format!("{refusal:?} {}", refusal.status())),
                },
                other => panic!("{other}"),
            }
        }
        said.join(", ")
    }

    #[test]
    fn the_bootstrap_nodes_config_is_given_once_a_power_on_and_never_after_the_handoff() {
        let ten = ["wait"; 9].join(" ");
        let table = [
            ("get".into(), "NotBooting 403"),
            ("on get get".into(), "given, Served 410"),
            ("on cut cut get get".into(), "given, given, given, Served 410"),
            ("on get on get".into(), "given, given"),
            ("dhcp get get dhcp get".into(), "given, Served 410, given"),
            (format!("dhcp {ten} get"), "NotBooting 403"),
            (format!("dhcp wait wait wait wait wait dhcp {ten} get"), "NotBooting 403"),
            ("dhcp wait wait wait wait wait dhcp wait wait wait wait wait get".into(), "given"),
            (format!("on {ten} {ten} get"), "given"),
            ("on cut software cut".into(), "given, Served 410"),
            ("on get over get on get dhcp get".into(), "given, Over 410, Over 410, Over 410"),
            ("on over get".into(), "Over 410"),
            ("on get over person get get on get".into(), "given, given, Over 410, Over 410"),
            ("on get over on get:two".into(), "given, given"),
            (
                "on cut cut cut cut cut cut cut cut get".into(),
                "given, given, given, given, given, given, given, given, TooOften 403",
            ),
        ];
        for (words, want) in table {
            assert_eq!(story(Role::Bootstrap, &words), want, "{words}");
        }
    }

    #[test]
    fn a_pointer_is_given_until_its_machine_has_the_config_it_points_at() {
        let table = [
            ("get", "NotBooting 403"),
            ("on get get get get get get get get get get", &["given"; 10].join(", ")),
            ("on get software get", "given, Served 410"),
            ("on software get", "given"),
            ("on get software on get", "given, given"),
            ("dhcp get software dhcp get", "given, given"),
            ("dhcp get software get person get", "given, Served 410, given"),
        ];
        for (words, want) in table {
            assert_eq!(story(Role::Master, words), want, "{words}");
        }
    }
}
