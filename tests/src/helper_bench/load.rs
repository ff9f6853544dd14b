//! The clients: dnsperf, perfdhcp and curl; and a thousand machines at once, which no program plays, since each asks from its own address.

use super::rivals::{DOMAIN, HTTP, LARGE, LARGE_BYTES, LOADER, LOADER_BYTES};
use super::site::{INTERFACE, SERVER, Site, machine};
use anyhow::{Context, Result, bail, ensure};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

/// Of what is measured by time.
const SECONDS: u32 = 5;
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Queries a second, as dnsperf counts answers; an answer that is not NOERROR is an error of the race.
pub(crate) fn dns(site: &Site, machines: usize) -> Result<f64> {
    let mut queries = format!("api.{DOMAIN} A\napi-int.{DOMAIN} A\nconsole.apps.{DOMAIN} A\n");
    for n in 0..machines {
        let [a, b, c, d] = machine(n).1.octets();
        queries += &format!("worker-{n}.{DOMAIN} A\n{d}.{c}.{b}.{a}.in-addr.arpa PTR\n");
    }
    let path = site.write("queries", queries)?;
    let printed = site.ask(&format!("dnsperf -s {SERVER} -d {} -c 16 -l {SECONDS}", path.display()))?;
    let codes = after(&printed, "Response codes:")?;
    ensure!(codes.starts_with("NOERROR") && codes.contains("(100.00%)"), "{printed}");
    number(after(&printed, "Queries per second:")?)
}

/// Whole exchanges (discover to ack) a second of machines that are known.
pub(crate) fn dhcp(site: &Site) -> Result<f64> {
    let macs = site.path("macs");
    // perfdhcp's exit code tells of drops at the end of its time.
    let printed = site.ask(&format!(
        "perfdhcp -4 -l {INTERFACE} -M {} -R 1000 -p {SECONDS} {SERVER} || [ $? = 3 ]",
        macs.display()
    ))?;
    number(after(&printed, "Rate:")?).with_context(|| printed)
}

/// Megabytes a second, one file by TFTP in blocks that fit a frame.
pub(crate) fn tftp(site: &Site) -> Result<f64> {
    curl(site, &format!("--tftp-blksize 1468 tftp://{SERVER}/{LOADER}"), LOADER_BYTES)
}

pub(crate) fn http_large(site: &Site) -> Result<f64> {
    curl(site, &format!("http://{SERVER}:{HTTP}/boot/{LARGE}"), LARGE_BYTES)
}

pub(crate) fn balancer_large(site: &Site) -> Result<f64> {
    curl(site, &format!("http://{SERVER}/{LARGE}"), LARGE_BYTES)
}

/// From an address of a machine: strangers get no files.
fn curl(site: &Site, what: &str, bytes: u64) -> Result<f64> {
    let from = machine(0).1;
    let format = "'%{size_download} %{time_total}'";
    let printed = site.ask(&format!("curl -sS --fail --interface {from} -o /dev/null -w {format} {what}"))?;
    let (got, seconds) = printed.split_once(' ').with_context(|| printed.clone())?;
    ensure!(got.parse::<u64>()? == bytes, "{got} bytes of {bytes}");
    Ok(bytes as f64 / 1e6 / seconds.trim().parse::<f64>()?)
}

/// Machines that have their Ignition config a second, when all ask at once.
pub(crate) fn ignition(site: &Site, machines: usize) -> Result<f64> {
    let asks = (0..machines).map(|n| {
        let (mac, address) = machine(n);
        (address, format!("/ign/{mac}"))
    });
    let asks: Vec<_> = asks.collect();
    site.among_clients(move || {
        block_on(async {
            let begun = Instant::now();
            let all = asks.iter().map(|(from, path)| get(*from, (SERVER, HTTP).into(), path));
            for answer in futures::future::join_all(all).await {
                let answer = answer?;
                ensure!(
                    answer.ends_with(b"x\"}"),
                    "an answer that is not whole: {}",
                    String::from_utf8_lossy(&answer)
                );
            }
            Ok(asks.len() as f64 / begun.elapsed().as_secs_f64())
        })
    })
}

/// Connections a second through the balancer, each with one small answer; 64 at a time.
pub(crate) fn balancer_connections(site: &Site) -> Result<f64> {
    site.among_clients(|| {
        block_on(async {
            let (begun, length) = (Instant::now(), Duration::from_secs(SECONDS.into()));
            let one = async |n: usize| {
                let mut count = 0u64;
                while begun.elapsed() < length {
                    let answer = get(machine(n).1, (SERVER, 80).into(), "/small").await?;
                    ensure!(answer.ends_with(b"ok"), "{}", String::from_utf8_lossy(&answer));
                    count += 1;
                }
                Ok(count)
            };
            let counts = futures::future::try_join_all((0..64).map(one)).await?;
            Ok(counts.iter().sum::<u64>() as f64 / begun.elapsed().as_secs_f64())
        })
    })
}

pub(super) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// One request, one connection, until the server closes it.
async fn get(from: Ipv4Addr, to: SocketAddr, path: &str) -> Result<Vec<u8>> {
    let asked = async {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        let mut stream = socket.connect(to).await?;
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\n\r\n").as_bytes())
            .await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        anyhow::Ok(answer)
    };
    let answer = tokio::time::timeout(PATIENCE, asked).await.context("no answer")??;
    if !answer.starts_with(b"HTTP/1.1 200") {
        bail!(
            "{from} asked for {path} and got: {}",
            String::from_utf8_lossy(&answer[..answer.len().min(200)])
        );
    }
    Ok(answer)
}

/// The rest of the line behind a title.
fn after<'a>(printed: &'a str, title: &str) -> Result<&'a str> {
    let line = printed.lines().find_map(|line| line.trim().strip_prefix(title));
    Ok(line.with_context(|| format!("no {title:?} in:\n{printed}"))?.trim())
}

fn number(text: &str) -> Result<f64> {
    text.split_whitespace().next().and_then(|word| word.parse().ok()).with_context(|| text.to_string())
}
