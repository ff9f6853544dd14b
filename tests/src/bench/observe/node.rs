//! Asked from a master itself, by a thread in its network namespace: its etcd, a Service address, cluster DNS.

use super::{Answer, Cluster, keep_asking, set, short};
use anyhow::{Context, Result};
use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};
use nix::sched::{CloneFlags, setns};
use seedling_cluster::etcd::{Etcd, EtcdTls, Member};
use seedling_machines::network::{Network, namespace_path};
use seedling_types::ports;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::watch;

const PATIENCE: Duration = Duration::from_secs(1);
const NAME: &str = "kubernetes.default.svc.cluster.local.";

#[derive(Clone, Debug)]
pub(super) struct NodeView {
    pub name: String,
    /// Its etcd lists all masters as voters and nobody as learner, once at least.
    pub masters_vote: bool,
    /// Its etcd lists exactly the masters as voters, and follows a leader.
    pub etcd: Answer,
    pub service: Answer,
    pub dns: Answer,
}

/// Asks until this is dropped.
pub(super) struct Asked {
    pub view: watch::Receiver<NodeView>,
    stop: Option<watch::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Asked {
    fn drop(&mut self) {
        // The thread must be out of the namespace before the lab is removed.
        self.stop.take();
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}

struct Questions {
    masters: Vec<IpAddr>,
    service: Ipv4Addr,
    dns: Ipv4Addr,
    etcd_tls: Box<dyn Fn() -> Option<EtcdTls> + Send>,
}

pub(super) fn ask(cluster: &Cluster, node: String, masters: Vec<IpAddr>) -> Result<Asked> {
    let path = namespace_path(&Network::of_lab(cluster.lab.name()).node_namespace(&node));
    let namespace = File::open(&path).with_context(|| path.display().to_string())?;
    let (machine, etcd_tls) = (cluster.lab.machine(&node)?, cluster.etcd_tls);
    let questions = Questions {
        masters,
        service: cluster.service,
        dns: cluster.dns,
        etcd_tls: Box::new(move || etcd_tls(&machine)),
    };
    let unasked = || Err("not asked yet".to_string());
    let view = watch::Sender::new(NodeView {
        name: node,
        masters_vote: false,
        etcd: unasked(),
        service: unasked(),
        dns: unasked(),
    });
    let heard = view.subscribe();
    let (stop, mut stopped) = watch::channel(());
    // One thread only: sockets belong to the namespace of the thread that opens them.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let thread = std::thread::spawn(move || {
        if let Err(e) = setns(namespace, CloneFlags::CLONE_NEWNET) {
            return set(&view, |v| v.service = Err(format!("cannot enter its network: {e}")));
        }
        runtime.block_on(async {
            tokio::select! {
                _ = questions.keep_asking(&view) => {}
                _ = stopped.changed() => {}
            }
        });
    });
    Ok(Asked { view: heard, stop: Some(stop), thread: Some(thread) })
}

impl Questions {
    async fn keep_asking(&self, view: &watch::Sender<NodeView>) {
        let mut connection = None;
        // A new connection for each question: the way is what is asked for.
        let https = reqwest::Client::builder()
            .tls_danger_accept_invalid_certs(true)
            .no_proxy()
            .pool_max_idle_per_host(0)
            .build();
        let etcd = async || {
            let members = self.ask_etcd(&mut connection).await?;
            let voters = Voters::of(&members, &self.masters);
            set(view, |v| v.masters_vote |= voters != Voters::Growing);
            match voters {
                Voters::Masters => Ok(()),
                _ => Err(format!("{} members, not just the masters as voters", members.len())),
            }
        };
        tokio::join!(
            keep_asking(PATIENCE, etcd, |a| set(view, |v| v.etcd = a)),
            keep_asking(
                PATIENCE,
                async || ask_service(&https, self.service).await,
                |a| set(view, |v| v.service = a)
            ),
            keep_asking(
                PATIENCE,
                async || ask_dns(self.dns, self.service).await,
                |a| set(view, |v| v.dns = a)
            ),
        );
    }

