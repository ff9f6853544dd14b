//! The plan: one list, in upstream's order, with upstream's names.

use crate::stages::*;
use crate::{Context, Error, Result};
use futures::future::LocalBoxFuture;
use seedling_steps::Stage;

/// How a stage ended well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The payload has no such component; the record says so.
    NotInPayload(&'static str),
    /// The stage does nothing but its check, which is recorded and never fatal.
    Advisory,
    /// What an advisory check saw.
    Failed(String),
}

pub struct PlannedStage {
    pub stage: Stage,
    pub run: for<'a> fn(&'a Context) -> LocalBoxFuture<'a, Result<Outcome>>,
    /// Whether it is as `stage.check` says; if not, the error says what was seen.
    pub check: for<'a> fn(&'a Context) -> LocalBoxFuture<'a, Result<()>>,
}

/// These ask the network and the cluster, and are seen in every bring-up; the others only write files.
const ASK_A_CLUSTER: [&str; 8] = [
    "resolve-api-url",
    "resolve-api-int-url",
    "wait-for-etcd",
    "cb-bootstrap",
    "cvo-overrides",
    "wait-for-ceo",
    "check-api-url",
    "check-api-int-url",
];

impl PlannedStage {
    /// Whether it only makes files from files.
    pub fn renders(&self) -> bool {
        !ASK_A_CLUSTER.contains(&self.stage.name)
    }

    /// Runs the stage, then its check.
    pub async fn work(&self, c: &Context) -> Result<Outcome> {
        let outcome = (self.run)(c).await?;
        match (self.check)(c).await {
            Ok(()) => Ok(outcome),
            Err(seen) if outcome == Outcome::Advisory => {
                Ok(Outcome::Failed(format!("{}: {seen}", self.stage.check)))
            }
            // A wait says by itself what it waited for and what it saw.
            Err(unmet @ Error::Unmet(_)) => Err(unmet),
            Err(seen) => Err(Error::Check { check: self.stage.check, seen: Box::new(seen) }),
        }
    }
}

macro_rules! step {
    ($($module:ident)::+) => {
        PlannedStage {
            stage: $($module)::+::STAGE,
            run: |c| Box::pin($($module)::+::run(c)),
            check: |c| Box::pin($($module)::+::check(c)),
        }
    };
}

pub const PLAN: &[PlannedStage] = &[
    step!(openshift_manifests),
    step!(api_bootstrap),
    step!(not_in_payload::auth_api_bootstrap),
    step!(config_bootstrap),
    step!(cvo_bootstrap),
    step!(etcd_bootstrap),
    step!(kube_apiserver_bootstrap),
    step!(kube_controller_manager_bootstrap),
    step!(kube_scheduler_bootstrap),
    step!(not_in_payload::ingress_operator_bootstrap),
    step!(not_in_payload::node_tuning_bootstrap),
    step!(mco_bootstrap),
    step!(api_urls::resolve_api_url),
    step!(api_urls::resolve_api_int_url),
    step!(not_in_payload::cco_bootstrap),
    step!(wait_for_etcd),
    step!(cb_bootstrap),
    step!(cvo_overrides),
    step!(stop_machine_config_server),
    step!(wait_for_ceo),
    step!(api_urls::check_api_url),
    step!(api_urls::check_api_int_url),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_done_files_are_unique_and_explained() {
        let names: BTreeSet<_> = PLAN.iter().map(|s| s.stage.name).collect();
        let done: Vec<_> = PLAN.iter().filter_map(|s| s.stage.done).collect();
        assert_eq!(names.len(), PLAN.len());
        assert_eq!(done.iter().collect::<BTreeSet<_>>().len(), done.len());
        for step in PLAN {
            assert!(!step.stage.why.is_empty() && !step.stage.check.is_empty(), "{}", step.stage.name);
        }
    }

    #[test]
    fn upstream_order() {
        let names: Vec<_> = PLAN.iter().map(|s| s.stage.name).collect();
        let position = |name: &str| names.iter().position(|n| *n == name);
        for pair in [
            ["etcd-bootstrap", "kube-apiserver-bootstrap"],
            ["mco-bootstrap", "resolve-api-url"],
            ["wait-for-etcd", "cb-bootstrap"],
            ["cb-bootstrap", "wait-for-ceo"],
            ["wait-for-ceo", "check-api-url"],
        ] {
            assert!(position(pair[0]) < position(pair[1]), "{pair:?}");
        }
    }
}
