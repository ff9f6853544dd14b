//! The loop: work the payload until it is complete, then keep it so.

use super::apply::{PATIENCE, apply, backoff, failed};
use super::board::Board;
use super::graph::{Mode, Stage, mode, plan};
use super::inclusion::Inclusion;
use super::payload::{Manifest, Payload, PayloadError};
use super::status::{Observed, status};
use super::{MANAGER, Options, operators};
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::{FutureExt, StreamExt};
use kube::Client;
use seedling_api::config::ClusterVersionStatus;
use seedling_api::{ClusterOperator, ClusterVersion, FeatureGate, Meta, named, now};
use seedling_cluster::follow::{Followed, Selection, Snapshot, follow};
use seedling_cluster::manifest::create_if_missing;
use seedling_cluster::{ClusterError, apply_status};
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// One manifest takes no longer; the API server itself gives a webhook half of it.
const APPLY: Duration = Duration::from_secs(60);
/// Status writes closer than this are written together.
const COALESCE: Duration = Duration::from_millis(250);
/// How often a status is looked at again when nothing moves: slowness becomes visible by time alone.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Runs until its process ends; the caller holds the lease.
pub async fn work_payload(client: Client, options: &Options) -> Result<(), PayloadError> {
    let payload = Payload::load(&options.manifests, &options.release_image)?;
    tracing::info!(version = payload.version, manifests = payload.manifests.len(), "payload loaded");
    let mut sources = Sources {
        version: follow(&client, Selection::one(None, "version")),
        gates: follow(&client, Selection::one(None, "cluster")),
        operators: follow(&client, Selection::all()),
    };
    let mut last_status = None;
    loop {
        // bootkube creates it.
        let cluster_version =
            sources.version.until("ClusterVersion version", |found| Some(found.clone())).await;
        let gates = sources.gates.one().unwrap_or_default();
        let inclusion = Inclusion::of(&cluster_version, &gates, &payload.version);
        let work = Work::new(&client, &payload, inclusion, last_status.take());
        work.drive(&mut sources).await;
        tracing::info!("the ClusterVersion or the feature gates changed which manifests to apply");
        last_status = work.last_status.into_inner().unwrap_or_default();
    }
}

struct Sources {
    version: Followed<ClusterVersion>,
    gates: Followed<FeatureGate>,
    operators: Followed<ClusterOperator>,
}

