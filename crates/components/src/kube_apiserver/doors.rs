//! What an API server audits, and what it answers to clients without credentials. The same on the bootstrap node and on masters.

use serde_json::{Value, json};

/// Reads of ordinary objects are most of the traffic and show nothing; everything that changes something, and everything that hands out a
/// credential, is written down without its contents.
pub(super) fn audit_policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/version", "/openapi*", "/api*"]},
            {"level": "None", "resources": [
                {"group": "", "resources": ["events"]},
                {"group": "events.k8s.io", "resources": ["events"]},
                {"group": "coordination.k8s.io", "resources": ["leases"]},
            ]},
            {"level": "Metadata", "resources": [
                {"group": "", "resources": ["secrets", "serviceaccounts/token"]},
                {"group": "certificates.k8s.io"},
            ]},
            {"level": "None", "verbs": ["get", "list", "watch"]},
            // A node reports its status several times a minute.
            {"level": "None", "userGroups": ["system:nodes"], "resources": [
                {"group": "", "resources": ["nodes/status", "pods/status"]},
            ]},
            {"level": "Metadata"},
        ],
    })
}

/// Load balancers ask without credentials whether a server is ready. Nobody needs more: discovery, versions and the rest are for
/// clients that say who they are.
pub(super) fn authentication() -> Value {
    let paths: Vec<_> = ["/healthz", "/livez", "/readyz"].iter().map(|path| json!({"path": path})).collect();
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "anonymous": {"enabled": true, "conditions": paths},
    })
}
