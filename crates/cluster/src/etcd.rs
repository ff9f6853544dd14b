//! etcd's members: list, add as learner, promote, move the leader, remove.

mod space;
mod sum;

use crate::{ClusterError, Result};
use etcd_client::{
    Certificate, Client, Compare, CompareOp, ConnectOptions, GetOptions, Identity, MemberAddOptions,
    PutOptions, TlsOptions, Txn, TxnOp, TxnOpResponse,
};
use seedling_types::ports;
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::Duration;

pub use space::Space;
pub use sum::Sum;

/// Nothing asked of a member takes longer, unless it is said.
pub const REQUEST: Duration = Duration::from_secs(5);

/// Keys in etcd: the id of a member whose data is gone.
const LOST: &str = "seedling.dev/etcd-lost/";
const LOST_SECONDS: i64 = 60;

/// Keys in etcd: the id of a cluster that was given up when this one was restored.
pub const GIVEN_UP: &str = "seedling.dev/etcd-given-up/";

/// A key that is only asked for, never written.
const MEMBERS: &str = "seedling.dev/members";

/// Client certificate and the CA of the members.
#[derive(Clone, PartialEq, Eq)]
pub struct EtcdTls {
    pub ca: String,
    pub cert: String,
    pub key: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    pub id: u64,
    /// Empty until the member has started.
    pub name: String,
    pub peer_urls: Vec<String>,
    pub client_urls: Vec<String>,
    pub learner: bool,
}

pub struct Etcd {
    client: Client,
    endpoints: String,
}

impl Etcd {
    /// `endpoints` like `https://192.168.100.10:2379`; more than one is balanced over.
    pub async fn connect(endpoints: &[String], tls: &EtcdTls) -> Result<Self> {
        Self::connect_for(REQUEST, endpoints, tls).await
    }

    /// For requests that may take this long.
    pub async fn connect_for(request: Duration, endpoints: &[String], tls: &EtcdTls) -> Result<Self> {
        let options = ConnectOptions::new()
            .with_tls(
                TlsOptions::new()
                    .ca_certificate(Certificate::from_pem(&tls.ca))
                    .identity(Identity::from_pem(&tls.cert, &tls.key)),
            )
            .with_connect_timeout(Duration::from_secs(2))
            .with_timeout(request);
        let joined = endpoints.join(",");
        match Client::connect(endpoints, Some(options)).await {
            Ok(client) => Ok(Self { client, endpoints: joined }),
            Err(e) => Err(ClusterError::Etcd { endpoints: joined, source: Box::new(e) }),
        }
    }

    /// To the member on this machine.
    pub async fn connect_here(tls: &EtcdTls) -> Result<Self> {
        Self::connect(&[format!("https://localhost:{}", ports::ETCD_CLIENT)], tls).await
    }

    /// As this member knows them: it may be cut off, and then nobody else has to agree.
    pub async fn members(&mut self) -> Result<Vec<Member>> {
        let response = self.client.member_list().await.map_err(|e| self.failed(e))?;
        Ok((response.members().iter())
            .map(|m| Member {
                id: m.id(),
                name: m.name().into(),
                peer_urls: m.peer_urls().to_vec(),
                client_urls: m.client_urls().to_vec(),
                learner: m.is_learner(),
            })
            .collect())
    }

    /// The list that a majority agrees on: a member that lags answers `members` from what it knows.
    pub async fn agreed_members(&mut self) -> Result<Vec<Member>> {
        // Answered only when everything agreed on before has arrived here.
        self.revision().await?;
        self.members().await
    }

    pub async fn add_learner(&mut self, peer_url: &str) -> Result<u64> {
        let options = MemberAddOptions::new().with_is_learner();
        let added = self.client.member_add([peer_url], Some(options)).await.map_err(|e| self.failed(e))?;
        Ok(added.member().map(|m| m.id()).unwrap_or_default())
    }

    pub async fn promote(&mut self, id: u64) -> Result<()> {
        self.client.member_promote(id).await.map(drop).map_err(|e| self.failed(e))
    }

    pub async fn remove(&mut self, id: u64) -> Result<()> {
        self.client.member_remove(id).await.map(drop).map_err(|e| self.failed(e))
    }

    /// Only the leader answers this one: connect to it first.
    pub async fn move_leader(&mut self, to: u64) -> Result<()> {
        self.client.move_leader(to).await.map(drop).map_err(|e| self.failed(e))
    }

