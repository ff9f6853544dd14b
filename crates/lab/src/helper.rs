//! The helper as a process of its own inside the lab's network namespace; it outlives the command that started it.

use crate::{Lab, LabError, at};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use seedling_machines::network::{BRIDGE, Network, namespace_path};
use seedling_steps::{Condition, Probe, wait_for, write_atomic};
use seedling_types::helper::{Forward, HelperConfig};
use seedling_types::ports;
use std::fs::{self, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// Where the helper finds the API listener. It comes as stdin, the one descriptor that can be handed to a child without
/// handing it to every other child as well, and is moved out of the way there.
const API_LISTENER: i32 = 3;
const MOVE_LISTENER: &str = r#"exec "$@" 3<&0 </dev/null"#;
const POLL: Duration = Duration::from_millis(20);

/// Starts it unless it runs, and waits until it listens. Returns where the API is reached from outside.
pub(crate) async fn ensure(lab: &Lab, program: &Path) -> Result<SocketAddr, LabError> {
    let running = !find(&lab.helper_config()).is_empty();
    let api = match lab.record.api {
        Some(api) if running => api,
        _ => {
            stop(lab).await?; // one whose address was never written down is of no use
            start(lab, program)?
        }
    };
    let hint = format!("read {}", lab.helper_log().display());
    let condition = Condition::new("the helper to listen", Duration::from_secs(15), hint);
    let config = lab.helper_config();
    wait_for(&condition, POLL, async || {
        if lab.helper_ready().exists() {
            Probe::Met(Ok(api))
        } else if find(&config).is_empty() {
            Probe::Met(Err(LabError::Helper(last_words(&lab.helper_log()))))
        } else {
            Probe::Unmet("its ready file is not there yet".into())
        }
    })
    .await?
}

fn start(lab: &Lab, program: &Path) -> Result<SocketAddr, LabError> {
    let spec = &lab.record.spec;
    let port = lab.record.api.map_or(spec.api_port, |before| before.port());
    let listen = |port| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    let (listener, api) = listen(port).map_err(|source| LabError::Port { port, source })?;
    let config = HelperConfig {
        cluster_domain: spec.cluster_domain.clone(),
        interface: BRIDGE.into(),
        address: spec.helper,
        network: spec.network,
        inventory: spec.inventory.clone(),
        ignition_dir: spec.assets.clone(),
        release_dir: spec.release_dir.clone(),
        events: lab.helper_events(),
        ready_file: lab.helper_ready(),
        lease_seconds: None,
        forwards: vec![Forward { fd: API_LISTENER, to: SocketAddr::from((spec.helper, ports::API)) }],
    };
    let path = lab.helper_config();
    let yaml = serde_saphyr::to_string(&config)
        .map_err(|e| LabError::Unreadable { path: path.clone(), message: e.to_string() })?;
    at(&path, write_atomic(&path, yaml, 0o644))?;
    remove_if_there(&lab.helper_ready())?;
    let log = lab.helper_log();
    let output = at(&log, OpenOptions::new().create(true).append(true).open(&log))?;
    let errors = at(&log, output.try_clone())?;
    // A session of its own: it gets no signal of the terminal `lab up` was typed in.
    let child = Command::new("setsid")
        .arg("nsenter")
        .arg(format!("--net={}", namespace_path(&Network::of_lab(lab.name()).namespace()).display()))
        .args(["sh", "-c", MOVE_LISTENER, "sh"])
        .arg(program)
        .args(["helper", "run", "--config"])
        .arg(&path)
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(output)
        .stderr(errors)
        .spawn();
    at(Path::new("setsid"), child)?;
    Ok(api)
}

/// Asks it to end, and insists.
pub(crate) async fn stop(lab: &Lab) -> Result<(), LabError> {
    stop_by_config(&lab.helper_config()).await
}

pub(crate) async fn stop_by_config(config: &Path) -> Result<(), LabError> {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let found = find(config);
        for process in &found {
            // Looked at again: between the two a number can have gone to another process.
            if start_time(process.pid) == Some(process.start) {
                let _ = kill(Pid::from_raw(process.pid), signal);
            }
        }
        let condition = Condition::new("the helper to end", Duration::from_secs(3), "it is killed next");
        let ended = wait_for(&condition, POLL, async || match find(config).len() {
            0 => Probe::Met(()),
            n => Probe::Unmet(format!("{n} left")),
        });
        match ended.await {
            Ok(()) => return Ok(()),
            Err(unmet) if signal == Signal::SIGKILL => return Err(unmet.into()),
            Err(_) => {}
        }
    }
    Ok(())
}

pub(crate) struct Process {
    pub pid: i32,
    /// Clock ticks after the machine's boot: with the pid, a name that is never used twice.
    start: u64,
}

/// Helpers of this very lab, told by the config they were started with: this also finds one whose starter was killed before
/// it could write anything down.
pub(crate) fn find(config: &Path) -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| is_helper(&line, config)))
        .filter_map(|pid| Some(Process { pid, start: start_time(pid)? }))
        .collect()
}

fn is_helper(cmdline: &[u8], config: &Path) -> bool {
    let args: Vec<_> = cmdline.split(|b| *b == 0).collect();
    let config = config.as_os_str().as_encoded_bytes();
    args.windows(4).any(|w| w == [b"helper".as_slice(), b"run", b"--config", config])
}

/// Field 22 of /proc/PID/stat; a process that only waits to be reaped has ended.
fn start_time(pid: i32) -> Option<u64> {
    start_of(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn start_of(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split(' ');
    let state = fields.next()?;
    if state == "Z" || state == "X" { None } else { fields.nth(18)?.parse().ok() }
}

fn last_words(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().rev().take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

fn remove_if_there(path: &Path) -> Result<(), LabError> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => at(path, Err(e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_labs_own_helper_is_found() {
        let config = Path::new("/s/labs/a/helper.yaml");
        let line = |args: &[&str]| args.join("\0").into_bytes();
        assert!(is_helper(
            &line(&["/usr/bin/seedling", "helper", "run", "--config", "/s/labs/a/helper.yaml", ""]),
            config
        ));
        assert!(!is_helper(
            &line(&["seedling", "helper", "run", "--config", "/s/labs/a-b/helper.yaml"]),
            config
        ));
        assert!(!is_helper(&line(&["less", "/s/labs/a/helper.yaml"]), config));
    }

    #[test]
    fn the_start_time_is_field_22_whatever_the_name() {
        let fields = "S 1 4 4 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 99";
        assert_eq!(start_of(&format!("42 (a) b) {fields}")), Some(4711));
        assert_eq!(start_of(&format!("42 (a) {}", fields.replacen('S', "Z", 1))), None);
    }
}
