//! Of two voters both are needed. When the first master that votes dies for good, etcd stops. So after the patience that
//! everybody has with a master, this member continues alone, with the same cluster, and the other masters join it again.
//!
//! Only with two voters: of three, the other two may have agreed on something without this one. It cannot make a second cluster:
//! the member that was given up could never agree on anything by itself, and is told so when it comes back.
//!
//! Whatever was agreed on is in this member's log too, but it need not know that it was: the other one may have counted its voice,
//! told a client, and died before it said so. etcd drops such entries when it continues alone. So it does that by itself only when
//! its log has none; otherwise it says so and waits for a person (`seedling bootkube --accept-loss`), or for the master.

use crate::alone::{self, Order, Verdict};
use crate::error::cannot;
use crate::{Context, Error, Result, conditions, stages::etcd_bootstrap};
use kube::Client;
use seedling_cluster::etcd::Etcd;
use seedling_cluster::recovery::{Allows, Next, Refusal, Seen, Tail, next, other_voter};
use seedling_cluster::{Cache, patience};
use seedling_steps::journal::{Event, Fate, Line, fold};
use seedling_steps::{Condition, Journal, Probe, wait_for};
use seedling_types::{paths, ports};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::time::{sleep, timeout};

const LOOK: Duration = Duration::from_secs(1);
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
/// Its lines in the node's journal.
const WHO: &str = "etcd-restore";
const STEP: &str = "go-on-alone";
/// The fact of that step: the member that was given up.
const LOST: &str = "lost";
/// A person's word, with the end of the log that was shown.
const ACCEPTED: &str = "accept-loss";

/// As long as it is polled. Without an API to ask, the patience is the default.
///
/// Cut short anywhere, it leaves at most an order, which fits one log and no later one; `close` takes that away too.
pub(crate) async fn watch_over(c: &Context, client: Option<&Client>) {
    let cache = client.map(Cache::new);
    let (mut wait, mut lost_since, mut said) = (patience::DEFAULT, None, String::new());
    // A killed run's order may be older than what is true now: this run looks for itself, with patience.
    if let Err(e) = alone::withdraw(&c.path(paths::ETCD_DATA)) {
        tracing::warn!("restoring etcd: {e}");
    }
    loop {
        let lines = c.journal.read().unwrap_or_default();
        let refused = refusal(&lines);
        let seen = match (look(c, &mut lost_since).await, refused.as_ref().and_then(|r| r.tail)) {
            (Seen::Unclear, Some(tail)) => still_lost(c, &lines, tail, &mut lost_since).await,
            (seen, _) => seen,
        };
        if seen == Seen::Well
            && let Some(cache) = &cache
        {
            wait = patience::read(cache).await.unwrap_or(wait);
        }
        let result = match next(seen, refused, accepted(&lines), wait) {
            Next::Wait => Ok(()),
            Next::Close => close(c),
            Next::GoAlone(lost, allows) => restore(c, &lost, allows).await,
            Next::Ask(lost, refusal) => ask(c, &lost, &refusal, &mut said),
        };
        if let Err(e) = result {
            tracing::warn!("restoring etcd: {e}");
        }
        sleep(LOOK).await;
    }
}

async fn look(c: &Context, lost_since: &mut Option<(String, Instant)>) -> Seen {
    let asked = async {
        let tls = c.etcd_tls()?;
        let mut etcd = here(c).await?;
        let (status, members) = (etcd.status().await?, etcd.members().await?);
        let Some(other) = other_voter(&status, &members) else { return Ok::<_, Error>(None) };
        let answers = async { Etcd::connect(&other.client_urls, &tls).await?.status().await };
        let silent = !matches!(timeout(ANSWERS_WITHIN, answers).await, Ok(Ok(_)));
        Ok::<_, Error>(silent.then(|| (other.name.clone(), status)))
    };
    match timeout(ANSWERS_WITHIN * 3, asked).await {
        Ok(Ok(Some((name, status)))) => {
            let silent = silent_for(lost_since, &name);
            Seen::Lost { name, silent, committed: status.committed, applied: status.applied }
        }
        Ok(Ok(None)) => {
            *lost_since = None;
            Seen::Well
        }
        _ => Seen::Unclear,
    }
}

