//! Forwards: listening sockets opened elsewhere (on loopback, outside the lab's network) and handed over as file
//! descriptors. Each connection is relayed to an address dialled from here, inside.

use crate::net::{self, Listener};
use crate::{Context, HelperError};
use seedling_types::HelperConfig;
use seedling_types::helper::Forward;
use socket2::SockRef;
use std::future::Future;
use std::os::fd::FromRawFd;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Kept by the process, so that the server can be started again: what was inherited comes only once.
pub(crate) type Inherited = Arc<Vec<(std::net::TcpListener, Forward)>>;

pub(crate) fn inherited(config: &HelperConfig) -> Result<Inherited, HelperError> {
    config.forwards.iter().map(inherit).collect::<Result<Vec<_>, _>>().map(Arc::new)
}

pub(crate) fn start(context: &Context) -> Result<impl Future<Output = ()> + use<>, HelperError> {
    let copy = |(listener, forward): &(std::net::TcpListener, Forward)| {
        let listener = listener.try_clone().and_then(TcpListener::from_std);
        let fail = |_| HelperError::Forward { fd: forward.fd, to: forward.to };
        Ok((listener.map_err(fail)?.into(), forward.clone()))
    };
    let forwards: Result<Vec<_>, HelperError> = context.inherited.iter().map(copy).collect();
    let (forwards, context) = (forwards?, context.clone());
    Ok(async move {
        let serve = |(listener, forward)| serve(listener, forward, context.clone());
        let mut loops: JoinSet<()> = forwards.into_iter().map(serve).collect();
        if loops.join_next().await.is_none() {
            // Without forwards this server has nothing to do, but must not look as if it had failed.
            std::future::pending().await
        }
    })
}

async fn serve(listener: Listener, forward: Forward, context: Context) {
    loop {
        let (client, _, slot) = net::accept(&listener, &context.limits.forward, &context.events).await;
        let forward = forward.clone();
        tokio::spawn(async move {
            let _slot = slot;
            match TcpStream::connect(forward.to).await {
                Ok(inside) => net::relay(client, inside).await,
                Err(error) => tracing::warn!(to = %forward.to, %error, "forward cannot connect"),
            }
        });
    }
}

#[expect(
    unsafe_code,
    reason = "an inherited file descriptor has no owner in this process yet; the config names it once"
)]
fn inherit(forward: &Forward) -> Result<(std::net::TcpListener, Forward), HelperError> {
    let fail = || HelperError::Forward { fd: forward.fd, to: forward.to };
    if forward.fd < 3 || !std::path::Path::new(&format!("/proc/self/fd/{}", forward.fd)).exists() {
        return Err(fail());
    }
    // SAFETY: the descriptor is open (checked above), and whoever started us gave it to us and to nobody else.
    let listener = unsafe { std::net::TcpListener::from_raw_fd(forward.fd) };
    if !SockRef::from(&listener).is_listener().unwrap_or(false) {
        return Err(fail());
    }
    listener.set_nonblocking(true).map_err(|_| fail())?;
    Ok((listener, forward.clone()))
}
