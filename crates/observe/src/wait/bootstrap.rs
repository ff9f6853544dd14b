//! API up, bootstrap complete, bootstrap etcd member removed.

use super::operators::standstill;
use super::{API, BOOTSTRAP, LOOK, Milestone, News, WaitError, patiently, text};
use crate::Level;
use jiff::Zoned;
use kube::Client;
use seedling_api::{ClusterOperator, ClusterVersion, Conditions, Node};
use seedling_cluster::follow::{Followed, Selection, Snapshot, follow};
use seedling_steps::{Condition, no_progress};
use std::time::{Duration, Instant};

const API_LIMIT: Duration = Duration::from_secs(20 * 60);
const BOOTSTRAP_LIMIT: Duration = Duration::from_secs(45 * 60);

/// `api_url` is only for the text; `client` knows where to ask.
pub async fn bootstrap_complete(
    client: &Client,
    api_url: &str,
    on: &mut impl FnMut(Level, String),
) -> Result<(), WaitError> {
    let start = Instant::now();
    let mut say = |level, text: &str| on(level, text.into());
    let waiting = |limit, what: &str| text::waiting(no_progress(limit), &Zoned::now(), what);
    say(Level::Info, &waiting(API_LIMIT, &format!("for the Kubernetes API at {api_url}")));
    let version = patiently(Milestone::ApiUp, client, API_LIMIT, |cause| {
        say(Level::Debug, &format!("Still waiting for the Kubernetes API: {cause}"));
    });
    let version = version.await.map_err(|seen| WaitError::Bootstrap {
        cause: format!("no progress on the bootstrap machine; last seen: {seen}"),
        hint: API,
    })?;
    say(Level::Info, &format!("API {version} up"));
    let api = start.elapsed();
    say(Level::Info, &waiting(BOOTSTRAP_LIMIT, "for bootstrapping to complete"));
    let movement = Movement::new(client);
    let status = movement.until(Milestone::BootstrapComplete, client, |line| say(Level::Debug, line)).await?;
    say(Level::Debug, &format!("Bootstrap status: {status}"));
    say(Level::Info, "Waiting for the bootstrap etcd member to be removed...");
    movement.until(Milestone::BootstrapMemberRemoved, client, |line| say(Level::Debug, line)).await?;
    say(Level::Info, "Bootstrap etcd member has been removed");
    say(Level::Info, "It is now safe to remove the bootstrap resources");
    say(Level::Debug, "Time elapsed per stage:");
    say(Level::Debug, &format!("Bootstrap Complete: {}", text::duration(start.elapsed())));
    say(Level::Debug, &format!("               API: {}", text::duration(api)));
    say(Level::Info, &format!("Time elapsed: {}", text::duration(start.elapsed())));
    Ok(())
}

/// Whatever shows that the cluster still grows: the version's message, operators' conditions, nodes.
struct Movement {
    version: Followed<ClusterVersion>,
    operators: Followed<ClusterOperator>,
    nodes: Followed<Node>,
}

impl Movement {
    fn new(client: &Client) -> Self {
        Self {
            version: follow(client, Selection::one(None, "version")),
            operators: follow(client, Selection::all()),
            nodes: follow(client, Selection::all()),
        }
    }

    async fn until(
        &self,
        milestone: Milestone,
        client: &Client,
        mut hear: impl FnMut(&str),
    ) -> Result<String, WaitError> {
        let Self { version, operators, nodes } = self;
        let mut last = String::new();
        let instead = |news: &News| {
            if !news.is_error && last != news.text {
                last.clone_from(&news.text);
                hear(&last);
            }
            [summary(&version.now()), summary(&operators.now()), summary(&nodes.now())].concat()
        };
        let condition = Condition::new(milestone.awaited(), BOOTSTRAP_LIMIT, "").quiet();
        milestone.wait(client, &condition, LOOK, instead).await.map_err(|unmet| {
            let seen = standstill(&nodes.now().objects, &operators.now().objects);
            let cause = format!("no progress for {}; last seen: {seen}", text::duration(unmet.waited));
            WaitError::Bootstrap { cause, hint: BOOTSTRAP }
        })
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
