//! `make soak`: certificates that live for minutes, new revisions, masters on new disks, one after the other, beside clients that forgive
//! nothing; and after each a look at what could have grown.

use anyhow::{Context, Result, bail};
use clap::Parser;
use seedling_e2e::soak::{Round, Sample, results};
use seedling_e2e::{Lab, output, run, seedling, text, wait};
use seedling_lab::Labs;
use seedling_observe::Report;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Parser)]
struct Args {
    #[arg(long, default_value_t = 120)]
    minutes: u64,
    #[arg(long, default_value = "docs/reports/soak.json")]
    report: PathBuf,
    /// Name of the lab: made, and removed
    #[arg(long, default_value = "soak")]
    name: String,
}

/// Kubelets renew theirs every two to three minutes, operators every ten.
const POLICY: &str = "apiVersion: v1\nkind: ConfigMap\n\
    metadata: {namespace: openshift-config, name: certificates}\ndata: {leaf: 25m, renew-before: 15m, kubelet: 5m}\n";
const WHOLE_AGAIN: Duration = Duration::from_secs(900);

#[derive(Clone, Copy)]
enum Deed {
    /// Another revision of this operand, on every master.
    Roll(&'static str),
    /// This master on a new disk.
    Reinstall(&'static str),
    /// All certificates that operators make, and the key of Secrets.
    Renew,
    /// This master loses its power and gets it back.
    PowerLoss(&'static str),
}

const DEEDS: [Deed; 11] = [
    Deed::Roll("kubescheduler"),
    Deed::Reinstall("master-0"),
    Deed::Roll("kubecontrollermanager"),
    Deed::PowerLoss("master-2"),
    Deed::Roll("etcd"),
    Deed::Reinstall("master-1"),
    Deed::Renew,
    Deed::PowerLoss("master-0"),
    Deed::Roll("kubeapiserver"),
    Deed::Reinstall("master-2"),
    Deed::PowerLoss("master-1"),
];

fn main() -> Result<()> {
    let args = Args::parse();
    let mut report = Report::new("soak", &format!("make soak MINUTES={}", args.minutes), None, Value::Null);
    let lab = Lab { name: args.name };
    let policy = std::env::temp_dir().join(format!("soak-{}.yaml", std::process::id()));
    std::fs::write(&policy, POLICY)?;
    let up = run(lab.lab(&["up", "--manifest"]).arg(&policy));
    let _ = std::fs::remove_file(&policy);
    up?;
    let start = Instant::now();
    let minutes = || start.elapsed().as_secs_f64() / 60.0;
    let (mut rounds, mut samples) = (Vec::new(), Vec::new());
    for (number, deed) in DEEDS.iter().cycle().enumerate() {
        rounds.push(round(&lab, number, *deed));
        samples.push(sample(&lab, minutes())?);
        // Written after each: hours of them are not lost to the last.
        (report.results, report.summary) = results(minutes(), &rounds, &samples);
        report.write(&args.report)?;
        println!("{:>5.1} min  {}", minutes(), report.summary.join(" "));
        if let Some(Round { deed, wrong: Some(wrong), .. }) = rounds.last() {
            println!("           {deed}: {wrong}");
        }
        if minutes() >= args.minutes as f64 {
            break;
        }
    }
    let some = |key: &str| report.results[key].as_array().is_some_and(|found| !found.is_empty());
    if some("wrong") || some("grown") {
        bail!("{}", report.summary.join(" "));
    }
    Ok(())
}

/// Beside the prober.
fn round(lab: &Lab, number: usize, deed: Deed) -> Round {
    let started = Instant::now();
    let mut name = String::new();
    let mut judged = None;
    let ended = (|| -> Result<()> {
        let prober = probe(lab)?;
        let whole = act(lab, number, deed, &mut name).and_then(|()| lab.whole(WHOLE_AGAIN));
        let report: seedling_lab::probe::Report = {
            output(Command::new("kill").args(["-INT", &prober.id().to_string()]))?;
            let ended = prober.wait_with_output()?;
            serde_json::from_slice(&ended.stdout).with_context(|| text(&ended.stderr))?
        };
        let kept = if report.kept_everything() { Ok(()) } else { Err(anyhow::anyhow!(report.summary())) };
        judged = Some(report);
        // What it wrote is not what the cluster is watched for.
        run(&mut lab.kubectl(&[
            "delete",
            "namespace",
            "--ignore-not-found",
            seedling_lab::probe::NAMESPACE,
        ]))?;
        whole.and(kept)
    })();
    let wrong = ended.err().map(|e| format!("{e:#}"));
    Round { deed: name, seconds: started.elapsed().as_secs_f64().round(), wrong, probed: judged }
}

/// Few enough not to fill the database themselves.
fn probe(lab: &Lab) -> Result<Child> {
    // A soak that is killed leaves nobody behind who goes on.
    let mut probe = Command::new("setpriv");
    probe
        .args(["--pdeathsig", "INT"])
        .arg(seedling().get_program())
        .args(["probe", "--name", &lab.name, "--until", "1h", "--rate", "5", "-o", "json"]);
    Ok(probe.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
}

fn act(lab: &Lab, number: usize, deed: Deed, name: &mut String) -> Result<()> {
    match deed {
        Deed::Roll(kind) => {
            *name = format!("another revision of {kind}");
            let patch = json!({"spec": {"forceRedeploymentReason": format!("soak {number}")}}).to_string();
            let before = revision(lab, kind)?;
            run(&mut lab.kubectl(&["patch", kind, "cluster", "--type=merge", "-p", &patch]))?;
            wait("another revision", WHOLE_AGAIN, || Ok((revision(lab, kind)? > before).then_some(())))
        }
        Deed::Reinstall(node) => {
            *name = format!("{node} on a new disk");
            run(&mut lab.lab(&["reinstall", node])).map(drop)
        }
        Deed::Renew => {
            *name = "all certificates".into();
            let mut renew = seedling();
            run(renew.args(["certs", "renew", "--lab", &lab.name])).map(drop)
        }
        Deed::PowerLoss(node) => {
            *name = format!("{node} without power");
            run(&mut lab.lab(&["power", node, "kill"]))?;
            run(&mut lab.lab(&["power", node, "on"])).map(drop)
        }
    }
}

fn revision(lab: &Lab, kind: &str) -> Result<i64> {
    Ok(lab.get(&[kind, "cluster"])?["status"]["latestAvailableRevision"].as_i64().unwrap_or_default())
}

fn sample(lab: &Lab, minute: f64) -> Result<Sample> {
    let mut sample = Sample { minute, ..Sample::default() };
    let opened = Labs::from_env().open(&lab.name)?;
    for machine in opened.machines() {
        let mut of_node: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (pid, arguments) in machine.processes()? {
            let sums = of_node.entry(program(&arguments)).or_default();
            sums.0 += anonymous(pid);
            sums.1 += std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |dir| dir.count() as u64);
        }
        for (name, (memory, files)) in of_node {
            let most = |map: &mut BTreeMap<String, u64>, value: u64| {
                let entry = map.entry(name.clone()).or_default();
                *entry = value.max(*entry);
            };
            most(&mut sample.memory_bytes, memory);
            most(&mut sample.open_files, files);
        }
        let logs = [machine.on_disk("/var/log"), machine.console_log()];
        sample.log_bytes.insert(machine.name.clone(), logs.iter().map(|path| size(path)).sum());
        let database = machine.dir.join("etcd/member/snap/db");
        sample.database_bytes.insert(machine.name.clone(), size(&database));
    }
    sample
        .log_bytes
        .insert("helper".into(), size(&lab.dir().join("helper-events.jsonl")) + size(&opened.helper_log()));
    for kind in ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"] {
        let maps = lab.items(&["configmaps", "-n", &format!("openshift-{kind}")])?;
        let revisions = maps.iter().filter(|m| seedling_e2e::name(m).starts_with("revision-status-")).count();
        sample.revisions.insert(kind.into(), revisions as u64);
    }
    Ok(sample)
}

/// The program; of ours, which part.
fn program(arguments: &[String]) -> String {
    let base = arguments.first().map_or("", |a| a.rsplit('/').next().unwrap_or(a));
    let words = arguments.iter().skip(1).take_while(|a| !a.starts_with('-')).take(2);
    if base == "seedling" {
        words.fold(base.to_string(), |all, word| format!("{all} {word}"))
    } else {
        base.into()
    }
}

fn anonymous(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or_default() * 1024
}

/// Of a file, or of all below a directory.
fn size(path: &Path) -> u64 {
    let Ok(data) = std::fs::symlink_metadata(path) else { return 0 };
    let below = || std::fs::read_dir(path).into_iter().flatten().flatten().map(|e| size(&e.path())).sum();
    if data.is_dir() { below() } else { data.len() }
}
