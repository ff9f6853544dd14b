//! The reports of all nodes, followed.

use kube::Client;
use seedling_api::{Conditions, Node};
use seedling_cluster::follow::{Selection, follow};
use seedling_types::node_report::{HOLD, NodeReport};
use seedling_types::ports;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

const CONNECT: Duration = Duration::from_secs(2);
/// Until the next try at a node that does not report.
const RETRY: Duration = Duration::from_millis(300);

/// A node as the operators see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeView {
    /// Its kubelet is silent: it cannot be asked, and nothing runs there that would need an answer.
    pub lost: bool,
    /// The last one, unless the node stopped reporting.
    pub report: Option<NodeReport>,
    pub error: String,
}

pub(super) type Views = BTreeMap<String, NodeView>;

/// Never returns; `views` always has every node of the cluster.
pub(super) async fn follow_reports(client: &Client, views: &watch::Sender<Views>) {
    let mut nodes = follow::<Node>(client, Selection::all());
    let mut pollers: BTreeMap<(String, String), Poller> = BTreeMap::new();
    loop {
        let known: BTreeMap<_, _> =
            nodes.next().await.objects.iter().filter_map(|(n, o)| view(n, o)).collect();
        pollers.retain(|key, _| known.contains_key(key));
        views.send_if_modified(|views| {
            let before = views.clone();
            views.retain(|name, _| known.keys().any(|(n, _)| n == name));
            for ((name, _), lost) in &known {
                views.entry(name.clone()).or_default().lost = *lost;
            }
            before != *views
        });
        for key in known.keys() {
            pollers.entry(key.clone()).or_insert_with(|| Poller::start(key, views));
        }
    }
}

/// ((name, address), lost)
fn view(name: &str, node: &Node) -> Option<((String, String), bool)> {
    let addresses = &node.status.as_ref()?.addresses;
    let address = addresses.iter().find(|a| a.kind == "InternalIP")?.address.clone();
    let lost = node.condition("Ready").is_some_and(|c| c.status == "Unknown");
    Some(((name.into(), address), lost))
}

struct Poller(JoinHandle<()>);

impl Drop for Poller {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Poller {
    fn start((name, address): &(String, String), views: &watch::Sender<Views>) -> Self {
        Self(tokio::spawn(poll(name.clone(), address.clone(), views.clone())))
    }
}

async fn poll(name: String, address: String, views: watch::Sender<Views>) {
    let client = loop {
        // Plain HTTP only; without a list of CAs the builder would look for the system's, and the image has none.
        let built = reqwest::Client::builder()
            .tls_certs_only([])
            .connect_timeout(CONNECT)
            .timeout(HOLD + CONNECT)
            .no_proxy()
            .build();
        match built {
            Ok(client) => break client,
            Err(e) => tracing::error!("building an HTTP client: {e}"),
        }
        tokio::time::sleep(RETRY).await;
    };
    let host = if address.contains(':') { format!("[{address}]") } else { address };
    let url = |path: &str| format!("http://{host}:{}{path}", ports::NETWORK_CHECK);
    let mut path = "/report".to_string();
    loop {
        let answer =
            async { client.get(url(&path)).send().await?.error_for_status()?.json::<NodeReport>().await };
        let answer = answer.await;
        let failed = answer.is_err();
        let (report, error) = match answer {
            Ok(report) => {
                path = format!("/report/after/{}", report.revision);
                (Some(report), String::new())
            }
            Err(e) => {
                path = "/report".into();
                (
                    None,
                    if e.is_connect() { "no report: cannot connect".into() } else { "no report".to_string() },
                )
            }
        };
        views.send_if_modified(|views| {
            let Some(view) = views.get_mut(&name) else { return false };
            let next = NodeView { lost: view.lost, report, error };
            let changed = *view != next;
            *view = next;
            changed
        });
        if failed {
            tokio::time::sleep(RETRY).await;
        }
    }
}
