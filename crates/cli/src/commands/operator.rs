//! `seedling operator NAME`: connect, lead, run.

use anyhow::Result;
use clap::{Args, ValueEnum};
use seedling_cluster::lease;
use seedling_operators::*;
use seedling_types::names::*;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Args)]
pub struct OperatorArgs {
    name: Name,
    /// Instead of the pod's service account
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Name {
    ClusterVersion,
    Dns,
    Etcd,
    KubeApiserver,
    KubeControllerManager,
    KubeScheduler,
    MachineApprover,
    MachineConfig,
    Network,
    /// Not an operator: asks the Service address and DNS from its node
    NetworkCheck,
}

impl Name {
    /// (namespace, name) of the lease.
    fn lease(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Name::ClusterVersion => cluster_version::LEASE,
            Name::Dns => (NS_DNS_OPERATOR, "dns-operator-lock"),
            Name::Etcd => (NS_ETCD_OPERATOR, "etcd-operator-lock"),
            Name::KubeApiserver => (NS_KAS_OPERATOR, "kube-apiserver-operator-lock"),
            Name::KubeControllerManager => (NS_KCM_OPERATOR, "kube-controller-manager-operator-lock"),
            Name::KubeScheduler => (NS_SCHEDULER_OPERATOR, "kube-scheduler-operator-lock"),
            Name::MachineApprover => (NS_APPROVER, "machine-approver-lock"),
            Name::MachineConfig => (NS_MCO, "machine-config-operator-lock"),
            Name::Network => (NS_NETWORK_OPERATOR, "network-operator-lock"),
            Name::NetworkCheck => return None,
        })
    }
}

pub async fn run(args: OperatorArgs) -> Result<()> {
    let Some((namespace, lock)) = args.name.lease() else { return seedling_node::network_check::run().await };
    let client = connect(&args).await?;
    let identity = std::env::var("POD_NAME").unwrap_or_else(|_| format!("{lock}-{}", random()));
    let mut stop = signal(SignalKind::terminate())?;
    let mut leading = tokio::select! {
        leading = lead(client.clone(), namespace, lock, &identity) => leading,
        _ = stop.recv() => return Ok(()),
    };
    let ended = tokio::select! {
        ended = operate(args.name, client, leading.fence()) => ended,
        // There is nothing to give up any more, and the next leader may begin at any moment.
        why = leading.lost() => anyhow::bail!(why),
        _ = stop.recv() => Ok(()),
    };
    leading.release().await;
    ended
}

/// A process number would be the same in every container.
fn random() -> String {
    use std::hash::{BuildHasher, RandomState};
    format!("{:016x}", RandomState::new().hash_one(0))
}

/// The API may not answer yet, or no more: a static pod starts beside it, and a crash would only slow things down.
async fn connect(args: &OperatorArgs) -> Result<kube::Client> {
    Ok(seedling_cluster::connect(args.kubeconfig.as_deref()).await?)
}

async fn lead(client: kube::Client, namespace: &str, lock: &str, identity: &str) -> lease::Leadership {
    let mut last = String::new();
    loop {
        match lease::lead(client.clone(), namespace, lock, identity).await {
            Ok(leading) => return leading,
            Err(e) => {
                if last != e.to_string() {
                    tracing::info!("no lease yet: {e}");
                    last = e.to_string();
                }
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    }
}

async fn operate(name: Name, client: kube::Client, fence: lease::Fence) -> Result<()> {
    match name {
        Name::ClusterVersion => cluster_version::run(client, &cluster_version::Options::from_env()?).await,
        Name::Dns => dns::run(client).await,
        Name::Etcd => etcd::run(client, fence).await,
        Name::KubeApiserver => kube_apiserver::run(client).await,
        Name::KubeControllerManager => kube_controller_manager::run(client).await,
        Name::KubeScheduler => kube_scheduler::run(client).await,
        Name::MachineApprover => machine_approver::run(client).await,
        Name::MachineConfig => machine_config::run(client).await,
        Name::Network => network::run(client).await,
        Name::NetworkCheck => seedling_node::network_check::run().await,
    }
}
