//! A real etcd on a disk that goes bad: what it has acknowledged is there when it is well again. Needs root, /dev/fuse and a built release,
//! so it runs with `--ignored` only. Started with `lab bad-disk DIR` this program serves the disk.

use anyhow::{Context, Result, bail, ensure};
use seedling_machines::bad_disk::{self, Trouble};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn main() -> Result<()> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    if let [first, second, dir] = args.as_slice()
        && [first.as_str(), second.as_str()] == bad_disk::ARGUMENTS
    {
        return Ok(bad_disk::serve(Path::new(dir))?);
    }
    if !args.iter().any(|arg| arg == "--ignored") {
        println!("skipped: needs root and a built release (--ignored)");
        return Ok(());
    }
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(a_sound_disk_is_a_disk())?;
    runtime.block_on(failed_syncs_stop_etcd_and_lose_nothing())?;
    let mut repaired = 0;
    for round in 0..3 {
        repaired += usize::from(runtime.block_on(a_torn_log_loses_nothing_acknowledged(round))?);
    }
    ensure!(repaired > 0, "no log had a torn record: etcd had nothing to repair");
    println!("test result: ok. 5 passed; 0 failed");
    Ok(())
}

/// A machine's directory with a disk that can go bad.
struct Machine {
    dir: tempfile::TempDir,
    address: Ipv4Addr,
}

/// What runs on it; the disk goes with it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One for each machine, so that nobody else can have taken its ports.
fn address() -> Ipv4Addr {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    let (process, nth) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    Ipv4Addr::new(127, (process >> 8 & 127) as u8 + 1, process as u8, nth as u8)
}

/// The newest build of a program in the cache.
fn program(name: &str) -> Result<PathBuf> {
    let cache = std::env::var_os("SEEDLING_CACHE").unwrap_or_else(|| "/var/cache/seedling".into());
    let groups = fs::read_dir(Path::new(&cache).join("go")).context("run `seedling release build` first")?;
    let found = groups.filter_map(|group| Some(group.ok()?.path().join(name))).filter(|path| path.exists());
    let newest = found.max_by_key(|path| path.metadata().and_then(|m| m.modified()).ok());
    newest.with_context(|| format!("{name} is not built"))
}

impl Machine {
    fn new() -> Result<Self> {
        // On a real disk: /tmp may be memory.
        let dir = tempfile::Builder::new().prefix("seedling-bad-disk-").tempdir_in("/var/tmp")?;
        fs::create_dir(dir.path().join("etcd"))?;
        fs::write(dir.path().join(bad_disk::MARK), "")?;
        Ok(Self { dir, address: address() })
    }

    /// As a machine is started: in a mount namespace of its own, which goes with its last process.
    fn run(&self, command: &[&str]) -> Result<Running> {
        let script = ["set -e\ndir=$1 program=$2\nshift 2\n", bad_disk::MOUNT, "exec \"$@\""].concat();
        let log = File::options().create(true).append(true).open(self.dir.path().join("log"))?;
        let child = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "--", "sh", "-c", &script, "sh"])
            .arg(self.dir.path())
            .arg(std::env::current_exe()?)
            .args(command)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(Running(child))
    }

    fn url(&self) -> String {
        format!("http://{}:2379", self.address)
    }

    async fn etcd(&self) -> Result<Running> {
        let (url, peer) = (self.url(), format!("http://{}:2380", self.address));
        let flags = [
            format!("--data-dir={}", self.dir.path().join("etcd").display()),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
        ];
        let etcd = program("etcd")?.display().to_string();
        let command: Vec<_> =
            std::iter::once(etcd.as_str()).chain(flags.iter().map(String::as_str)).collect();
        let running = self.run(&command)?;
        for _ in 0..100 {
            if self.etcdctl(&["endpoint", "health"]).await.is_ok() {
                return Ok(running);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        bail!("etcd does not start: {}", fs::read_to_string(self.dir.path().join("log"))?)
    }

    async fn etcdctl(&self, args: &[&str]) -> Result<String> {
        let url = self.url();
        let output = tokio::process::Command::new(program("etcdctl")?)
            .args(["--endpoints", &url, "--dial-timeout=500ms", "--command-timeout=2s"])
            .args(args)
            .output()
            .await?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Every second line is a value.
    async fn keys(&self) -> Result<BTreeMap<String, String>> {
        let text = self.etcdctl(&["get", "--prefix", "key-"]).await?;
        let mut lines = text.lines();
        let mut keys = BTreeMap::new();
        while let (Some(key), Some(value)) = (lines.next(), lines.next()) {
            keys.insert(key.to_string(), value.to_string());
        }
        Ok(keys)
    }

    /// Writes from now on, and counts what was acknowledged, until it is stopped or refused.
    fn write(&self, first: usize) -> Writer {
        let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(first)));
        let (stopped, counted) = (stop.clone(), acknowledged.clone());
        let (url, etcdctl) = (self.url(), program("etcdctl"));
        let thread = std::thread::spawn(move || -> Result<()> {
            let etcdctl = etcdctl?;
            while !stopped.load(Ordering::SeqCst) {
                let number = counted.load(Ordering::SeqCst);
                let put = Command::new(&etcdctl)
                    .args(["--endpoints", &url, "--dial-timeout=500ms", "--command-timeout=2s", "put"])
                    .args([format!("key-{number:06}"), value(number)])
                    .output()?;
                if !put.status.success() {
                    return Ok(());
                }
                counted.store(number + 1, Ordering::SeqCst);
            }
            Ok(())
        });
        Writer { stop, acknowledged, thread }
    }

    async fn has_all(&self, acknowledged: usize) -> Result<()> {
        let keys = self.keys().await?;
        for number in 0..acknowledged {
            let key = format!("key-{number:06}");
            ensure!(keys.get(&key) == Some(&value(number)), "{key} was acknowledged, and is lost");
        }
        Ok(())
    }
}

