//! One connection of an HTTP server: how long it may take over its words, and whether what it was to have has reached it.

use crate::events::EventLog;
use crate::limits::Slots;
use crate::net;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// For a request's head, and between two requests.
const HEAD: Duration = Duration::from_secs(15);
/// A client that has all closes at once; one that keeps the connection has it too.
const FAREWELL: Duration = Duration::from_secs(5);

type Then = Box<dyn FnOnce() + Send>;

/// What to do when the last answer of a connection has reached its client.
#[derive(Clone, Default)]
pub(super) struct Delivery(Arc<Mutex<Option<Then>>>);

impl Delivery {
    /// The answer must also say `connection: close`.
    pub(super) fn then(&self, done: impl FnOnce() + Send + 'static) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(done));
    }

    fn take(&self) -> Option<Then> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

pub(crate) async fn serve(listener: net::Listener, router: Router, slots: Arc<Slots>, events: EventLog) {
    loop {
        let (stream, remote, slot) = net::accept(&listener, &slots, &events).await;
        let router = router.clone();
        tokio::spawn(async move {
            let _slot = slot;
            converse(stream, remote, router).await;
        });
    }
}

async fn converse(stream: TcpStream, remote: SocketAddr, router: Router) {
    net::prepare(&stream);
    net::give_up_when_stalled(&stream);
    let delivery = Delivery::default();
    let inner = TowerToHyperService::new(router);
    let service = service_fn(|mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(remote));
        request.extensions_mut().insert(delivery.clone());
        inner.call(request.map(Body::new))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .without_shutdown();
    // A client that hangs up, or says nothing, is no error of ours.
    let Ok(parts) = connection.await else { return };
    let mut stream = parts.io.into_inner();
    let sent = stream.shutdown().await.is_ok();
    if let Some(done) = delivery.take()
        && sent
        && arrived(stream).await
    {
        done();
    }
}

/// Bytes that were sent may still be on their way. A client that goes without having read them resets the connection.
async fn arrived(mut stream: TcpStream) -> bool {
    let mut buffer = [0; 512];
    let to_the_end = async {
        while stream.read(&mut buffer).await? > 0 {}
        std::io::Result::Ok(())
    };
    timeout(FAREWELL, to_the_end).await.unwrap_or(Ok(())).is_ok()
}
