//! Conditions: what an object says of itself, and since when.

use crate::kind::or_default;
use crate::{CertificateSigningRequest, Node, Pod};
use serde::{Deserialize, Serialize};

/// As OpenShift's kinds have them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    #[serde(rename = "type")] pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")] pub reason: Option<String>,
    #[serde(deserialize_with = "or_default")] pub message: String,
    /// RFC 3339, UTC.
    #[serde(deserialize_with = "or_default")] pub last_transition_time: String,
}

impl Condition {
    /// Its time moves only when its status does.
    pub fn since(mut self, before: &[Condition], now: &str) -> Self {
        let same = before.iter().find(|c| c.kind == self.kind && c.status == self.status);
        self.last_transition_time = same.map_or(now, |c| &c.last_transition_time).to_string();
        self
    }

    pub fn is_true(&self) -> bool {
        self.status == "True"
    }
}

/// To the second, as the API writes it.
pub fn now() -> String {
    k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// One way to ask, whatever the kind calls its list.
pub trait Conditions {
    fn conditions(&self) -> Vec<Condition>;

    fn condition(&self, kind: &str) -> Option<Condition> {
        self.conditions().into_iter().find(|c| c.kind == kind)
    }
    fn is(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|c| c.is_true())
    }
}

/// k8s-openapi's kinds each have a type of condition of their own.
macro_rules! of_kubernetes {
    ($($kind:ty),+) => {$(
        impl Conditions for $kind {
            fn conditions(&self) -> Vec<Condition> {
                let conditions = self.status.as_ref().and_then(|status| status.conditions.as_ref());
                let condition = conditions.into_iter().flatten().map(|c| Condition {
                    kind: c.type_.clone(),
                    status: c.status.clone(),
                    reason: c.reason.clone(),
                    message: c.message.clone().unwrap_or_default(),
                    last_transition_time: c.last_transition_time.as_ref().map(|t| t.0.to_string()).unwrap_or_default(),
                });
                condition.collect()
            }
        }
    )+};
}
of_kubernetes!(CertificateSigningRequest);

/// Of kinds of this crate, whose status has a list of [`Condition`].
macro_rules! of_openshift {
    ($($kind:ty),+) => {$(
        impl Conditions for $kind {
            fn conditions(&self) -> Vec<Condition> {
                self.status.as_ref().map(|status| status.conditions.clone()).unwrap_or_default()
            }
        }
    )+};
}
of_openshift!(crate::ClusterOperator, crate::ClusterVersion, crate::Etcd, crate::KubeApiServer);
of_openshift!(crate::KubeControllerManager, crate::KubeScheduler, Node, Pod);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_asked_for_in_one_way() {
        let node: Node = serde_json::from_str(
            r#"{"metadata": {"name": "a"}, "status": {"conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-17T08:00:00Z"}]}}"#,
        )
        .unwrap_or_default();
        assert!(node.is("Ready") && !node.is("DiskPressure"));
        let ready = node.condition("Ready").unwrap_or_default();
        assert_eq!(
            (ready.status.as_str(), ready.last_transition_time.as_str()),
            ("True", "2026-11-17T08:00:00Z")
        );
        let operator: crate::ClusterOperator = serde_json::from_str(
            r#"{"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Available", "status": "False"}]}}"#,
        )
        .unwrap_or_default();
        assert_eq!(operator.condition("Available").map(|c| c.status), Some("False".to_string()));
    }

    #[test]
    fn a_time_moves_only_with_its_status() {
        let said =
            |status: &str| Condition { kind: "A".into(), status: status.into(), ..Condition::default() };
        let first = said("True").since(&[], "t1");
        let before = std::slice::from_ref(&first);
        assert_eq!(said("True").since(before, "t2").last_transition_time, "t1");
        assert_eq!(said("False").since(before, "t2").last_transition_time, "t2");
    }
}
