//! The helper as a process of its own inside the lab's network namespace; it outlives the command that started it. Its parent there
//! (`helper keep`) starts it again when it dies.

use crate::processes::{self, Process};
use crate::{Lab, LabError, MachineKind, Result, at, conditions};
use base64::{Engine, engine::general_purpose::STANDARD};
use nix::sys::signal::Signal;
use seedling_machines::Boot;
use seedling_machines::network::{BRIDGE, Network, namespace_path};
use seedling_steps::{Condition, Probe, if_there, wait_for, write_atomic};
use seedling_types::admission::digest_of;
use seedling_types::helper::{BootConfig, Forward, HelperConfig, HelperEvent, ImageKind};
use seedling_types::{Host, ports};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

/// Where the helper finds the API listener. It comes as stdin, the one descriptor that can be handed to a child without
/// handing it to every other child as well, and is moved out of the way there.
const API_LISTENER: i32 = 3;
const MOVE_LISTENER: &str = r#"exec "$@" 3<&0 </dev/null"#;
const POLL: Duration = Duration::from_millis(20);
/// `seedling helper …`: the helper, and its parent.
const HELPER: &str = "run";
const KEEPER: &str = "keep";
/// What a QEMU machine installs itself on.
const QEMU_DISK: &str = "/dev/vda";
const LISTENS_WITHIN: Duration = Duration::from_secs(15);
/// A longer log of earlier runs is put aside.
const LONG_LOG: u64 = 16 << 20;

/// What whoever has started a helper waits for.
pub fn listens(hint: String) -> Condition {
    Condition::within(&conditions::HELPER_LISTENS, LISTENS_WITHIN, hint)
}

