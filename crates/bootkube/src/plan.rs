//! The plan: one list, in upstream's order, with upstream's names.

use crate::Context;
use crate::stages::*;
use anyhow::Result;
use futures::future::LocalBoxFuture;
use seedling_steps::Stage;

/// How a stage ended well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The payload has no such component; the record says so.
    NotInPayload(&'static str),
    /// A check that failed without harm: recorded, never fatal.
    Failed,
}

pub struct Step {
    pub stage: Stage,
    pub run: for<'a> fn(&'a Context) -> LocalBoxFuture<'a, Result<Outcome>>,
}

macro_rules! step {
    ($module:ident) => {
        Step { stage: $module::STAGE, run: |c| Box::pin($module::run(c)) }
    };
    ($module:ident :: $part:ident) => {
        Step { stage: $module::$part::STAGE, run: |c| Box::pin($module::$part::run(c)) }
    };
}

pub const PLAN: &[Step] = &[
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
