//! etcd's leader leaves this node as soon as a master can lead.
//!
//! A leader that hands over drops what is proposed to it meanwhile. What came through another member waits seven seconds for an
//! answer that never comes. So it hands over while this node's API server is the only one, and that one is held still for the
//! moment it takes: its requests wait, none fails.

use crate::Context;
use anyhow::{Context as _, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use seedling_cluster::etcd::{Etcd, Member, Status};
use seedling_types::ports;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

const LOOK: Duration = Duration::from_millis(200);
/// In which what was under way is through, and a follower leads. Longer, and clients would take the API server for dead.
const HELD_FOR: Duration = Duration::from_millis(900);
/// What the API server sent before it was held may still be on its way into etcd: so long nothing new must come.
const QUIET: Duration = Duration::from_millis(50);
/// The members themselves write too, rarely; then it is not waited for longer.
const QUIET_WITHIN: Duration = Duration::from_millis(400);

/// Until another member leads; whatever goes wrong is tried again, and in the end the etcd operator does it before it removes
/// this member.
pub async fn hand_over(c: &Context) {
    // Held by a run of ours that was killed.
    if let Some(api_server) = api_server() {
        let _ = kill(api_server, Signal::SIGCONT);
    }
    let mut said = String::new();
    loop {
        match try_to(c).await {
            Ok(true) => return,
            Ok(false) => {}
            Err(e) if said == format!("{e:#}") => {}
            Err(e) => {
                said = format!("{e:#}");
                tracing::info!("etcd's leader stays here for now: {said}");
            }
        }
        sleep(LOOK).await;
    }
}

/// True: it is not here (any more).
async fn try_to(c: &Context) -> Result<bool> {
    let tls = c.etcd_tls()?;
    let endpoint = format!("https://localhost:{}", ports::ETCD_CLIENT);
    let mut etcd = Etcd::connect(&[endpoint], &tls).await?;
    let Some(next) = successor(&etcd.status().await?, &etcd.members().await?) else { return Ok(false) };
    let Some(next) = next else { return Ok(true) };
    let mut there = Etcd::connect(&next.client_urls, &tls).await?;
    there.status().await?;

    let started = Instant::now();
    let held = Held::new(api_server().context("no API server runs here")?)?;
    timeout(HELD_FOR, async {
        // Quiet or not, by then it goes on.
        let _ = timeout(QUIET_WITHIN, quiet(&mut etcd)).await;
        etcd.move_leader(next.id).await
    })
    .await??;
    drop(held);
    println!("etcd's leader is {} after {} ms", next.name, started.elapsed().as_millis());
    Ok(true)
}

/// Everything proposed is applied, and for a while nothing was proposed.
async fn quiet(etcd: &mut Etcd) -> Result<()> {
    let mut before = etcd.status().await?;
    loop {
        sleep(QUIET).await;
        let now = etcd.status().await?;
        if now.applied == now.committed && now.committed == before.committed {
            return Ok(());
        }
        before = now;
    }
}

/// Whom this member hands over to; `Some(None)`: it need not, since it does not lead; `None`: there is nobody yet.
fn successor(here: &Status, members: &[Member]) -> Option<Option<Member>> {
    if here.leader != here.member {
        return (here.leader != 0).then_some(None);
    }
    let votes = |m: &&Member| !m.learner && !m.name.is_empty() && !m.client_urls.is_empty();
    members.iter().filter(votes).find(|m| m.id != here.member).cloned().map(Some)
}

/// A process that is stopped as long as this lives.
struct Held(Pid);

impl Held {
    fn new(pid: Pid) -> Result<Self> {
        kill(pid, Signal::SIGSTOP)?;
        Ok(Self(pid))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGCONT);
    }
}

/// The one on this node.
fn api_server() -> Option<Pid> {
    let named = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let comm = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        (comm.trim_end() == "kube-apiserver").then(|| Pid::from_raw(pid))
    };
    std::fs::read_dir("/proc").ok()?.flatten().find_map(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: u64, name: &str, learner: bool) -> Member {
        let client_urls = vec![format!("https://10.0.0.{id}:2379")];
        Member { id, name: name.into(), peer_urls: vec![], client_urls, learner }
    }

    #[test]
    fn the_first_voter_elsewhere_leads() {
        let here = |leader| Status { member: 1, cluster: 9, leader, learner: false, committed: 5, applied: 5 };
        let alone = [member(1, "bootstrap", false), member(2, "m0", true), member(3, "", false)];
        assert_eq!(successor(&here(1), &alone), None);
        let two = [member(1, "bootstrap", false), member(2, "m0", true), member(3, "m1", false)];
        assert_eq!(successor(&here(1), &two), Some(Some(two[2].clone())));
        assert_eq!(successor(&here(3), &two), Some(None));
        assert_eq!(successor(&here(0), &two), None, "an election is under way");
    }
}
