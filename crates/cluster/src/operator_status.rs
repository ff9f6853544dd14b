//! ClusterOperators: what an operator says of itself, with transition times that only move when a status does.

use crate::{Cache, Result, apply_status, refused};
use seedling_api::config::{ClusterOperatorStatus, Nothing, OperandVersion, RelatedObject};
use seedling_api::{ClusterOperator, Condition, Conditions, named, now};

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

    /// Of this type; its time moves only when its status does.
    pub fn of(&self, kind: &str, before: &[Condition], now: &str) -> Condition {
        let condition = Condition {
            kind: kind.into(),
            status: if self.status { "True" } else { "False" }.into(),
            reason: Some(self.reason.clone()),
            message: self.message.clone(),
            last_transition_time: String::new(),
        };
        condition.since(before, now)
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
    pub related: Vec<RelatedObject>,
}

/// A namespace that the operator looks after.
pub fn related_namespace(name: &str) -> RelatedObject {
    RelatedObject { resource: "namespaces".into(), name: name.into(), ..RelatedObject::default() }
}

/// Writes the ClusterOperator; creates it when it is missing. Nothing is sent when nothing changed.
pub async fn report(cache: &Cache, report: &Report) -> Result<()> {
    let live = cache.get::<ClusterOperator>(None, &report.name).await?;
    let before = match live {
        Some(live) => live.status.clone().unwrap_or_default(),
        None => {
            // The schema asks for a spec, though an operator has nothing to say there.
            let empty =
                ClusterOperator { metadata: named(&report.name), spec: Some(Nothing {}), status: None };
            cache.apply(MANAGER, &empty).await?.status.unwrap_or_default()
        }
    };
    let degraded = refusal(&refused::standing()).unwrap_or_else(|| report.degraded.clone());
    let report = &Report { degraded, ..report.clone() };
    let status = status(report, &before, &now());
    if (&before.conditions, &before.versions) == (&status.conditions, &status.versions) {
        return Ok(());
    }
    write(cache, &report.name, status).await
}

async fn write(cache: &Cache, name: &str, status: ClusterOperatorStatus) -> Result<()> {
    let object = ClusterOperator { metadata: named(name), spec: None, status: Some(status) };
    cache.put(&apply_status(&cache.client, MANAGER, &object).await?);
    Ok(())
}

/// For an operator that is stuck and so does not report: adds what the API refuses it to what it reported last.
pub async fn report_refusals(cache: &Cache, name: &str) -> Result<()> {
    let Some(degraded) = refusal(&refused::standing()) else { return Ok(()) };
    let live = cache.get::<ClusterOperator>(None, name).await?;
    let before = live.and_then(|live| live.status.clone()).unwrap_or_default();
    let status = with_degraded(before.clone(), &degraded, &now());
    if before == status {
        return Ok(());
    }
    write(cache, name, status).await
}

fn refusal(standing: &[String]) -> Option<Cond> {
    let message = || format!("the API server refuses (403): {}", standing.join("; "));
    (!standing.is_empty()).then(|| Cond::new(true, "Forbidden", message()))
}

/// The others stay what they were.
fn with_degraded(mut status: ClusterOperatorStatus, degraded: &Cond, now: &str) -> ClusterOperatorStatus {
    let degraded = degraded.of("Degraded", &status.conditions, now);
    status.conditions.retain(|c| c.kind != "Degraded");
    status.conditions.push(degraded);
    status
}

/// What an earlier instance of this operator said.
pub async fn said_available(cache: &Cache, name: &str) -> Result<bool> {
    let live = cache.get::<ClusterOperator>(None, name).await?;
    Ok(live.is_some_and(|live| live.is("Available")))
}

fn status(report: &Report, before: &ClusterOperatorStatus, now: &str) -> ClusterOperatorStatus {
    let condition = |kind: &str, cond: &Cond| cond.of(kind, &before.conditions, now);
    let versions = match report.available.status && !report.progressing.status {
        true => vec![OperandVersion { name: "operator".into(), version: report.version.clone() }],
        false => before.versions.clone(),
    };
    ClusterOperatorStatus {
        conditions: vec![
            condition("Available", &report.available),
            condition("Progressing", &report.progressing),
            condition("Degraded", &report.degraded),
            condition("Upgradeable", &upgradeable(report)),
        ],
        versions,
        related_objects: report.related.clone(),
    }
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
            let written = &status(&said, &ClusterOperatorStatus::default(), "t").conditions[3];
            assert_eq!(written.kind, "Upgradeable");
            assert_eq!((written.is_true(), written.reason.as_deref().unwrap_or_default()), want);
        }
    }

    #[test]
    fn what_is_refused_is_told_by_whoever_comes_to_no_report() {
        assert_eq!(refusal(&[]), None);
        let cond = refusal(&["list secrets in ns".into()]).unwrap_or_else(|| Cond::new(false, "", ""));
        assert_eq!(cond.message, "the API server refuses (403): list secrets in ns");
        let nothing = ClusterOperatorStatus::default();
        let said = status(&sample(true), &nothing, "t1");
        let told = with_degraded(said.clone(), &cond, "t2");
        assert_eq!(told.versions, said.versions);
        let of = |status: &ClusterOperatorStatus, kind: &str| {
            status.conditions.iter().find(|c| c.kind == kind).cloned().unwrap_or_default()
        };
        assert_eq!(of(&told, "Available"), of(&said, "Available"));
        assert_eq!(
            (of(&told, "Degraded").is_true(), of(&told, "Degraded").reason.as_deref()),
            (true, Some("Forbidden"))
        );
        assert_eq!(with_degraded(told.clone(), &cond, "t3"), told, "the same again is no news");
        assert_eq!(with_degraded(nothing, &cond, "t").conditions[0].kind, "Degraded");
    }

    #[test]
    fn transition_times_move_only_with_the_status() {
        let first = status(&sample(false), &ClusterOperatorStatus::default(), "t1");
        let second = status(&sample(true), &first, "t2");
        assert_eq!(second.conditions[0].last_transition_time, "t2");
        assert_eq!(second.conditions[1].last_transition_time, "t1");
        assert!(first.versions.is_empty());
        assert_eq!(second.versions[0].version, "0.1.0");
    }
}
