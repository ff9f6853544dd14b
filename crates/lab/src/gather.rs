//! A lab's log bundle: machines that are on are asked, of others the disk is read; the helper's log and events; the API, if it answers.

use crate::{Lab, Result, status};
use futures::future::join_all;
use seedling_diagnose::Bundle;
use seedling_diagnose::collect::{self, Log, Told};
use seedling_machines::{Machine, Power};
use seedling_types::helper::HelperEvent;
use seedling_types::{Host, Role};
use std::fs;
use std::path::Path;
use std::time::Duration;
use tokio::process::Command;

/// A machine on its knees does not hold up the others.
const STATUS_WITHIN: Duration = Duration::from_secs(15);

/// Without secrets. What could not be had is said, and is in `gather.log`.
pub async fn gather(lab: &Lab, told: Told<'_>) -> Result<Bundle> {
    let log = Log::new(told);
    let hosts = &lab.record.spec.inventory.hosts;
    let machines = join_all(hosts.iter().map(|host| of_machine(lab, host, &log)));
    let (machines, resources, status) =
        tokio::join!(machines, of_api(lab), tokio::time::timeout(STATUS_WITHIN, status(lab)));
    let mut bundle = of_helper(lab);
    if let Ok(Ok(status)) = status {
        bundle.insert("machines.json", serde_json::to_vec_pretty(&status.nodes)?);
    }
    machines.into_iter().for_each(|files| bundle.insert_all("", files));
    match resources {
        Ok(files) => {
            log.say("API: gathered");
            bundle.insert_all("", files);
        }
        Err(why) => log.say(&format!("API: left out: {why}")),
    }
    Ok(log.finish(bundle))
}

async fn of_machine(lab: &Lab, host: &Host, log: &Log<'_>) -> Bundle {
    let bootstrap = host.role == Role::Bootstrap;
    let dir = if bootstrap { "bootstrap/".into() } else { format!("control-plane/{}/", host.address) };
    let mut bundle = Bundle::default();
    let Ok(machine) = lab.machine(&host.name) else { return bundle };
    if let Ok(console) = fs::read(machine.console_log()) {
        bundle.insert(format!("{dir}console.log"), console);
    }
    let power = machine.inspect().await.map_or(Power::Off, |inspection| inspection.power);
    let asked = match power {
        Power::On => collect::machine(machine.exec(&["sh".into(), "-s".into()], false)).await,
        Power::Off | Power::Paused => Err("it is not on".into()),
    };
    let files = match asked {
        Ok(files) => {
            log.say(&format!("{}: gathered", host.name));
            Ok(files)
        }
        Err(why) if matches!(machine, Machine::Qemu(_)) => Err(why),
        Err(why) => {
            log.say(&format!("{}: {why}; its disk is read instead", host.name));
            collect::machine(beside(&machine)).await
        }
    };
    match files {
        Ok(files) => bundle.insert_all("", collect::placed(files, bootstrap, &dir)),
        Err(why) => log.say(&format!("{}: left out: {why}", host.name)),
    }
    bundle
}

/// A shell on this machine that reads the other's disk.
fn beside(machine: &Machine) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-s").env("ROOT", machine.on_disk("/").as_os_str().to_string_lossy().trim_end_matches('/'));
    shell
}

fn of_helper(lab: &Lab) -> Bundle {
    let mut bundle = Bundle::default();
    let mut add = |path: &str, from: &Path| {
        if let Ok(content) = fs::read(from) {
            bundle.insert(path, content);
        }
    };
    add("helper/helper.log", &lab.helper_log());
    add("helper/events.jsonl", &lab.helper_events());
    add("helper/events-older.jsonl", &HelperEvent::older(&lab.helper_events()));
    add("helper/helper.yaml", &lab.helper_config());
    add("bring-up.json", &lab.bring_up_file());
    bundle.insert("helper/address.txt", format!("{}\n", lab.record.spec.helper).into_bytes());
    bundle.insert("helper/running.txt", format!("{}\n", lab.helper_pids().len()).into_bytes());
    bundle.insert("clock.txt", format!("{}\n", seedling_diagnose::collect::now()).into_bytes());
    bundle
}

async fn of_api(lab: &Lab) -> Result<Bundle, String> {
    let client = seedling_cluster::connect(Some(&lab.kubeconfig())).await.map_err(|e| e.to_string())?;
    collect::resources(&client).await
}

/// What this lab's machines keep to themselves, for the last look at a finished archive.
pub fn known_secrets(lab: &Lab) -> Vec<String> {
    let assets = &lab.record.spec.assets;
    let mut known = Vec::new();
    let password = fs::read_to_string(assets.join("auth/kubeadmin-password")).unwrap_or_default();
    known.push(password.trim().to_string());
    for host in &lab.record.spec.inventory.hosts {
        let pointer =
            fs::read_to_string(assets.join("nodes").join(format!("{}.ign", host.name))).unwrap_or_default();
        known.extend(
            pointer.split("Bearer ").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_string),
        );
    }
    known.retain(|secret| secret.len() >= 8);
    known
}
