//! A fault, done to a lab from outside. It stays until the lab is removed.

use super::answer::Answer;
use super::faults::{Act, Change, Fault};
use crate::{Lab, LabError, Result, at};
use base64::{Engine, engine::general_purpose::STANDARD};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use seedling_machines::network::{Network, namespace_path};
use seedling_types::ClusterDomain;
use seedling_types::admission::digest_of;
use seedling_types::helper::HelperConfig;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};

/// Where the other one listens; the helper's port leads there.
const ELSEWHERE: u16 = 15353;

/// What has to be held for the fault to last.
#[derive(Default)]
pub(super) struct Held {
    _children: Vec<Child>,
}

fn refused(why: impl Into<String>) -> LabError {
    LabError::Strike(why.into())
}

/// What has to be done before the lab is there: a copy of the release with a fault in it.
pub(super) fn release_with(fault: &Fault, release: &Path, copy: &Path) -> Result<bool> {
    let Act::Image(name, change) = fault.act else { return Ok(false) };
    crate::diagnose::run::remove(copy)?;
    at(copy, fs::create_dir_all(copy))?;
    let linked = std::process::Command::new("cp").arg("-al").arg(release.join(".")).arg(copy).status();
    if !linked.is_ok_and(|status| status.success()) {
        return Err(refused(format!("cannot copy {}", release.display())));
    }
    let text = at(release, fs::read_to_string(release.join("release.json")))?;
    let digest = digest_in(&text, name).ok_or_else(|| refused(format!("the release has no image {name}")))?;
    let blob = copy.join("oci/blobs/sha256").join(&digest);
    at(&blob, fs::remove_file(&blob))?;
    if change == Change::Damaged {
        at(
            &blob,
            fs::write(
                &blob,
                "{\"schemaVersion\": 2, \"mediaType\": \"application/vnd.oci.image.manifest.v1+json\"}",
            ),
        )?;
    }
    Ok(true)
}

/// Of the image that a component's name stands for.
fn digest_in(release: &str, name: &str) -> Option<String> {
    let release: Value = serde_json::from_str(release).ok()?;
    fn find(value: &Value, name: &str) -> Option<String> {
        match value {
            Value::Object(fields) => fields.iter().find_map(|(key, value)| match value {
                Value::String(text) if key == name => {
                    text.split_once("sha256:").map(|(_, digest)| digest.to_string())
                }
                Value::Object(inner) if key == name => {
                    inner.values().find_map(|v| v.as_str()?.split_once("sha256:").map(|(_, d)| d.to_string()))
                }
                other => find(other, name),
            }),
            Value::Array(items) => items.iter().find_map(|item| find(item, name)),
            _ => None,
        }
    }
    find(&release, name)
}

pub(super) async fn inject(lab: &Lab, fault: &Fault, held: &mut Held) -> Result<String> {
    match &fault.act {
        Act::Nothing | Act::Image(..) => {}
        Act::OtherMac(node) => {
            helper_config(lab, |config| {
                let mut hosts = config.inventory.hosts.iter_mut();
                if let Some(host) = hosts.find(|host| host.name == *node) {
                    host.mac = "52:54:00:00:00:99".into();
                }
            })
            .await?;
        }
        Act::OtherDomain => {
            helper_config(lab, |config| config.cluster_domain = ClusterDomain("other.example.test".into()))
                .await?;
        }
        Act::HelperLoses(packets) => {
            // Not chaos's own table, which `lab up` clears.
            let rules = format!(
                "table inet seedling_fault {{\n chain lost {{\n  type filter hook prerouting priority raw; policy accept;\n  {packets} drop\n }}\n}}\n"
            );
            Network::of_lab(lab.name()).load_rules(None, &rules).await?;
        }
        Act::HelperAnswers(port, with) => {
            let namespace = Network::of_lab(lab.name()).namespace();
            held._children.push(answers(&namespace, ELSEWHERE, *with)?);
            let protocol = if matches!(with, Answer::Dns(_)) { "udp" } else { "tcp" };
            let rules = format!(
                "table ip seedling_fault {{\n chain other {{\n  type nat hook prerouting priority dstnat; policy accept;\n  \
                 {protocol} dport {port} redirect to :{ELSEWHERE}\n }}\n}}\n"
            );
            Network::of_lab(lab.name()).load_rules(None, &rules).await?;
        }
        Act::Takes(node, port) => {
            let namespace = Network::of_lab(lab.name()).node_namespace(node);
            held._children.push(answers(&namespace, *port, Answer::Silence)?);
        }
        Act::Ignition(node, change) => change_ignition(lab, node, *change)?,
        Act::Shell(node, script) => return shell(lab, node, script).await,
        Act::Off(node) => lab.machine(node)?.cut_off().await?,
        Act::Freeze(node) => lab.machine(node)?.pause().await?,
        Act::Unplug(node) => lab.machine(node)?.plug(false).await?,
        Act::Slow(node) => lab.machine(node)?.slow_disk(true)?,
        Act::Fill(node, disk) => lab.machine(node)?.fill_disk(*disk, true).await?,
        Act::Stop(node, program) => {
            let running = lab.machine(node)?.processes()?.into_iter();
            let is_it = |args: &[String]| {
                args.first().is_some_and(|a| Path::new(a).file_name().is_some_and(|n| n == *program))
            };
            let pids: Vec<_> = running.filter(|(_, args)| is_it(args)).map(|(pid, _)| pid).collect();
            for pid in &pids {
                let _ = kill(Pid::from_raw(*pid), Signal::SIGSTOP);
            }
            if pids.is_empty() {
                return Err(refused(format!("{program} does not run on {node}")));
            }
        }
        Act::HelperOff => crate::helper::stop(&lab.helper_config()).await?,
    }
    Ok(String::new())
}

