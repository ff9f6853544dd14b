//! A payload that was complete once is kept so, manifest by manifest.

use super::apply::backoff;
use super::drift;
use super::graph::{Mode, RECONCILING_WORKERS};
use super::operators;
use super::schedule::Schedule;
use super::sync::{Work, locked};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use seedling_api::ClusterOperator;
use seedling_cluster::follow::{Followed, Snapshot};
use std::time::Duration;
use tokio::time::Instant;

/// Everything is applied again this often, for changes that no watch shows (upstream: two to four minutes).
const RECONCILE: Duration = Duration::from_secs(180);

impl Work<'_> {
    /// Keeps what was applied: by watches at once, and everything again from time to time. Nothing here waits for a manifest.
    pub(super) async fn reconcile(&self, mode: Mode, operators: &Followed<ClusterOperator>) {
        let (mut changes, _watches) = drift::watch(self.client, &self.manifests);
        let mut state = operators.state.clone();
        let mut schedule = Schedule::default();
        let mut tries = FuturesUnordered::new();
        let first = if mode == Mode::Reconciling { Duration::ZERO } else { RECONCILE };
        let mut all_due = Instant::now() + first;
        loop {
            while tries.len() < RECONCILING_WORKERS
                && let Some((task, attempt)) = schedule.take(Instant::now())
            {
                tries.push(async move {
                    (task, attempt, self.try_to_apply(task, attempt, Mode::Reconciling).await)
                });
            }
            let next = schedule.next_at().filter(|_| tries.len() < RECONCILING_WORKERS);
            tokio::select! {
                Some(change) = changes.recv() => self.drifted(&change, &mut schedule),
                Some((task, attempt, done)) = tries.next(), if !tries.is_empty() => {
                    let again = (!done).then(|| backoff(Mode::Reconciling, attempt));
                    schedule.tried(task, again, Instant::now());
                }
                changed = state.changed() => {
                    if changed.is_err() { return }
                    self.look_at_operators(&state.borrow_and_update());
                }
                () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
                () = tokio::time::sleep_until(all_due) => {
                    let tasks = 0..self.manifests.len();
                    schedule.all(tasks.filter(|t| !self.manifests[*t].is_cluster_operator()), Instant::now());
                    let snapshot = operators.now();
                    if snapshot.synced {
                        self.look_at_operators(&snapshot);
                    }
                    all_due = Instant::now() + RECONCILE;
                }
            }
        }
    }

    fn drifted(&self, change: &drift::Change, schedule: &mut Schedule) {
        for (task, manifest) in self.manifests.iter().enumerate() {
            let ours = locked(&self.generations).get(&task).copied();
            let drifted = change.generation.is_none() || (change.generation > ours && ours.is_some());
            if change.is_of(manifest) && drifted {
                tracing::info!(file = manifest.file, "changed by somebody else; applying it again");
                schedule.at_once(task, Instant::now());
            }
        }
    }

    fn look_at_operators(&self, snapshot: &Snapshot<ClusterOperator>) {
        for (task, manifest) in self.manifests.iter().enumerate().filter(|(_, m)| m.is_cluster_operator()) {
            let live = snapshot.objects.get(manifest.name()).map(|live| &**live);
            self.set(task, operators::trouble(manifest, live, Mode::Reconciling));
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::super::board::Failing;
    use super::super::inclusion::Inclusion;
    use super::super::payload::{Payload, tests::manifest};
    use super::*;
    use axum::extract::{Path, State};
    use axum::http::StatusCode;
    use axum::routing::get;
    use axum::{Json, Router};
    use seedling_cluster::follow::{Selection, follow};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};

    type Tried = Arc<Mutex<BTreeMap<String, u32>>>;

    fn refused(code: StatusCode, message: &str) -> (StatusCode, Json<Value>) {
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "reason": code.canonical_reason().unwrap_or_default().replace(' ', ""), "message": message, "code": code.as_u16()});
        (code, Json(status))
    }

    /// Takes every ConfigMap but one, and says nothing to whoever watches.
    fn server(tried: Tried) -> kube::Client {
        let kinds = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [
            {"name": "configmaps", "singularName": "configmap", "namespaced": true, "kind": "ConfigMap",
             "verbs": ["get", "list", "patch", "watch"]}]});
        let apply = |State(tried): State<Tried>, Path(name): Path<String>| async move {
            *tried.lock().unwrap().entry(name.clone()).or_default() += 1;
            match name.as_str() {
                "bad" => refused(StatusCode::UNPROCESSABLE_ENTITY, "it is wrong"),
                _ => (
                    StatusCode::OK,
                    Json(json!({"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"namespace": "ns", "name": name}})),
                ),
            }
        };
        let router = Router::new()
            .route("/api/v1", get(|| async move { Json(kinds) }))
            .route(
                "/api/v1/namespaces/ns/configmaps/{name}",
                get(|| async { refused(StatusCode::NOT_FOUND, "not there") }).patch(apply),
            )
            .fallback(std::future::pending::<()>)
            .with_state(tried);
        kube::Client::new(router, "default")
    }

    /// `bad` comes before most others, twice: as many as there are workers.
    fn payload() -> Payload {
        let one = |file: &str, name: &str| {
            manifest(
                file,
                &format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{namespace: ns, name: {name}}}\n"),
            )
        };
        let manifests = vec![
            one("0000_10_a_1.yaml", "first"),
            one("0000_10_a_2.yaml", "bad"),
            one("0000_10_a_3.yaml", "bad"),
            one("0000_10_a_4.yaml", "second"),
            one("0000_20_b_1.yaml", "third"),
        ];
        Payload { version: "0.1.0".into(), image: "i".into(), manifests, hash: "h".into() }
    }

    async fn run(mode: Mode, seconds: u64) -> (BTreeMap<String, u32>, Failing) {
        let tried = Tried::default();
        let client = server(tried.clone());
        let payload = payload();
        let mut work = Work::new(
            &client,
            &payload,
            Inclusion::of(&Default::default(), &Default::default(), "0.1.0"),
            None,
        );
        work.manifests = payload.manifests.clone();
        let operators = follow(&client, Selection::all());
        let stages = super::super::graph::plan(&work.manifests.iter().collect::<Vec<_>>(), mode);
        let limit = Duration::from_secs(seconds);
        let _ = match mode {
            Mode::Reconciling => tokio::time::timeout(limit, work.reconcile(mode, &operators)).await,
            _ => tokio::time::timeout(limit, work.work(&stages, mode, &operators)).await,
        };
        let failing = work.board.borrow().summary(mode, std::time::Instant::now()).failing;
        (tried.lock().unwrap().clone(), failing)
    }

    #[tokio::test(start_paused = true)]
    async fn one_bad_manifest_holds_up_no_other() {
        let (tried, failing) = run(Mode::Reconciling, 400).await;
        for name in ["first", "second", "third"] {
            assert_eq!(tried[name], 3, "in every round: {tried:?}");
        }
        assert!((20..100).contains(&tried["bad"]), "with its own back-off: {tried:?}");
        let Failing::Yes { reason, message } = failing else { panic!("{failing:?}") };
        assert_eq!(reason, "MultipleErrors");
        assert!(message.contains("Could not update configmap \"ns/bad\" (2 of 5): it is wrong"), "{message}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_installation_goes_on_beside_it() {
        let (tried, failing) = run(Mode::Initializing, 60).await;
        assert_eq!((tried["first"], tried["second"], tried["third"]), (1, 1, 1), "{tried:?}");
        assert!(tried["bad"] > 20 && matches!(failing, Failing::Yes { .. }), "{tried:?} {failing:?}");
        let (tried, _) = run(Mode::Updating, 60).await;
        assert_eq!((tried.get("second"), tried.get("third")), (None, None), "an update has an order");
    }
}
