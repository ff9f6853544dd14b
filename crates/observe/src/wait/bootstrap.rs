//! API up, bootstrap complete, bootstrap etcd member removed.

use super::operators::standstill;
use super::{API, BOOTSTRAP, Deadline, Milestone, Progress, WaitError, text};
use crate::Level;
use jiff::Zoned;
use kube::Client;
use seedling_api::{ClusterOperator, ClusterVersion, Conditions, ConfigMap, Etcd, Files, Node};
use seedling_cluster::Kind;
use seedling_cluster::follow::{Followed, Selection, Snapshot, follow};
use seedling_steps::no_progress;
use std::time::{Duration, Instant};

const API_LIMIT: Duration = Duration::from_secs(20 * 60);
const BOOTSTRAP_LIMIT: Duration = Duration::from_secs(45 * 60);
const ASK_API: Duration = Duration::from_millis(500);

/// `api_url` is only for the text; `client` knows where to ask.
pub async fn bootstrap_complete(
    client: &Client,
    api_url: &str,
    on: &mut impl FnMut(Progress),
) -> Result<(), WaitError> {
    let start = Instant::now();
    api_up(client, api_url, on).await?;
    let api = start.elapsed();
    say(
        on,
        Level::Info,
        text::waiting(no_progress(BOOTSTRAP_LIMIT), &Zoned::now(), "for bootstrapping to complete"),
    );
    let mut movement = Movement::new(client);
    let map = Selection::<ConfigMap>::one(Some("kube-system"), "bootstrap");
    let mut said = String::new();
    let complete = |seen: &Snapshot<ConfigMap>, on: &mut dyn FnMut(Progress)| {
        let Some(found) = seen.one() else { return false };
        let status = found.file("status");
        let line = match status {
            Some(status) => format!("Bootstrap status: {status}"),
            None => "No status found in bootstrap configmap".into(),
        };
        if said != line {
            said = line.clone();
            on(Progress::Line(Level::Debug, line));
        }
        status == Some("complete")
    };
    movement.until(follow(client, map), complete, on).await?;
    on(Progress::Reached(Milestone::BootstrapComplete));
    say(on, Level::Info, "Waiting for the bootstrap etcd member to be removed...");
    let etcd = Selection::<Etcd>::one(None, "cluster");
    let mut said = false;
    let removed = |seen: &Snapshot<Etcd>, on: &mut dyn FnMut(Progress)| {
        let Some(found) = seen.one() else {
            if !std::mem::replace(&mut said, true) {
                let line = r#"Error getting etcd operator singleton, retrying: etcds.operator.openshift.io "cluster" not found"#;
                on(Progress::Line(Level::Debug, line.into()));
            }
            return false;
        };
        found.is("EtcdBootstrapMemberRemoved")
    };
    movement.until(follow(client, etcd), removed, on).await?;
    on(Progress::Reached(Milestone::BootstrapMemberRemoved));
    say(on, Level::Info, "Bootstrap etcd member has been removed");
    say(on, Level::Info, "It is now safe to remove the bootstrap resources");
    say(on, Level::Debug, "Time elapsed per stage:");
    say(on, Level::Debug, format!("Bootstrap Complete: {}", text::duration(start.elapsed())));
    say(on, Level::Debug, format!("               API: {}", text::duration(api)));
    say(on, Level::Info, format!("Time elapsed: {}", text::duration(start.elapsed())));
    Ok(())
}

fn say(on: &mut impl FnMut(Progress), level: Level, text: impl Into<String>) {
    on(Progress::Line(level, text.into()));
}

async fn api_up(client: &Client, url: &str, on: &mut impl FnMut(Progress)) -> Result<(), WaitError> {
    say(
        on,
        Level::Info,
        text::waiting(no_progress(API_LIMIT), &Zoned::now(), &format!("for the Kubernetes API at {url}")),
    );
    let mut deadline = Deadline::new(API_LIMIT);
    loop {
        match client.apiserver_version().await {
            Ok(version) => {
                say(on, Level::Info, format!("API {} up", version.git_version));
                on(Progress::Reached(Milestone::ApiUp(version.git_version)));
                return Ok(());
            }
            Err(e) => {
                let cause = innermost(&e);
                if deadline.seen != cause {
                    say(on, Level::Debug, format!("Still waiting for the Kubernetes API: {cause}"));
                }
                deadline.saw(cause);
            }
        }
        if tokio::time::Instant::now() > deadline.at() {
            let cause = format!("no progress on the bootstrap machine; last seen: {}", deadline.seen);
            return Err(WaitError::Bootstrap { cause, hint: API });
        }
        tokio::time::sleep(ASK_API).await;
    }
}

/// An error's wrappers repeat the address and say nothing more.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// Whatever shows that the cluster still grows: the version's message, operators' conditions, nodes.
struct Movement {
    version: Followed<ClusterVersion>,
    operators: Followed<ClusterOperator>,
    nodes: Followed<Node>,
    deadline: Deadline,
}

impl Movement {
    fn new(client: &Client) -> Self {
        Self {
            version: follow(client, Selection::one(None, "version")),
            operators: follow(client, Selection::all()),
            nodes: follow(client, Selection::all()),
            deadline: Deadline::new(BOOTSTRAP_LIMIT),
        }
    }

    async fn until<K: Kind>(
        &mut self,
        mut followed: Followed<K>,
        mut met: impl FnMut(&Snapshot<K>, &mut dyn FnMut(Progress)) -> bool,
        on: &mut impl FnMut(Progress),
    ) -> Result<(), WaitError> {
        loop {
            let seen = followed.now();
            if seen.synced && met(&seen, on) {
                return Ok(());
            }
            let Self { version, operators, nodes, deadline } = self;
            let now = [summary(&version.now()), summary(&operators.now()), summary(&nodes.now())];
            deadline.saw(now.concat());
            tokio::select! {
                _ = followed.next() => {}
                _ = version.next() => {}
                _ = operators.next() => {}
                _ = nodes.next() => {}
                () = tokio::time::sleep_until(deadline.at()) => {
                    let seen = standstill(&nodes.now().objects, &operators.now().objects);
                    let limit = text::duration(no_progress(BOOTSTRAP_LIMIT));
                    let cause = format!("no progress for {limit}; last seen: {seen}");
                    return Err(WaitError::Bootstrap { cause, hint: BOOTSTRAP });
                }
            }
        }
    }
}

/// Names, and statuses with their messages; not the times, which move by themselves.
fn summary<K: Conditions>(seen: &Snapshot<K>) -> String {
    let mut text = String::new();
    for (name, object) in &seen.objects {
        text += name;
        for condition in object.conditions() {
            text.extend([condition.kind, condition.status, condition.message]);
        }
    }
    text
}
