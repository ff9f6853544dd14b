//! In the bootstrap member's container, before etcd: whether this start continues alone (`force-new-cluster`).
//!
//! etcd drops all other members at every start that says so, even if they are a majority by then. So no config file says so, and
//! no start says so twice:
//! - bootkube leaves an order beside the data, and stops etcd. The next start takes the order away, and the directory is on the disk
//!   without it, before anything else happens. Killed before, nothing was forced, and the order is still good or withdrawn; killed
//!   after, the next start finds no order, and is an ordinary one.
//! - An order names the end of the log that it is good for. Nobody joins, leads or writes without an entry in this member's log, as
//!   long as it is needed for a majority; and a forced start itself begins with an entry, the others' removal. So an order that was
//!   left behind by any accident (a kill, a copy of the disk) fits no log of later.
//! - The forced config is in memory only, and goes with the process.
//!
//! Whatever is wrong with an order, etcd starts as always.

use crate::error::{cannot, in_file};
use crate::{Error, Result};
use seedling_cluster::recovery::{Allows, Refusal, Tail};
use seedling_cluster::wal;
use seedling_components::pod::to_yaml;
use seedling_steps::journal::{Event, Line};
use seedling_steps::{Journal, if_there, sync_directory, write_atomic};
use seedling_types::paths;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;

/// Beside etcd's data.
const ORDER: &str = "go-on-alone.json";
const TAKEN: &str = "go-on-alone.taken.json";
/// Its lines in the node's journal.
pub(crate) const WHO: &str = "etcd-start";
const STEP: &str = "go-on-alone";
const CONFIG_FLAG: &str = "--config-file=";

/// For one start of etcd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub id: String,
    pub allows: Allows,
}

impl Order {
    pub(crate) fn new(allows: Allows) -> Self {
        Self { id: time::OffsetDateTime::now_utc().unix_timestamp_nanos().to_string(), allows }
    }

    pub(crate) fn leave(&self, data: &Path) -> Result<()> {
        write_atomic(&data.join(ORDER), serde_json::to_vec(self)?, 0o600)
            .map_err(cannot("order", "etcd to go on alone"))
    }
}

/// What nobody has taken yet holds no longer.
pub(crate) fn withdraw(data: &Path) -> Result<()> {
    let removed = if_there(std::fs::remove_file(data.join(ORDER)));
    let synced = removed.and_then(|removed| removed.map_or(Ok(()), |()| sync_directory(data)));
    synced.map_err(cannot("take away", data.join(ORDER)))
}

/// At most one caller gets an order, and it only once.
fn take(data: &Path) -> Result<Option<Order>> {
    let taken = data.join(TAKEN);
    let refused = || cannot("take away", data.join(ORDER));
    if if_there(std::fs::rename(data.join(ORDER), &taken)).map_err(refused())?.is_none() {
        return Ok(None);
    }
    sync_directory(data).map_err(refused())?;
    let order = std::fs::read(&taken).map_err(cannot("read", &taken))?;
    Ok(Some(serde_json::from_slice(&order).map_err(in_file(taken.display()))?))
}

/// What a start made of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    GoesAlone,
    Refused(Refusal),
}

fn judge(allows: &Allows, tail: Result<Tail, wal::BadLog>) -> (Verdict, Option<Tail>) {
    match tail {
        Ok(tail) if allows.fits(&tail) => (Verdict::GoesAlone, Some(tail)),
        Ok(tail) => {
            let why = match tail.may_lose() {
                0 => format!("its log ends at {}, which was not looked at", tail.last),
                _ if tail.changes_members => {
                    "its log ends with a change of the members of which it does not know whether it was agreed on".into()
                }
                n => format!(
                    "its log ends with {n} entries of which it does not know whether they were agreed on"
                ),
            };
            (Verdict::Refused(Refusal { tail: Some(tail), why }), Some(tail))
        }
        Err(e) => {
            (Verdict::Refused(Refusal { tail: None, why: format!("its log cannot be read: {e}") }), None)
        }
    }
}

