//! Looks at etcd's members and does what `decide` says.

use super::decide::{Action, Arrival, State, decide};
use super::sums::Comparison;
use super::{Seen, ensure, hindered, masters};
use crate::patience::{self, Progress};
use crate::runtime::{Context, Inputs, Next, Pace};
use crate::static_pod::Env;
use crate::static_pod::certificates::{required_configmap, required_secret};
use crate::static_pod::signers;
use crate::{OperatorError, Result};
use seedling_api::operator::StaticPodStatus;
use seedling_api::{ConfigMap, Files, StaticPodOperator, config_map, now};
use seedling_cluster::etcd::{Etcd, EtcdTls, Member, Space};
use seedling_cluster::lease::Fence;
use seedling_cluster::operator_status::Cond;
use seedling_cluster::{ClusterError, apply_status};
use seedling_components::etcd::peer_url;
use seedling_pki::trust::{ETCD_CA, ETCD_CLIENT};
use seedling_types::names::NS_ETCD;
use seedling_types::{Role, ports};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// A member that listens but is not ready yet lets its callers wait.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// It is asked again later; etcd goes on with it meanwhile.
const DEFRAGMENTED_WITHIN: Duration = Duration::from_secs(120);
const MANAGER: &str = "seedling-etcd-members";

/// What is kept from look to look.
pub(super) struct Members<'a> {
    env: &'a Env,
    fence: Fence,
    tls: EtcdTls,
    connected: BTreeMap<String, Etcd>,
    silent_since: BTreeMap<u64, Instant>,
    progress: Progress<Arrival>,
    comparison: Comparison,
}

/// What a member answers.
struct List {
    members: Vec<Member>,
    leader: u64,
    lost: BTreeSet<u64>,
}

/// Sends what it sees to `seen`.
pub(super) async fn keep_members(
    context: &Context,
    env: &Env,
    fence: Fence,
    seen: &watch::Sender<Seen>,
) -> Result<()> {
    let mut members = Members {
        env,
        fence,
        tls: tls(env).await?,
        connected: BTreeMap::new(),
        silent_since: BTreeMap::new(),
        progress: Progress::default(),
        comparison: Comparison::default(),
    };
    let mut last = String::new();
    // No event reports on etcd's members.
    let running = context.reconcile("etcd/members", Pace::MEMBERS, Inputs::default(), async |_| {
        let (settled, text) = members.step(seen).await?;
        if text != last {
            tracing::info!("etcd members: {text}");
            last = text;
        }
        Ok(if settled { Next::Quiet } else { Next::Busy })
    });
    running.await;
    Ok(())
}

async fn tls(env: &Env) -> Result<EtcdTls> {
    let client = required_secret(&env.cache, NS_ETCD, ETCD_CLIENT.owned.secret).await?;
    let ca = required_configmap(&env.cache, NS_ETCD, ETCD_CA.configmap).await?;
    let take = |map: &BTreeMap<String, String>, key: &str| map.get(key).cloned().unwrap_or_default();
    Ok(EtcdTls {
        ca: take(&ca, "ca-bundle.crt"),
        cert: take(&client, "tls.crt"),
        key: take(&client, "tls.key"),
    })
}

