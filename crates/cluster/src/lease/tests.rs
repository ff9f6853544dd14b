//! A leader and its followers against an API that answers, stands still, or answers somebody else. Time is paused.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use super::*;
use http::{Request, Response};
use k8s_openapi::api::coordination::v1::LeaseSpec;
use kube::client::Body;
use serde_json::json;
use std::sync::{Arc, Mutex};

/// One lease behind an API that compares resource versions, and may be frozen.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    version: u64,
    spec: Option<LeaseSpec>,
    frozen: bool,
    /// What it answers instead, and how often it was asked.
    busy: Option<u16>,
    asked: usize,
}

impl Server {
    fn api(&self) -> Api<Lease> {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let sent = request.into_body().collect_bytes().await?;
                if server.0.lock().unwrap().frozen {
                    std::future::pending::<()>().await;
                }
                Ok::<_, tower::BoxError>(server.answer(&sent))
            }
        });
        let service = tower::ServiceBuilder::new()
            .layer(tower::retry::RetryLayer::new(crate::overload::Overloaded::default()))
            .service(service);
        Api::namespaced(Client::new(service, "ns"), "ns")
    }

    fn answer(&self, sent: &[u8]) -> Response<Body> {
        let mut state = self.0.lock().unwrap();
        state.asked += 1;
        if let Some(code) = state.busy {
            let busy = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Busy", "message": "not now", "code": code});
            return Response::builder().status(code).body(busy.to_string().into_bytes().into()).unwrap();
        }
        if !sent.is_empty() {
            let lease: Lease = serde_json::from_slice(sent).unwrap();
            if lease.metadata.resource_version != Some(state.version.to_string()) {
                let conflict = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict",
                    "message": "changed", "code": 409});
                return Response::builder()
                    .status(409)
                    .body(conflict.to_string().into_bytes().into())
                    .unwrap();
            }
            state.version += 1;
            state.spec = lease.spec;
        }
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": state.spec,
            "metadata": {"name": "lock", "namespace": "ns", "resourceVersion": state.version.to_string()}});
        Response::new(lease.to_string().into_bytes().into())
    }

    fn freeze(&self, frozen: bool) {
        self.0.lock().unwrap().frozen = frozen;
    }

    /// How often it was asked up to now.
    fn becomes_busy(&self, code: Option<u16>) -> usize {
        let mut state = self.0.lock().unwrap();
        state.busy = code;
        std::mem::take(&mut state.asked)
    }

    fn taken_by(&self, holder: &str) {
        let mut state = self.0.lock().unwrap();
        let spec = state.spec.get_or_insert_default();
        spec.holder_identity = Some(holder.into());
        spec.lease_transitions = Some(spec.lease_transitions.unwrap_or(0) + 1);
        state.version += 1;
    }

    async fn leader(&self, identity: &str) -> Leadership {
        let (api, begun) = (self.api(), Instant::now());
        let Ok(Acquired::Now(transitions)) = acquire(&api, "lock", identity, &mut None).await else {
            panic!("{identity} does not lead");
        };
        let (renewals, renewed) = watch::channel(begun);
        let term = Term { api, name: "lock".into(), identity: identity.into(), transitions, renewed };
        Leadership { renewal: tokio::spawn(keep(term.clone(), renewals)), term }
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_ends_before_anybody_may_follow() {
    let server = Server::default();
    let mut leader = server.leader("a").await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    let fence = leader.fence();
    assert!(fence.confirm().await.is_ok(), "it renews");
    let last = *leader.term.renewed.borrow();
    server.freeze(true);
    let why = leader.lost().await;
    assert_eq!(last.elapsed(), RENEW_DEADLINE, "{why}");
    server.freeze(false);
    assert!(matches!(fence.confirm().await, Err(ClusterError::NotLeading { .. })), "too old to act by");
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_costs_the_lease_only_by_its_rule() {
    for code in [429, 503, 504, 500] {
        let server = Server::default();
        let mut leader = server.leader("a").await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.becomes_busy(Some(code));
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert!(server.becomes_busy(None) < 40, "{code}");
        let kept = timeout(Duration::from_secs(120), leader.lost()).await;
        assert!(kept.is_err(), "{code}: twenty seconds do not cost it: {kept:?}");
        server.becomes_busy(Some(code));
        let last = *leader.term.renewed.borrow();
        let why = leader.lost().await;
        assert_eq!(last.elapsed(), RENEW_DEADLINE, "{code}: {why}");
        // Who waits for it asks no more than three times a second, and has it when the time is over.
        let (api, mut seen) = (server.api(), None);
        let begun = Instant::now();
        server.becomes_busy(Some(code));
        while begun.elapsed() < Duration::from_secs(300) {
            assert!(acquire(&api, "lock", "b", &mut seen).await.is_err());
            tokio::time::sleep(FOLLOW).await;
        }
        let asked = server.becomes_busy(None);
        assert!(asked < 900, "{code}: {asked} in five minutes");
        while acquire(&api, "lock", "b", &mut seen).await.unwrap() != Acquired::Now(2) {
            tokio::time::sleep(FOLLOW).await;
        }
        assert!(begun.elapsed() <= Duration::from_secs(307) + DURATION, "{code}: {:?}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_follower_takes_it_from_who_stands_still_and_from_nobody_else() {
    let server = Server::default();
    let leader = server.leader("a").await;
    let (api, mut seen) = (server.api(), None);
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(300) {
        let held = acquire(&api, "lock", "b", &mut seen).await.unwrap();
        assert_eq!(held, Acquired::HeldBy("a".into()));
        tokio::time::sleep(FOLLOW).await;
    }
    leader.renewal.abort();
    let last = *leader.term.renewed.borrow();
    while let Acquired::HeldBy(_) = acquire(&api, "lock", "b", &mut seen).await.unwrap() {
        tokio::time::sleep(FOLLOW).await;
    }
    assert!(last.elapsed() >= DURATION && last.elapsed() < DURATION + 2 * FOLLOW, "{:?}", last.elapsed());
    assert!(leader.fence().confirm().await.is_err(), "who slept meanwhile does nothing more");
    leader.release().await;
    let lease = api.get("lock").await.unwrap();
    assert_eq!(lease.spec.and_then(|s| s.holder_identity).as_deref(), Some("b"), "nor gives it up");
}

#[tokio::test(start_paused = true)]
async fn who_lost_it_never_takes_it_back() {
    let server = Server::default();
    let mut leader = server.leader("a").await;
    server.taken_by("b");
    assert_eq!(leader.lost().await, "lost the lease lock to b");
    server.0.lock().unwrap().spec = None;
    let mut leader = server.leader("a").await;
    // Even the same name is another term.
    server.taken_by("a");
    assert_eq!(leader.lost().await, "lost the lease lock to a");
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_once() {
    let server = Server::default();
    server.leader("a").await.release().await;
    let leader = server.leader("b").await;
    assert_eq!(leader.term.transitions, 2);
}