/// True: this start is to be forced. Written down before.
fn is_to_go_alone(data: &Path, journal: &Journal) -> Result<bool> {
    let Some(order) = take(data)? else { return Ok(false) };
    let (verdict, tail) = judge(&order.allows, wal::read_tail(&data.join("member/wal")));
    let mut facts = tail.map(|tail| facts_of(&tail)).unwrap_or_default();
    facts.insert("order".into(), order.id);
    let (event, note) = match &verdict {
        Verdict::GoesAlone => (Event::End, None),
        Verdict::Refused(refusal) => (Event::Skipped, Some(refusal.why.clone())),
    };
    journal.append(&Line { facts, note, ..Line::now(WHO, Some(STEP), event) })?;
    Ok(verdict == Verdict::GoesAlone)
}

/// The last word of a start, and on which order.
pub(crate) fn last_verdict(lines: &[Line]) -> Option<(String, Verdict)> {
    let line = lines.iter().rfind(|l| l.who == WHO && l.step.as_deref() == Some(STEP))?;
    let refusal = || Refusal { tail: tail_of(&line.facts), why: line.note.clone().unwrap_or_default() };
    let verdict = if line.event == Event::End { Verdict::GoesAlone } else { Verdict::Refused(refusal()) };
    Some((line.facts.get("order")?.clone(), verdict))
}

pub(crate) fn facts_of(tail: &Tail) -> BTreeMap<String, String> {
    let facts = [("commit", tail.commit), ("last", tail.last), ("term", tail.term)];
    let mut facts: BTreeMap<_, _> = facts.map(|(name, number)| (name.to_string(), number.to_string())).into();
    facts.insert("changesMembers".into(), tail.changes_members.to_string());
    facts
}

pub(crate) fn tail_of(facts: &BTreeMap<String, String>) -> Option<Tail> {
    let number = |name: &str| facts.get(name)?.parse().ok();
    let changes_members = facts.get("changesMembers")? == "true";
    Some(Tail { commit: number("commit")?, last: number("last")?, term: number("term")?, changes_members })
}

/// Becomes etcd.
pub fn start_etcd(root: &Path, command: &[String]) -> Result<()> {
    let data = root.join(paths::ETCD_DATA.trim_start_matches('/'));
    let alone = is_to_go_alone(&data, &Journal::of(root, WHO)).unwrap_or_else(|e| {
        eprintln!("etcd starts as always: {e}");
        false
    });
    let (program, flags) = command.split_first().ok_or_else(|| Error::Seen("nothing to start".into()))?;
    let mut etcd = std::process::Command::new(program);
    if !alone {
        return Err(cannot("start", program)(etcd.args(flags).exec()));
    }
    let Some(named) = flags.iter().find_map(|flag| flag.strip_prefix(CONFIG_FLAG)) else {
        return Err(Error::Seen("etcd has no config file".into()));
    };
    let config = std::fs::read_to_string(named).map_err(cannot("read", named))?;
    let config = in_memory(&forced(&config)?).map_err(cannot("keep in memory", named))?;
    eprintln!("etcd goes on alone, this once");
    let flags = flags.iter().map(|flag| match flag.starts_with(CONFIG_FLAG) {
        true => format!("{CONFIG_FLAG}/proc/self/fd/{}", config.as_raw_fd()),
        false => flag.clone(),
    });
    Err(cannot("start", program)(etcd.args(flags).exec()))
}

fn forced(config: &str) -> Result<String> {
    let mut config: Value = serde_saphyr::from_str(config).map_err(in_file("etcd's config"))?;
    config["force-new-cluster"] = json!(true);
    Ok(to_yaml(&config))
}

