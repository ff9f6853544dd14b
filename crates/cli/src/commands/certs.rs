//! `seedling certs`: how long the certificates last, and renewing those of an asset directory.

use super::certs_live::{ListArgs, RenewArgs, list_all, renew};
use super::certs_recover::RecoverArgs;
use super::create::tell;
use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use seedling_assets::{Listed, Options};
use seedling_observe::Level;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

#[derive(Subcommand)]
pub enum CertsCommand {
    /// Print every certificate of an asset directory, or of a running cluster, with the days it has left; exit 1 if one has expired
    Check(CheckArgs),
    /// List the certificates that a running cluster keeps: when they end, when and by whom they are renewed, or why not
    List(ListArgs),
    /// Let a running cluster renew its certificates now: all leaves, and the signers that its operators own
    Renew(RenewArgs),
    /// On one master: bring back a cluster that was switched off for longer than its certificates live
    ///
    /// etcd's certificates outlive the others by years, so its data can be read. All other certificates are made anew, this master's control
    /// plane is started with them, and every node that can prove that it has the key of its old certificate gets a new one. Switch on
    /// all masters first, at least two of three.
    Recover(RecoverArgs),
    /// Renew the certificates of an asset directory; the cluster's identity, its signers' keys and your edits are kept
    Refresh(RefreshArgs),
}

#[derive(Args)]
pub struct CheckArgs {
    /// The asset directory
    #[arg(default_value = ".", conflicts_with = "kubeconfig")]
    dir: PathBuf,
    /// Ask this cluster instead: all its Secrets and ConfigMaps
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

#[derive(Args)]
pub struct RefreshArgs {
    /// The asset directory
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// Output of `seedling release build` [default: $SEEDLING_CACHE/release]
    #[arg(long, value_name = "DIR")]
    release: Option<PathBuf>,
}

pub async fn run(command: CertsCommand) -> Result<ExitCode> {
    match command {
        CertsCommand::Check(args) => check(args).await,
        CertsCommand::List(args) => list_all(&args).await.map(|()| ExitCode::SUCCESS),
        CertsCommand::Recover(args) => super::certs_recover::run(&args).await.map(|()| ExitCode::SUCCESS),
        CertsCommand::Renew(args) => renew(&args).await.map(|()| ExitCode::SUCCESS),
        CertsCommand::Refresh(args) => {
            let mut options = Options::default();
            options.release = args.release.unwrap_or(options.release);
            Ok(tell(seedling_assets::refresh(&args.dir, &options), Level::Info))
        }
    }
}

async fn check(args: CheckArgs) -> Result<ExitCode> {
    let mut found = match &args.kubeconfig {
        Some(kubeconfig) => of_cluster(kubeconfig).await?,
        None => seedling_assets::certificates(&args.dir)?,
    };
    found.sort_by_key(|listed| (listed.certificate.not_after, listed.place.clone()));
    let now = OffsetDateTime::now_utc();
    let text = match args.output {
        Format::Json => {
            let list: Vec<_> = found.iter().map(|listed| as_json(listed, now)).collect();
            serde_json::to_string_pretty(&list)? + "\n"
        }
        Format::Table => table(&found, now)?,
    };
    // Who reads only the beginning has what he wants.
    let _ = std::io::stdout().write_all(text.as_bytes());
    let expired = found.iter().any(|listed| listed.certificate.not_after <= now);
    Ok(if expired { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn table(found: &[Listed], now: OffsetDateTime) -> Result<String> {
    let mut text = format!("{:>9}  {:<20}  {:<60}  SUBJECT\n", "DAYS LEFT", "NOT AFTER", "PLACE");
    for Listed { place, certificate } in found {
        let (left, until) = (days(certificate.not_after, now), certificate.not_after.format(&Rfc3339)?);
        writeln!(text, "{left:>9.1}  {until:<20}  {place:<60}  {}", certificate.subject)?;
    }
    Ok(text)
}

fn days(until: OffsetDateTime, now: OffsetDateTime) -> f64 {
    ((until - now).as_seconds_f64() / 8640.0).floor() / 10.0
}

fn as_json(Listed { place, certificate }: &Listed, now: OffsetDateTime) -> Value {
    let time = |time: OffsetDateTime| time.format(&Rfc3339).unwrap_or_default();
    json!({
        "place": place,
        "subject": certificate.subject,
        "issuer": certificate.issuer,
        "authority": certificate.authority,
        "notBefore": time(certificate.not_before),
        "notAfter": time(certificate.not_after),
        "daysLeft": days(certificate.not_after, now),
    })
}

/// Every value of every Secret and ConfigMap that holds certificates, and the kubeconfig's own.
async fn of_cluster(kubeconfig: &Path) -> Result<Vec<Listed>> {
    let text = std::fs::read_to_string(kubeconfig).with_context(|| kubeconfig.display().to_string())?;
    let mut found = seedling_assets::in_kubeconfig(&kubeconfig.display().to_string(), &text)?;
    let client = seedling_cluster::connect(Some(kubeconfig)).await?;
    for kind in ["Secret", "ConfigMap"] {
        for object in seedling_cluster::list(&client, "v1", kind, None, "").await? {
            let name = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
            let place = format!("{kind} {}/{}", name("/metadata/namespace"), name("/metadata/name"));
            for (key, value) in object["data"].as_object().into_iter().flatten() {
                let Some(value) = value.as_str() else { continue };
                let pem = if kind == "Secret" { decoded(value) } else { value.to_string() };
                // What only looks like one, or is half of one, is not ours to judge.
                let certificates = seedling_pki::certificates(&pem).unwrap_or_default();
                let place = format!("{place} {key}");
                found.extend(
                    certificates.into_iter().map(|certificate| Listed { place: place.clone(), certificate }),
                );
            }
        }
    }
    Ok(found)
}

fn decoded(base64: &str) -> String {
    let url = format!("data:;base64,{base64}");
    let bytes = seedling_ignition::decode(&url).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