    async fn ask_etcd(&self, connection: &mut Option<Etcd>) -> Result<Vec<Member>, String> {
        // Not put back when it is broken: the next question takes a new one.
        let mut etcd = match connection.take() {
            Some(etcd) => etcd,
            None => {
                let tls = (self.etcd_tls)().ok_or("no certificates yet")?;
                let endpoint = format!("https://127.0.0.1:{}", ports::ETCD_CLIENT);
                Etcd::connect(&[endpoint], &tls).await.map_err(|e| short(&e))?
            }
        };
        let status = etcd.status().await.map_err(|e| short(&e))?;
        if status.leader == 0 || status.learner {
            *connection = Some(etcd);
            return Err("it follows no leader as a voter".into());
        }
        let members = etcd.members().await.map_err(|e| short(&e))?;
        *connection = Some(etcd);
        Ok(members)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Voters {
    Growing,
    /// All masters, and others.
    More,
    /// The masters, nobody else.
    Masters,
}

impl Voters {
    fn of(members: &[Member], masters: &[IpAddr]) -> Self {
        // One without a name has never started.
        let votes = |m: &Member| !m.learner && !m.name.is_empty();
        let is_member = |master: &IpAddr| {
            let url = format!("https://{master}:{}", ports::ETCD_PEER);
            members.iter().any(|m| m.peer_urls.contains(&url))
        };
        match members.iter().all(votes) && masters.iter().all(is_member) {
            false => Self::Growing,
            true if members.len() == masters.len() => Self::Masters,
            true => Self::More,
        }
    }
}

/// Any HTTP answer: the way to an API server works.
async fn ask_service(https: &reqwest::Result<reqwest::Client>, address: Ipv4Addr) -> Answer {
    let client = https.as_ref().map_err(|e| short(e))?;
    client.get(format!("https://{address}/readyz")).send().await.map(drop).map_err(|e| short(&e))
}

async fn ask_dns(server: Ipv4Addr, expected: Ipv4Addr) -> Answer {
    let mut query = Message::query();
    let name = Name::from_str(NAME).map_err(|e| e.to_string())?;
    query.add_query(Query::query(name, RecordType::A));
    query.metadata.recursion_desired = true;
    let bytes = query.to_vec().map_err(|e| e.to_string())?;
    let asked = async {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
        socket.connect(SocketAddr::from((server, ports::DNS))).await?;
        socket.send(&bytes).await?;
        let mut buffer = [0; 1500];
        let length = socket.recv(&mut buffer).await?;
        Ok(buffer[..length].to_vec())
    };
    let answer = asked.await.map_err(|e: std::io::Error| e.to_string())?;
    let answer = Message::from_vec(&answer).map_err(|e| e.to_string())?;
    let found = answer.answers.iter().any(|r| matches!(&r.data, RData::A(a) if a.0 == expected));
    match answer.metadata.response_code {
        ResponseCode::NoError if found => Ok(()),
        ResponseCode::NoError => Err(format!("{NAME} is not {expected}")),
        code => Err(format!("{NAME} {code}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASTERS: [IpAddr; 2] =
        [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2))];

    fn member(last: u8, learner: bool) -> Member {
        let peer_urls = vec![format!("https://10.0.0.{last}:2380")];
        Member { id: last.into(), name: "n".into(), peer_urls, client_urls: vec![], learner }
    }

    #[test]
    fn only_masters_and_only_voters() {
        let unstarted = Member { name: String::new(), ..member(2, false) };
        let cases = [
            (vec![member(1, false), member(2, false)], Voters::Masters),
            (vec![member(1, false), member(2, true)], Voters::Growing),
            (vec![member(1, false), member(2, false), member(9, false)], Voters::More),
            (vec![member(1, false), member(2, false), member(9, true)], Voters::Growing),
            (vec![member(1, false), member(9, false)], Voters::Growing),
            (vec![member(1, false), unstarted], Voters::Growing),
        ];
        for (members, want) in cases {
            assert_eq!(Voters::of(&members, &MASTERS), want, "{members:?}");
        }
    }
}
