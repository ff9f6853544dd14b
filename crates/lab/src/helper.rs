//! The helper as a process of its own inside the lab's network namespace; it outlives the command that started it.

use crate::processes::{self, Process};
use crate::{Lab, LabError, at};
use nix::sys::signal::Signal;
use seedling_machines::network::{BRIDGE, Network, namespace_path};
use seedling_steps::{Condition, Probe, wait_for, write_atomic};
use seedling_types::helper::{Forward, HelperConfig};
use seedling_types::ports;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

/// Where the helper finds the API listener. It comes as stdin, the one descriptor that can be handed to a child without
/// handing it to every other child as well, and is moved out of the way there.
const API_LISTENER: i32 = 3;
const MOVE_LISTENER: &str = r#"exec "$@" 3<&0 </dev/null"#;
const POLL: Duration = Duration::from_millis(20);

/// Starts it unless it runs, and waits until it listens. Returns where the API is reached from outside.
pub(crate) async fn ensure(lab: &Lab, program: &Path) -> Result<SocketAddr, LabError> {
    let running = !find(&lab.helper_config()).is_empty();
    let (api, mut started) = match lab.record.api {
        Some(api) if running => (api, None),
        _ => {
            stop(&lab.helper_config()).await?; // one whose address was never written down is of no use
            let (api, child) = start(lab, program)?;
            (api, Some(child))
        }
    };
    let hint = format!("read {}", lab.helper_log().display());
    let condition = Condition::within("the helper to listen", Duration::from_secs(15), hint);
    let config = lab.helper_config();
    // Our own child is asked itself: one that is becoming another program has no arguments for a moment.
    let mut ended = || match &mut started {
        Some(child) => !matches!(child.try_wait(), Ok(None)),
        None => find(&config).is_empty(),
    };
    wait_for(&condition, POLL, async || {
        if lab.helper_ready().exists() {
            Probe::Met(Ok(api))
        } else if ended() {
            Probe::Met(Err(LabError::Helper(last_words(&lab.helper_log()))))
        } else {
            Probe::Unmet("its ready file is not there yet".into())
        }
    })
    .await?
}

fn start(lab: &Lab, program: &Path) -> Result<(SocketAddr, Child), LabError> {
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
    Ok((api, at(Path::new("setsid"), child)?))
}

/// Asks it to end, and insists.
pub(crate) async fn stop(config: &Path) -> Result<(), LabError> {
    let arguments = arguments(config);
    if processes::end(&arguments, Signal::SIGTERM).await.is_err() {
        processes::end(&arguments, Signal::SIGKILL).await?;
    }
    Ok(())
}

/// Helpers of this very lab, told by the config they were started with: this also finds one whose starter was killed before
/// it could write anything down.
pub(crate) fn find(config: &Path) -> Vec<Process> {
    processes::find(&arguments(config))
}

fn arguments(config: &Path) -> [&OsStr; 4] {
    ["helper".as_ref(), "run".as_ref(), "--config".as_ref(), config.as_os_str()]
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