/// A file without a name, which the program that this process becomes can read.
fn in_memory(text: &str) -> std::io::Result<OwnedFd> {
    let file = nix::sys::memfd::memfd_create(c"etcd.yaml", nix::sys::memfd::MFdFlags::empty())?;
    std::fs::File::from(file.try_clone()?).write_all(text.as_bytes())?;
    Ok(file)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use seedling_cluster::wal::Writer;

    /// A member's data whose log ends so.
    fn member(commit: u64, last: u64) -> (tempfile::TempDir, std::path::PathBuf, Journal) {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("var/lib/etcd");
        let journal = Journal::of(root.path(), WHO);
        write_log(&data, commit, last);
        (root, data, journal)
    }
    fn write_log(data: &Path, commit: u64, last: u64) {
        let mut log = Writer::after(0);
        (1..=last).for_each(|index| _ = log.entry(2, index));
        log.state(2, commit);
        std::fs::create_dir_all(data.join("member/wal")).unwrap();
        std::fs::write(data.join("member/wal/0000000000000000-0000000000000000.wal"), log.bytes).unwrap();
    }

    #[test]
    fn a_start_goes_alone_once() {
        let (_root, data, journal) = member(7, 7);
        assert!(!is_to_go_alone(&data, &journal).unwrap(), "nobody ordered it");
        let order = Order::new(Allows::NothingLost { index: 7 });
        order.leave(&data).unwrap();
        assert!(is_to_go_alone(&data, &journal).unwrap());
        assert_eq!(last_verdict(&journal.read().unwrap()), Some((order.id, Verdict::GoesAlone)));
        // Killed before it had changed anything: the same log, and no order.
        assert!(!is_to_go_alone(&data, &journal).unwrap());
        assert!(!data.join(ORDER).exists());
    }

    /// bootkube was killed after it gave the order; the lost one came back, masters joined; then etcd is started again.
    #[test]
    fn an_order_that_was_left_behind_forces_nothing() {
        let (_root, data, journal) = member(7, 7);
        Order::new(Allows::NothingLost { index: 7 }).leave(&data).unwrap();
        write_log(&data, 8, 8);
        assert!(!is_to_go_alone(&data, &journal).unwrap());
        assert!(!data.join(ORDER).exists(), "nor later");
        Order::new(Allows::NothingLost { index: 8 }).leave(&data).unwrap();
        withdraw(&data).unwrap();
        withdraw(&data).unwrap();
        assert!(!is_to_go_alone(&data, &journal).unwrap());
    }

    #[test]
    fn what_may_be_lost_is_shown_and_lost_only_if_it_was_accepted() {
        let (_root, data, journal) = member(7, 9);
        Order::new(Allows::NothingLost { index: 7 }).leave(&data).unwrap();
        assert!(!is_to_go_alone(&data, &journal).unwrap());
        let Some((_, Verdict::Refused(refusal))) = last_verdict(&journal.read().unwrap()) else { panic!() };
        let tail = Tail { commit: 7, last: 9, term: 2, changes_members: false };
        assert_eq!(refusal.tail, Some(tail));
        assert!(refusal.why.contains("2 entries"), "{}", refusal.why);
        Order::new(Allows::Loss(tail)).leave(&data).unwrap();
        assert!(is_to_go_alone(&data, &journal).unwrap());
        std::fs::remove_dir_all(data.join("member")).unwrap();
        Order::new(Allows::Loss(tail)).leave(&data).unwrap();
        assert!(!is_to_go_alone(&data, &journal).unwrap(), "no log at all");
    }

    #[test]
    fn a_broken_order_forces_nothing_and_goes() {
        let (_root, data, journal) = member(7, 7);
        std::fs::write(data.join(ORDER), "{").unwrap();
        assert!(is_to_go_alone(&data, &journal).is_err());
        assert!(!is_to_go_alone(&data, &journal).unwrap());
    }

    #[test]
    fn only_the_config_in_memory_says_so() {
        let text = forced("name: etcd-bootstrap\ninitial-cluster-state: existing\n").unwrap();
        let config: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(
            config,
            json!({"name": "etcd-bootstrap", "initial-cluster-state": "existing", "force-new-cluster": true})
        );
        let file = in_memory(&text).unwrap();
        let flags = nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_GETFD).unwrap();
        assert_eq!(flags & nix::libc::FD_CLOEXEC, 0, "etcd inherits it");
        assert_eq!(std::fs::read_to_string(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap(), text);
    }
}
