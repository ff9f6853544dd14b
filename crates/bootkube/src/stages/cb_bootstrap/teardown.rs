//! The temporary control plane leaves.

use super::{API_SERVER, CLIENTS, POLL, event};
use crate::error::cannot;
use crate::{Context, Result, conditions};
use kube::Client;
use kube::api::Api;
use seedling_api::Lease;
use seedling_cluster::{ClusterError, get};
use seedling_steps::{Condition, Probe, if_there, wait_for};
use seedling_types::paths;
use std::time::Duration;

/// The clients go first and leave their leases; then the API server leaves the load balancer before it stops.
pub(super) async fn tear_down(c: &Context) -> Result<()> {
    println!("Tearing down temporary bootstrap control plane...");
    c.journal.step("cb-bootstrap/stop-clients", stop_clients(c)).await?;
    c.journal.step("cb-bootstrap/stop-api-server", stop_api_server(c)).await?;
    let secrets = c.path(paths::BOOTSTRAP_SECRETS);
    if_there(std::fs::remove_dir_all(&secrets)).map(drop).map_err(cannot("remove", secrets))
}

async fn stop_clients(c: &Context) -> Result<()> {
    for name in CLIENTS {
        c.remove_pod(name)?;
    }
    for container in ["cluster-version-operator", "kube-controller-manager", "kube-scheduler"] {
        gone(&c.node, container).await?;
    }
    Ok(())
}

async fn stop_api_server(c: &Context) -> Result<()> {
    if c.path(paths::STATIC_PODS).join(API_SERVER).exists() {
        let client = seedling_cluster::connect(Some(&c.kubeconfig())).await?;
        for lease in ["kube-controller-manager", "kube-scheduler"] {
            release_lease(&client, lease).await?;
        }
        event(&client, "bootstrap-finished", "Bootstrap control plane teardown complete").await?;
        c.remove_pod(API_SERVER)?;
    }
    gone(&c.node, "kube-apiserver").await
}

/// Waits until the kubelet has stopped the container; asks the runtime, since a standalone kubelet reports to no API.
async fn gone(node: &str, container: &str) -> Result<()> {
    let condition = Condition::new(
        &conditions::STOPPED,
        Duration::from_secs(180),
        format!("crictl ps --name {container}; journalctl -n 20 -u kubelet.service"),
    )
    .with("CONTAINER", container)
    .on(node);
    wait_for(&condition, POLL, async || {
        let args = ["ps", "--quiet", "--state", "running", "--name", &format!("^{container}$")];
        let output = tokio::process::Command::new("crictl").args(args).output().await;
        match output {
            Ok(o) if o.status.success() && o.stdout.trim_ascii().is_empty() => Probe::Met(()),
            Ok(o) if o.status.success() => Probe::Unmet("running".into()),
            Ok(o) => Probe::Unmet(String::from_utf8_lossy(&o.stderr).trim().to_string()),
            Err(e) => Probe::Unmet(format!("crictl: {e}")),
        }
    })
    .await?;
    Ok(())
}

/// The holder is known to be gone, so the masters need not wait 15 s for its lease to run out.
async fn release_lease(client: &Client, name: &str) -> Result<()> {
    let hostname = nix::unistd::gethostname().map_err(cannot("read", "the host's name"))?;
    let hostname = hostname.to_string_lossy();
    let Some(mut lease) = get::<Lease>(client, Some("kube-system"), name).await? else { return Ok(()) };
    let Some(spec) = lease.spec.as_mut() else { return Ok(()) };
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    if !holder.starts_with(&format!("{hostname}_")) {
        return Ok(());
    }
    spec.holder_identity = Some(String::new());
    let api: Api<Lease> = Api::namespaced(client.clone(), "kube-system");
    match api.replace(name, &Default::default(), &lease).await {
        Ok(_) => Ok(()),
        // Somebody else has taken it.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(e) => Err(ClusterError::Api { what: format!("releasing Lease {name}"), source: e.into() }.into()),
    }
}
