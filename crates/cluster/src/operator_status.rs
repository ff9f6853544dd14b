//! ClusterOperators: what an operator says of itself, with transition times that only move when a status does.

use crate::{Cache, ClusterError, patch_status, refused};
use serde_json::{Value, json};

const API_VERSION: &str = "config.openshift.io/v1";
const MANAGER: &str = "seedling-operator";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cond {
    pub status: bool,
    pub reason: String,
    pub message: String,
}

impl Cond {
    pub fn new(status: bool, reason: &str, message: impl Into<String>) -> Self {
        Self { status, reason: reason.into(), message: message.into() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub name: String,
    pub available: Cond,
    pub progressing: Cond,
    pub degraded: Cond,
    /// Payload version; reported as `operator` once available.
    pub version: String,
    /// (group, resource, namespace, name)
    pub related: Vec<(String, String, String, String)>,
}

/// Writes the ClusterOperator; creates it when it is missing. Nothing is sent when nothing changed.
pub async fn report(cache: &Cache, report: &Report) -> Result<(), ClusterError> {
    let live = cache.get(API_VERSION, "ClusterOperator", None, &report.name).await?;
    let identity =
        json!({"apiVersion": API_VERSION, "kind": "ClusterOperator", "metadata": {"name": report.name}});
    let live = match live {
        Some(live) => live,
        None => {
            // The schema asks for a spec, though an operator has nothing to say there.
            let mut object = identity.clone();
            object["spec"] = json!({});
            cache.apply(MANAGER, &object).await?
        }
    };
    let degraded = refusal(&refused::standing()).unwrap_or_else(|| report.degraded.clone());
    let report = &Report { degraded, ..report.clone() };
    let before = live.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let versions_before = live.pointer("/status/versions").cloned().unwrap_or_else(|| json!([]));
    let status = status(report, &before, &versions_before, &now());
    if live.pointer("/status/conditions") == Some(&status["conditions"])
        && live.pointer("/status/versions") == Some(&status["versions"])
    {
        return Ok(());
    }
    let mut object = identity;
    object["status"] = status;
    cache.put(&patch_status(&cache.client, MANAGER, &object).await?);
    Ok(())
}

/// For an operator that comes no further, and so to no report: what it is refused is told beside what it said last.
pub async fn report_refusals(cache: &Cache, name: &str) -> Result<(), ClusterError> {
    let Some(degraded) = refusal(&refused::standing()) else { return Ok(()) };
    let live = cache.get(API_VERSION, "ClusterOperator", None, name).await?.unwrap_or_default();
    let status = with_degraded(live["status"].clone(), &degraded, &now());
    if live["status"] == status {
        return Ok(());
    }
    let object = json!({"apiVersion": API_VERSION, "kind": "ClusterOperator", "metadata": {"name": name}, "status": status});
    cache.put(&patch_status(&cache.client, MANAGER, &object).await?);
    Ok(())
}

fn refusal(standing: &[String]) -> Option<Cond> {
    let message = || format!("the API server refuses (403): {}", standing.join("; "));
    (!standing.is_empty()).then(|| Cond::new(true, "Forbidden", message()))
}

/// The others stay what they were.
fn with_degraded(mut status: Value, degraded: &Cond, now: &str) -> Value {
    let before = status["conditions"].as_array().cloned().unwrap_or_default();
    let mut conditions: Vec<_> = before.iter().filter(|c| c["type"] != "Degraded").cloned().collect();
    conditions.push(condition(&before, now, "Degraded", degraded));
    status["conditions"] = json!(conditions);
    status
}

fn condition(before: &[Value], now: &str, kind: &str, cond: &Cond) -> Value {
    let status = if cond.status { "True" } else { "False" };
    let same = before.iter().find(|c| c["type"] == kind && c["status"] == status);
    let since = same.and_then(|c| c["lastTransitionTime"].as_str()).unwrap_or(now);
    json!({"type": kind, "status": status, "reason": cond.reason, "message": cond.message, "lastTransitionTime": since})
}

/// What an earlier instance of this operator said.
pub async fn said_available(cache: &Cache, name: &str) -> Result<bool, ClusterError> {
    let live = cache.get(API_VERSION, "ClusterOperator", None, name).await?.unwrap_or_default();
    let conditions = live["status"]["conditions"].as_array().cloned().unwrap_or_default();
    Ok(conditions.iter().any(|c| c["type"] == "Available" && c["status"] == "True"))
}

fn status(report: &Report, before: &[Value], versions_before: &Value, now: &str) -> Value {
    let condition = |kind: &str, cond: &Cond| condition(before, now, kind, cond);
    let versions = match report.available.status && !report.progressing.status {
        true => json!([{"name": "operator", "version": report.version}]),
        false => versions_before.clone(),
    };
    let related: Vec<_> = (report.related.iter())
        .map(|(group, resource, namespace, name)| match namespace.as_str() {
            "" => json!({"group": group, "resource": resource, "name": name}),
            _ => json!({"group": group, "resource": resource, "namespace": namespace, "name": name}),
        })
        .collect();
    json!({
        "conditions": [
            condition("Available", &report.available),
            condition("Progressing", &report.progressing),
            condition("Degraded", &report.degraded),
            condition("Upgradeable", &upgradeable(report)),
        ],
        "versions": versions,
        "relatedObjects": related,
    })
}

/// Nothing is to be changed under an operator that does not work, or that is just changing something.
fn upgradeable(report: &Report) -> Cond {
    let because = |reason: &str, cond: &Cond| Cond::new(false, reason, cond.message.clone());
    match report {
        Report { degraded, .. } if degraded.status => because("Degraded", degraded),
        Report { available, .. } if !available.status => because("NotAvailable", available),
        Report { progressing, .. } if progressing.status => because("RollingOut", progressing),
        _ => Cond::new(true, "AsExpected", "Available, settled and not degraded"),
    }
}

fn now() -> String {
    k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(available: bool) -> Report {
        let cond = |s| Cond::new(s, "R", "m");
        Report {
            name: "etcd".into(),
            available: cond(available),
            progressing: cond(false),
            degraded: cond(false),
            version: "0.1.0".into(),
            related: vec![],
        }
    }

    #[test]
    fn upgradeable_follows_from_the_others() {
        for (available, progressing, degraded, want) in [
            (true, false, false, (true, "AsExpected")),
            (true, true, false, (false, "RollingOut")),
            (true, false, true, (false, "Degraded")),
            (true, true, true, (false, "Degraded")),
            (false, true, false, (false, "NotAvailable")),
        ] {
            let cond = |status| Cond::new(status, "R", "m");
            let said = Report {
                available: cond(available),
                progressing: cond(progressing),
                degraded: cond(degraded),
                ..sample(true)
            };
            let written = &status(&said, &[], &json!([]), "t")["conditions"][3];
            assert_eq!(written["type"], "Upgradeable");
            assert_eq!((written["status"] == "True", written["reason"].as_str().unwrap_or_default()), want);
        }
    }

    #[test]
    fn what_is_refused_is_told_by_whoever_comes_to_no_report() {
        assert_eq!(refusal(&[]), None);
        let cond = refusal(&["list secrets in ns".into()]).unwrap_or_else(|| Cond::new(false, "", ""));
        assert_eq!(cond.message, "the API server refuses (403): list secrets in ns");
        let said = status(&sample(true), &[], &json!([]), "t1");
        let told = with_degraded(said.clone(), &cond, "t2");
        assert_eq!(told["versions"], said["versions"]);
        let of = |status: &Value, kind: &str| {
            let all = status["conditions"].as_array().cloned().unwrap_or_default();
            all.into_iter().find(|c| c["type"] == kind).unwrap_or_default()
        };
        assert_eq!(of(&told, "Available"), of(&said, "Available"));
        assert_eq!(
            (of(&told, "Degraded")["status"].as_str(), of(&told, "Degraded")["reason"].as_str()),
            (Some("True"), Some("Forbidden"))
        );
        assert_eq!(with_degraded(told.clone(), &cond, "t3"), told, "the same again is no news");
        assert_eq!(with_degraded(Value::Null, &cond, "t")["conditions"][0]["type"], "Degraded");
    }

    #[test]
    fn transition_times_move_only_with_the_status() {
        let first = status(&sample(false), &[], &json!([]), "t1");
        let before = first["conditions"].as_array().cloned().unwrap_or_default();
        let second = status(&sample(true), &before, &first["versions"], "t2");
        assert_eq!(second["conditions"][0]["lastTransitionTime"], "t2");
        assert_eq!(second["conditions"][1]["lastTransitionTime"], "t1");
        assert_eq!(first["versions"], json!([]));
        assert_eq!(second["versions"][0]["version"], "0.1.0");
    }
}
