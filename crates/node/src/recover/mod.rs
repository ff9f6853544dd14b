//! A cluster that was off for longer than its certificates live, brought back from one master: `seedling certs recover`.
//!
//! What is there: etcd, whose certificates last as long as their signer; API servers, which answer with expired certificates;
//! kubelets, which run static pods and nothing else. So, in this order:
//! 1. All leaf certificates are replaced, as their operators would.
//! 2. This master gets them, as its installers would bring them.
//! 3. Every other node gets a certificate for the key that it has (`door.rs`), at its own request (`node.rs`).
//! 4. So does this master's kubelet.
//!
//! Then the operators run again, and do the rest. Whatever is done already is found done.

mod door;
pub mod node;

use crate::error::cannot;
use crate::installer::{InstallerArgs, install};
use crate::{Error, Result, conditions};
use kube::Client;
use seedling_api::{Conditions, Lease, Meta, Node};
use seedling_cluster::{inventory, list};
use seedling_operators::stand_in::{KubeletSigner, OPERANDS, replace_ended_signers};
use seedling_pki::node_request;
use seedling_steps::{Condition, Probe, wait_for};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use time::OffsetDateTime;

/// An API server shuts down slowly.
const RESTART: Duration = Duration::from_secs(300);
/// A machine may have to boot first.
const REJOIN: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_secs(1);

/// `lenient` trusts this master's API server although its certificate has expired; `strict` does not.
pub async fn recover(
    lenient: Client,
    strict: Client,
    node: &str,
    root: &Path,
    say: &dyn Fn(&str),
) -> Result<()> {
    let answers = Condition::new(
        &conditions::RECOVER_API,
        RESTART,
        "crictl ps -a | grep -E 'etcd|kube-apiserver': etcd needs two of three masters switched on",
    );
    until_it_answers(&lenient, &answers).await?;
    let inventory = inventory::wait(&lenient).await;
    let Some(host) = inventory.by_name(node) else {
        let why = format!("{node} is no machine of this cluster; run this on one of its masters");
        return Err(Error::Seen(why));
    };

    let told = |signer: &str| say(&format!("signer {signer} had ended; there is a new one"));
    replace_ended_signers(&lenient, told).await?;
    for operand in &OPERANDS {
        let (names, made) = (&operand.names, operand.make_revision(&lenient).await?);
        let args = InstallerArgs {
            namespace: names.namespace.into(),
            pod: names.pod_configmap.into(),
            revision: made.number,
            configmaps: made.configmaps,
            secrets: made.secrets,
            keep: vec![],
            node_name: node.into(),
            node_ip: host.address.to_string(),
        };
        install(&lenient, &args).await?;
        say(&format!("{}: revision {} is on {node}", names.operator, made.number));
    }
    if node::ended(root)?.is_some() && strict.apiserver_version().await.is_err() {
        restart_pods(node, &OPERANDS.map(|operand| operand.names.pod)).await?;
        say(
            "this master's control plane is started with them; without an API a kubelet takes a minute for it",
        );
    }
    let serves = Condition::new(
        &conditions::RECOVER_SERVED,
        RESTART,
        "crictl logs $(crictl ps -q --name kube-apiserver) 2>&1 | tail",
    );
    until_it_answers(&strict, &serves).await?;
    say("the API is served with a certificate that is good");

    let (signer, serving) = KubeletSigner::load(&strict).await?;
    let door = door::open(signer.clone(), serving, inventory.clone()).await?;
    let others = Condition::new(
        &conditions::RECOVER_NODES,
        REJOIN,
        "switch them on; on each: journalctl -u kubelet-recover -u kubelet",
    );
    let before = heartbeats(&strict).await?;
    let back = wait_for(&others, POLL, async || match look(&strict).await {
        Ok((nodes, now)) => missing(&nodes, node, &before, &now),
        Err(e) => Probe::Unmet(e.to_string()),
    });
    tokio::select! {
        ended = door => ended?,
        back = back => back?,
    }
    say("the other nodes are Ready");
    renew_own(&signer, node, root).await?;
    say(&format!("{node}'s kubelet has a new certificate"));
    Ok(())
}

