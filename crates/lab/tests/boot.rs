//! Boots four machines through the real helper and the real Ignition, boots one again, and checks that nothing is left.
//! Needs root and a minute; elsewhere it says so and passes. Started with `helper keep` or
//! `helper run` and `--config FILE` this program is the helper.

use anyhow::{Context, Result, ensure};
use seedling_lab::{Lab, LabSpec, Labs, Options, Position, default_inventory, down, status, up};
use seedling_machines::{Machine, Power};
use seedling_steps::{Awaited, Condition, Probe, wait_for};
use seedling_types::ClusterDomain;
use seedling_types::helper::HelperEventKind;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Of the process that made the directory: two runs on one machine do not meet.
fn name(dir: &Path) -> String {
    let made_by = dir.file_name().and_then(|name| name.to_str()).and_then(|name| name.split('-').nth(2));
    format!("boot-{}", made_by.unwrap_or("test"))
}

fn main() -> Result<()> {
    let args: Vec<_> = std::env::args().collect();
    let runtime = tokio::runtime::Runtime::new()?;
    if let [_, helper, verb, flag, config, after @ ..] = args.as_slice()
        && (helper.as_str(), flag.as_str()) == ("helper", "--config")
    {
        tracing_subscriber::fmt().with_ansi(false).init();
        let config = Path::new(config);
        if verb == "keep" {
            return Ok(runtime.block_on(seedling_helper::keep(&std::env::current_exe()?, config))?);
        }
        let after = after.get(1).cloned();
        return Ok(runtime.block_on(seedling_helper::run(config, after))?);
    }
    if let [_, verb, dir] = args.as_slice()
        && verb == "up"
    {
        let (labs, spec) = (labs_in(Path::new(dir)), spec(Path::new(dir))?);
        runtime.block_on(up(&labs, spec, &Options::this_program()?, &say))?;
        return Ok(());
    }
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can boot machines");
        return Ok(());
    }
    // On a real disk: /tmp may be too small, or an overlay.
    let state = tempfile::Builder::new()
        .prefix(&format!("seedling-boot-{}-", std::process::id()))
        .tempdir_in("/var/tmp")?;
    let labs = labs_in(state.path());
    let outcome = runtime.block_on(story(&labs, state.path()));
    if let Err(error) = &outcome {
        eprintln!("{error:?}");
        show_logs(&labs, state.path());
    }
    runtime.block_on(down(&labs, &name(state.path()), &say))?;
    outcome?;
    nothing_is_left(state.path())?;
    for delay in [20, 50, 80, 110, 150, 200, 300] {
        let killed = runtime.block_on(killed_while_it_came_up(state.path(), delay));
        if killed.is_err() {
            // So that a failure leaves nothing either.
            runtime.block_on(down(&labs, &name(state.path()), &say))?;
        }
        killed.with_context(|| format!("killed after {delay} ms"))?;
    }
    println!("ok");
    Ok(())
}

fn labs_in(dir: &Path) -> Labs {
    Labs { state: dir.join("state"), ..Labs::from_env() }
}

/// Whatever `up` had made when it was killed, `down` finds it.
async fn killed_while_it_came_up(dir: &Path, delay: u64) -> Result<()> {
    let mut up = tokio::process::Command::new(std::env::current_exe()?).arg("up").arg(dir).spawn()?;
    tokio::time::sleep(Duration::from_millis(delay)).await;
    up.kill().await?;
    down(&labs_in(dir), &name(dir), &|_| ()).await?;
    nothing_is_left(dir)
}

fn say(text: &str) {
    println!("  {text}");
}

async fn story(labs: &Labs, dir: &Path) -> Result<()> {
    let spec = spec(dir)?;
    let options = Options::this_program()?;

    let started = Instant::now();
    let lab = up(labs, spec.clone(), &options, &say).await?;
    wait_until_booted(&lab.machines()).await?;
    println!("four machines run {:.1} s after `up` began", started.elapsed().as_secs_f64());
    for machine in lab.machines() {
        booted_as_told(&machine).await.with_context(|| machine.name.clone())?;
    }
    reach_each_other(&lab).await?;
    status_tells(&lab).await?;

    // Twice is harmless.
    let before = pids(&lab).await?;
    let again = up(labs, spec.clone(), &options, &say).await?;
    ensure!(pids(&lab).await? == before, "a second `up` restarted something");
    ensure!(again.record.api == lab.record.api, "a second `up` moved the API");
    killed_helper_comes_back(&lab).await?;

    power_cut(&lab.machine("master-1")?).await?;
    half_done_first_boot(&lab, &lab.machine("master-2")?).await
}

