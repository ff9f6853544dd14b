//! Stage 16: etcd answers before an API server is started on it.

use super::{etcd_bootstrap, parsed};
use crate::error::ensure;
use crate::{Context, Outcome, Result, conditions, quorum};
use seedling_cluster::ClusterError;
use seedling_cluster::etcd::{Etcd, EtcdTls};
use seedling_components::etcd::BOOTSTRAP_RESOURCES;
use seedling_steps::{Condition, Probe, Stage, wait_for};
use seedling_types::paths;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Much more than etcd needs. Too short a time costs a restart, no data.
const FOUNDS_WITHIN: Duration = Duration::from_secs(15);
/// An etcd without a leader listens, but accepts nobody.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);

pub(crate) const STAGE: Stage = Stage {
    name: "wait-for-etcd",
    done: None,
    what: "Waits until the first etcd member leads, and writes down which cluster it founded.",
    why: "an API server that finds no etcd gives up after 20 s and is started again ever more slowly",
    reads: &["tls/etcd-client.*"],
    writes: &["the journal: which etcd cluster was founded", "/var/lib/etcd/cluster.json"],
    check: "etcd on localhost:2379 has had a leader: its cluster is recorded, and its config founds no other",
    fails: &[
        "no leader: crictl logs of etcd; a disk that is too slow, or a certificate that does not fit the address",
        "`its data in /var/lib/etcd is gone`: it is refused to found a second cluster",
    ],
    upstream: "until podman run … etcdctl --endpoints=https://localhost:2379 endpoint health; do sleep 5; done",
    see: &["component.etcd", "port.2379", "condition.etcd-has-leader", "file./var/lib/etcd", "seed.001.4"],
};

pub(crate) async fn run(c: &Context) -> Result<Outcome> {
    println!("Waiting for etcd cluster...");
    let tls = c.etcd_tls()?;
    let condition = Condition::new(
        &conditions::ETCD_HAS_LEADER,
        Duration::from_secs(600),
        "crictl logs --tail 20 $(crictl ps -a -q --name '^etcd$' | head -n 1)",
    )
    .on(&c.node);
    let founded = c.pins().is_founded()?;
    let mut patience = Patience { since: Instant::now(), lasts: FOUNDS_WITHIN };
    let has_leader = wait_for(&condition, Duration::from_millis(100), async || {
        let seen = match timeout(ANSWERS_WITHIN, leader(&tls)).await {
            Ok(Ok(Some(cluster))) => return Probe::Met(cluster),
            Ok(Ok(None)) => "no leader".into(),
            Ok(Err(e)) => e.to_string(),
            Err(_) => format!("no answer for {ANSWERS_WITHIN:?}"),
        };
        if !founded && patience.is_over() {
            return Probe::Unmet(move_half_made_data_aside(c).await);
        }
        Probe::Unmet(seen)
    });
    // Founded by an earlier run: its majority may be lost since.
    let restores = async {
        if founded {
            quorum::watch_over(c, None).await;
        }
        std::future::pending().await
    };
    let cluster = tokio::select! {
        met = has_leader => met?,
        never = restores => never,
    };
    // It leads, perhaps because it continued alone: record that, whoever saw it first.
    quorum::close(c)?;
    c.pins().settle_founded(cluster)?;
    // It matters when etcd starts without data.
    etcd_bootstrap::write_config(c, &etcd_bootstrap::config(c)?)?;
    println!("etcd cluster up.");
    Ok(Outcome::Done)
}

pub(crate) async fn check(c: &Context) -> Result<()> {
    ensure!(c.pins().is_founded()?, "no etcd cluster is recorded");
    let config = parsed(&c.path(BOOTSTRAP_RESOURCES).join("etcd.yaml"))?;
    let state = &config["initial-cluster-state"];
    ensure!(*state == "existing", "etcd.yaml has the initial-cluster-state {state}");
    Ok(())
}

/// The cluster's number, if it has one.
async fn leader(tls: &EtcdTls) -> Result<Option<u64>, ClusterError> {
    let status = Etcd::connect_here(tls).await?.status().await?;
    Ok((status.leader != 0).then_some(status.cluster))
}

/// Each try longer than the one before: on a slow machine it is etcd that needs the time.
struct Patience {
    since: Instant,
    lasts: Duration,
}

impl Patience {
    fn is_over(&mut self) -> bool {
        let over = self.since.elapsed() >= self.lasts;
        if over {
            *self = Self { since: Instant::now(), lasts: self.lasts * 2 };
        }
        over
    }
}

/// An etcd that was killed after it made its log and before it wrote its member list into it keeps starting with neither
/// members nor a leader. Such data was never founded, and no API server has been started on it; it is kept all the same.
async fn move_half_made_data_aside(c: &Context) -> String {
    match seedling_steps::move_aside(&c.path(paths::ETCD_DATA).join("member")) {
        Ok(None) => return "etcd has not begun".into(),
        Ok(Some(_)) => {}
        Err(e) => return format!("cannot move half-made data aside: {e}"),
    }
    // It starts again, with an empty directory.
    match etcd_bootstrap::stop().await {
        Ok(()) => "etcd had begun and not founded its cluster: it starts again, from nothing".into(),
        Err(e) => format!("crictl: {e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn patience_doubles() {
        let mut patience = Patience { since: Instant::now(), lasts: FOUNDS_WITHIN };
        for tries in [1, 2, 4] {
            assert!(!patience.is_over());
            tokio::time::advance(FOUNDS_WITHIN * tries).await;
            assert!(patience.is_over(), "after {tries} times the first");
        }
    }
}