async fn until_it_answers(api: &Client, condition: &Condition) -> Result<()> {
    wait_for(condition, POLL, async || api.apiserver_version().await.into()).await?;
    Ok(())
}

/// A kubelet that has not heard from the API ends no pod, also none whose manifest has changed: it might not know all that it should run. So
/// the old ones are ended here, while it does not look; it starts from what the manifests say.
pub(crate) async fn restart_pods(node: &str, pods: &[&str]) -> Result<()> {
    output_of("systemctl", &["stop", "kubelet.service"]).await?;
    for pod in pods {
        let name = format!("^{pod}-{node}$");
        let pods = output_of("crictl", &["pods", "--quiet", "--state", "ready", "--name", &name]).await?;
        for pod in pods.split_whitespace() {
            output_of("crictl", &["stopp", pod]).await?;
        }
    }
    output_of("systemctl", &["start", "kubelet.service"]).await.map(drop)
}

async fn output_of(program: &str, args: &[&str]) -> Result<String> {
    let output = tokio::process::Command::new(program).args(args).output().await;
    let output = output.map_err(cannot("run", program))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr).trim().to_string();
        return Err(Error::Program { program: format!("{program} {}", args.join(" ")), complaint });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

async fn look(client: &Client) -> Result<(Vec<Node>, Heartbeats)> {
    Ok((list(client, None, "").await?, heartbeats(client).await?))
}

/// When each kubelet was last heard of, in its own words.
type Heartbeats = BTreeMap<String, String>;

async fn heartbeats(client: &Client) -> Result<Heartbeats> {
    let leases = list::<Lease>(client, Some("kube-node-lease"), "").await?;
    let renewed =
        |lease: &Lease| lease.spec.as_ref().and_then(|spec| Some(spec.renew_time.as_ref()?.0.to_string()));
    Ok(leases.iter().filter_map(|lease| Some((lease.name().to_string(), renewed(lease)?))).collect())
}

/// Which other nodes are not Ready, or are Ready only by an old status: the API was down as well.
fn missing(nodes: &[Node], this: &str, before: &Heartbeats, now: &Heartbeats) -> Probe<()> {
    let heard = |node: &&Node| now.get(node.name()) != before.get(node.name());
    let others = nodes.iter().filter(|node| node.name() != this);
    let away: Vec<_> = others.filter(|node| !node.is("Ready") || !heard(node)).map(Node::name).collect();
    if away.is_empty() { Probe::Met(()) } else { Probe::Unmet(format!("{} not Ready", away.join(", "))) }
}

/// With the signer itself, as nobody has to ask for it.
async fn renew_own(signer: &KubeletSigner, node: &str, root: &Path) -> Result<()> {
    let Some(old) = node::ended(root)? else { return Ok(()) };
    let (request, _) = node_request(node, node::key_of(&old)?)?;
    node::keep(root, &signer.issue(node, &request, OffsetDateTime::now_utc())?, &old)?;
    output_of("systemctl", &["restart", "kubelet.service"]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_other_node_is_waited_for() {
        let node = |name: &str, ready: &str| -> Node {
            let node = json!({"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": ready}]}});
            serde_json::from_value(node).unwrap_or_else(|e| panic!("{e}"))
        };
        let heard = |time: &str| {
            Heartbeats::from([("master-1".to_string(), time.to_string()), ("worker-0".into(), "a".into())])
        };
        let seen = |nodes: &[Node], now: &str| match missing(nodes, "master-0", &heard("a"), &heard(now)) {
            Probe::Unmet(seen) => seen,
            _ => String::new(),
        };
        let both = [node("master-0", "Unknown"), node("master-1", "Unknown"), node("worker-0", "False")];
        assert_eq!(seen(&both, "b"), "master-1, worker-0 not Ready");
        let well = [node("master-0", "Unknown"), node("master-1", "True")];
        assert_eq!(seen(&well, "a"), "master-1 not Ready", "it was, when it was last heard of");
        assert_eq!(seen(&well, "b"), "");
    }
}