pub(super) struct Work<'a> {
    pub(super) client: &'a Client,
    payload: &'a Payload,
    inclusion: Inclusion,
    /// Those that belong into this cluster.
    pub(super) manifests: Vec<Manifest>,
    pub(super) board: watch::Sender<Board>,
    /// By task: what our own apply left behind.
    pub(super) generations: Mutex<HashMap<usize, i64>>,
    /// A watch may lag behind our own writes; there is one writer.
    last_status: Mutex<Option<ClusterVersionStatus>>,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        client: &'a Client,
        payload: &'a Payload,
        inclusion: Inclusion,
        last_status: Option<ClusterVersionStatus>,
    ) -> Self {
        let mut manifests = Vec::new();
        for manifest in &payload.manifests {
            match inclusion.excluded(manifest) {
                Some(why) => tracing::debug!(file = manifest.file, "left out: {why}"),
                None => manifests.push(manifest.clone()),
            }
        }
        let board = watch::Sender::new(Board::new(manifests.len()));
        let (generations, last_status) = (Mutex::default(), Mutex::new(last_status));
        Self { client, payload, inclusion, manifests, board, generations, last_status }
    }

    /// Until another set of manifests is asked for.
    async fn drive(&self, sources: &mut Sources) {
        let live = sources.version.one().unwrap_or_default();
        let mode = mode(&self.before(&live).history, &self.payload.version, &self.payload.image);
        tracing::info!(
            ?mode,
            version = self.payload.version,
            tasks = self.manifests.len(),
            "applying the payload"
        );
        let references: Vec<&Manifest> = self.manifests.iter().collect();
        let stages = plan(&references, mode);
        let Sources { version, gates, operators } = sources;
        if mode != Mode::Reconciling {
            tokio::select! {
                () = self.work(&stages, mode, operators) => {}
                () = self.keep_reporting(version, mode) => {}
                () = self.other_set(version.state.clone(), gates.state.clone()) => return,
            }
            while let Err(e) = self.report(version, mode, true).await {
                tracing::warn!("reporting that {} is complete: {e}", self.payload.version);
                tokio::time::sleep(COALESCE).await;
            }
            tracing::info!(version = self.payload.version, "the payload is complete");
        }
        tokio::select! {
            () = self.reconcile(mode, operators) => {}
            () = self.keep_reporting(version, Mode::Reconciling) => {}
            () = self.other_set(version.state.clone(), gates.state.clone()) => {}
        }
    }

    pub(super) async fn work(&self, stages: &[Stage], mode: Mode, operators: &Followed<ClusterOperator>) {
        for stage in stages {
            let (late, stragglers) = unbounded();
            let sender = late.clone();
            let group = move |group: Vec<usize>| self.work_group(group, mode, operators, sender.clone());
            let groups =
                futures::stream::iter(stage.groups.clone()).for_each_concurrent(stage.workers, group);
            // No more can come when all groups are through.
            let groups = groups.map(move |()| late.close_channel()).boxed();
            let alone = move |task| self.apply_from(PATIENCE + 1, task, mode);
            let stragglers = stragglers.for_each_concurrent(None, alone).boxed();
            tokio::join!(groups, stragglers);
        }
    }

    async fn work_group(
        &self,
        group: Vec<usize>,
        mode: Mode,
        operators: &Followed<ClusterOperator>,
        late: UnboundedSender<usize>,
    ) {
        for task in group {
            self.work_task(task, mode, operators, &late).await;
        }
    }

    /// An update has an order, and what fails holds up what comes after it. An installation has none: what fails for longer than
    /// its namespace or kind may be on its way is tried by itself, while the rest of its group continues.
    async fn work_task(
        &self,
        task: usize,
        mode: Mode,
        operators: &Followed<ClusterOperator>,
        late: &UnboundedSender<usize>,
    ) {
        if self.manifests[task].is_cluster_operator() {
            return self.await_operator(task, mode, operators.state.clone()).await;
        }
        if mode != Mode::Initializing {
            return self.apply_from(0, task, mode).await;
        }
        for attempt in 0..=PATIENCE {
            if self.try_to_apply(task, attempt, mode).await {
                return;
            }
            tokio::time::sleep(backoff(mode, attempt)).await;
        }
        let _ = late.unbounded_send(task);
    }

    async fn apply_from(&self, mut attempt: u32, task: usize, mode: Mode) {
        while !self.try_to_apply(task, attempt, mode).await {
            tokio::time::sleep(backoff(mode, attempt)).await;
            attempt = attempt.saturating_add(1);
        }
    }

    /// Says whether it is done; what fails again and again is reported.
    pub(super) async fn try_to_apply(&self, task: usize, attempt: u32, mode: Mode) -> bool {
        let manifest = &self.manifests[task];
        let silent = |_| {
            let what = format!("applying {} {}", manifest.kind(), manifest.name());
            Err(ClusterError::NoAnswer { what, seconds: APPLY.as_secs() })
        };
        match tokio::time::timeout(APPLY, apply(self.client, manifest, mode)).await.unwrap_or_else(silent) {
            Ok(applied) => {
                if let Some(generation) = applied.generation {
                    locked(&self.generations).insert(task, generation);
                }
                if applied.rolled_out {
                    self.set(task, None);
                }
                applied.rolled_out
            }
            Err(e) => {
                self.tell(task, attempt, &e);
                false
            }
        }
    }

    fn tell(&self, task: usize, attempt: u32, error: &ClusterError) {
        let manifest = &self.manifests[task];
        tracing::debug!(file = manifest.file, attempt, "{error}");
        if attempt >= PATIENCE {
            tracing::warn!(file = manifest.file, "{error}");
            self.set(task, Some(failed(manifest, task + 1, self.manifests.len(), error)));
        }
    }

    async fn await_operator(
        &self,
        task: usize,
        mode: Mode,
        mut operators: watch::Receiver<Snapshot<ClusterOperator>>,
    ) {
        let manifest = &self.manifests[task];
        let mut attempt = 0;
        while let Err(e) = create_if_missing(self.client, &operators::precreated(manifest)).await {
            self.tell(task, attempt, &e);
            tokio::time::sleep(backoff(mode, attempt)).await;
            attempt += 1;
        }
        loop {
            let trouble = {
                let snapshot = operators.borrow_and_update();
                operators::trouble(manifest, snapshot.objects.get(manifest.name()).map(|live| &**live), mode)
            };
            let done = trouble.is_none();
            self.set(task, trouble);
            if done || operators.changed().await.is_err() {
                return;
            }
        }
    }

    pub(super) fn set(&self, task: usize, trouble: Option<super::board::Trouble>) {
        self.board.send_modify(|board| board.set(task, trouble, Instant::now()));
    }

    async fn keep_reporting(&self, version: &Followed<ClusterVersion>, mode: Mode) {
        let mut board = self.board.subscribe();
        loop {
            if let Err(e) = self.report(version, mode, false).await {
                tracing::warn!("{e}");
            }
            tokio::time::sleep(COALESCE).await;
            let _ = tokio::time::timeout(LOOK_AGAIN, board.changed()).await;
            board.mark_unchanged();
        }
    }

    /// What was written last, here or by the previous leader.
    fn before(&self, live: &ClusterVersion) -> ClusterVersionStatus {
        let last = locked(&self.last_status).clone();
        last.or_else(|| live.status.clone()).unwrap_or_default()
    }

    async fn report(
        &self,
        version: &Followed<ClusterVersion>,
        mode: Mode,
        complete: bool,
    ) -> Result<(), ClusterError> {
        let live = version.one().unwrap_or_default();
        let before = self.before(&live);
        let summary = self.board.borrow().summary(mode, Instant::now());
        let observed = Observed {
            version: &self.payload.version,
            image: &self.payload.image,
            hash: &self.payload.hash,
            generation: live.generation().unwrap_or(0),
            summary: &summary,
            complete,
            now: &now(),
        };
        let wanted = status(&before, &observed);
        if before == wanted {
            return Ok(());
        }
        let told = ClusterVersion { metadata: named("version"), spec: None, status: Some(wanted.clone()) };
        apply_status(self.client, MANAGER, &told).await?;
        *locked(&self.last_status) = Some(wanted);
        Ok(())
    }

    /// Returns when the cluster's config asks for other manifests than those being worked.
    async fn other_set(
        &self,
        mut version: watch::Receiver<Snapshot<ClusterVersion>>,
        mut gates: watch::Receiver<Snapshot<FeatureGate>>,
    ) {
        loop {
            let feature_gate = gates.borrow_and_update().one().unwrap_or_default();
            if let Some(live) = version.borrow_and_update().one()
                && Inclusion::of(&live, &feature_gate, &self.payload.version) != self.inclusion
            {
                return;
            }
            tokio::select! {
                _ = version.changed() => {}
                _ = gates.changed() => {}
            }
        }
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
