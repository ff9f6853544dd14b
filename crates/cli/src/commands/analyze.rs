//! `seedling analyze`: upstream's lines about a log bundle, then the cause, its evidence and the next step.

use super::lab::Format;
use super::log::LogArgs;
use anyhow::{Context, Result, bail};
use clap::Args;
use seedling_diagnose::{Bundle, Cause, Rule, diagnose, matches, upstream};
use seedling_lab::{Labs, gather};
use seedling_observe::Level;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct AnalyzeArgs {
    /// The log bundle [default: the only log-bundle-*.tar.gz in the directory]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "message"])]
    file: Option<PathBuf>,
    /// Gather from this lab first, and keep no file
    #[arg(long, value_name = "LAB", conflicts_with = "message")]
    name: Option<String>,
    /// Words of an error message or a symptom: prints what it usually means
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    /// The asset directory
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    #[command(flatten)]
    log: LogArgs,
}

pub(crate) async fn run(args: AnalyzeArgs) -> Result<ExitCode> {
    if let Some(text) = &args.message {
        return about(text, args.output);
    }
    let mut console = match args.log.console(&args.dir) {
        Ok(console) => console,
        Err(code) => return Ok(code),
    };
    let read = match &args.name {
        Some(name) => Ok(gather::gather(&Labs::from_env().open(name)?, &|line| eprintln!("{line}")).await?),
        None => Bundle::open(&bundle_path(args.file.as_deref(), &args.dir)?),
    };
    let bundle = match read {
        Ok(bundle) => bundle,
        Err(error) => {
            console.say(Level::Fatal, &error.to_string());
            return Ok(ExitCode::FAILURE);
        }
    };
    upstream::analyze(&bundle).iter().for_each(|(level, line)| console.say(*level, line));
    let causes = diagnose(&bundle);
    match args.output {
        Format::Json => println!("{}", serde_json::to_string_pretty(&causes)?),
        Format::Table => print_causes(&causes),
    }
    Ok(ExitCode::SUCCESS)
}

/// Relative to the asset directory, as upstream takes it; or to where we are.
fn bundle_path(file: Option<&Path>, dir: &Path) -> Result<PathBuf> {
    if let Some(file) = file {
        let below = dir.join(file);
        return Ok(if !below.exists() && file.exists() { file.into() } else { below });
    }
    let entries = std::fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    let is_bundle = |name: &str| name.starts_with("log-bundle-") && name.ends_with(".tar.gz");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut bundles: Vec<_> = names.filter(|name| is_bundle(name)).collect();
    bundles.sort();
    match &bundles[..] {
        [one] => Ok(dir.join(one)),
        [] => bail!(
            "{} has no log-bundle-*.tar.gz; `seedling gather bootstrap` makes one, --file names one",
            dir.display()
        ),
        several => {
            bail!("{} has several log bundles: {}; choose one with --file", dir.display(), several.join(", "))
        }
    }
}

/// On standard output: what upstream says is on the other.
pub(super) fn print_causes(causes: &[Cause]) {
    let Some((cause, others)) = causes.split_first() else { return };
    println!("cause: {} ({})", cause.cause, cause.rule);
    for evidence in &cause.evidence {
        println!("  {}: {}", evidence.place(), evidence.text);
    }
    println!("next: {}", cause.next);
    if !others.is_empty() {
        println!("also seen, later in the chain:");
        others.iter().for_each(|other| println!("  {} ({})", other.cause, other.rule));
    }
}

fn about(text: &str, format: Format) -> Result<ExitCode> {
    let found = matches(text);
    if format == Format::Json {
        let json = |rule: &&Rule| serde_json::json!({"rule": rule.name, "link": rule.link, "cause": rule.cause, "next": rule.next});
        println!("{}", serde_json::to_string_pretty(&found.iter().map(json).collect::<Vec<_>>())?);
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        bail!(
            "no known cause has such words; docs/troubleshooting.md has messages by their place, `seedling analyze` looks at a whole bundle"
        );
    }
    for rule in found {
        println!("{}: {}\n  next: {}\n  docs/causes.md#{}", rule.name, rule.cause, rule.next, rule.name);
    }
    Ok(ExitCode::SUCCESS)
}
