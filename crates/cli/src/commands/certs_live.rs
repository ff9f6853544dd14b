//! `seedling certs list` and `certs renew`: the certificates of a running cluster, who renews them, and renewing them now.

use super::csr::Cluster;
use super::lab::Output;
use crate::conditions;
use anyhow::{Result, bail};
use clap::Args;
use kube::Client;
use seedling_api::operator::StaticPodStatus;
use seedling_api::{
    ConfigMap, Etcd, Files, KubeApiServer, KubeControllerManager, KubeScheduler, StaticPodOperator,
    config_map,
};
use seedling_cluster::{Kind, apply, get};
use seedling_operators::owners::{self, Kept};
use seedling_pki::trust::Renewal;
use seedling_pki::{Policy, RENEW};
use seedling_steps::{Condition, Probe, wait_for};
use seedling_types::names::{CERTIFICATES_CONFIGMAP, NS_CONFIG};
use serde_json::{Value, json};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A revision that rolls over three slow masters shows progress on each.
const NO_PROGRESS: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(500);

#[derive(Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub(crate) struct RenewArgs {
    #[command(flatten)]
    cluster: Cluster,
    /// Do not wait until all certificates are renewed and in use on every master
    #[arg(long)]
    no_wait: bool,
}

pub(super) async fn list_all(args: &ListArgs) -> Result<()> {
    let client = args.cluster.connect().await?;
    let policy = policy(&client).await?;
    let mut kept = owners::list(&client).await?;
    kept.sort_by_key(|k| (k.life.ends, k.owned.namespace, k.owned.secret));
    let all = kept.iter().map(|k| as_json(k, &policy)).collect();
    args.output.print(&all, || print(&kept, &policy));
    Ok(())
}

fn print(kept: &[Kept], policy: &Policy) {
    println!("{:<10} {:<10} {:<24} SECRET", "ENDS", "RENEWED", "BY");
    for k in kept {
        let (renewed, by) = match k.owned.renewal {
            Renewal::Never(why) => (String::new(), why.split([':', ',']).next().unwrap_or(why)),
            _ => (k.renewed_from(policy).map(day).unwrap_or_default(), k.owned.operator),
        };
        let next = if k.next { " (its successor is handed out)" } else { "" };
        let (namespace, secret) = (k.owned.namespace, k.owned.secret);
        println!("{:<10} {renewed:<10} {by:<24} {namespace}/{secret}{next}", day(k.life.ends));
    }
    println!("Kubelets renew theirs themselves, after seven to nine tenths of their life: seedling csr");
}

fn day(time: OffsetDateTime) -> String {
    time.date().to_string()
}

fn as_json(kept: &Kept, policy: &Policy) -> Value {
    let time = |time: OffsetDateTime| time.format(&Rfc3339).unwrap_or_default();
    let never = match kept.owned.renewal {
        Renewal::Never(why) => Some(why),
        _ => None,
    };
    json!({
        "namespace": kept.owned.namespace,
        "secret": kept.owned.secret,
        "operator": kept.owned.operator,
        "signer": kept.owned.renewal == Renewal::Signer,
        "certificates": kept.certificates,
        "issued": time(kept.life.issued),
        "ends": time(kept.life.ends),
        "renewedFrom": kept.renewed_from(policy).map(time),
        "neverBecause": never,
        "successorIsHandedOut": kept.next,
    })
}

async fn policy(client: &Client) -> Result<Policy> {
    let map = get::<ConfigMap>(client, Some(NS_CONFIG), CERTIFICATES_CONFIGMAP).await?;
    match Policy::parse(&map.map(|map| map.files()).unwrap_or_default()) {
        Ok(policy) => Ok(policy),
        Err(wrong) => bail!("ConfigMap {NS_CONFIG}/{CERTIFICATES_CONFIGMAP}: {}", wrong.join("; ")),
    }
}

/// The operators do it: what was made before this moment is due. Asking again before it is done asks for newer ones.
pub(super) async fn renew(args: &RenewArgs) -> Result<()> {
    let client = args.cluster.connect().await?;
    policy(&client).await?;
    // A certificate knows whole seconds.
    let moment = OffsetDateTime::now_utc().replace_nanosecond(0)?;
    let asked = [(RENEW.to_string(), moment.format(&Rfc3339)?)].into();
    apply(&client, "seedling-certs-renew", &config_map(NS_CONFIG, CERTIFICATES_CONFIGMAP, asked)).await?;
    eprintln!("asked for certificates from {} on", moment.format(&Rfc3339)?);
    if args.no_wait {
        return Ok(());
    }
    let hint = "kubectl get clusteroperators; seedling certs list";
    let condition = Condition::new(&conditions::CERTIFICATES_RENEWED, NO_PROGRESS, hint);
    let renewed = wait_for(&condition, POLL, async || match missing(&client, moment).await {
        Ok((done, wanting)) if wanting.is_empty() => Probe::Met(done),
        Ok((_, wanting)) => Probe::Unmet(wanting.join(", ")),
        Err(e) => Probe::Unmet(format!("{e:#}")),
    });
    println!("{} certificates were renewed, and every master runs with them", renewed.await?);
    Ok(())
}

/// How many are renewed, and what is not: Secrets, then operators that still hand them out.
async fn missing(client: &Client, moment: OffsetDateTime) -> Result<(usize, Vec<String>)> {
    let kept = owners::list(client).await?;
    let old = kept.iter().filter(|k| !k.is_since(moment)).map(|k| k.owned.secret.to_string());
    let mut wanting: Vec<_> = old.collect();
    wanting.extend(masters_behind::<Etcd>(client).await?);
    wanting.extend(masters_behind::<KubeApiServer>(client).await?);
    wanting.extend(masters_behind::<KubeControllerManager>(client).await?);
    wanting.extend(masters_behind::<KubeScheduler>(client).await?);
    let renewed = kept.iter().filter(|k| !matches!(k.owned.renewal, Renewal::Never(_)));
    Ok((renewed.map(|k| k.certificates).sum(), wanting))
}

async fn masters_behind<K: Kind + StaticPodOperator>(client: &Client) -> Result<Option<String>> {
    let settings = get::<K>(client, None, "cluster").await?;
    Ok(settings.and_then(|settings| behind(&K::kind(&()), &settings.status())))
}

/// Masters of an operand that do not have its newest revision.
fn behind(kind: &str, status: &StaticPodStatus) -> Option<String> {
    let latest = status.latest();
    let old = status.node_statuses.iter().filter(|n| n.current() != latest);
    let names: Vec<_> = old.map(|n| n.node_name.as_str()).collect();
    (!names.is_empty()).then(|| format!("{kind} {latest} on {}", names.join(" and ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masters_without_the_newest_revision_are_named() {
        let status = |a: i64, b: i64| -> StaticPodStatus {
            let status = json!({"latestAvailableRevision": 3, "nodeStatuses": [
                {"nodeName": "a", "currentRevision": a}, {"nodeName": "b", "currentRevision": b}]});
            serde_json::from_value(status).unwrap_or_default()
        };
        assert_eq!(behind("Etcd", &status(3, 3)), None);
        assert_eq!(behind("Etcd", &status(2, 1)).as_deref(), Some("Etcd 3 on a and b"));
    }
}
