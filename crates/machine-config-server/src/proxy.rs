//! Who is at the other end: the peer itself, or the client that a load balancer of the inventory names by PROXY protocol, version 2.

use crate::audit;
use axum::Extension;
use axum::middleware::AddExtension;
use axum_server::accept::Accept;
use futures::future::BoxFuture;
use seedling_types::{Inventory, proxy_protocol};
use std::io::{Error, ErrorKind, Result};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tower_layer::Layer;

/// A balancer sends it at once; so does everybody who starts TLS.
const FIRST_BYTE_WITHIN: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    Direct(IpAddr),
    /// Named by a load balancer.
    Through {
        balancer: IpAddr,
        client: IpAddr,
    },
    /// A load balancer that asks for itself (a health check), or does not say for whom.
    Balancer(IpAddr),
}

impl Caller {
    /// The machine's own address, as far as it is known.
    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Caller::Direct(address) => Some(*address),
            Caller::Through { client, .. } => Some(*client),
            Caller::Balancer(_) => None,
        }
    }
    pub fn balancer(&self) -> Option<IpAddr> {
        match self {
            Caller::Direct(_) => None,
            Caller::Through { balancer, .. } | Caller::Balancer(balancer) => Some(*balancer),
        }
    }
}

/// Takes the PROXY header off a connection, before TLS, and gives every request its [`Caller`].
#[derive(Clone)]
pub struct KnowCaller {
    pub inventory: watch::Receiver<Inventory>,
    pub audit: Arc<audit::Log>,
}

impl KnowCaller {
    /// Whose audit log is its own.
    pub fn silent(inventory: watch::Receiver<Inventory>) -> Self {
        Self { inventory, audit: Arc::new(audit::Log::to(None)) }
    }
}

impl<S: Send + 'static> Accept<TcpStream, S> for KnowCaller {
    type Stream = TcpStream;
    type Service = AddExtension<S, Caller>;
    type Future = BoxFuture<'static, Result<(TcpStream, Self::Service)>>;

    fn accept(&self, mut stream: TcpStream, service: S) -> Self::Future {
        let KnowCaller { inventory, audit } = self.clone();
        Box::pin(async move {
            let peer = stream.peer_addr()?;
            let balancer =
                Some(peer.ip().to_canonical()).filter(|a| inventory.borrow().load_balancers.contains(a));
            let heard = tokio::time::timeout(FIRST_BYTE_WITHIN, read(&mut stream)).await;
            let caller = match (heard.map_err(|_| Error::from(ErrorKind::TimedOut))??, balancer) {
                (None, None) => Caller::Direct(peer.ip().to_canonical()),
                (None | Some(None), Some(balancer)) => Caller::Balancer(balancer),
                (Some(Some(client)), Some(balancer)) => Caller::Through { balancer, client },
                (Some(_), None) => {
                    audit.not_a_balancer(peer.ip());
                    return Err(ErrorKind::PermissionDenied.into());
                }
            };
            Ok((stream, Extension(caller).layer(service)))
        })
    }
}

/// `None`: there is no header; nothing of what follows was read.
async fn read(stream: &mut TcpStream) -> Result<Option<Option<IpAddr>>> {
    let mut first = [0];
    stream.peek(&mut first).await?;
    if first[0] != proxy_protocol::SIGNATURE[0] {
        return Ok(None);
    }
    let mut head = [0; proxy_protocol::HEAD];
    stream.read_exact(&mut head).await?;
    let length = proxy_protocol::rest_length(&head).ok_or(ErrorKind::InvalidData)?;
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).await?;
    Ok(Some(proxy_protocol::client(&head, &rest)))
}
