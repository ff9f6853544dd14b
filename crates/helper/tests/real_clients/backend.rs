//! A TLS server on a machine of the lab, in place of an API server: real sockets, real TLS, a health that tests can set.
//! `/name` answers with the machine's name, `/client` with the address the load balancer named (PROXY protocol), `/slow` after
//! 2 s, `/never` never.

use crate::lab::Lab;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use seedling_types::proxy_protocol;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

pub(crate) struct Backend {
    /// Of the health check.
    pub status: Arc<AtomicU16>,
    pub handshakes: Arc<AtomicUsize>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Backend {
    pub(crate) fn start(lab: &Lab, machine: &'static str, port: u16) -> Self {
        let namespace = File::open(format!("/run/netns/{}", lab.namespace(machine))).unwrap();
        let status = Arc::new(AtomicU16::new(200));
        let handshakes = Arc::new(AtomicUsize::new(0));
        let (stop, stopped) = oneshot::channel();
        let (listening, listens) = std::sync::mpsc::channel();
        let (their_status, their_handshakes) = (status.clone(), handshakes.clone());
        // The namespace belongs to the thread; its runtime must not move work to others.
        let thread = std::thread::spawn(move || {
            nix::sched::setns(namespace, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener =
                    TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await.unwrap();
                listening.send(()).unwrap();
                tokio::select! {
                    () = serve(listener, machine, their_status, their_handshakes) => {}
                    _ = stopped => {}
                }
            });
        });
        listens.recv().unwrap();
        Self { status, handshakes, stop: Some(stop), thread: Some(thread) }
    }
}

/// As a killed process: listener and connections are closed.
impl Drop for Backend {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(
    listener: TcpListener,
    name: &'static str,
    status: Arc<AtomicU16>,
    handshakes: Arc<AtomicUsize>,
) {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, status) = (acceptor.clone(), status.clone());
        handshakes.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            let _ = converse(stream, acceptor, name, &status).await;
        });
    }
}

async fn converse(
    mut stream: TcpStream,
    tls: TlsAcceptor,
    name: &str,
    status: &AtomicU16,
) -> std::io::Result<()> {
    let client = named_client(&mut stream).await?;
    let mut stream = BufReader::new(tls.accept(stream).await?);
    loop {
        let mut request = String::new();
        while !request.ends_with("\r\n\r\n") {
            if stream.read_line(&mut request).await? == 0 {
                return Ok(());
            }
        }
        let code = match request.split(' ').nth(1) {
            Some("/readyz" | "/healthz") => status.load(Ordering::Relaxed),
            Some("/slow") => {
                tokio::time::sleep(Duration::from_secs(2)).await;
                200
            }
            Some("/never") => std::future::pending().await,
            _ => 200,
        };
        let body = if request.starts_with("GET /client") { &client } else { name };
        let reply = format!("HTTP/1.1 {code} X\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(reply.as_bytes()).await?;
    }
}

async fn named_client(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut first = [0];
    stream.peek(&mut first).await?;
    if first[0] != proxy_protocol::SIGNATURE[0] {
        return Ok("nobody".into());
    }
    let mut head = [0; proxy_protocol::HEAD];
    stream.read_exact(&mut head).await?;
    let mut rest = vec![0; proxy_protocol::rest_length(&head).unwrap()];
    stream.read_exact(&mut rest).await?;
    Ok(proxy_protocol::client(&head, &rest).unwrap().to_string())
}