/// A member that was started without a majority answers nobody: then what its start has read from the log counts, as long as the
/// master that was lost does not answer either. If it does, there is a majority soon.
async fn still_lost(
    c: &Context,
    lines: &[Line],
    tail: Tail,
    lost_since: &mut Option<(String, Instant)>,
) -> Seen {
    let state = fold(lines);
    let name = state.step(WHO, STEP).and_then(|step| step.facts.get(LOST)).cloned();
    let Some(host) = name.as_deref().and_then(|name| c.inventory.by_name(name)) else { return Seen::Unclear };
    let url = format!("https://{}", SocketAddr::new(host.address, ports::ETCD_CLIENT));
    let answers = async { Ok::<_, Error>(Etcd::connect(&[url], &c.etcd_tls()?).await?.status().await?) };
    if matches!(timeout(ANSWERS_WITHIN, answers).await, Ok(Ok(_))) {
        *lost_since = None;
        return Seen::Unclear;
    }
    let silent = silent_for(lost_since, &host.name);
    Seen::Lost { name: host.name.clone(), silent, committed: tail.commit, applied: tail.commit }
}

fn silent_for(lost_since: &mut Option<(String, Instant)>, name: &str) -> Duration {
    let since = lost_since.take().filter(|(whose, _)| whose == name);
    lost_since.insert(since.unwrap_or_else(|| (name.into(), Instant::now()))).1.elapsed()
}

/// Begun, and not ended.
fn is_under_way(lines: &[Line]) -> bool {
    fold(lines).step(WHO, STEP).is_some_and(|step| step.fate != Fate::Done)
}

/// What the last start said of the last order, unless etcd led since.
fn refusal(lines: &[Line]) -> Option<Refusal> {
    let ended = |l: &Line| l.who == WHO && l.step.as_deref() == Some(STEP) && l.event == Event::End;
    let since = lines.iter().rposition(ended).map_or(0, |at| at + 1);
    match alone::last_verdict(&lines[since..])?.1 {
        Verdict::Refused(refusal) => Some(refusal),
        Verdict::GoesAlone => None,
    }
}

fn accepted(lines: &[Line]) -> Option<Tail> {
    alone::tail_of(&fold(lines).step(WHO, ACCEPTED)?.facts)
}

async fn here(c: &Context) -> Result<Etcd> {
    Ok(Etcd::connect_here(&c.etcd_tls()?).await?)
}

/// Can be killed anywhere: see `alone`, which takes the order.
async fn restore(c: &Context, lost: &str, allows: Allows) -> Result<()> {
    let journal = c.journal.by(WHO);
    journal.begin_with(STEP, [(LOST.to_string(), lost.to_string())].into())?;
    println!("etcd has been without a majority since {lost} was lost: this member goes on with its data");
    let order = Order::new(allows);
    order.leave(&c.path(paths::ETCD_DATA))?;
    etcd_bootstrap::stop().await.map_err(cannot("run", "crictl"))?;
    let condition = Condition::new(
        &conditions::ETCD_ALONE,
        Duration::from_secs(120),
        "crictl logs --tail 20 $(crictl ps -a -q --name '^etcd$' | head -n 1)",
    )
    .on(&c.node);
    let leads = async || Ok::<_, Error>(here(c).await?.status().await?.leader != 0);
    let led = wait_for(&condition, Duration::from_millis(250), async || {
        match alone::last_verdict(&journal.read().unwrap_or_default()) {
            Some((id, Verdict::Refused(_))) if id == order.id => return Probe::Met(false),
            _ => {}
        }
        match timeout(ANSWERS_WITHIN, leads()).await {
            Ok(Ok(true)) => Probe::Met(true),
            Ok(Ok(false)) => Probe::Unmet("no leader".into()),
            Ok(Err(e)) => Probe::Unmet(e.to_string()),
            Err(_) => Probe::Unmet("no answer".into()),
        }
    })
    .await?;
    if led {
        close(c)?;
        println!("etcd leads again; the masters join anew");
    }
    Ok(())
}

/// etcd leads: whatever was under way is over. Also for those who stop watching.
pub(crate) fn close(c: &Context) -> Result<()> {
    alone::withdraw(&c.path(paths::ETCD_DATA))?;
    if is_under_way(&c.journal.read()?) {
        c.journal.by(WHO).end(STEP)?;
    }
    Ok(())
}

fn ask(c: &Context, lost: &str, refusal: &Refusal, said: &mut String) -> Result<()> {
    let text = question(lost, refusal);
    if *said != text {
        println!("{text}");
        c.journal
            .by(WHO)
            .append(&Line { note: Some(text.clone()), ..Line::now(WHO, Some(STEP), Event::Failed) })?;
        *said = text;
    }
    Ok(())
}