/// Starts it unless it runs, and waits until it listens. Returns where the API is reached from outside.
pub(crate) async fn ensure(lab: &Lab, program: &Path) -> Result<SocketAddr> {
    let config = lab.helper_config();
    let runs = || !find(&config).is_empty() || !processes::find(&arguments(KEEPER, &config)).is_empty();
    let running = runs();
    let (api, mut started) = match lab.record.api {
        Some(api) if running => (api, None),
        _ => {
            stop(&config).await?; // one whose address was never written down is of no use
            let (api, child) = start(lab, program)?;
            (api, Some(child))
        }
    };
    let hint = format!("read {}", lab.helper_log().display());
    let condition = listens(hint);
    // Our own child is asked itself: one that is becoming another program has no arguments for a moment.
    let mut ended = || match &mut started {
        Some(child) => !matches!(child.try_wait(), Ok(None)),
        None => !runs(),
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

fn start(lab: &Lab, program: &Path) -> Result<(SocketAddr, Child)> {
    let spec = &lab.record.spec;
    let port = lab.record.api.map_or(spec.api_port, |before| before.port());
    let listen = |port| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    let (listener, api) = listen(port).map_err(|source| LabError::Port { port, source })?;
    let path = lab.helper_config();
    write_config(lab)?;
    remove_if_there(&lab.helper_ready())?;
    let log = lab.helper_log();
    if fs::metadata(&log).is_ok_and(|m| m.len() > LONG_LOG) {
        at(&log, fs::rename(&log, HelperEvent::older(&log)))?;
    }
    let output = at(&log, OpenOptions::new().create(true).append(true).open(&log))?;
    let errors = at(&log, output.try_clone())?;
    // A session of its own: it gets no signal of the terminal `lab up` was typed in.
    let child = Command::new("setsid")
        .arg("nsenter")
        .arg(format!("--net={}", namespace_path(&Network::of_lab(lab.name()).namespace()).display()))
        .args(["sh", "-c", MOVE_LISTENER, "sh"])
        .arg(program)
        .args(arguments(KEEPER, &path))
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(output)
        .stderr(errors)
        .spawn();
    Ok((api, at(Path::new("setsid"), child)?))
}

/// helper.yaml as the lab is now. Returns its digest.
fn write_config(lab: &Lab) -> Result<String> {
    let spec = &lab.record.spec;
    let config = HelperConfig {
        cluster_domain: spec.cluster_domain.clone(),
        interface: BRIDGE.into(),
        address: spec.helper,
        network: spec.network,
        second_address: spec.second_helper,
        inventory: spec.inventory.clone(),
        ignition_dir: spec.assets.clone(),
        release_dir: spec.release_dir.clone(),
        events: lab.helper_events(),
        ready_file: lab.helper_ready(),
        lease_seconds: None,
        told_of_power: true,
        relays: Vec::new(),
        server_ca: server_ca(lab)?,
        forwards: vec![Forward { fd: API_LISTENER, to: SocketAddr::from((spec.helper, ports::API)) }],
        router: None,
        forwarders: Vec::new(),
        ntp_servers: Vec::new(),
        etcd_srv: false,
        pool: None,
        ingress: false,
        without: spec.without.clone(),
        boot: boot(lab),
    };
    let path = lab.helper_config();
    let yaml = serde_saphyr::to_string(&config)
        .map_err(|e| LabError::Unreadable { path: path.clone(), message: e.to_string() })?;
    let digest = digest_of(yaml.as_bytes());
    at(&path, write_atomic(&path, yaml, 0o644))?;
    Ok(digest)
}

/// For machines that have nothing but a network card; without any, nobody boots over the network.
fn boot(lab: &Lab) -> Option<BootConfig> {
    let spec = &lab.record.spec;
    let pxe = |host: &&Host| matches!(spec.kind(&host.name), MachineKind::Qemu(hardware) if hardware.boot == Boot::Pxe);
    let hosts: Vec<_> = spec.inventory.hosts.iter().filter(pxe).map(|host| host.name.clone()).collect();
    let image_dir = lab.record.boot_image.clone().filter(|_| !hosts.is_empty())?;
    Some(BootConfig {
        image_dir,
        kind: ImageKind::Seedling,
        install_device: QEMU_DISK.into(),
        install_devices: BTreeMap::new(),
        bios_loader: "undionly.kpxe".into(),
        arguments: Vec::new(),
        hosts: Some(hosts),
    })
}

/// It knows the lab's machines as they are now, without a connection lost. One that does not run reads them when it starts.
pub(crate) async fn reload(lab: &Lab) -> Result<()> {
    let digest = write_config(lab)?;
    reload_config(&lab.helper_config(), &lab.helper_ready(), &digest, &lab.helper_log()).await.map(drop)
}

/// Any helper on this machine, by its config, which was just written and has this digest. False: none runs.
pub async fn reload_config(config: &Path, ready: &Path, digest: &str, log: &Path) -> Result<bool> {
    let runs = || !find(config).is_empty() || !processes::find(&arguments(KEEPER, config)).is_empty();
    if !runs() {
        return Ok(false);
    }
    let goes_by = || fs::read_to_string(ready).unwrap_or_default().lines().nth(1).map(String::from);
    if goes_by().as_deref() == Some(digest) {
        return Ok(true);
    }
    find(config).iter().for_each(|helper| helper.signal(Signal::SIGHUP));
    let hint = format!("read {}", log.display());
    let condition = Condition::within(&conditions::HELPER_TAKES_CONFIG, LISTENS_WITHIN, hint).quiet();
    wait_for(&condition, POLL, async || match goes_by() {
        Some(taken_up) if taken_up == digest => Probe::Met(true),
        Some(_) => Probe::Unmet("it goes by the config before".into()),
        None if !runs() => Probe::Met(false),
        None => Probe::Unmet("it does not listen yet".into()),
    })
    .await
    .map_err(LabError::from)
}

/// Who signed the certificates of the cluster's servers, for health checks: the admin's kubeconfig has the API servers' authorities, a
/// machine's pointer the machine-config server's. Without both, checks believe anybody.
fn server_ca(lab: &Lab) -> Result<Option<PathBuf>> {
    let assets = &lab.record.spec.assets;
    let read = |name: &str| fs::read_to_string(assets.join(name)).unwrap_or_default();
    let Some(bundle) = authorities(&read("auth/kubeconfig"), &read("master.ign")) else { return Ok(None) };
    let path = lab.dir.join("helper-ca.crt");
    at(&path, write_atomic(&path, bundle, 0o644))?;
    Ok(Some(path))
}

fn authorities(kubeconfig: &str, pointer: &str) -> Option<String> {
    let kubeconfig: Value = serde_saphyr::from_str(kubeconfig).ok()?;
    let api = kubeconfig.pointer("/clusters/0/cluster/certificate-authority-data")?.as_str()?;
    let pointer: Value = serde_json::from_str(pointer).ok()?;
    let machine_config =
        pointer.pointer("/ignition/security/tls/certificateAuthorities/0/source")?.as_str()?;
    let (_, machine_config) = machine_config.split_once("base64,")?;
    let pem = |base64: &str| String::from_utf8(STANDARD.decode(base64).ok()?).ok();
    Some(pem(api)? + &pem(machine_config)?)
}

/// Asks it to end, then kills it. First its parent, which would start it again and passes the signal on.
pub(crate) async fn stop(config: &Path) -> Result<()> {
    for arguments in commands(config) {
        if processes::end(&arguments, Signal::SIGTERM).await.is_err() {
            processes::end(&arguments, Signal::SIGKILL).await?;
        }
    }
    Ok(())
}

/// Helpers of this lab, recognised by the config they were started with: this also finds one whose starter was killed before
/// it could write anything down.
pub(crate) fn find(config: &Path) -> Vec<Process> {
    processes::find(&arguments(HELPER, config))
}

/// What would start it again, and the helper.
pub(crate) fn commands(config: &Path) -> [[&OsStr; 4]; 2] {
    [arguments(KEEPER, config), arguments(HELPER, config)]
}

fn arguments<'a>(verb: &'a str, config: &'a Path) -> [&'a OsStr; 4] {
    ["helper".as_ref(), verb.as_ref(), "--config".as_ref(), config.as_os_str()]
}

fn last_words(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    // Which with RUST_BACKTRACE comes last, and says nothing of why.
    let text = text.rfind("\nStack backtrace:").map_or(text.as_str(), |at| &text[..at]);
    let lines: Vec<_> = text.trim_end().lines().rev().take(3).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

pub(crate) fn remove_if_there(path: &Path) -> Result<()> {
    at(path, if_there(fs::remove_file(path))).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_checks_believe_both_authorities_or_everybody() {
        let kubeconfig = "clusters: [{cluster: {certificate-authority-data: QVBJCg==}}]";
        let pointer = r#"{"ignition":{"security":{"tls":{"certificateAuthorities":[
            {"source":"data:text/plain;charset=utf-8;base64,TUNTCg=="}]}}}}"#;
        assert_eq!(authorities(kubeconfig, pointer).as_deref(), Some("API\nMCS\n"));
        assert_eq!(authorities(kubeconfig, ""), None);
        assert_eq!(authorities("", pointer), None);
    }
}