impl Members<'_> {
    /// True: nothing is left to do. And what was seen.
    async fn step(&mut self, seen: &watch::Sender<Seen>) -> Result<(bool, String)> {
        let tls = tls(self.env).await?;
        if tls != self.tls {
            self.connected.clear();
            self.tls = tls;
        }
        let state = self.observe().await.map_err(Arc::new);
        let _ = seen.send_replace(state.clone());
        let state = state?;
        conditions(self.env, &state).await?;
        let actions = decide(&state);
        for action in &actions {
            match self.act(&state, action).await {
                Ok(()) => tracing::info!("etcd members: {action:?} done"),
                // "not in sync with leader" until the learner has caught up.
                Err(e) if matches!(action, Action::Promote(_)) => {
                    tracing::debug!("{action:?}: {}", e.in_full())
                }
                Err(e) => {
                    let (action, source) = (format!("{action:?}"), Box::new(e));
                    return Err(OperatorError::Action { action, source });
                }
            }
        }
        Ok((actions.is_empty() && state.bootstrap().is_none(), summary(&state)))
    }

    /// The connection to a member; after a failure a new one.
    async fn connection(&mut self, endpoint: &str) -> Result<Etcd, ClusterError> {
        match self.connected.remove(endpoint) {
            Some(etcd) => Ok(etcd),
            None => Etcd::connect(&[endpoint.to_string()], &self.tls).await,
        }
    }

    /// The members, as a majority of voters agrees; one that is cut off, or lags, is not trusted.
    async fn observe(&mut self) -> Result<State> {
        let hosts = self.env.inventory.hosts.iter().filter(|h| h.role != Role::Worker);
        let mut error = hindered("the inventory names no member");
        for host in hosts {
            let endpoint = format!("https://{}", SocketAddr::new(host.address, ports::ETCD_CLIENT));
            match self.ask(&endpoint).await {
                Ok(list) => return self.judge(list).await,
                Err(e) => error = e,
            }
        }
        Err(OperatorError::NoMember(Box::new(error)))
    }

    async fn ask(&mut self, endpoint: &str) -> Result<List> {
        let mut etcd = self.connection(endpoint).await?;
        let status = etcd.status().await?;
        let votes = !status.learner && status.leader != 0;
        ensure(votes, format!("{endpoint} is a learner or has no leader"))?;
        let members = tokio::time::timeout(ANSWER_WITHIN, etcd.agreed_members()).await??;
        let lost = tokio::time::timeout(ANSWER_WITHIN, etcd.said_lost()).await??;
        self.connected.insert(endpoint.into(), etcd);
        Ok(List { members, leader: status.leader, lost })
    }

    async fn judge(&mut self, list: List) -> Result<State> {
        let mut checks = Vec::new();
        for member in list.members.iter().filter(|m| !m.name.is_empty()) {
            let Some(url) = client_url(member) else { continue };
            let (known, tls) = (self.connected.remove(&url), &self.tls);
            checks.push(tokio::time::timeout(ANSWER_WITHIN, async move {
                let mut etcd = match known {
                    Some(etcd) => etcd,
                    None => Etcd::connect(std::slice::from_ref(&url), tls).await.ok()?,
                };
                let status = etcd.status().await.ok()?;
                Some((url, etcd, (status.leader != 0).then_some((member.id, status.space))))
            }));
        }
        let answers = futures::future::join_all(checks).await;
        let mut healthy = BTreeMap::new();
        for (url, etcd, well) in answers.into_iter().filter_map(|answer| answer.ok().flatten()) {
            self.connected.insert(url, etcd);
            healthy.extend(well);
        }
        self.state(list, healthy).await
    }

    /// `space`: of the members that are healthy.
    async fn state(&mut self, list: List, space: BTreeMap<u64, Space>) -> Result<State> {
        let List { members, leader, lost } = list;
        let now = Instant::now();
        self.silent_since.retain(|id, _| members.iter().any(|m| m.id == *id) && !space.contains_key(id));
        for member in members.iter().filter(|m| !space.contains_key(&m.id)) {
            self.silent_since.entry(member.id).or_insert(now);
        }
        let silent = self.silent_since.iter().map(|(id, since)| (*id, now.duration_since(*since))).collect();
        let hosts = self.env.inventory.masters();
        let whose = |wanted: &dyn Fn(&Member) -> bool| -> Vec<String> {
            let has = |url: &String| members.iter().any(|m| m.peer_urls.contains(url) && wanted(m));
            hosts.iter().filter(|h| has(&peer_url(h.address))).map(|h| h.name.clone()).collect()
        };
        let (well, on_list) = (whose(&|m| space.contains_key(&m.id)), whose(&|_| true));
        let masters = masters::look(self.env, &mut self.progress, &well, &on_list, now).await?;
        let bootstrap_complete = signers::bootstrapped(&self.env.cache).await?;
        let patience = patience::read(&self.env.cache).await?;
        let whole = members.iter().all(|m| !m.learner && space.contains_key(&m.id)) && bootstrap_complete;
        let urls = members.iter().filter_map(|m| Some((m.id, client_url(m)?))).collect();
        let wrong = self.comparison.wrong(whole.then_some(&urls), &self.tls, now);
        let unclear = self.comparison.unclear().cloned();
        Ok(State {
            members,
            silent,
            leader,
            space,
            lost,
            wrong,
            unclear,
            masters,
            bootstrap_complete,
            patience,
        })
    }

    async fn act(&mut self, state: &State, action: &Action) -> Result<()> {
        if let Action::Defragment(id) = action {
            return self.defragment(state, *id).await;
        }
        // The leader takes every change; only it can hand its office over.
        let leader = state.members.iter().find(|m| m.id == state.leader);
        let leader = leader.ok_or_else(|| hindered("the leader is not on the list"))?;
        let url = client_url(leader).ok_or_else(|| hindered("the leader has no address"))?;
        let mut etcd = self.connection(&url).await?;
        let leads = etcd.status().await?.leader;
        ensure(leads == state.leader, "the lead has moved since the members were looked at")?;
        if matches!(action, Action::Remove(_) | Action::GiveUp(_) | Action::Replace(_)) {
            let now = etcd.agreed_members().await?;
            let same = same_members(&now, &state.members);
            ensure(same, "the members have changed since they were looked at")?;
            masters::confirm(self.env, state, action).await?;
        }
        if let Action::GiveUp(id) = action {
            masters::remember(self.env, state, *id).await?;
        }
        // The last thing before it: only the leader changes members.
        self.fence.confirm().await?;
        match action {
            Action::AddLearner(url) => drop(etcd.add_learner(url).await?),
            Action::Promote(id) => etcd.promote(*id).await?,
            Action::MoveLeader(id) => etcd.move_leader(*id).await?,
            Action::Remove(id) | Action::GiveUp(id) | Action::Replace(id) => etcd.remove(*id).await?,
            Action::Defragment(_) => {}
        }
        self.connected.insert(url, etcd);
        Ok(())
    }

    async fn defragment(&self, state: &State, id: u64) -> Result<()> {
        let member = state.members.iter().find(|m| m.id == id);
        let url = member.and_then(client_url).ok_or_else(|| hindered("the member has no address"))?;
        let mut etcd = Etcd::connect_for(DEFRAGMENTED_WITHIN, &[url], &self.tls).await?;
        self.fence.confirm().await?;
        Ok(etcd.defragment().await?)
    }
}

