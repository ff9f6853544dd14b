//! In etcd's container, before etcd: carries out a restore that was ordered (`order.rs`).
//!
//! Of this member's own data everything is kept that is on its disk, also what only the lost ones knew to be agreed on: a copy of it agrees
//! to all it has, continues alone, and makes a snapshot. A snapshot becomes the data of a cluster that never was (`etcdutl`): members of the
//! old one cannot take part in it, whatever they have on their disks. Its revisions begin far beyond all that anybody has seen, and those
//! before count as compacted: who watched the old cluster lists again.
//!
//! Until the new data has been started once, nothing of what was there is touched.

use super::order::{Order, RestoreStep, Site, next, remove};
use crate::error::{cannot, write};
use crate::{Error, Result, conditions};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use seedling_cluster::etcd::GIVEN_UP;
use seedling_cluster::wal;
use seedling_steps::journal::{Event, Line};
use seedling_steps::{Condition, Journal, sync_directory, wait_for};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::{Child, Command};

/// Its lines in the node's journal.
pub(super) const WHO: &str = "etcd-restore";
/// The whole of it; skipped, with a note, when it was refused.
pub(super) const RESTORE: &str = "restore";
/// More than is written in a snapshot's time of being useful; as upstream.
const BUMP: &str = "1000000000";
const SOCKET: &str = "etcd.sock";
const STARTS_WITHIN: Duration = Duration::from_secs(180);
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// The member that is to be the new cluster.
pub struct Member {
    pub site: Site,
    pub name: String,
    pub peer_url: String,
    /// The program; `etcdctl` and `etcdutl` lie beside it.
    pub etcd: PathBuf,
    pub journal: Journal,
}

/// `others`: who of the others answers. `before`: asked before each step; tests end it there.
pub async fn carry_out(
    member: &Member,
    others: impl AsyncFn() -> Vec<String>,
    before: impl Fn(RestoreStep) -> Result<()>,
) -> Result<()> {
    let Some(order) = member.site.order()? else { return Ok(()) };
    let journal = member.journal.by(WHO);
    loop {
        let step = next(member.site.look());
        if step <= RestoreStep::MoveAside
            && let Some(why) = refusal(&order, &member.site, &others().await)
        {
            tracing::warn!("the restore is refused: {why}");
            journal.append(&Line { note: Some(why), ..Line::now(WHO, Some(RESTORE), Event::Skipped) })?;
            return member.site.withdraw();
        }
        before(step)?;
        tracing::info!("restoring etcd: {}", step.name());
        journal.step(&format!("{RESTORE}/{}", step.name()), member.take(step, &order)).await?;
        if step == RestoreStep::Finish {
            return Ok(journal.end(RESTORE)?);
        }
    }
}

/// Asked again until the data is touched: the order may be older than what is true now.
fn refusal(order: &Order, site: &Site, others: &[String]) -> Option<String> {
    if !others.is_empty() {
        return Some(format!("{} answers", others.join(", ")));
    }
    let shown = order.log?;
    match wal::read_tail(&site.log()) {
        Ok(tail) if (tail.last, tail.term) == (shown.last, shown.term) => None,
        Ok(tail) => Some(format!("its log ends at {}, and {} was looked at", tail.last, shown.last)),
        Err(e) => Some(format!("its log cannot be read any more: {e}")),
    }
}

impl Member {
    async fn take(&self, step: RestoreStep, order: &Order) -> Result<()> {
        let site = &self.site;
        match step {
            RestoreStep::Snapshot => self.snapshot_of_own_data().await,
            RestoreStep::Make => self.make(order).await,
            RestoreStep::Tell => self.tell(order).await,
            RestoreStep::MoveAside => {
                let moved = std::fs::rename(site.member(), site.before(order));
                moved.and_then(|()| sync_directory(&site.0)).map_err(cannot("move aside", site.member()))
            }
            RestoreStep::PutInPlace => {
                let new = site.made().join("member");
                let id = wal::read_owner(&new.join("wal"))?.member;
                super::super::join::Data(site.0.clone()).changes_owner(id)?;
                let moved = std::fs::rename(new, site.member()).and_then(|()| sync_directory(&site.made()));
                moved.and_then(|()| sync_directory(&site.0)).map_err(cannot("put in place", site.member()))
            }
            RestoreStep::Finish => site.finish(order),
        }
    }

    async fn snapshot_of_own_data(&self) -> Result<()> {
        let copy = self.site.scratch().join("copy");
        remove(&copy)?;
        // Blocking is fine: nothing else runs here.
        copy_all(&self.site.member(), &copy.join("member")).map_err(cannot("copy", self.site.member()))?;
        if let Err(e) = wal::agree_to_all(&copy.join("member/wal")) {
            tracing::warn!("dropping log entries that are not known to be committed: {e}");
        }
        let mut etcd = self.start(&copy, &["--force-new-cluster"]).await?;
        let partial = self.site.scratch().join("snapshot.part");
        self.ask(&["snapshot", "save", &partial.display().to_string()]).await?;
        end(&mut etcd).await?;
        std::fs::rename(&partial, self.site.snapshot()).map_err(cannot("rename", partial))?;
        remove(&copy)
    }

