//! The whole path, for real, asked of the real components. Checks run in order, like the story they tell; the labs are removed
//! at the end, whatever happens.

mod book;
mod by_hand;
mod certs;
mod clients;
mod damage;
mod elsewhere;
mod handoff;
mod journal;
mod machine;
mod masters;
mod mirrors;
mod nodes;
mod others;
mod qemu;
mod quorum;
mod recover;
mod restore;
mod seeds;
mod stack;
mod step;
mod trust;
mod verify;
mod words;
mod workers;

use anyhow::{Context, Result};
use seedling_e2e::{Lab, judge, run, seedling, text};
use std::process::{Child, ExitCode, Stdio};
use std::time::Instant;

/// Runs checks one after the other and counts, in the words of Rust's own test runner.
pub struct Suite {
    passed: usize,
    failed: Vec<&'static str>,
}

impl Suite {
    pub fn check(&mut self, name: &'static str, check: impl FnOnce() -> Result<()>) -> bool {
        let started = Instant::now();
        let result = check();
        let took = started.elapsed().as_secs_f32();
        match result {
            Ok(()) => {
                println!("test {name} ... ok ({took:.1}s)");
                self.passed += 1;
                true
            }
            Err(e) => {
                println!("test {name} ... FAILED ({took:.1}s)\n{e:#}\n");
                self.failed.push(name);
                false
            }
        }
    }
}

/// Some parts alone: `cargo test … --test e2e -- pulled seeded`.
const PARTS: [&str; 12] = [
    "pulled", "seeded", "quorum", "chaos", "recover", "restore", "workers", "stack", "step", "qemu",
    "others", "mirrors",
];

