//! Forwards: listening sockets opened elsewhere (on loopback, outside the lab's network) and handed over as file
//! descriptors. Each connection is relayed to an address dialled from here, inside.

use crate::{Context, HelperError, net};
use seedling_types::helper::Forward;
use socket2::SockRef;
use std::future::Future;
use std::os::fd::FromRawFd;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

pub fn start(context: &Context) -> Result<impl Future<Output = ()> + use<>, HelperError> {
    let forwards: Result<Vec<_>, _> = context.config.forwards.iter().map(inherit).collect();
    let forwards = forwards?;
    Ok(async move {
        let mut loops: JoinSet<()> =
            forwards.into_iter().map(|(listener, forward)| serve(listener, forward)).collect();
        // Without forwards this server has nothing to do, but must not look as if it had failed.
        while loops.join_next().await.is_some() {}
        std::future::pending().await
    })
}

async fn serve(listener: TcpListener, forward: Forward) {
    loop {
        let (client, _) = net::accept(&listener).await;
        tokio::spawn(async move {
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
fn inherit(forward: &Forward) -> Result<(TcpListener, Forward), HelperError> {
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
    Ok((TcpListener::from_std(listener).map_err(|_| fail())?, forward.clone()))
}