/// The helper goes by a changed config. One that is written anew when the helper starts again is the lab's own.
async fn helper_config(lab: &Lab, change: impl FnOnce(&mut HelperConfig)) -> Result<()> {
    let path = lab.helper_config();
    let unreadable = |e: String| LabError::Unreadable { path: path.clone(), message: e };
    let yaml = at(&path, fs::read_to_string(&path))?;
    let mut config: HelperConfig = serde_saphyr::from_str(&yaml).map_err(|e| unreadable(e.to_string()))?;
    change(&mut config);
    let yaml = serde_saphyr::to_string(&config).map_err(|e| unreadable(e.to_string()))?;
    let digest = digest_of(yaml.as_bytes());
    at(&path, fs::write(&path, yaml))?;
    // A running one does not take up another control plane; its parent starts it again.
    for pid in lab.helper_pids() {
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
    crate::reload_config(&path, &lab.helper_ready(), &digest, &lab.helper_log()).await.map(drop)
}

/// This program in a network namespace.
fn answers(namespace: &str, port: u16, with: Answer) -> Result<Child> {
    let program = at(Path::new("seedling"), std::env::current_exe())?;
    let mut command = Command::new("nsenter");
    command.arg(format!("--net={}", namespace_path(namespace).display())).arg(program);
    command.args(["chaos", "answer", "--port", &port.to_string(), "--with", &with.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    at(Path::new("nsenter"), command.spawn())
}

async fn shell(lab: &Lab, node: &str, script: &str) -> Result<String> {
    let machine = lab.machine(node)?;
    let command = ["sh", "-c", script];
    let done = tokio::time::timeout(Duration::from_secs(30), machine.exec_output(&command));
    Ok(done.await.map_err(|_| refused(format!("{node} does not answer")))??)
}

/// The file that the helper serves to this machine.
fn ignition_file(lab: &Lab, node: &str) -> PathBuf {
    let assets = &lab.record.spec.assets;
    let own = assets.join("nodes").join(format!("{node}.ign"));
    let role = lab.record.spec.inventory.by_name(node).map_or("master", |host| host.role.as_str());
    if own.exists() { own } else { assets.join(format!("{role}.ign")) }
}

fn change_ignition(lab: &Lab, node: &str, change: Change) -> Result<()> {
    let path = ignition_file(lab, node);
    if change == Change::Gone {
        at(&path, fs::remove_file(&path))?;
        // Nor the one of its role, which is served instead.
        let role = ignition_file(lab, node);
        return crate::helper::remove_if_there(&role);
    }
    let mut config: Value = serde_json::from_str(&at(&path, fs::read_to_string(&path))?)?;
    let text = match change {
        Change::OtherAuthority => {
            let source = "/ignition/security/tls/certificateAuthorities/0/source";
            let other = at(&lab.dir, fs::read_to_string(lab.record.spec.assets.join("auth/kubeconfig")))?;
            let other = other
                .split_once("certificate-authority-data: ")
                .and_then(|(_, rest)| rest.split_whitespace().next());
            let other = other.ok_or_else(|| refused("the kubeconfig has no authority"))?;
            // One of several, so that it is surely not the machine-config server's.
            let pem = STANDARD.decode(other).map_err(|e| refused(e.to_string()))?;
            let pem = String::from_utf8_lossy(&pem).into_owned();
            let first =
                pem.split_inclusive("-----END CERTIFICATE-----").next().unwrap_or_default().to_string()
                    + "\n";
            let place =
                config.pointer_mut(source).ok_or_else(|| refused("the pointer config has no authority"))?;
            *place = json!(format!("data:text/plain;charset=utf-8;base64,{}", STANDARD.encode(first)));
            config.to_string()
        }
        Change::Proxy => {
            let conf = "[Manager]\nDefaultEnvironment=HTTP_PROXY=http://192.168.100.99:3128 HTTPS_PROXY=http://192.168.100.99:3128 \
                        http_proxy=http://192.168.100.99:3128 https_proxy=http://192.168.100.99:3128\n";
            let path = "/etc/systemd/system.conf.d/10-default-env.conf";
            let files = config.pointer_mut("/storage/files").and_then(Value::as_array_mut);
            let files = files.ok_or_else(|| refused("the config has no files"))?;
            files.retain(|file| file["path"] != path);
            let source = format!("data:;base64,{}", STANDARD.encode(conf));
            files.push(json!({"path": path, "overwrite": true, "mode": 420, "contents": {"source": source}}));
            config.to_string()
        }
        Change::OtherToken => {
            let text = config.to_string();
            let (before, after) =
                text.split_once("Bearer ").ok_or_else(|| refused("the pointer config has no token"))?;
            let rest = after.get(after.find('"').unwrap_or_default()..).unwrap_or_default();
            format!("{before}Bearer {}{rest}", "0".repeat(64))
        }
        Change::Gone | Change::Damaged => return Ok(()),
    };
    at(&path, fs::write(&path, text))
}