/// Longer than a sector, so that half of it is not nothing.
fn value(number: usize) -> String {
    format!("{number}-").repeat(400)
}

struct Writer {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicUsize>,
    thread: std::thread::JoinHandle<Result<()>>,
}

impl Writer {
    async fn until(&self, count: usize) -> Result<()> {
        let begun = Instant::now();
        while self.acknowledged.load(Ordering::SeqCst) < count {
            ensure!(begun.elapsed() < Duration::from_secs(60), "only {:?}", self.acknowledged);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    fn end(self) -> Result<usize> {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().map_err(|_| anyhow::anyhow!("the writer panicked"))??;
        Ok(self.acknowledged.load(Ordering::SeqCst))
    }
}

async fn gone(running: &mut Running, within: Duration) -> Result<()> {
    let begun = Instant::now();
    while running.0.try_wait()?.is_none() {
        ensure!(begun.elapsed() < within, "still runs");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Files, directories, lengths, names; and the server is gone when nobody is on its disk.
async fn a_sound_disk_is_a_disk() -> Result<()> {
    let machine = Machine::new()?;
    let script = r#"cd "$0/etcd"; mkdir -p a/b; echo one > a/b/f; echo two >> a/b/f; mv a/b/f a/g; cp a/g a/h
        truncate -s 2 a/h; fallocate -l 9000 a/i; rmdir a/b; mv a c; sync c/g; chmod 600 c/g; df . >/dev/null
        ls c; cat c/g c/h; stat -c '%a %s' c/g c/i; mount | grep -c " $0/etcd type fuse"; rm -r c; ls"#;
    let dir = machine.dir.path().display().to_string();
    let mut running = machine.run(&["sh", "-ec", script, &dir])?;
    gone(&mut running, Duration::from_secs(10)).await?;
    let said = fs::read_to_string(machine.dir.path().join("log"))?;
    ensure!(said == "g\nh\ni\none\ntwo\non600 8\n644 9000\n1\n", "{said:?}");
    let begun = Instant::now();
    while bad_disk::trouble(machine.dir.path(), Trouble::FailSyncs).await.is_ok() {
        ensure!(begun.elapsed() < Duration::from_secs(5), "the server stays when its disk is gone");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    ensure!(!mounts.contains(&dir), "the mount is seen outside");
    println!("ok: a sound disk is a disk");
    Ok(())
}

async fn failed_syncs_stop_etcd_and_lose_nothing() -> Result<()> {
    let machine = Machine::new()?;
    let mut etcd = machine.etcd().await?;
    let writer = machine.write(0);
    writer.until(20).await?;
    let trouble = bad_disk::trouble(machine.dir.path(), Trouble::FailSyncs).await?;
    gone(&mut etcd, Duration::from_secs(20)).await.context("etcd does not stop when its syncs fail")?;
    let acknowledged = writer.end()?;
    drop(trouble);
    let _etcd = machine.etcd().await?;
    machine.has_all(acknowledged).await?;
    println!("ok: failed syncs stopped etcd after {acknowledged} writes, and all of them are there");
    Ok(())
}

/// Whether etcd found half a record, and cut it off.
async fn a_torn_log_loses_nothing_acknowledged(round: usize) -> Result<bool> {
    let machine = Machine::new()?;
    let mut etcd = machine.etcd().await?;
    let writer = machine.write(0);
    writer.until(10 + 7 * round).await?;
    let torn = bad_disk::trouble(machine.dir.path(), Trouble::TearLog).await?.answer;
    let _ = etcd.0.kill();
    gone(&mut etcd, Duration::from_secs(20)).await?;
    let acknowledged = writer.end()?;
    ensure!(acknowledged >= 10, "{acknowledged}");
    let _etcd = machine.etcd().await?;
    machine.has_all(acknowledged).await?;
    let writer = machine.write(acknowledged);
    writer.until(acknowledged + 5).await.context("etcd does not go on")?;
    writer.end()?;
    let repaired = fs::read_to_string(machine.dir.path().join("log"))?.contains("repaired WAL");
    println!("ok: {torn} after {acknowledged} writes, and all of them are there; repaired: {repaired}");
    Ok(repaired)
}
