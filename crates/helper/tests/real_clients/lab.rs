//! Network namespaces on a bridge, and the helper's process inside; all gone when the value is dropped, also by a panic.

use seedling_types::door::Door;
use seedling_types::helper::{Forward, HelperEvent, HelperEventKind};
use seedling_types::{ClusterDomain, HelperConfig, Host, Inventory, Role};
use std::fs;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub(crate) const CONFIG_VARIABLE: &str = "SEEDLING_TEST_HELPER_CONFIG";
pub(crate) const HELPER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 168, 100, 1));
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

static COUNT: AtomicU32 = AtomicU32::new(0);

pub(crate) struct Lab {
    prefix: String,
    folder: tempfile::TempDir,
    pub config: HelperConfig,
    helper: Option<Child>,
    /// As `ulimit -n`; else as many as the tests have.
    pub descriptors: Option<u32>,
    inherited: Vec<OwnedFd>,
    /// The namespace of the helper, if it is not that of the bridge.
    elsewhere: Option<String>,
}

pub(crate) struct Output {
    pub ok: bool,
    pub text: String,
}

/// stdout; on failure with stderr.
pub(crate) fn output(script: &str) -> Output {
    let out = Command::new("sh").args(["-c", script]).output().unwrap();
    let mut text = String::from_utf8_lossy(&out.stdout).into_owned();
    if !out.status.success() {
        text += &String::from_utf8_lossy(&out.stderr);
    }
    Output { ok: out.status.success(), text }
}

fn must(script: &str) {
    let out = output(&format!("set -e; {script}"));
    assert!(out.ok, "{script}: {}", out.text);
}

fn check_machine() {
    assert!(nix::unistd::geteuid().is_root(), "these tests make network namespaces: run them as root");
    for program in ["ip", "nsenter", "busybox", "dig", "curl"] {
        let found = output(&format!("command -v {program}")).ok;
        assert!(
            found,
            "{program} is missing: apt-get install iproute2 util-linux busybox bind9-dnsutils curl"
        );
    }
}