    async fn make(&self, order: &Order) -> Result<()> {
        let partial = self.site.scratch().join("new.part");
        remove(&partial)?;
        let program = self.etcd.with_file_name("etcdutl");
        let mut etcdutl = plain(&program);
        etcdutl.args(["snapshot", "restore"]).arg(self.site.snapshot()).arg("--data-dir").arg(&partial);
        etcdutl.args(["--name", &self.name, "--initial-cluster-token", &order.id]);
        etcdutl.args(["--initial-advertise-peer-urls", &self.peer_url]);
        etcdutl.args(["--initial-cluster", &format!("{}={}", self.name, self.peer_url)]);
        etcdutl.args(["--bump-revision", BUMP, "--mark-compacted"]);
        succeeded(&program, etcdutl).await?;
        nix::unistd::sync();
        let made = std::fs::rename(&partial, self.site.made());
        made.and_then(|()| sync_directory(&self.site.scratch())).map_err(cannot("rename", partial))
    }

    /// Its first start: whether it can be started at all is known before anything is moved.
    async fn tell(&self, order: &Order) -> Result<()> {
        let mut etcd = self.start(&self.site.made(), &[]).await?;
        let said = json!({"restore": order.id, "on": self.name}).to_string();
        for cluster in &order.given_up {
            self.ask(&["put", &format!("{GIVEN_UP}{cluster:x}"), &said]).await?;
        }
        end(&mut etcd).await?;
        write(&self.site.told(), &order.id)
    }

    /// For this process alone: it listens on a socket in the directory, and knows nobody.
    async fn start(&self, data: &Path, more: &[&str]) -> Result<Child> {
        let _ = std::fs::remove_file(self.site.scratch().join(SOCKET));
        let mut command = plain(&self.etcd);
        command.arg(format!("--data-dir={}", data.display())).arg(format!("--name={}", self.name));
        command.arg(format!("--listen-client-urls={}", self.socket()));
        command.args(["--advertise-client-urls=http://127.0.0.1:1", "--listen-peer-urls=unix:///nobody"]);
        command.arg(format!("--initial-advertise-peer-urls={}", self.peer_url));
        command.arg(format!("--initial-cluster={}={}", self.name, self.peer_url)).args(more);
        let mut etcd = command.spawn().map_err(cannot("start", &self.etcd))?;
        let condition = Condition::new(
            &conditions::RESTORE_ALONE,
            STARTS_WITHIN,
            "crictl logs $(crictl ps -a -q --name '^etcd$')",
        )
        .on(&self.name);
        let leads = wait_for(&condition, Duration::from_millis(200), async || {
            self.ask(&["get", GIVEN_UP]).await.into()
        });
        tokio::select! {
            ended = etcd.wait() => {
                let how = ended.map_err(cannot("wait for", &self.etcd))?;
                return Err(Error::Seen(format!("etcd ended: {how}")));
            }
            leads = leads => leads?,
        }
        Ok(etcd)
    }

    fn socket(&self) -> String {
        format!("unix://{}", self.site.scratch().join(SOCKET).display())
    }

    async fn ask(&self, words: &[&str]) -> Result<()> {
        let program = self.etcd.with_file_name("etcdctl");
        let mut etcdctl = plain(&program);
        etcdctl.args(["--endpoints", &self.socket(), "--command-timeout=600s"]).args(words);
        if words.first() != Some(&"snapshot") {
            etcdctl.arg("--command-timeout=3s");
        }
        succeeded(&program, etcdctl).await
    }
}

/// Without the container's settings: those are for the member that everybody reaches.
fn plain(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path))).kill_on_drop(true);
    command
}

async fn succeeded(program: &Path, mut command: Command) -> Result<()> {
    let output = command.output().await.map_err(cannot("run", program))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let complaint = said.lines().last().unwrap_or_default().into();
    Err(Error::Program { program: program.display().to_string(), complaint })
}

/// In order, so that all is on the disk.
async fn end(etcd: &mut Child) -> Result<()> {
    if let Some(pid) = etcd.id().and_then(|id| i32::try_from(id).ok()) {
        kill(Pid::from_raw(pid), Signal::SIGTERM).map_err(cannot("end", "etcd"))?;
    }
    match tokio::time::timeout(ENDS_WITHIN, etcd.wait()).await {
        Ok(ended) => ended.map(drop).map_err(cannot("wait for", "etcd")),
        Err(elapsed) => Err(Error::Seen(format!("etcd does not end: {elapsed}"))),
    }
}

pub(super) fn copy_all(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_all(&entry.path(), &to)?,
            false => drop(std::fs::copy(entry.path(), to)?),
        }
    }
    Ok(())
}