/// Who they are and who votes; in which order, and under which addresses, does not matter.
fn same_members(one: &[Member], other: &[Member]) -> bool {
    let seats = |list: &[Member]| list.iter().map(|m| (m.id, m.learner)).collect::<BTreeSet<_>>();
    seats(one) == seats(other)
}

fn client_url(member: &Member) -> Option<String> {
    let url = member.peer_urls.first()?;
    let host = url.strip_prefix("https://")?.rsplit_once(':')?.0;
    Some(format!("https://{host}:{}", ports::ETCD_CLIENT))
}

fn summary(state: &State) -> String {
    let each = state.members.iter().map(|m| {
        let name = if m.name.is_empty() { m.peer_urls.first().map_or("?", String::as_str) } else { &m.name };
        let kind = if m.learner { "learner" } else { "voter" };
        let health = if state.is_healthy(m.id) { "healthy" } else { "silent" };
        let leads = if m.id == state.leader { ", leads" } else { "" };
        format!("{name} ({kind}, {health}{leads})")
    });
    each.collect::<Vec<_>>().join(", ")
}

/// Conditions that bootkube and `wait-for` read, and the endpoints ConfigMap.
async fn conditions(env: &Env, state: &State) -> Result<()> {
    let live = env.cache.get::<seedling_api::Etcd>(None, "cluster").await?;
    let before =
        live.ok_or_else(|| OperatorError::Waits("there is no Etcd cluster".into()))?.status().conditions;
    let (now, missing) = (now(), state.missing().join("; "));
    let condition = |kind: &str, status: bool, reasons: [&str; 2], messages: [&str; 2]| {
        let which = usize::from(!status);
        Cond::new(status, reasons[which], messages[which]).of(kind, &before, &now)
    };
    let removed = state.bootstrap().is_none();
    let conditions = vec![
        condition(
            "EtcdRunningInCluster",
            state.running_in_cluster(),
            ["EnoughEtcdMembers", "NotEnoughEtcdMembers"],
            ["enough members found", "still waiting for three healthy etcd members"],
        ),
        condition(
            "EtcdBootstrapMemberRemoved",
            removed,
            ["BootstrapMemberRemoved", "BootstrapMemberNotRemoved"],
            ["etcd bootstrap member is removed", "bootstrap member is not removed"],
        ),
        condition(
            "EtcdMembersDegraded",
            !missing.is_empty(),
            ["MastersMissing", "AsExpected"],
            [&missing, "no master is missing"],
        ),
    ];
    if conditions.iter().any(|c| !before.contains(c)) {
        let told =
            seedling_api::Etcd::with_status(StaticPodStatus { conditions, ..StaticPodStatus::default() });
        env.cache.put(&apply_status(&env.client, MANAGER, &told).await?);
    }
    endpoints(env, state).await
}

/// Key: member id in hex; value: address. Learners and bootstrap are left out.
async fn endpoints(env: &Env, state: &State) -> Result<()> {
    let bootstrap = state.bootstrap().map(|m| m.id);
    let data: BTreeMap<_, _> = (state.members.iter())
        .filter(|m| !m.learner && Some(m.id) != bootstrap)
        .filter_map(|m| {
            Some((
                format!("{:x}", m.id),
                client_url(m)?.strip_prefix("https://")?.rsplit_once(':')?.0.to_string(),
            ))
        })
        .collect();
    let live = env.cache.get::<ConfigMap>(Some(NS_ETCD), "etcd-endpoints").await?;
    if live.map(|map| map.files()).unwrap_or_default() == data {
        return Ok(());
    }
    env.cache.apply(MANAGER, &config_map(NS_ETCD, "etcd-endpoints", data)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::member;
    use super::*;

    #[test]
    fn members_are_the_same_when_the_same_vote() {
        let list = [member(1, "etcd-bootstrap", 10, false), member(2, "master-0", 11, true)];
        let [first, second] = list.clone();
        assert!(same_members(&list, &[second, first.clone()]));
        assert!(!same_members(&list, std::slice::from_ref(&first)));
        assert!(!same_members(&list, &[first, member(2, "master-0", 11, false)]));
    }
}
