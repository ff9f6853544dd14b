//! `seedling etcd restore`: on one master, when the others are lost for good, or to go back to a snapshot.
//!
//! The command looks (`here.rs`), decides and asks (`decide.rs`), leaves an order beside etcd's data (`order.rs`), and starts this master's
//! static pods anew. etcd's own container carries the order out (`carry_out.rs`), before it becomes etcd. Then the operator takes the
//! other masters in as new members; those that come with the old cluster's data are told that it was given up (`etcd/join.rs`).

pub mod backup;
mod carry_out;
mod decide;
mod here;
#[cfg(test)]
mod model;
mod order;

pub use backup::{Backup, backup};
pub use carry_out::{Member, carry_out};
pub use here::{Here, who_answers};
pub use order::{Order, RestoreStep, Site};

use super::join;
use crate::error::{cannot, in_file};
use crate::{Error, Result, conditions, recover};
use decide::{Log, Own, Seen};
use seedling_cluster::wal;
use seedling_operators::{etcd, kube_apiserver, kube_controller_manager, kube_scheduler};
use seedling_steps::journal::Event;
use seedling_steps::{Condition, Journal, Probe, wait_for};
use seedling_types::paths;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const POLL: Duration = Duration::from_secs(1);
/// Without progress; a large database takes its time.
const CARRIED_OUT: Duration = Duration::from_secs(900);
const NOTICED: Duration = Duration::from_secs(15);
const LEADS: Duration = Duration::from_secs(300);
/// What a restore writes beside the data: the copy that continues alone, its snapshot, the new data.
const TIMES: u64 = 3;

/// `agreed`: a person's answer to what may be lost. False: nothing was done.
pub async fn restore<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    snapshot: Option<&Path>,
    agreed: impl FnOnce(&str) -> Result<bool, E>,
    say: &dyn Fn(&str),
) -> Result<bool> {
    let here = Here::read()?;
    let site = Site(paths::ETCD_DATA.into());
    let order = match site.order()? {
        Some(order) => {
            say("a restore was ordered before, and is gone on with");
            order
        }
        None => {
            let (seen, dir) = look(&here, &site, snapshot).await?;
            let question = decide::question(&seen).map_err(Error::NoRestore)?;
            if !agreed(&question).map_err(|e| Error::NotAsked(e.into()))? {
                return Ok(false);
            }
            leave(&site, seen, dir.as_deref())?
        }
    };
    here::put_manifests(&order.runs)?;
    here::ask_only_this_member()?;
    say("this master's control plane is started anew; without an API a kubelet takes a minute for it");
    let pods = [etcd::NAMES, kube_apiserver::NAMES, kube_controller_manager::NAMES, kube_scheduler::NAMES];
    recover::restart_pods(&here.name, &pods.map(|names| names.pod)).await?;
    wait_until_carried_out(&site, &order).await?;
    say("the data is restored; what was there is kept beside it, in /var/lib/etcd/member.before-restore-*");
    let leads = Condition::new(
        &conditions::RESTORE_LEADS,
        LEADS,
        "crictl logs $(crictl ps -a -q --name '^etcd$' | head -n 1)",
    );
    wait_for(&leads, POLL, async || match own(&here).await {
        Ok(own) if own.has_leader => Probe::Met(()),
        Ok(_) => Probe::Unmet("no leader".into()),
        Err(e) => Probe::Unmet(e.to_string()),
    })
    .await?;
    Ok(true)
}

/// What is seen, and where the snapshot lies.
async fn look(here: &Here, site: &Site, snapshot: Option<&Path>) -> Result<(Seen, Option<PathBuf>)> {
    let (dir, backup) = snapshot.map(backup::read).transpose()?.unzip();
    let has_data = site.log().exists();
    let log = || {
        Ok::<_, String>(Log {
            tail: wal::read_tail(&site.log()).map_err(|e| e.to_string())?,
            written: last_written(&site.log()).map_err(|e| e.to_string())?,
        })
    };
    let mut known = site.given_up();
    known.extend(wal::read_owner(&site.log()).ok().map(|owner| owner.cluster));
    known.extend(join::Data(site.0.clone()).given_up()?);
    let answer = who_answers(here.others()).await;
    let own = match answer.is_empty() {
        true => own_without_others(here).await,
        false => own(here).await.ok(),
    };
    let seen = Seen {
        node: here.name.clone(),
        others: here.others().map(|(name, _)| name.clone()).collect(),
        answer,
        own,
        log: has_data.then(log),
        known,
        runs: here.runs()?,
        backup,
    };
    Ok((seen, dir))
}