fn spec(dir: &Path) -> Result<LabSpec> {
    let (assets, release) = (dir.join("assets"), dir.join("release"));
    for folder in [assets.clone(), release.join("bin"), release.join("oci/blobs/sha256")] {
        fs::create_dir_all(folder)?;
    }
    fs::write(release.join("bin/tool"), "#!/bin/sh\necho a tool\n")?;
    fs::write(release.join("oci/index.json"), r#"{"schemaVersion":2,"manifests":[]}"#)?;
    fs::write(release.join("oci/oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
    for role in ["bootstrap", "master"] {
        fs::write(assets.join(format!("{role}.ign")), ignition(role).to_string())?;
    }
    let domain = ClusterDomain::new("lab", "example.com");
    Ok(LabSpec::new(&name(dir), domain, default_inventory(3), assets, release)?)
}

fn ignition(role: &str) -> serde_json::Value {
    let unit = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/local/bin/tool\n[Install]\nWantedBy=multi-user.target\n";
    json!({
        "ignition": { "version": "3.2.0" },
        "storage": { "files": [
            // not to be overwritten: a half-done run that left it must not make Ignition fail
            { "path": "/etc/role", "mode": 0o644, "contents": { "source": format!("data:,{role}") } },
            { "path": "/usr/local/bin/tool", "mode": 0o755, "contents": { "source": "http://helper.lab.example.com:8080/bin/tool" } },
        ]},
        "systemd": { "units": [{ "name": "tool.service", "enabled": true, "contents": unit }] },
    })
}

static BOOTED: Awaited = Awaited::in_test("systemd to run");
static HELPER_BACK: Awaited = Awaited::in_test("the helper to come back");

async fn wait_until_booted(machines: &[Machine]) -> Result<()> {
    let condition = Condition::new(&BOOTED, Duration::from_secs(30), "see the console logs");
    let probe = async || {
        let mut seen = Vec::new();
        for machine in machines {
            let state = machine.exec_output(&["systemctl", "is-system-running"]).await;
            seen.push(format!("{} {}", machine.name, state.unwrap_or_else(|e| e.to_string())));
        }
        if seen.iter().all(|s| s.ends_with(" running")) {
            Probe::Met(())
        } else {
            Probe::Unmet(seen.join(", "))
        }
    };
    Ok(wait_for(&condition, Duration::from_millis(100), probe).await?)
}

async fn booted_as_told(machine: &Machine) -> Result<()> {
    let role = machine.name.split('-').next().unwrap_or_default();
    let answers = [
        (vec!["cat", "/etc/role"], role),
        (vec!["hostname"], &machine.name),
        (vec!["systemctl", "is-active", "tool.service"], "active"),
        (vec!["systemctl", "is-active", "lab-dhcp.service"], "active"),
        (vec!["systemctl", "--failed", "--no-legend"], ""),
        (vec!["cat", "/etc/resolv.conf"], "search lab.example.com\nnameserver 192.168.100.1"),
        (vec!["cat", "/proc/sys/net/ipv4/ip_forward"], "1"),
        (vec!["cat", "/sys/class/net/eth0/address"], &machine.mac),
    ];
    for (question, answer) in answers {
        let got = machine.exec_output(&question).await?;
        ensure!(got == answer, "{question:?} answered {got:?}, not {answer:?}");
    }
    ensure!(machine.on_disk("/var/log/ignition.log").exists(), "no Ignition log");
    Ok(())
}

async fn reach_each_other(lab: &Lab) -> Result<()> {
    lab.machine("master-0")?.exec_output(&["ping", "-c1", "-W2", "master-2"]).await?;
    let api = lab.record.api.context("no API address")?;
    ensure!(api.ip().is_loopback(), "{api}");
    tokio::net::TcpStream::connect(api).await.context("the API forward")?;
    Ok(())
}

async fn status_tells(lab: &Lab) -> Result<()> {
    let status = status(lab).await?;
    ensure!(status.helper.as_ref().is_some_and(|helper| helper.ready), "{status:?}");
    for node in &status.nodes {
        ensure!(node.power() == Some(Power::On) && node.first_boot_done, "{node:?}");
        ensure!(
            node.inspection
                .as_ref()
                .is_some_and(|seen| seen.usage.cpu_seconds > 0.0 && seen.usage.memory_peak_bytes > 0),
            "{node:?}"
        );
        // This Ignition config points at no machine-config server.
        let want = if node.name == "bootstrap" { Position::Fetched } else { Position::NoMcsFetch };
        ensure!(node.position == want, "{node:?}");
    }
    Ok(())
}

/// By its parent, with the same doors and the same sockets.
async fn killed_helper_comes_back(lab: &Lab) -> Result<()> {
    let before = lab.helper_pids();
    for pid in &before {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(*pid), nix::sys::signal::Signal::SIGKILL)?;
    }
    // Its ready file is still the old one's: the new one says itself that it is there, and why.
    let condition = Condition::new(&HELPER_BACK, Duration::from_secs(10), "see helper.log");
    wait_for(&condition, Duration::from_millis(20), async || {
        let events = seedling_lab::read_events(&lab.helper_events());
        let restarted = events.iter().any(|e| {
            matches!(&e.what, HelperEventKind::Restarted { what, reason }
                if what == "the helper" && reason == "killed by signal 9")
        });
        match lab.helper_pids() {
            now if restarted && !now.is_empty() && now != before => Probe::Met(()),
            now => Probe::Unmet(format!("before {before:?}, now {now:?}, said: {restarted}")),
        }
    })
    .await?;
    reach_each_other(lab).await?;
    // What it had given away it does not give again.
    let url = "http://192.168.100.1:8080/ign/52:54:00:5e:ed:10";
    let ask = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", url];
    let code = lab.machine("bootstrap")?.exec_output(&ask).await?;
    ensure!(code == "410", "bootstrap.ign a second time: {code}");
    Ok(())
}

async fn pids(lab: &Lab) -> Result<Vec<Option<u32>>> {
    let mut pids = Vec::new();
    for machine in lab.machines() {
        pids.push(machine.inspect().await?.pid);
    }
    Ok(pids)
}

/// The disk survives, Ignition does not run again.
async fn power_cut(machine: &Machine) -> Result<()> {
    machine.exec_output(&["sh", "-c", "echo changed > /etc/role; echo kept > /var/lib/etcd/kept"]).await?;
    machine.cut_off().await?;
    ensure!(machine.inspect().await?.power == Power::Off, "still on");
    let started = Instant::now();
    machine.switch_on().await?;
    wait_until_booted(std::slice::from_ref(machine)).await?;
    println!("second boot took {:.1} s", started.elapsed().as_secs_f64());
    ensure!(machine.exec_output(&["cat", "/etc/role"]).await? == "changed", "Ignition ran again");
    ensure!(machine.exec_output(&["cat", "/var/lib/etcd/kept"]).await? == "kept", "the disk was lost");
    machine.restart().await?;
    wait_until_booted(std::slice::from_ref(machine)).await
}

/// As if the power had failed while Ignition wrote: files are there, the stamp is not.
async fn half_done_first_boot(lab: &Lab, machine: &Machine) -> Result<()> {
    machine.cut_off().await?;
    fs::remove_file(machine.on_disk("/etc/.ignition-applied"))?;
    fs::write(machine.on_disk("/etc/role"), "half")?;
    lab.switch_on(&machine.name).await?;
    wait_until_booted(std::slice::from_ref(machine)).await?;
    booted_as_told(machine).await
}

fn nothing_is_left(state: &Path) -> Result<()> {
    let name = name(state);
    let namespaces = fs::read_dir("/run/netns").into_iter().flatten().filter_map(|e| e.ok());
    let left: Vec<_> = namespaces.filter(|e| e.file_name().to_string_lossy().contains(&name)).collect();
    ensure!(left.is_empty(), "namespaces: {left:?}");
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    ensure!(!mounts.contains(&*state.to_string_lossy()), "mounts: {mounts}");
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(folder) = folders.pop() {
        ensure!(!folder.ends_with(&name), "control group {}", folder.display());
        let entries = fs::read_dir(folder).into_iter().flatten().filter_map(|e| e.ok());
        folders.extend(entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
    }
    for process in fs::read_dir("/proc")?.filter_map(|e| e.ok()) {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        ensure!(!line.contains(&*state.to_string_lossy()), "process {:?}: {line}", process.file_name());
    }
    ensure!(!state.join("state").exists(), "the state directory is still there");
    Ok(())
}

fn show_logs(labs: &Labs, dir: &Path) {
    let Ok(lab) = labs.open(&name(dir)) else { return };
    let logs = std::iter::once(lab.helper_log()).chain(lab.machines().into_iter().map(|m| m.console_log()));
    for log in logs {
        eprintln!("--- {}\n{}", log.display(), fs::read_to_string(&log).unwrap_or_default());
    }
}