    pub async fn status(&mut self) -> Result<Status> {
        let status = self.client.status().await.map_err(|e| self.failed(e))?;
        let header = status.header().map(|h| (h.member_id(), h.cluster_id())).unwrap_or_default();
        Ok(Status {
            member: header.0,
            cluster: header.1,
            leader: status.leader(),
            learner: status.is_learner(),
            committed: status.raft_index(),
            applied: status.raft_applied_index(),
            space: Space::of(&status),
        })
    }

    /// Puts `value` under `key` if the key is absent or holds `over`; otherwise returns what it holds. It expires after `seconds`.
    pub async fn claim(&mut self, key: &str, value: &str, over: Option<&str>, seconds: i64) -> Result<Claim> {
        let lease = self.client.lease_grant(seconds, None).await.map_err(|e| self.failed(e))?.id();
        let free = match over {
            None => Compare::create_revision(key, CompareOp::Equal, 0),
            Some(over) => Compare::value(key, CompareOp::Equal, over),
        };
        let put = TxnOp::put(key, value, Some(PutOptions::new().with_lease(lease)));
        let txn = Txn::new().when([free]).and_then([put]).or_else([TxnOp::get(key, None)]);
        let answer = self.client.txn(txn).await.map_err(|e| self.failed(e))?;
        if answer.succeeded() {
            return Ok(Claim::Mine);
        }
        self.client.lease_revoke(lease).await.map_err(|e| self.failed(e))?;
        let holder = answer.op_responses().into_iter().find_map(|r| match r {
            TxnOpResponse::Get(found) => found.kvs().first()?.value_str().ok().map(String::from),
            _ => None,
        });
        Ok(Claim::Held(holder))
    }

    /// Reports that a member's data is gone and its machine waits to join as a new member. Expires unless it is repeated.
    pub async fn say_lost(&mut self, id: u64, master: &str) -> Result<()> {
        self.claim(&format!("{LOST}{id:x}"), master, None, LOST_SECONDS).await.map(drop)
    }

    /// Members reported so within the last minute.
    pub async fn said_lost(&mut self) -> Result<BTreeSet<u64>> {
        self.ids_below(LOST).await
    }

    /// Clusters that this one stands for since it was restored.
    pub async fn given_up(&mut self) -> Result<BTreeSet<u64>> {
        self.ids_below(GIVEN_UP).await
    }

    async fn ids_below(&mut self, prefix: &str) -> Result<BTreeSet<u64>> {
        let options = GetOptions::new().with_prefix().with_keys_only();
        let found = self.client.get(prefix, Some(options)).await.map_err(|e| self.failed(e))?;
        let ids = found.kvs().iter().filter_map(|pair| pair.key_str().ok()?.strip_prefix(prefix));
        Ok(ids.filter_map(|id| u64::from_str_radix(id, 16).ok()).collect())
    }

    /// The number of the last change.
    pub async fn revision(&mut self) -> Result<i64> {
        self.revision_by(GetOptions::new()).await
    }

    /// As far as this member knows: nobody else has to agree.
    pub async fn known_revision(&mut self) -> Result<i64> {
        self.revision_by(GetOptions::new().with_serializable()).await
    }

    /// Whether the key is there does not matter.
    async fn revision_by(&mut self, options: GetOptions) -> Result<i64> {
        let found = self.client.get(MEMBERS, Some(options)).await.map_err(|e| self.failed(e))?;
        Ok(found.header().map(|h| h.revision()).unwrap_or_default())
    }

    /// All data as this member has it, with its sum at the end; says how large its database is before.
    pub async fn snapshot(
        &mut self,
        mut room_for: impl FnMut(u64) -> std::io::Result<()>,
        mut take: impl FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<()> {
        let size = self.client.status().await.map_err(|e| self.failed(e))?.db_size();
        let stream = async {
            room_for(u64::try_from(size).unwrap_or_default())?;
            let mut stream = self.client.snapshot().await?;
            while let Some(part) = stream.message().await? {
                take(part.blob())?;
            }
            Ok(())
        };
        let streamed: Result<(), etcd_client::Error> = stream.await;
        streamed.map_err(|e| self.failed(e))
    }

    fn failed(&self, source: etcd_client::Error) -> ClusterError {
        ClusterError::Etcd { endpoints: self.endpoints.clone(), source: Box::new(source) }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    Mine,
    /// By whom; none if it was just released.
    Held(Option<String>),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub member: u64,
    pub cluster: u64,
    pub leader: u64,
    pub learner: bool,
    /// Up to which entry this member knows that it was agreed on (etcd's `raftIndex`), and up to which it has done it. What was
    /// proposed and not yet agreed on is in neither.
    pub committed: u64,
    pub applied: u64,
    pub space: Space,
}