fn main() -> ExitCode {
    let mut suite = Suite { passed: 0, failed: vec![] };
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let only = match judge::parts(arguments.iter().map(String::as_str), &PARTS) {
        Ok(only) => only,
        Err(e) => {
            eprintln!("error: {e}");
            return ExitCode::FAILURE;
        }
    };
    let named = |part: &str| only.contains(part);
    let wanted = |part: &str| only.is_empty() || named(part);
    words::checks(&mut suite);
    let before = machine::Traces::now();
    if !wanted("pulled") || pulled(&mut suite) {
        if wanted("seeded") {
            seeded(&mut suite);
        }
        if wanted("quorum") {
            let lab = Lab { name: "e2e-quorum".into() };
            suite.check("a_lost_majority_is_restored", || quorum::restored(&lab));
        }
        // Twelve minutes, most of them of waiting: by name only.
        if named("recover") {
            let lab = Lab { name: "e2e-recover".into() };
            suite
                .check("a_cluster_comes_back_after_its_certificates_have_ended", || recover::recovered(&lab));
            suite.check("lab_down_removes_it", || run(&mut lab.lab(&["down"])).map(drop));
        }
        if named("restore") {
            restored(&mut suite);
        }
        // A bring-up of its own: by name only.
        if named("step") {
            let lab = Lab { name: "e2e-step".into() };
            suite.check("a_person_goes_through_a_bring_up", || step::stepped(&lab));
        }
        // Two bring-ups of their own: by name only.
        if named("workers") {
            workers::checks(&mut suite);
        }
        // Two bring-ups of their own: by name only.
        if named("stack") {
            stack::checks(&mut suite);
        }
        // An emulated machine takes its time: by name only.
        if named("qemu") {
            qemu::checks(&mut suite);
        }
        if named("others") {
            others::checks(&mut suite);
        }
        // It brings a registry and a proxy of its own: by name only.
        if named("mirrors") {
            mirrors::checks(&mut suite);
        }
        if wanted("chaos") {
            for (check, (fault, flags, green)) in [
                "a_cluster_grows_whatever_is_killed",
                "a_cluster_grows_whatever_is_frozen",
                "a_cluster_grows_whatever_is_cut_off",
            ]
            .into_iter()
            .zip(STRIKES)
            {
                suite.check(check, || struck(fault, flags, green));
            }
        }
    }
    suite.check("nothing_is_left_behind", || machine::Traces::now().same_as(&before));

    let verdict = if suite.failed.is_empty() { "ok" } else { "FAILED" };
    let Suite { passed, failed } = suite;
    println!("\ntest result: {verdict}. {passed} passed; {} failed; 0 ignored", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Empty image stores: every image comes from the helper's registry, by digest. And bootkube is killed on the way.
fn pulled(suite: &mut Suite) -> bool {
    let lab = Lab { name: "e2e-pull".into() };
    // Kubelets' certificates live five minutes: they are renewed while it is asked.
    let up = match certs::policy().and_then(|policy| {
        let policy = policy.display().to_string();
        start(&lab, &["--seed-images=false", "--manifest", &policy])
    }) {
        Ok(up) => up,
        Err(e) => return suite.check("lab_up_starts", || Err(e)),
    };
    suite.check("bootkube_is_killed_in_its_longest_stage", || handoff::kill_bootkube(&lab));
    if !suite.check("a_cluster_grows_with_empty_image_stores", || finish(up)) {
        diagnose(&lab);
        return false;
    }
    suite.check("bootkube_went_on_where_it_was", || handoff::went_on(&lab));
    suite.check("secrets_are_encrypted_on_etcds_disks", || certs::encrypted(&lab, 1));
    suite.check("every_node_pulled_by_digest", || machine::pulled_by_digest(&lab));
    if !suite.check("every_certificate_is_renewed_and_nothing_is_lost", || certs::renewed(&lab)) {
        diagnose(&lab);
    }
    suite.check("a_node_founds_no_second_cluster", || journal::second_cluster(&lab));
    suite.check("lab_down_removes_it", || run(&mut lab.lab(&["down"])).map(drop));
    true
}

fn start(lab: &Lab, flags: &[&str]) -> Result<Child> {
    let mut command = lab.lab(&["up"]);
    Ok(command.args(flags).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
}

/// What `lab up` said for people goes to the log; the export line must be there.
fn finish(up: Child) -> Result<()> {
    let output = up.wait_with_output()?;
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    anyhow::ensure!(output.status.success(), "lab up ended with {}\n{out}{err}", output.status);
    out.lines().find(|l| l.starts_with("export KUBECONFIG=")).context("no export line was printed")?;
    print!("{err}");
    Ok(())
}

/// Images seeded: the run that everything else is asked of.
fn seeded(suite: &mut Suite) {
    let lab = Lab { name: "e2e".into() };
    let up = match start(&lab, &["--probe"]) {
        Ok(up) => up,
        Err(e) => {
            suite.check("lab_up_starts", || Err(e));
            return;
        }
    };
    // While the bootstrap node lives: what the seeds' readers type there.
    trust::while_booting(suite, &lab);
    seeds::on_bootstrap(suite, &lab);
    let grown = suite.check("a_cluster_grows_with_seeded_images", || finish(up));
    if !grown {
        diagnose(&lab);
        return;
    }
    suite.check("nothing_was_lost_on_the_way", || handoff::lost_nothing(&lab));
    machine::checks(suite, &lab);
    handoff::checks(suite, &lab);
    journal::checks(suite, &lab);
    clients::checks(suite, &lab);
    nodes::checks(suite, &lab);
    trust::checks(suite, &lab);
    seeds::on_master(suite, &lab);
    verify::checks(suite, &lab);
    elsewhere::checks(suite, &lab);
    masters::checks(suite, &lab);
    damage::checks(suite, &lab);
    book::checks(suite, &lab);
    suite.check("lab_up_twice_is_harmless", || {
        let before = lab.status()?["nodes"].clone();
        run(&mut lab.lab(&["up"]))?;
        let pids = |nodes: &serde_json::Value| {
            nodes.as_array().map(|n| n.iter().map(|n| n["pid"].clone()).collect::<Vec<_>>())
        };
        anyhow::ensure!(pids(&before) == pids(&lab.status()?["nodes"]), "a machine was restarted");
        Ok(())
    });
    suite.check("a_slow_disk_and_a_wrong_clock_are_said", || machine::trouble_is_said(&lab));
    if !suite.failed.is_empty() {
        diagnose(&lab);
    }
}

/// A few of chaos's cases, others every day; the reports name them. What freezes or is cut off stays so for longer than a lease, a
/// ping of a connection and a kubelet's lease live.
const STRIKES: [(&str, &[&str], u64); 3] = [
    ("kill", &["--every-step", "--cases", "4"], 3),
    ("freeze", &["--every-step", "--cases", "2", "--lasts", "30"], 1),
    ("cut-network", &["--every-step", "--victim", "node", "--cases", "1", "--lasts", "30"], 1),
];

fn struck(fault: &str, flags: &[&str], green_at_least: u64) -> Result<()> {
    let day = std::time::UNIX_EPOCH.elapsed()?.as_secs() / 86_400;
    let logs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/chaos").join(fault);
    let report = logs.join("chaos.json");
    let _ = std::fs::remove_file(&report); // of another day
    let mut chaos = seedling();
    chaos.args(["chaos", "handoff", "--fault", fault, "--name", "e2e-chaos", "--seed", &day.to_string()]);
    print!("{}", run(chaos.args(flags).arg("--report").arg(&report).arg("--logs").arg(&logs))?);
    judge::struck(&serde_json::from_slice(&std::fs::read(report)?)?, green_at_least)
}

/// A quarter of an hour: by name only.
fn restored(suite: &mut Suite) {
    let lab = Lab { name: "e2e-restore".into() };
    let well = suite.check("a_cluster_grows", || restore::grown(&lab))
        && suite.check("one_master_goes_on_when_two_are_lost", || restore::two_masters_lost(&lab))
        && suite.check("a_cluster_goes_back_to_a_backup", || restore::back_to_a_backup(&lab));
    if !well {
        diagnose(&lab);
    }
    suite.check("lab_down_removes_it", || run(&mut lab.lab(&["down"])).map(drop));
}

/// What a person would look at first.
fn diagnose(lab: &Lab) {
    let show = |what: &str, result: Result<String>| {
        println!("--- {what}\n{}", result.unwrap_or_else(|e| format!("{e:#}")));
    };
    show("lab status", run(&mut lab.lab(&["status"])));
    show(
        "bootkube",
        run(lab.lab(&["logs", "bootstrap", "--unit", "bootkube.service"]).arg("--journal")).map(tail),
    );
    show("nodes", run(&mut lab.kubectl(&["get", "nodes", "-o", "wide"])));
    show("operators", run(&mut lab.kubectl(&["get", "clusteroperators"])));
    show("pods", run(&mut lab.kubectl(&["get", "pods", "-A", "-o", "wide"])));
}

fn tail(text: String) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}
