//! What "everything works" means, asked of every contestant by the same code: each master's own etcd knows three voters, the
//! masters, and no learner; three nodes are Ready; from each node, the Service `kubernetes` answers at its address and the
//! cluster's DNS answers with it. Ready alone would say little: neither flannel nor kube-proxy has a readiness probe.

mod api;
mod node;

use super::since;
use super::usage::Usage;
use anyhow::{Context, Result, bail};
use api::ApiView;
use node::NodeView;
use seedling_cluster::etcd::EtcdTls;
use seedling_lab::Lab;
use seedling_machines::Machine;
use seedling_steps::{Awaited, Condition, Probe, wait_for};
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

static WORKS: Awaited = Awaited::in_test("everything to work");
/// A slow machine still moves.
const NO_PROGRESS: Duration = Duration::from_secs(180);
const LOOK: Duration = Duration::from_millis(200);
/// Seldom enough to cost the contestants next to nothing: asked five times a second, each of them took ten seconds longer.
const ASK_AGAIN: Duration = Duration::from_millis(500);
const WHILE_WELL: Duration = Duration::from_secs(1);

/// A cluster that grows, and how to ask it.
pub(super) struct Cluster {
    pub lab: Lab,
    /// When its machines were switched on.
    pub clock: Instant,
    /// The Service `kubernetes`, and cluster DNS.
    pub service: Ipv4Addr,
    pub dns: Ipv4Addr,
    /// The admin's kubeconfig, once it is there.
    pub admin_kubeconfig: PathBuf,
    /// A master's credentials for its own etcd, once they are there.
    pub etcd_tls: fn(&Machine) -> Option<EtcdTls>,
}

pub(super) struct Milestones {
    pub first_readyz: f64,
    pub three_voters: f64,
    pub everything_works: f64,
    /// Up to then.
    pub usage: Usage,
}

impl Cluster {
    pub(super) async fn until_everything_works(&self) -> Result<Milestones> {
        let masters: Vec<_> = self.lab.record.spec.inventory.masters().into_iter().cloned().collect();
        let api = watch::Sender::new(ApiView::default());
        let mut nodes = Vec::new();
        for host in &masters {
            nodes.push(node::ask(self, host.name.clone(), masters.iter().map(|m| m.address).collect())?);
        }

        let mut usage = Usage::default();
        let (mut readyz, mut voters) = (None, None);
        let condition = Condition::new(&WORKS, NO_PROGRESS, "read the log");
        let look = || View {
            api: api.borrow().clone(),
            nodes: nodes.iter().map(|n: &node::Asked| n.view.borrow().clone()).collect(),
        };
        let works = wait_for(&condition, LOOK, async || {
            usage.sample(&self.lab);
            let view = look();
            if readyz.is_none() && view.api.readyz {
                readyz = Some(since(self.clock));
            }
            if voters.is_none() && view.nodes.iter().all(|n| n.masters_vote) {
                voters = Some(since(self.clock));
            }
            match view.missing().as_slice() {
                [] => Probe::Met(since(self.clock)),
                missing => Probe::Unmet(missing.join(", ")),
            }
        });
        let forward = self.lab.record.api.context("the lab has no forward to the API")?;
        let worked = tokio::select! {
            worked = works => worked,
            never = api::ask(self, forward, &api) => match never? {},
        };
        match (worked, readyz, voters) {
            (Ok(everything_works), Some(first_readyz), Some(three_voters)) => {
                Ok(Milestones { first_readyz, three_voters, everything_works, usage })
            }
            (Err(unmet), ..) => bail!("{unmet}\n{}", look().reasons().join("\n")),
            (Ok(_), ..) => bail!("everything works, but not what it rests on"),
        }
    }
}

/// What was seen last.
struct View {
    api: ApiView,
    nodes: Vec<NodeView>,
}

impl View {
    /// Without reasons: those may change without anything moving.
    fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if !self.api.readyz {
            missing.push("/readyz".into());
        }
        for node in &self.nodes {
            let ready = self.api.ready_nodes.contains(&node.name);
            let parts = [
                ("Ready", ready),
                ("voters", node.etcd.is_ok()),
                ("Service", node.service.is_ok()),
                ("DNS", node.dns.is_ok()),
            ];
            let unmet: Vec<_> = parts.iter().filter(|(_, met)| !met).map(|(part, _)| *part).collect();
            if !unmet.is_empty() {
                missing.push(format!("{}: {}", node.name, unmet.join(" ")));
            }
        }
        missing
    }

    fn reasons(&self) -> Vec<String> {
        let of = |node: &NodeView| {
            let parts = [("etcd", &node.etcd), ("Service", &node.service), ("DNS", &node.dns)];
            let failed = parts.into_iter().filter_map(|(part, answer)| Some((part, answer.as_ref().err()?)));
            failed.map(|(part, why)| format!("  {} {part}: {why}", node.name)).collect::<Vec<_>>()
        };
        self.nodes.iter().flat_map(of).collect()
    }
}

type Answer = Result<(), String>;

/// Asks for ever; what was heard last is what counts.
async fn keep_asking(
    patience: Duration,
    mut ask: impl AsyncFnMut() -> Answer,
    tell: impl Fn(Answer),
) -> Infallible {
    loop {
        let answer =
            timeout(patience, ask()).await.unwrap_or_else(|_| Err(format!("silent for {patience:?}")));
        let pause = if answer.is_ok() { WHILE_WELL } else { ASK_AGAIN };
        tell(answer);
        sleep(pause).await;
    }
}

fn set<T>(view: &watch::Sender<T>, change: impl FnOnce(&mut T)) {
    view.send_modify(change);
}

/// The innermost cause says it.
fn short(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_means_everything_at_the_same_time() {
        let well = |name: &str| NodeView {
            name: name.into(),
            masters_vote: true,
            etcd: Ok(()),
            service: Ok(()),
            dns: Ok(()),
        };
        let api = ApiView { readyz: true, ready_nodes: vec!["a".into(), "b".into()] };
        let mut view = View { api, nodes: vec![well("a"), well("b")] };
        assert_eq!(view.missing(), Vec::<String>::new());
        view.nodes[1].dns = Err("silent".into());
        view.api.ready_nodes.pop();
        assert_eq!(view.missing(), ["b: Ready DNS"]);
        assert_eq!(view.reasons(), ["  b DNS: silent"]);
    }
}
