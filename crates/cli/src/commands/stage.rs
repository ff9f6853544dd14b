//! `seedling stage` and `seedling render`: bootkube's stages one by one, on the bootstrap node or from files.

use super::lab::Format;
use anyhow::{Context, Result, ensure};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use seedling_bootkube::step::{At, at};
use seedling_bootkube::{PLAN, PlannedStage, Tree, render, tree, verify};
use seedling_steps::Journal;
use seedling_steps::journal::{Fate, fold};
use seedling_types::paths;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Subcommand)]
pub(crate) enum StageCommand {
    /// List bootkube's stages in order; on the bootstrap node with what has become of each
    List {
        #[command(flatten)]
        output: super::lab::Output,
        #[command(flatten)]
        node: NodeRoot,
    },
    /// Evaluate a stage's check now, on the bootstrap node, and show the evidence; exit code 1 if it does not hold
    Verify {
        /// The stage's name, as `seedling stage list` prints it
        #[arg(value_parser = stages())]
        stage: String,
        #[command(flatten)]
        output: super::lab::Output,
        #[command(flatten)]
        node: NodeRoot,
    },
}

/// For tests.
#[derive(Args, Clone, Debug)]
pub(crate) struct NodeRoot {
    /// The node's file system
    #[arg(long, default_value = "/", hide = true)]
    pub root: PathBuf,
}

#[derive(Args)]
pub(crate) struct RenderArgs {
    /// The stage; one that asks a running cluster renders nothing
    #[arg(value_parser = stages())]
    stage: String,
    /// Where its inputs are: /opt/openshift of a bootstrap node, or an asset directory with bootstrap.ign
    #[arg(long, value_name = "DIR")]
    asset_input_dir: PathBuf,
    /// Where its files go, each with its path on the node
    #[arg(long, value_name = "DIR")]
    asset_output_dir: PathBuf,
}

/// A wrong name is refused with the nearest right one, as wrong usage.
pub(crate) fn stages() -> PossibleValuesParser {
    PossibleValuesParser::new(PLAN.iter().map(|step| step.stage.name))
}

pub(crate) fn planned(stage: &str) -> Result<&'static PlannedStage> {
    PLAN.iter().find(|step| step.stage.name == stage).with_context(|| format!("there is no stage {stage}"))
}

pub(crate) async fn run(command: StageCommand) -> Result<ExitCode> {
    match command {
        StageCommand::List { output, node } => list(&node.root, output.output).map(|()| ExitCode::SUCCESS),
        StageCommand::Verify { stage, output, node } => {
            let verdict = verify(&node.root, planned(&stage)?).await.context("this is no bootstrap node")?;
            let holds = verdict.holds.is_ok();
            match output.output {
                Format::Table => {
                    print!("{}: {}\n{}", verdict.stage, if holds { "ok" } else { "not ok" }, verdict.text())
                }
                Format::Json => {
                    let seen = verdict.holds.err();
                    let json = json!({"stage": verdict.stage, "check": verdict.check, "holds": holds, "seen": seen,
                        "evidence": verdict.evidence});
                    println!("{}", serde_json::to_string_pretty(&json)?);
                }
            }
            Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

fn list(root: &Path, format: Format) -> Result<()> {
    let lines = Journal::of(root, "bootkube").read().unwrap_or_default();
    let (state, now) = (fold(&lines), at(&lines));
    let fate = |stage: &str| match state.step("bootkube", stage).map(|step| step.fate) {
        _ if now == paused_before(stage) => "paused for you",
        None => "",
        Some(Fate::Open) => "works",
        Some(Fate::Done) => "done",
        Some(Fate::Failed) => "failed",
        Some(Fate::Skipped) => "nothing to do",
        Some(Fate::Interrupted) => "interrupted",
    };
    if format == Format::Json {
        let rows = PLAN
            .iter()
            .enumerate()
            .map(|(i, step)| json!({"number": i + 1, "stage": step.stage, "state": fate(step.stage.name)}));
        println!("{}", serde_json::to_string_pretty(&rows.collect::<Vec<_>>())?);
        return Ok(());
    }
    println!("{:>2}  {:<34} {:<14} WHAT", "N", "STAGE", "STATE");
    for (i, step) in PLAN.iter().enumerate() {
        println!("{:>2}  {:<34} {:<14} {}", i + 1, step.stage.name, fate(step.stage.name), step.stage.what);
    }
    Ok(())
}

fn paused_before(stage: &str) -> At {
    planned(stage).map_or(At::Between, |step| At::Paused(step.stage.name))
}

pub(crate) async fn render_stage(args: &RenderArgs) -> Result<()> {
    let input = inputs(&args.asset_input_dir)?;
    std::fs::create_dir_all(&args.asset_output_dir)
        .with_context(|| args.asset_output_dir.display().to_string())?;
    let rendered = render(planned(&args.stage)?, &input, &args.asset_output_dir).await?;
    if !rendered.first.is_empty() {
        eprintln!(
            "run first in a scratch directory, for what {} reads: {}",
            args.stage,
            rendered.first.join(", ")
        );
    }
    for file in rendered.files {
        println!("{}", args.asset_output_dir.join(file.trim_start_matches('/')).display());
    }
    Ok(())
}

/// As files of a bootstrap node, by their paths there.
fn inputs(dir: &Path) -> Result<Tree> {
    let ignition = dir.join("bootstrap.ign");
    if ignition.exists() {
        let text = std::fs::read_to_string(&ignition).with_context(|| ignition.display().to_string())?;
        return of_ignition(&text).with_context(|| ignition.display().to_string());
    }
    ensure!(
        dir.join("release.json").exists(),
        "{} has neither bootstrap.ign (an asset directory) nor release.json (/opt/openshift of a bootstrap node)",
        dir.display()
    );
    let below = |(path, contents)| (format!("{}{path}", paths::OPT_OPENSHIFT), contents);
    Ok(tree(dir)?.into_iter().map(below).collect())
}

fn of_ignition(text: &str) -> Result<Tree> {
    let config: serde_json::Value = serde_json::from_str(text)?;
    let files = config["storage"]["files"].as_array().context("it has no files")?;
    let file = |file: &serde_json::Value| {
        let contents = seedling_ignition::decode(file.pointer("/contents/source")?.as_str()?)?;
        Some((file["path"].as_str()?.to_string(), contents))
    };
    Ok(files.iter().filter_map(file).collect())
}
