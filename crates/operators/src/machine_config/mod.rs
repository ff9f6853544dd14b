//! The machine-config operator: pools, rendered configs, the server that hands them out, and what Nodes say of them.
//!
//! In: MachineConfigs, pools and the ControllerConfig (bootkube made the first of each), the inventory, Scheduler `cluster`.
//! Out: rendered MachineConfigs, the DaemonSet of the server, labels and annotations of Nodes, ClusterOperator
//! `machine-config`, which is available only when every master can hand out the masters' config.

mod answers;
mod nodes;
mod pools;
mod status;

pub use nodes::label_nodes;

use crate::error::variable;
use crate::runtime::{Context, Inputs, Next, Pace};
use crate::{OperatorError, Result};
use kube::Client;
use nodes::Wanted;
use seedling_api::{DaemonSet, Infrastructure, Meta, Scheduler};
use seedling_cluster::follow::{Selection, follow};
use seedling_cluster::manifest;
use seedling_components::machine_config::{SERVER, server_objects};
use seedling_types::names::NS_MCO;
use std::sync::Arc;
use tokio::sync::watch;

/// Whether all pools are rendered, for the status report.
type Rendered = Result<(), Arc<OperatorError>>;

const MANAGER: &str = "machine-config-operator";

pub async fn run(context: Context) -> Result<()> {
    operate(context, variable("RELEASE_VERSION")?, variable("SEEDLING_IMAGE")?).await;
    Ok(())
}

/// One loop for each thing that must not wait for another; `status` alone writes the ClusterOperator.
pub async fn operate(context: Context, version: String, image: String) {
    let machines = crate::inventory::keep(&context.client).await;
    // Masters come and go only with a new bring-up.
    let inventory = machines.borrow().clone();
    let wanted = watch::Sender::new(Wanted::default());
    let rendered = watch::Sender::new(Err(Arc::new(OperatorError::Waits("not rendered yet".into()))));
    let answers = watch::Sender::new(answers::Answers::new());
    let serving = async {
        let api_server = api_server(&context.client).await;
        tokio::join!(
            keep_server(&context, &image, &api_server),
            answers::ask_masters(&context, &inventory, &api_server, &answers)
        );
    };
    tokio::select! {
        () = nodes::keep_labels(&context, machines, wanted.subscribe()) => {}
        () = follow_scheduler(&context.client, &wanted) => {}
        () = pools::keep_rendered(&context, &version, &wanted, &rendered) => {}
        () = serving => {}
        () = status::keep_reporting(&context, &version, &inventory, answers.subscribe(), rendered.subscribe()) => {}
    }
}

async fn follow_scheduler(client: &Client, wanted: &watch::Sender<Wanted>) {
    let mut scheduler = follow::<Scheduler>(client, Selection::one(None, "cluster"));
    loop {
        let seen = scheduler.next().await.one();
        let schedulable = seen.map(|s| s.spec.as_ref().is_some_and(|spec| spec.masters_schedulable));
        wanted
            .send_if_modified(|w| std::mem::replace(&mut w.masters_schedulable, schedulable) != schedulable);
    }
}

/// `https://api-int.CD:6443`, from Infrastructure `cluster`.
async fn api_server(client: &Client) -> String {
    let mut infrastructure = follow::<Infrastructure>(client, Selection::one(None, "cluster"));
    let url = |seen: &Infrastructure| {
        Some(seen.status.as_ref()?.api_server_internal_uri.clone()).filter(|url| !url.is_empty())
    };
    infrastructure.until("Infrastructure cluster", url).await
}

/// Applied at the start and whenever somebody changes or removes it.
async fn keep_server(context: &Context, image: &str, api_server: &str) {
    let live = follow::<DaemonSet>(&context.client, Selection::one(Some(NS_MCO), SERVER));
    let mut ours = None;
    let inputs = Inputs::default().needs(&live);
    let keeping = context.reconcile("machine-config/server", Pace::USUAL, inputs, async |_| {
        if ours.is_none() || live.one().and_then(|live| live.generation()) != ours {
            for wanted in server_objects(image, api_server)? {
                let applied = manifest::apply(&context.client, MANAGER, &wanted).await?;
                ours = applied["metadata"]["generation"].as_i64();
            }
        }
        Ok(Next::Quiet)
    });
    keeping.await
}