fn question(lost: &str, refusal: &Refusal) -> String {
    let next = match refusal.tail {
        Some(tail) if tail.changes_members => {
            format!(
                "bring {lost} back: it may be one of a majority without this member, and this one must not go on alone"
            )
        }
        Some(tail) => format!(
            "bring {lost} back, and nothing is lost; if it is gone for good, on this node: seedling bootkube --accept-loss={tail}"
        ),
        None => format!("bring {lost} back, or put a log that can be read into {}/member", paths::ETCD_DATA),
    };
    format!(
        "etcd has been without a majority since {lost} was lost, and does not go on alone by itself: {}. A client may have been told \
         that its write is kept, and going on alone would drop it; next: {next}",
        refusal.why
    )
}

/// Why a person's consent to a loss is refused.
#[derive(Debug, Error)]
pub enum NotAccepted {
    #[error("nothing waits for such a word: etcd was not asked to drop anything")]
    NothingAsked,
    #[error("the others may be a majority: nobody can accept a second cluster")]
    SecondCluster,
    #[error("etcd would drop what is after {tail}, not {shown}")]
    OtherTail { tail: Tail, shown: String },
}

/// `seedling bootkube --accept-loss`: the running bootkube acts on it at its next look.
pub fn accept_loss(root: &Path, shown: &str) -> Result<()> {
    let journal = Journal::of(root, WHO);
    let refusal = refusal(&journal.read()?);
    let tail = refusal.and_then(|r| r.tail).ok_or(NotAccepted::NothingAsked)?;
    if tail.changes_members {
        return Err(NotAccepted::SecondCluster.into());
    }
    if tail.to_string() != shown {
        return Err(NotAccepted::OtherTail { tail, shown: shown.into() }.into());
    }
    journal.settle(ACCEPTED, alone::facts_of(&tail))?;
    println!(
        "accepted: {} entries after {} may be dropped, if the log still ends so",
        tail.may_lose(),
        tail.commit
    );
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn refused(order: &str, tail: &Tail) -> Line {
        let mut facts = alone::facts_of(tail);
        facts.insert("order".into(), order.into());
        let note = Some("its log ends with 2 entries".into());
        Line { facts, note, ..Line::now(alone::WHO, Some(STEP), Event::Skipped) }
    }

    #[test]
    fn a_restore_is_under_way_until_etcd_leads() {
        let begin = Line::now(WHO, Some(STEP), Event::Begin);
        let mut lines = vec![];
        assert!(!is_under_way(&lines));
        lines.push(begin);
        lines.push(Line::now("boot", None, Event::Begin));
        assert!(is_under_way(&lines), "the machine was switched off meanwhile");
        lines.push(Line::now(WHO, Some(STEP), Event::End));
        assert!(!is_under_way(&lines));
    }

    #[test]
    fn a_refusal_holds_until_etcd_leads() {
        let tail = Tail { commit: 7, last: 9, term: 2, changes_members: false };
        let mut lines = vec![Line::now(WHO, Some(STEP), Event::Begin), refused("1", &tail)];
        assert_eq!(refusal(&lines).and_then(|r| r.tail), Some(tail));
        lines.push(Line::now(WHO, Some(STEP), Event::End));
        assert_eq!(refusal(&lines), None);
    }

    #[test]
    fn a_person_accepts_what_was_shown_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let not_accepted = |shown| accept_loss(root.path(), shown).unwrap_err();
        assert!(matches!(not_accepted("7-9"), Error::NotAccepted(NotAccepted::NothingAsked)));
        let journal = Journal::of(root.path(), WHO);
        let tail = Tail { commit: 7, last: 9, term: 2, changes_members: false };
        journal.append(&refused("1", &tail)).unwrap();
        let lines = journal.read().unwrap();
        assert!(question("m0", &refusal(&lines).unwrap()).ends_with("seedling bootkube --accept-loss=7-9"));
        assert!(matches!(not_accepted("7-10"), Error::NotAccepted(NotAccepted::OtherTail { .. })));
        assert_eq!(accepted(&lines), None);
        accept_loss(root.path(), "7-9").unwrap();
        assert_eq!(accepted(&journal.read().unwrap()), Some(tail));
    }
}