/// A member knows of a leader until an election's time has passed without the others; one that still does after `NOTICED` has a majority.
async fn own_without_others(here: &Here) -> Option<Own> {
    let mut last = None;
    let noticed = Condition::new(&conditions::RESTORE_NOTICED, NOTICED, "");
    let waited = wait_for(&noticed, POLL, async || {
        last = own(here).await.ok();
        match last {
            Some(own) if own.has_leader && own.voters > 1 => Probe::Unmet("it has a leader".into()),
            _ => Probe::Met(()),
        }
    });
    // The last answer is judged either way.
    let _ = waited.await;
    last
}

async fn own(here: &Here) -> Result<Own> {
    let asked = async {
        let mut etcd = here.own().await?;
        let (status, members) = (etcd.status().await?, etcd.members().await?);
        let voters = members.iter().filter(|m| !m.learner).count();
        Ok::<_, Error>(Own { has_leader: status.leader != 0, voters, revision: etcd.known_revision().await? })
    };
    let answer = tokio::time::timeout(Duration::from_secs(5), asked).await;
    answer.map_err(|elapsed| Error::Seen(elapsed.to_string()))?
}

fn last_written(dir: &Path) -> Result<String> {
    let newest = || {
        let mut newest = std::time::UNIX_EPOCH;
        for entry in std::fs::read_dir(dir)? {
            newest = newest.max(entry?.metadata()?.modified()?);
        }
        io::Result::Ok(newest)
    };
    to_the_second(newest().map_err(cannot("read", dir))?.into())
}

/// As people read it.
fn to_the_second(at: OffsetDateTime) -> Result<String> {
    at.replace_nanosecond(0).unwrap_or(at).format(&Rfc3339).map_err(in_file("the time"))
}

/// The order comes last: until it is there, nothing was ordered.
fn leave(site: &Site, seen: Seen, dir: Option<&Path>) -> Result<Order> {
    site.clear()?;
    let id = OffsetDateTime::now_utc().unix_timestamp_nanos().to_string();
    let mut order = Order { id, log: None, given_up: seen.known, runs: Default::default() };
    match (seen.backup, dir) {
        (Some(about), Some(dir)) => {
            backup::room(&site.0, about.size * TIMES).map_err(Error::NoRoom)?;
            let given = dir.join(backup::SNAPSHOT);
            take_snapshot(site, &given).map_err(cannot("copy", &given))?;
            order.given_up.extend(about.given_up.iter().chain([&about.cluster]));
            if about.runs != seen.runs {
                backup::put_back(dir, &about, Path::new(paths::STATIC_POD_RESOURCES), &order.id)?;
                order.runs = about.runs;
            }
        }
        _ => {
            let size = size(&site.member()).map_err(cannot("read", site.member()))?;
            backup::room(&site.0, size * TIMES).map_err(Error::NoRoom)?;
            order.log = seen.log.and_then(Result::ok).map(|log| log.tail);
        }
    }
    let facts = [("order".to_string(), order.id.clone())].into();
    Journal::of(Path::new("/"), carry_out::WHO).settle("order", facts)?;
    site.leave(&order)?;
    Ok(order)
}

fn take_snapshot(site: &Site, given: &Path) -> io::Result<()> {
    std::fs::create_dir_all(site.scratch())?;
    let partial = site.scratch().join("snapshot.part");
    std::fs::copy(given, &partial)?;
    std::fs::File::open(&partial)?.sync_all()?;
    std::fs::rename(partial, site.snapshot())
}

fn size(dir: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        sum += match entry.file_type()?.is_dir() {
            true => size(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(sum)
}

async fn wait_until_carried_out(site: &Site, order: &Order) -> Result<()> {
    let journal = Journal::of(Path::new("/"), carry_out::WHO);
    let condition = Condition::new(
        &conditions::RESTORE_CARRIED_OUT,
        CARRIED_OUT,
        "seedling node journal; crictl logs $(crictl ps -a -q --name '^etcd$' | head -n 1). Run this command again to go on, or remove \
         /var/lib/etcd/restore/order.json to go on as before",
    );
    let carried_out = wait_for(&condition, POLL, async || match site.order() {
        Ok(None) => Probe::Met(()),
        Ok(Some(_)) => Probe::Unmet(journal.summary_of(carry_out::WHO)),
        Err(e) => Probe::Unmet(e.to_string()),
    });
    carried_out.await?;
    if site.was_done(&order.id) {
        return Ok(());
    }
    let lines = journal.read()?;
    let refused = lines.iter().rfind(|l| l.who == carry_out::WHO && l.event == Event::Skipped);
    Err(Error::NoRestore(match refused.and_then(|line| line.note.as_ref()) {
        Some(why) => format!("nothing was restored: {why}"),
        None => "the order is gone, and nobody says why".into(),
    }))
}