impl Lab {
    /// One namespace with the bridge, one a machine with `eth0`: up, with its MAC, without an address.
    pub(crate) fn new(machines: &[&str]) -> Self {
        check_machine();
        let prefix =
            format!("seedling-helper-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().unwrap();
        for name in ["ignition", "release/bin", "release/oci"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let at = |name: &str| folder.path().join(name);
        let config = HelperConfig {
            cluster_domain: ClusterDomain("ocp4.example.com".into()),
            interface: "br0".into(),
            address: HELPER,
            network: "192.168.100.0/24".parse().unwrap(),
            second_address: None,
            inventory: Inventory { hosts: hosts(), ..Inventory::default() },
            ignition_dir: at("ignition"),
            release_dir: at("release"),
            events: at("events.jsonl"),
            ready_file: at("ready"),
            lease_seconds: None,
            told_of_power: false,
            relays: Vec::new(),
            server_ca: None,
            forwards: Vec::new(),
            router: None,
            forwarders: Vec::new(),
            ntp_servers: Vec::new(),
            etcd_srv: false,
            pool: None,
            ingress: false,
            without: Vec::new(),
            boot: None,
        };
        let lab = Self {
            prefix,
            folder,
            config,
            helper: None,
            descriptors: None,
            inherited: Vec::new(),
            elsewhere: None,
        };
        let bridge = lab.namespace("bridge");
        must(&format!(
            "ip netns add {bridge}; ip -n {bridge} link set lo up
             ip -n {bridge} link add br0 type bridge; ip -n {bridge} link set br0 up
             ip -n {bridge} addr add {HELPER}/24 dev br0"
        ));
        for (i, name) in machines.iter().enumerate() {
            let ns = lab.namespace(name);
            let mac = lab.host(name).map_or("52:54:00:00:00:99", |h| &h.mac);
            must(&format!(
                "ip netns add {ns}; ip -n {ns} link set lo up
                 ip link add name v{i} netns {bridge} type veth peer name eth0 netns {ns}
                 ip -n {bridge} link set v{i} alias {name}; ip -n {bridge} link set v{i} master br0 up
                 ip -n {ns} link set eth0 address {mac} up"
            ));
        }
        lab
    }

    fn host(&self, name: &str) -> Option<&Host> {
        self.config.inventory.by_name(name)
    }

    /// Gives every machine its address, for tests that are not about DHCP.
    pub(crate) fn addresses(&self) {
        for host in &self.config.inventory.hosts {
            if Path::new("/run/netns").join(self.namespace(&host.name)).exists() {
                must(&format!("ip -n {} addr add {}/24 dev eth0", self.namespace(&host.name), host.address));
            }
        }
    }

    pub(crate) fn namespace(&self, machine: &str) -> String {
        format!("{}-{machine}", self.prefix)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Runs a shell line on a machine.
    pub(crate) fn run(&self, machine: &str, script: &str) -> Output {
        let script = script.replace('\'', "'\\''");
        output(&format!("exec nsenter --net=/run/netns/{} sh -c '{script}'", self.namespace(machine)))
    }

    /// As if the machine's cable were pulled, and put back.
    pub(crate) fn link(&self, machine: &str, state: &str) {
        must(&format!("ip -n {} link set eth0 {state}", self.namespace(machine)));
    }

    pub(crate) fn forward(&mut self, listener: &TcpListener, to: SocketAddr) {
        // A duplicate is inherited by children; the original is closed for them.
        let fd = nix::unistd::dup(listener).unwrap();
        self.config.forwards.push(Forward { fd: fd.as_raw_fd(), to });
        self.inherited.push(fd);
    }

    fn spawn(&self, config: &HelperConfig, stderr: Stdio) -> Child {
        let file = self.write("helper.yaml", serde_json::to_vec(config).unwrap());
        let most = self.descriptors.map_or("--nofile".into(), |most| format!("--nofile={most}:{most}"));
        let limited: &[&str] = if self.descriptors.is_some() { &["prlimit", &most] } else { &["env"] };
        Command::new(limited[0])
            .args(&limited[1..])
            .arg("nsenter")
            .arg(format!(
                "--net=/run/netns/{}",
                self.elsewhere.clone().unwrap_or_else(|| self.namespace("bridge"))
            ))
            .arg(std::env::current_exe().unwrap())
            .args(["helper_process", "--exact", "--ignored", "--nocapture"])
            .env(CONFIG_VARIABLE, file)
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap()
    }

    /// In a machine's namespace of another lab, at that machine's address.
    pub(crate) fn serve_in(&mut self, namespace: &str, interface: &str, address: IpAddr) {
        self.config.interface = interface.into();
        self.config.address = address;
        self.elsewhere = Some(namespace.into());
        self.start();
    }

    pub(crate) fn start(&mut self) {
        self.helper = Some(self.spawn(&self.config, Stdio::inherit()));
        let ready = self.config.ready_file.clone();
        wait_until("the helper is ready", || ready.exists());
    }

    /// A helper that cannot start: what it says.
    pub(crate) fn fail(&self, config: &HelperConfig) -> String {
        let out = self.spawn(config, Stdio::piped()).wait_with_output().unwrap();
        assert!(!out.status.success());
        String::from_utf8_lossy(&out.stderr).into_owned()
    }

    pub(crate) fn kill(&mut self) {
        let mut helper = self.helper.take().unwrap();
        helper.kill().unwrap();
        helper.wait().unwrap();
        fs::remove_file(&self.config.ready_file).unwrap();
    }

    pub(crate) fn stop(&mut self) -> ExitStatus {
        let mut helper = self.helper.take().unwrap();
        let pid = nix::unistd::Pid::from_raw(helper.id().try_into().unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        helper.wait().unwrap()
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = self.helper.as_ref().unwrap().id().try_into().unwrap();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).unwrap();
    }

    /// As a machine that is switched on.
    pub(crate) fn boots(&self, machine: &str) {
        let door = serde_json::to_vec(&Door::default().power_on()).unwrap();
        fs::create_dir_all(self.path("doors")).unwrap();
        fs::write(self.config.door(machine), door).unwrap();
    }

    /// Connections from a machine that say `words` and then nothing more.
    pub(crate) fn connections(
        &self,
        machine: &str,
        to: SocketAddr,
        count: usize,
        words: &'static [u8],
    ) -> Vec<TcpStream> {
        let namespace = fs::File::open(format!("/run/netns/{}", self.namespace(machine))).unwrap();
        let connect = move || {
            nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            let connect = |_| {
                let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(2)).ok()?;
                stream.write_all(words).ok()?;
                Some(stream)
            };
            (0..count).filter_map(connect).collect()
        };
        std::thread::spawn(connect).join().unwrap()
    }

    pub(crate) fn events(&self) -> Vec<HelperEventKind> {
        let text = fs::read_to_string(&self.config.events).unwrap_or_default();
        text.lines().filter_map(|l| Some(serde_json::from_str::<HelperEvent>(l).ok()?.what)).collect()
    }

    /// Waits until such an event was logged.
    pub(crate) fn event(&self, wanted: impl Fn(&HelperEventKind) -> bool) {
        let start = Instant::now();
        while !self.events().iter().any(&wanted) {
            assert!(start.elapsed() < PATIENCE, "no such event among {:#?}", self.events());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

pub(crate) fn wait_until(what: &str, mut met: impl FnMut() -> bool) {
    let start = Instant::now();
    while !met() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if let Some(helper) = &mut self.helper {
            let _ = helper.kill();
            let _ = helper.wait();
        }
        let namespaces = fs::read_dir("/run/netns").into_iter().flatten().flatten();
        for name in namespaces.filter_map(|e| e.file_name().into_string().ok()) {
            if name.starts_with(&format!("{}-", self.prefix)) {
                let _ = Command::new("ip").args(["netns", "del", &name]).status();
            }
        }
    }
}

fn hosts() -> Vec<Host> {
    let host = |name: &str, role, last: u8| Host {
        name: name.into(),
        role,
        mac: format!("52:54:00:00:00:{last}"),
        address: [192, 168, 100, last].into(),
        second_address: None,
    };
    vec![
        host("bootstrap", Role::Bootstrap, 10),
        host("master-0", Role::Master, 11),
        host("master-1", Role::Master, 12),
        host("worker-0", Role::Worker, 21),
    ]
}
