//! Of two voters both are needed. When the first master that votes dies for good, etcd stands still; its data is not lost,
//! because whatever was agreed on is on this node too. So after the patience that everybody has with a master, this member goes on
//! alone, with the same cluster and the same data, and the other masters join it again.
//!
//! Only with two voters: of three, the other two may have agreed on something without this one. It cannot make a second cluster:
//! the member that was given up could never agree on anything by itself, and is told so when it comes back.

use crate::{Context, stages::etcd_bootstrap};
use anyhow::Result;
use kube::Client;
use seedling_cluster::etcd::{Etcd, Member, Status};
use seedling_cluster::{Cache, patience};
use seedling_steps::journal::{Fate, Line, fold};
use seedling_steps::{Condition, Probe, wait_for};
use seedling_types::ports;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

const LOOK: Duration = Duration::from_secs(1);
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
/// Its lines in the node's journal: a run that comes after a killed one goes on.
const WHO: &str = "etcd-restore";
const STEP: &str = "go-on-alone";
/// The fact of that step: the member that was given up.
const LOST: &str = "lost";

/// As long as it is polled. Without an API to ask, the patience is the default.
pub async fn watch_over(c: &Context, client: Option<&Client>) {
    let cache = client.map(Cache::new);
    let journal = c.journal.by(WHO);
    let (mut wait, mut lost_since) = (patience::DEFAULT, None);
    loop {
        let seen = match under_way(&journal.read().unwrap_or_default()) {
            Some(name) => Seen::LostFor(name, Duration::MAX),
            None => look(c, &mut lost_since).await,
        };
        let result = match seen {
            Seen::Well => {
                if let Some(cache) = &cache {
                    wait = patience::read(cache).await.unwrap_or(wait);
                }
                Ok(())
            }
            Seen::Unclear => Ok(()),
            Seen::LostFor(name, since) if since >= wait => restore(c, &name).await,
            Seen::LostFor(..) => Ok(()),
        };
        if let Err(e) = result {
            tracing::warn!("restoring etcd: {e:#}");
        }
        sleep(LOOK).await;
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Well,
    Unclear,
    LostFor(String, Duration),
}

async fn look(c: &Context, lost_since: &mut Option<Instant>) -> Seen {
    let asked = async {
        let tls = c.etcd_tls()?;
        let mut etcd = here(c).await?;
        let (status, members) = (etcd.status().await?, etcd.members().await?);
        let Some(other) = other_voter(&status, &members) else { return anyhow::Ok(None) };
        let answers = async { Etcd::connect(&other.client_urls, &tls).await?.status().await };
        let silent = !matches!(timeout(ANSWERS_WITHIN, answers).await, Ok(Ok(_)));
        anyhow::Ok(Some((other.name.clone(), silent)))
    };
    match timeout(ANSWERS_WITHIN * 3, asked).await {
        Ok(Ok(Some((name, true)))) => {
            Seen::LostFor(name, lost_since.get_or_insert_with(Instant::now).elapsed())
        }
        Ok(Ok(_)) => {
            *lost_since = None;
            Seen::Well
        }
        _ => Seen::Unclear,
    }
}

/// The one that this member cannot do without, if there is no leader and it is the only other voter.
fn other_voter<'a>(here: &Status, members: &'a [Member]) -> Option<&'a Member> {
    let mut others = members.iter().filter(|m| !m.learner && m.id != here.member);
    match (here.leader, others.next(), others.next()) {
        (0, Some(other), None) => Some(other),
        _ => None,
    }
}

/// Begun, and not ended.
fn under_way(lines: &[Line]) -> Option<String> {
    let state = fold(lines);
    let step = state.step(WHO, STEP).filter(|step| step.fate != Fate::Done)?;
    step.facts.get(LOST).cloned()
}

async fn here(c: &Context) -> Result<Etcd> {
    Ok(Etcd::connect(&[format!("https://localhost:{}", ports::ETCD_CLIENT)], &c.etcd_tls()?).await?)
}

/// Can be killed anywhere: the journal says that it is under way, and a member that leads again only needs its config back.
async fn restore(c: &Context, lost: &str) -> Result<()> {
    let journal = c.journal.by(WHO);
    journal.begin_with(STEP, [(LOST.to_string(), lost.to_string())].into())?;
    let config = etcd_bootstrap::config(c)?;
    let leads = async || anyhow::Ok(here(c).await?.status().await?.leader != 0);
    if !matches!(timeout(ANSWERS_WITHIN, leads()).await, Ok(Ok(true))) {
        println!("etcd has been without a majority since {lost} was lost: this member goes on with its data");
        let mut alone = config.clone();
        alone["force-new-cluster"] = json!(true);
        etcd_bootstrap::write_config(c, &alone)?;
        etcd_bootstrap::restart().await?;
        let condition = Condition::new(
            "etcd on this node to lead alone",
            Duration::from_secs(120),
            "crictl logs --tail 20 $(crictl ps -a -q --name '^etcd$' | head -n 1)",
        )
        .on(&c.node);
        wait_for(&condition, Duration::from_millis(250), async || {
            match timeout(ANSWERS_WITHIN, leads()).await {
                Ok(Ok(true)) => Probe::Met(()),
                Ok(Ok(false)) => Probe::Unmet("no leader".into()),
                Ok(Err(e)) => Probe::Unmet(e.to_string()),
                Err(_) => Probe::Unmet("no answer".into()),
            }
        })
        .await?;
    }
    // It only matters when etcd starts: left there, the next start would give up the members that joined meanwhile.
    etcd_bootstrap::write_config(c, &config)?;
    journal.end(STEP)?;
    println!("etcd leads again, with all its data; the masters join anew");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use seedling_steps::journal::Event;

    fn member(id: u64, learner: bool) -> Member {
        Member { id, name: format!("m{id}"), peer_urls: vec![], client_urls: vec![], learner }
    }

    #[test]
    fn a_restore_is_under_way_until_it_ended() {
        let line = |event, lost: &str| {
            let facts = [(LOST.to_string(), lost.to_string())].into();
            Line { facts, ..Line::now(WHO, Some(STEP), event) }
        };
        let boot = Line::now("boot", None, Event::Begin);
        let mut lines = vec![line(Event::Begin, "m0")];
        assert_eq!(under_way(&lines).as_deref(), Some("m0"));
        lines.push(boot);
        assert_eq!(under_way(&lines).as_deref(), Some("m0"), "the machine was switched off meanwhile");
        lines.push(Line::now(WHO, Some(STEP), Event::End));
        assert_eq!(under_way(&lines), None);
        lines.push(line(Event::Begin, "m1"));
        assert_eq!(under_way(&lines).as_deref(), Some("m1"));
    }

    #[test]
    fn only_of_two_voters_one_is_given_up() {
        let here = |leader| Status { member: 1, cluster: 9, leader, learner: false, index: 5, applied: 5 };
        let two = [member(1, false), member(2, false), member(3, true)];
        assert_eq!(other_voter(&here(0), &two).map(|m| m.id), Some(2));
        assert_eq!(other_voter(&here(2), &two), None, "it has a leader");
        let three = [member(1, false), member(2, false), member(3, false)];
        assert_eq!(other_voter(&here(0), &three), None, "the others may have agreed without this one");
        assert_eq!(other_voter(&here(0), &two[..1]), None);
    }
}
