//! etcd's leader leaves this node as soon as a master can lead.
//!
//! A leader drops what is proposed to it while it hands over. What came through another member waits seven seconds for an
//! answer that never comes. So it hands over while this node's API server is the only one, and that one is held still for the
//! moment it takes: its requests wait, none fails.

use crate::error::{cannot, ensure};
use crate::{Context, Error, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reqwest::Client;
use seedling_cluster::etcd::{Etcd, Member, Status};
use seedling_types::ports;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

const LOOK: Duration = Duration::from_millis(200);
/// In which what was under way is through, and a follower leads. Longer, and clients would take the API server for dead.
const HELD_FOR: Duration = Duration::from_millis(900);
/// What the API server sent before it was stopped may still be on its way into etcd: for this long nothing new may arrive.
const QUIET: Duration = Duration::from_millis(50);
/// The members themselves write too, rarely; then it is not waited for longer.
const QUIET_WITHIN: Duration = Duration::from_millis(400);

/// The guard resumes the API server after this many seconds, whatever became of this process.
const HELD_AT_MOST: &str = "2";

/// Until another member leads; whatever goes wrong is tried again, and in the end the etcd operator does it before it removes
/// this member.
pub(crate) async fn hand_over(c: &Context) {
    // Held by a run of ours that was killed.
    if let Some(api_server) = api_server() {
        let _ = kill(api_server, Signal::SIGCONT);
    }
    let mut said = String::new();
    loop {
        match try_to(c).await {
            Ok(true) => return,
            Ok(false) => {}
            Err(e) if said == e.to_string() => {}
            Err(e) => {
                said = e.to_string();
                tracing::info!("etcd's leader stays on this node for now: {said}");
            }
        }
        sleep(LOOK).await;
    }
}

/// True: it is not here (any more).
async fn try_to(c: &Context) -> Result<bool> {
    let tls = c.etcd_tls()?;
    let mut etcd = Etcd::connect_here(&tls).await?;
    let Some(next) = successor(&etcd.status().await?, &etcd.members().await?) else { return Ok(false) };
    let Some(next) = next else { return Ok(true) };
    let mut there = Etcd::connect(&next.client_urls, &tls).await?;
    there.status().await?;

    let started = Instant::now();
    let http = Client::builder().timeout(QUIET_WITHIN).tls_certs_only([]).no_proxy().build()?;
    let held = Held::new(api_server().ok_or_else(|| Error::Seen("no API server runs here".into()))?)?;
    timeout(HELD_FOR, async {
        // Quiet or not, then it hands over.
        let _ = timeout(QUIET_WITHIN, quiet(&http)).await;
        etcd.move_leader(next.id).await
    })
    .await
    .map_err(|elapsed| Error::Seen(elapsed.to_string()))??;
    drop(held);
    println!("etcd's leader is {} after {} ms", next.name, started.elapsed().as_millis());
    Ok(true)
}

/// Nothing that was proposed through this member waits for an answer, and for a while nothing new was agreed on.
async fn quiet(http: &Client) -> Result<()> {
    let url = format!("http://127.0.0.1:{}/metrics", ports::ETCD_METRICS);
    let look = async || Ok::<_, Error>(Proposals::of_metrics(&http.get(&url).send().await?.text().await?));
    let mut before = look().await?;
    loop {
        sleep(QUIET).await;
        let now = look().await?;
        if now.as_ref().is_some_and(|now| now.is_quiet_since(before.as_ref())) {
            return Ok(());
        }
        before = now;
    }
}

/// Of etcd's metrics. Its status has no number of what is proposed and not yet agreed on.
#[derive(Clone, Debug, PartialEq)]
struct Proposals {
    /// Proposed through this member, and neither done nor failed.
    pending: f64,
    committed: f64,
    applied: f64,
}

impl Proposals {
    fn of_metrics(text: &str) -> Option<Self> {
        let number = |name: &str| {
            let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
            text.lines().find_map(value)
        };
        Some(Self {
            pending: number("etcd_server_proposals_pending")?,
            committed: number("etcd_server_proposals_committed_total")?,
            applied: number("etcd_server_proposals_applied_total")?,
        })
    }

    fn is_quiet_since(&self, before: Option<&Self>) -> bool {
        self.pending == 0.0
            && self.applied == self.committed
            && before.is_some_and(|b| b.committed == self.committed)
    }
}

/// The member to hand over to; `Some(None)`: this one does not lead, so it need not; `None`: there is no candidate yet.
fn successor(here: &Status, members: &[Member]) -> Option<Option<Member>> {
    if here.leader != here.member {
        return (here.leader != 0).then_some(None);
    }
    let votes = |m: &&Member| !m.learner && !m.name.is_empty() && !m.client_urls.is_empty();
    members.iter().filter(votes).find(|m| m.id != here.member).cloned().map(Some)
}

/// A process that is stopped as long as this lives, and no longer: a guard process stops it, and resumes it when this process
/// lets go or is killed (then the pipe between them ends), or has held it for too long.
struct Held {
    pid: Pid,
    guard: Child,
}

/// A service that ends asks its whole group to end: the guard first does what it is for.
const GUARD: &str = r#"trap "" TERM; kill -STOP "$1" && echo held && timeout "$2" cat; kill -CONT "$1""#;

impl Held {
    fn new(pid: Pid) -> Result<Self> {
        let mut guard = Command::new("sh")
            .args(["-c", GUARD, "guard", &pid.to_string(), HELD_AT_MOST])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(cannot("start", "sh"))?;
        let said = guard.stdout.take().map(|mut out| out.read(&mut [0; 8]));
        let held = Self { pid, guard };
        ensure!(matches!(said, Some(Ok(1..))), "the API server could not be held still");
        Ok(held)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = kill(self.pid, Signal::SIGCONT);
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
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
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// Whether the kernel says that it is stopped; waits a little for it to be so or not.
    fn is_held(pid: u32, expected: bool) -> bool {
        let stopped = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            stat.rsplit_once(") ").unwrap().1.starts_with('T')
        };
        let until = Instant::now() + Duration::from_secs(5);
        while stopped() != expected && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        stopped()
    }

    #[test]
    fn whoever_is_killed_the_api_server_goes_on() {
        let mut server = Command::new("sleep").arg("60").spawn().unwrap();
        let (id, pid) = (server.id(), Pid::from_raw(server.id() as i32));
        let held = Held::new(pid).unwrap();
        assert!(is_held(id, true));
        drop(held);
        assert!(!is_held(id, false), "let go");
        // What is left of bootkube when it is killed: nothing, not even its end of the pipe.
        let mut held = Held::new(pid).unwrap();
        assert!(is_held(id, true));
        drop(held.guard.stdin.take());
        assert!(!is_held(id, false), "bootkube was killed");
        let _ = held.guard.wait();
        // And with a bootkube that hangs.
        let hangs = Held::new(pid).unwrap();
        assert!(is_held(id, true));
        assert!(!is_held(id, false), "held for too long");
        drop(hangs);
        server.kill().unwrap();
        server.wait().unwrap();
    }

    #[test]
    fn it_is_quiet_when_nothing_is_proposed() {
        let metrics = |pending: u32, committed: u32, applied: u32| {
            Proposals::of_metrics(&format!(
                "# TYPE etcd_server_proposals_pending gauge\netcd_server_proposals_pending {pending}\n\
                 etcd_server_proposals_committed_total {committed}\netcd_server_proposals_applied_total {applied}\n"
            ))
        };
        let before = metrics(0, 7, 7);
        assert!(before.is_some() && Proposals::of_metrics("").is_none());
        let quiet = |now: Option<Proposals>| now.unwrap().is_quiet_since(before.as_ref());
        assert!(quiet(metrics(0, 7, 7)));
        assert!(!quiet(metrics(1, 7, 7)), "proposed, and not agreed on: the committed index does not tell");
        assert!(!quiet(metrics(0, 8, 7)) && !quiet(metrics(0, 8, 8)));
        assert!(!metrics(0, 7, 7).unwrap().is_quiet_since(None));
        let large = "etcd_server_proposals_pending 0\netcd_server_proposals_committed_total 1.234567e+06\n\
                     etcd_server_proposals_applied_total 1.234567e+06\n";
        assert_eq!(Proposals::of_metrics(large).map(|p| p.committed), Some(1_234_567.0));
    }

    fn member(id: u64, name: &str, learner: bool) -> Member {
        let client_urls = vec![format!("https://10.0.0.{id}:2379")];
        Member { id, name: name.into(), peer_urls: vec![], client_urls, learner }
    }

    #[test]
    fn the_first_voter_elsewhere_leads() {
        let here =
            |leader| Status { member: 1, cluster: 9, leader, committed: 5, applied: 5, ..Status::default() };
        let alone = [member(1, "bootstrap", false), member(2, "m0", true), member(3, "", false)];
        assert_eq!(successor(&here(1), &alone), None);
        let two = [member(1, "bootstrap", false), member(2, "m0", true), member(3, "m1", false)];
        assert_eq!(successor(&here(1), &two), Some(Some(two[2].clone())));
        assert_eq!(successor(&here(3), &two), Some(None));
        assert_eq!(successor(&here(0), &two), None, "an election is under way");
    }
}
