//! Three network namespaces: the server's, the clients' and that of the servers behind the balancer. Everything that runs in them ends, and
//! they go, with this value.

use anyhow::{Context, Result, ensure};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub(crate) const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
pub(crate) const BACKEND: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 3);
pub(crate) const NETWORK: &str = "10.77.0.0/16";
pub(crate) const INTERFACE: &str = "eth0";
const PATIENCE: Duration = Duration::from_secs(30);

/// Of the n-th machine; from 10.77.4.0 on.
pub(crate) fn machine(n: usize) -> (String, Ipv4Addr) {
    let [high, low] = u16::try_from(n).unwrap_or(u16::MAX).to_be_bytes();
    (format!("52:54:00:5e:{high:02x}:{low:02x}"), Ipv4Addr::new(10, 77, 4 + high, low))
}

pub(crate) struct Site {
    prefix: String,
    pub folder: tempfile::TempDir,
}

/// A server that runs; it ends with this value.
pub(crate) struct Running(Child);

impl Running {
    /// CPU seconds that its group took so far.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        let group = u64::from(self.0.id());
        let mut ticks = 0;
        for entry in std::fs::read_dir("/proc")?.flatten() {
            let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
            // After the name: state, parent, group, ...; user and system time are the 12th and 13th.
            let Some((_, after)) = stat.rsplit_once(") ") else { continue };
            let field = |n| after.split(' ').nth(n).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
            if field(2) == group {
                ticks += field(11) + field(12);
            }
        }
        Ok(ticks as f64 / 100.0)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Each is the leader of its group: some servers fork.
        let group = nix::unistd::Pid::from_raw(-(self.0.id() as i32));
        let _ = nix::sys::signal::kill(group, nix::sys::signal::Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

impl Site {
    /// `machines` further addresses belong to the clients.
    pub(crate) fn new(machines: usize) -> Result<Self> {
        ensure!(nix::unistd::geteuid().is_root(), "network namespaces are made by root");
        let site =
            Self { prefix: format!("seedling-race-{}", std::process::id()), folder: tempfile::tempdir()? };
        let wire = site.namespace("wire");
        sh(&format!(
            "ip netns add {wire} && ip -n {wire} link add br0 type bridge && ip -n {wire} link set br0 up"
        ))?;
        for (name, address) in [("server", SERVER), ("client", CLIENT), ("backend", BACKEND)] {
            let ns = site.namespace(name);
            sh(&format!(
                "ip netns add {ns} && ip -n {ns} link set lo up &&
                 ip link add name {name} netns {wire} type veth peer name {INTERFACE} netns {ns} &&
                 ip -n {wire} link set {name} master br0 up &&
                 ip -n {ns} addr add {address}/16 dev {INTERFACE} && ip -n {ns} link set {INTERFACE} up"
            ))?;
        }
        let lines = |n| format!("addr add {}/16 dev {INTERFACE}\n", machine(n).1);
        let batch = site.write("addresses", (0..machines).map(lines).collect::<String>())?;
        sh(&format!("ip -n {} -batch {}", site.namespace("client"), batch.display()))?;
        Ok(site)
    }

    pub(crate) fn namespace(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.path(name);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&path, content).with_context(|| path.display().to_string())?;
        Ok(path)
    }

    pub(crate) fn start(&self, namespace: &str, command: &str) -> Result<Running> {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.path("servers.log"))?;
        let mut child = Command::new("ip");
        // `exec`: the process of this value is the server's.
        child.args(["netns", "exec", &self.namespace(namespace), "sh", "-c", &format!("exec {command}")]);
        child.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        std::os::unix::process::CommandExt::process_group(&mut child, 0);
        Ok(Running(child.spawn()?))
    }

    /// What a client's command printed.
    pub(crate) fn ask(&self, command: &str) -> Result<String> {
        sh(&format!("ip netns exec {} {command}", self.namespace("client")))
    }

    /// Runs `work` among the clients, on a thread of its own.
    pub(crate) fn among_clients<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        let path = Path::new("/run/netns").join(self.namespace("client"));
        std::thread::scope(|scope| {
            let inside = scope.spawn(move || {
                nix::sched::setns(std::fs::File::open(&path)?, nix::sched::CloneFlags::CLONE_NEWNET)?;
                work()
            });
            inside.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the clients' thread panicked")))
        })
    }

    /// Until `ready` says so.
    pub(crate) fn wait(&self, what: &str, mut ready: impl FnMut() -> bool) -> Result<()> {
        let begun = Instant::now();
        while !ready() {
            let log = || std::fs::read_to_string(self.path("servers.log")).unwrap_or_default();
            ensure!(begun.elapsed() < PATIENCE, "{what} does not answer; the servers said:\n{}", log());
            // Foreign servers tell nobody when they listen.
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    pub(crate) fn wait_for_port(&self, what: &str, address: Ipv4Addr, port: u16) -> Result<()> {
        self.wait(what, || {
            let tried = self.among_clients(|| {
                Ok(TcpStream::connect_timeout(&(address, port).into(), Duration::from_secs(1)).is_ok())
            });
            tried.unwrap_or(false)
        })
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for name in ["server", "client", "backend", "wire"] {
            let _ = sh(&format!("ip netns del {}", self.namespace(name)));
        }
    }
}

pub(crate) fn sh(script: &str) -> Result<String> {
    let out = Command::new("sh").args(["-c", script]).output()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    ensure!(out.status.success(), "{script}: {}\n{text}{}", out.status, String::from_utf8_lossy(&out.stderr));
    Ok(text)
}
