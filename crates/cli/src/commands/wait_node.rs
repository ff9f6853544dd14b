//! `seedling wait-for node NAME`: until a machine has become a node that is Ready. Meanwhile it is said what it lacks.

use super::csr::Cluster;
use super::log::{self, NoProgress};
use crate::conditions;
use anyhow::Result;
use clap::Args;
use kube::Client;
use seedling_api::{CertificateSigningRequest, Conditions, Node};
use seedling_cluster::follow::{Selection, follow};
use seedling_observe::Level;
use seedling_operators::machine_approver::{Shown, show};
use seedling_steps::{Condition, Probe, wait_for};
use std::process::ExitCode;
use std::time::Duration;

/// A machine that boots from the network and installs itself takes its time.
const NO_PROGRESS: Duration = Duration::from_secs(1800);
const LOOK: Duration = Duration::from_millis(250);

#[derive(Args)]
pub(crate) struct NodeArgs {
    /// The node's name
    name: String,
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    no_progress: NoProgress,
}

pub(super) async fn run(args: &NodeArgs) -> ExitCode {
    args.no_progress.configure();
    let say = |level, text: &str| seedling_observe::say(level, text);
    let waiting = async {
        let client = args.cluster.connect().await?;
        let hint = format!("seedling csr, and the console of {}", args.name);
        ready(&client, &args.name, &hint, &mut |text| say(Level::Info, text)).await
    };
    let waited = tokio::select! {
        waited = waiting => Some(waited),
        () = log::interrupted() => None,
    };
    match waited {
        Some(Ok(())) => ExitCode::SUCCESS,
        Some(Err(e)) => {
            say(Level::Fatal, &format!("{e:#}"));
            ExitCode::FAILURE
        }
        None => {
            say(Level::Warning, log::INTERRUPTED);
            log::INTERRUPTED_CODE.into()
        }
    }
}

/// `hint`: what a person looks at when it does not come.
pub(super) async fn ready(client: &Client, name: &str, hint: &str, say: &mut impl FnMut(&str)) -> Result<()> {
    let nodes = follow::<Node>(client, Selection::one(None, name));
    let requests = follow::<CertificateSigningRequest>(client, Selection::all());
    let condition =
        Condition::new(&conditions::NODE_READY, NO_PROGRESS, hint).with("NODE", name).on(name).quiet();
    let mut said = String::new();
    let waited = wait_for(&condition, LOOK, async || {
        let (nodes, requests) = (nodes.now(), requests.now());
        if !(nodes.synced && requests.synced) {
            return Probe::Unmet(
                nodes.error.or(requests.error).unwrap_or_else(|| "the API was not heard yet".into()),
            );
        }
        let requests: Vec<_> = requests.objects.values().map(|csr| show(csr)).collect();
        match lacks(nodes.one().as_deref(), name, &requests) {
            None => Probe::Met(()),
            Some(lacks) => {
                if said != lacks {
                    say(&format!("{name}: {lacks}"));
                    said.clone_from(&lacks);
                }
                Probe::Unmet(lacks)
            }
        }
    });
    waited.await?;
    say(&format!("{name} is Ready"));
    Ok(())
}

/// What keeps it from being a node that is Ready. Pure.
fn lacks(node: Option<&Node>, name: &str, requests: &[Shown]) -> Option<String> {
    let own = || requests.iter().filter(|r| r.node.as_deref() == Some(name));
    let open = own().find(|r| r.is_open()).map(|request| match request.verdict {
        "refused" => format!("its {} certificate is not approved: {}", request.kind, request.reason),
        _ => format!(
            "its {} certificate waits for approval; if nobody approves it: seedling csr approve {}",
            request.kind, request.name
        ),
    });
    let Some(node) = node else {
        let asked = own().any(|r| r.kind == "client" && r.verdict == "approved");
        let otherwise = match asked {
            true => "its certificate is approved, and its kubelet has made no Node yet",
            false => "it has not asked for its certificate yet",
        };
        return Some(open.unwrap_or_else(|| otherwise.into()));
    };
    match node.condition("Ready") {
        Some(ready) if ready.is_true() => open,
        Some(ready) if !ready.message.is_empty() => Some(format!("its Node is not Ready: {}", ready.message)),
        _ => Some("its Node is not Ready yet".into()),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_machine_lacks() {
        let node = |ready: &str, message: &str| -> Node {
            let condition = json!({"type": "Ready", "status": ready, "message": message});
            serde_json::from_value(json!({"metadata": {}, "status": {"conditions": [condition]}})).unwrap()
        };
        let request = |of: &str, kind: &str, verdict: &'static str| Shown {
            name: "csr-1".into(),
            created: None,
            requester: String::new(),
            kind: kind.into(),
            node: Some(of.into()),
            verdict,
            reason: "no token".into(),
            issued: false,
        };
        let cases = [
            (None, vec![], Some("has not asked")),
            (None, vec![request("w", "client", "pending")], Some("seedling csr approve csr-1")),
            (None, vec![request("w", "client", "refused")], Some("not approved: no token")),
            (None, vec![request("other", "client", "refused")], Some("has not asked")),
            (None, vec![request("w", "client", "approved")], Some("no Node yet")),
            (Some(node("False", "no network")), vec![], Some("no network")),
            (Some(node("Unknown", "")), vec![], Some("not Ready yet")),
            (Some(node("True", "")), vec![request("w", "client", "approved")], None),
            (Some(node("True", "")), vec![request("w", "serving", "refused")], Some("serving certificate")),
        ];
        for (node, requests, wanted) in cases {
            let found = lacks(node.as_ref(), "w", &requests);
            assert!(
                found.is_some() == wanted.is_some()
                    && wanted.is_none_or(|w| found.as_ref().is_some_and(|f| f.contains(w))),
                "{found:?} {wanted:?}"
            );
        }
    }
}
