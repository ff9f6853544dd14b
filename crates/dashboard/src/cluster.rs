//! What only the API knows: nodes, events, revisions, the Secrets' certificates. Read, never written; an API that does not answer is no error.

use crate::inputs::{Certificate, Cluster, Node, Revisions, Told};
use kube::Client;
use seedling_api::operator::StaticPodStatus;
use seedling_api::{
    Etcd, Event, KubeApiServer, KubeControllerManager, KubeScheduler, Meta, StaticPodOperator,
};
use seedling_cluster::{Kind, Result, get, list};
use seedling_operators::owners;
use seedling_pki::Policy;
use seedling_pki::trust::Renewal;
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The newest.
const MOST_EVENTS: usize = 400;

pub(crate) async fn ask(client: &Client) -> Result<Cluster> {
    let revisions = BTreeMap::from([
        ("etcd".to_string(), revisions::<Etcd>(client).await?),
        ("kube-apiserver".to_string(), revisions::<KubeApiServer>(client).await?),
        ("kube-controller-manager".to_string(), revisions::<KubeControllerManager>(client).await?),
        ("kube-scheduler".to_string(), revisions::<KubeScheduler>(client).await?),
    ]);
    let mut events: Vec<_> = list::<Event>(client, None, "").await?.iter().map(told).collect();
    events.sort_by(|a, b| a.time.cmp(&b.time));
    let events = events.split_off(events.len().saturating_sub(MOST_EVENTS));
    let nodes = list::<seedling_api::Node>(client, None, "").await?.iter().map(node).collect();
    Ok(Cluster { events, nodes, revisions, certificates: Vec::new() })
}

/// A request a Secret: asked less often than the rest.
pub(crate) async fn certificates(client: &Client) -> Vec<Certificate> {
    let Ok(kept) = owners::list(client).await else { return Vec::new() };
    let (policy, time) =
        (Policy::default(), |time: OffsetDateTime| time.format(&Rfc3339).unwrap_or_default());
    let shown = kept.iter().map(|kept| Certificate {
        place: kept.owned.namespace.into(),
        name: kept.owned.secret.into(),
        issued: time(kept.life.issued),
        ends: time(kept.life.ends),
        renewed_from: kept.renewed_from(&policy).map(time),
        by: match kept.owned.renewal {
            Renewal::Never(why) => format!("nobody: {why}"),
            _ => format!("ClusterOperator {}", kept.owned.operator),
        },
    });
    shown.collect()
}

async fn revisions<K: Kind + StaticPodOperator>(client: &Client) -> Result<Revisions> {
    let settings = get::<K>(client, None, "cluster").await?;
    Ok(settings.map(|settings| shown(&settings.status())).unwrap_or_default())
}

fn shown(status: &StaticPodStatus) -> Revisions {
    let nodes = status.node_statuses.iter().map(|n| (n.node_name.clone(), (n.current(), n.target())));
    Revisions { latest: status.latest(), nodes: nodes.collect() }
}

fn told(event: &Event) -> Told {
    let object = &event.involved_object;
    let (kind, name) =
        (object.kind.as_deref().unwrap_or_default(), object.name.as_deref().unwrap_or_default());
    let times = [event.event_time.as_ref().map(|t| t.0), event.last_timestamp.as_ref().map(|t| t.0)];
    let created = event.metadata.creation_timestamp.as_ref().map(|t| t.0);
    let at = times.into_iter().flatten().next().or(created);
    Told {
        time: at.map(|at| at.to_string()).unwrap_or_default(),
        object: format!("{kind} {name}"),
        reason: event.reason.clone().unwrap_or_default(),
        message: event.message.clone().unwrap_or_default(),
        warning: event.type_.as_deref() == Some("Warning"),
        count: event.count.unwrap_or(1),
    }
}

fn node(node: &seedling_api::Node) -> Node {
    let conditions = node.status.as_ref().map(|s| s.conditions.as_slice()).unwrap_or_default();
    let ready = conditions.iter().find(|c| c.kind == "Ready");
    Node {
        name: node.name().into(),
        ready: ready.is_some_and(|c| c.status == "True"),
        since: ready.map(|c| c.last_transition_time.clone()).unwrap_or_default(),
    }
}
