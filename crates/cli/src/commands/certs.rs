//! `seedling certs`: how long the certificates last, and renewing those of an asset directory.

use super::certs_live::{ListArgs, RenewArgs, list_all, renew};
use super::certs_recover::RecoverArgs;
use super::create::tell;
use super::lab::{Format, Output};
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use kube::Client;
use seedling_api::{ConfigMap, Files, Secret};
use seedling_assets::{Listed, Options};
use seedling_cluster::Kind;
use seedling_observe::Level;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

#[derive(Subcommand)]
pub(crate) enum CertsCommand {
    /// List every certificate of an asset directory or a running cluster with the days it has left; exit 1 if one has expired
    Check(CheckArgs),
    /// List a running cluster's certificates: expiry, renewal date and the operator that renews each, or why nobody does
    List(ListArgs),
    /// Make a running cluster renew its certificates now, including the certificate authorities its operators own
    Renew(RenewArgs),
    /// On one master: recover a cluster that was off until its certificates expired
    ///
    /// etcd's certificates last years longer than the others, so its data can be read. All other certificates are replaced, and this
    /// master's control plane is restarted with them. Every node that proves that it has the key of its expired certificate gets a
    /// new one. Switch on all masters first, or at least two of three.
    Recover(RecoverArgs),
    /// Renew the certificates in an asset directory before you boot from it; cluster identity, authorities' keys and your edits are kept
    Refresh(RefreshArgs),
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// The asset directory
    #[arg(default_value = ".", conflicts_with = "kubeconfig")]
    dir: PathBuf,
    /// Look at this running cluster's Secrets and ConfigMaps instead of a directory
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub(crate) struct RefreshArgs {
    /// The asset directory
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// The release to install: the output of `seedling release build` [default: $SEEDLING_CACHE/release]
    #[arg(long, value_name = "DIR")]
    release: Option<PathBuf>,
}

pub(crate) async fn run(command: CertsCommand) -> Result<ExitCode> {
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
    let text = match args.output.output {
        Format::Json => {
            let list: Vec<_> = found.iter().map(|listed| as_json(listed, now)).collect();
            serde_json::to_string_pretty(&list)? + "\n"
        }
        Format::Table => table(&found, now)?,
    };
    // A reader may close the pipe early.
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
    found.extend(of_kind::<Secret>(&client).await?);
    found.extend(of_kind::<ConfigMap>(&client).await?);
    Ok(found)
}

async fn of_kind<K: Kind + Files>(client: &Client) -> Result<Vec<Listed>> {
    let mut found = Vec::new();
    for object in seedling_cluster::list::<K>(client, None, "").await? {
        let place = seedling_cluster::describe(&object);
        for (key, text) in object.files() {
            // What only looks like one, or is half of one, is not ours to judge.
            let certificates = seedling_pki::certificates(&text).unwrap_or_default();
            let listed = |certificate| Listed { place: format!("{place} {key}"), certificate };
            found.extend(certificates.into_iter().map(listed));
        }
    }
    Ok(found)
}
