//! The balancer, clocks, ports and addresses, as this machine sees them.

use super::facts::{Answers, Clock, Neighbour, PortUse};
use crate::verify::Asked;
use base64::Engine;
use futures::future::join_all;
use seedling_cluster::innermost;
use seedling_types::Inventory;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::time::{Duration, SystemTime};
use tokio::net::TcpStream;
use tokio::time::timeout;

const WITHIN: Duration = Duration::from_secs(4);
/// The kernel asks three times, a second apart.
const ARP_WITHIN: Duration = Duration::from_millis(1500);

/// Who accepts connections at `address`, known as `host:port`. `authorities`: ours, as PEM.
pub async fn answers(host: &str, address: Option<IpAddr>, port: u16, authorities: Option<&str>) -> Answers {
    let at = format!("{host}:{port}");
    let Some(address) = address else {
        return Answers { who: None, at, ours: None };
    };
    // Closed again before anything is asked: some servers take one connection at a time.
    let accepted = timeout(WITHIN, TcpStream::connect((address, port))).await.map(|stream| stream.map(drop));
    let who = match accepted {
        Err(_) => Err(format!("{address} does not answer within {} s", WITHIN.as_secs())),
        Ok(Err(e)) => Err(format!("{address}: {e}")),
        Ok(Ok(())) => Ok(certificate(host, SocketAddr::from((address, port))).await),
    };
    let ours = match authorities {
        Some(pem) => is_trusted(host, SocketAddr::from((address, port)), pem).await,
        None => None,
    };
    Answers { at, who: Some(who), ours }
}

/// Subject and issuer of the certificate; none: nobody speaks TLS there.
async fn certificate(host: &str, address: SocketAddr) -> Option<(String, String)> {
    let client = reqwest::Client::builder()
        .tls_danger_accept_invalid_certs(true)
        .tls_info(true)
        .no_proxy()
        .timeout(WITHIN)
        .resolve(host, address)
        .build()
        .ok()?;
    let answer = client.get(format!("https://{host}:{}/healthz", address.port())).send().await.ok()?;
    let der = answer.extensions().get::<reqwest::tls::TlsInfo>()?.peer_certificate()?.to_vec();
    let pem = base64::engine::general_purpose::STANDARD.encode(der);
    let pem = format!("-----BEGIN CERTIFICATE-----\n{pem}\n-----END CERTIFICATE-----\n");
    let found = seedling_pki::certificates(&pem).ok()?.into_iter().next()?;
    Some((found.subject, found.issuer))
}

/// Base64, as Ignition configs and kubeconfigs carry files.
pub fn decoded(text: &str) -> Option<Vec<u8>> {
    base64::engine::general_purpose::STANDARD.decode(text.trim()).ok()
}

/// Whether one of these authorities signed what is shown there.
async fn is_trusted(host: &str, address: SocketAddr, pem: &str) -> Option<bool> {
    let roots =
        reqwest::Certificate::from_pem_bundle(pem.as_bytes()).ok().filter(|roots| !roots.is_empty())?;
    let client =
        reqwest::Client::builder().tls_certs_only(roots).no_proxy().timeout(WITHIN).resolve(host, address);
    let asked = client.build().ok()?.get(format!("https://{host}:{}/healthz", address.port())).send().await;
    Some(asked.is_ok())
}

/// Against the `Date` of an HTTP answer.
pub async fn clock(url: &str) -> Clock {
    let asked = async {
        let client =
            reqwest::Client::builder().timeout(WITHIN).no_proxy().build().map_err(|e| innermost(&e))?;
        let before = SystemTime::now();
        let answer = client.head(url).send().await.map_err(|e| innermost(&e))?;
        let after = SystemTime::now();
        let date = answer.headers().get("date").and_then(|date| date.to_str().ok());
        date.and_then(|date| clock_ahead(date, before, after))
            .ok_or_else(|| "the answer has no date".to_string())
    };
    Clock { url: url.into(), ahead: asked.await.map_err(|why: String| format!("{url}: {why}")) }
}

/// From the `Date` of an HTTP answer that came between two looks at this machine's clock.
pub fn clock_ahead(date: &str, asked: SystemTime, answered: SystemTime) -> Option<i64> {
    let theirs = time::OffsetDateTime::parse(date, &time::format_description::well_known::Rfc2822).ok()?;
    let seconds = |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).ok().map(|d| d.as_secs() as i64);
    // Any moment in between would do; the nearest is the kindest.
    let (first, last) = (seconds(asked)?, seconds(answered)?);
    let there = theirs.unix_timestamp();
    Some(there.clamp(first, last)).map(|nearest| nearest - there)
}

/// Who holds a port of this machine.
pub fn in_use(
    address: IpAddr,
    port: u16,
    protocol: &'static str,
    what: &'static str,
    ours: &'static [&'static str],
) -> PortUse {
    let at = (address, port);
    let bound = match protocol {
        "UDP" => UdpSocket::bind(at).map(drop),
        _ => TcpListener::bind(at).map(drop),
    };
    let holder = bound.err().map(|e| match e.kind() {
        std::io::ErrorKind::AddrInUse => holder(port, protocol).unwrap_or_else(|| "another program".into()),
        _ => e.to_string(),
    });
    PortUse { port, protocol, what, holder, ours }
}

/// The program's name, if this process may see it.
fn holder(port: u16, protocol: &str) -> Option<String> {
    let flags = if protocol == "UDP" { "-Hlnup" } else { "-Hltnp" };
    let shown = std::process::Command::new("ss").args([flags, &format!("sport = :{port}")]).output().ok()?;
    // users:(("systemd-resolve",pid=1,fd=2))
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    Some(text.split("((\"").nth(1)?.split('"').next()?.to_string())
}

/// Lets the kernel ask who has each address, and reads what it heard. Only on networks that this machine is on.
pub async fn neighbours(inventory: &Inventory) -> Vec<Neighbour> {
    let asked = inventory.hosts.iter().map(async |host| Neighbour {
        name: host.name.clone(),
        address: host.address,
        mac: host.mac.clone(),
        seen: who_has(host.address).await,
    });
    join_all(asked).await
}

async fn who_has(address: IpAddr) -> Asked<Option<String>> {
    let IpAddr::V4(address) = address else {
        return Err(format!("{address}: only IPv4 neighbours are asked"));
    };
    let routes = std::fs::read_to_string("/proc/net/route").map_err(|e| e.to_string())?;
    if !is_neighbour(&routes, address) {
        return Err(format!("{address} is not on a network of this machine"));
    }
    let socket = tokio::net::UdpSocket::bind(("0.0.0.0", 0)).await.map_err(|e| e.to_string())?;
    // Port 9 discards; what counts is that the kernel has to know whose address it is.
    let _ = socket.send_to(&[0], (address, 9)).await;
    tokio::time::sleep(ARP_WITHIN).await;
    let table = std::fs::read_to_string("/proc/net/arp").map_err(|e| e.to_string())?;
    Ok(mac_of(&table, address))
}

/// A route without a gateway leads to it.
fn is_neighbour(routes: &str, address: Ipv4Addr) -> bool {
    let address = u32::from_le_bytes(address.octets());
    routes.lines().skip(1).any(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let number = |n: usize| words.get(n).and_then(|w| u32::from_str_radix(w, 16).ok());
        let (Some(to), Some(gateway), Some(mask)) = (number(1), number(2), number(7)) else { return false };
        gateway == 0 && mask != 0 && address & mask == to
    })
}

fn mac_of(table: &str, address: Ipv4Addr) -> Option<String> {
    let line = table.lines().find(|l| l.split_whitespace().next() == Some(&address.to_string()))?;
    let mac = line.split_whitespace().nth(3)?;
    (mac != "00:00:00:00:00:00").then(|| mac.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read() {
        let routes = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
                      eth0 00000000 0102A8C0 0003 0 0 0 00000000 0 0 0\n\
                      eth0 0002A8C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n";
        assert!(is_neighbour(routes, [192, 168, 2, 7].into()));
        assert!(!is_neighbour(routes, [192, 168, 3, 7].into()), "only through the gateway");
        let arp = "IP address HW type Flags HW address Mask Device\n\
                   192.168.2.7 0x1 0x2 52:54:00:5e:ed:11 * eth0\n192.168.2.8 0x1 0x0 00:00:00:00:00:00 * eth0\n";
        assert_eq!(mac_of(arp, [192, 168, 2, 7].into()).as_deref(), Some("52:54:00:5e:ed:11"));
        assert_eq!(mac_of(arp, [192, 168, 2, 8].into()), None);
        assert_eq!(mac_of(arp, [192, 168, 2, 9].into()), None);
    }

    #[test]
    fn a_port_that_is_held_is_found() {
        let Ok(held) = TcpListener::bind(("127.0.0.1", 0)) else { return };
        let port = held.local_addr().map_or(0, |a| a.port());
        assert!(in_use(Ipv4Addr::LOCALHOST.into(), port, "TCP", "a test", &[]).holder.is_some());
        drop(held);
        assert_eq!(in_use(Ipv4Addr::LOCALHOST.into(), port, "TCP", "a test", &[]).holder, None);
    }

    #[test]
    fn the_clock_is_compared_within_the_time_of_the_question() {
        let at = |s| SystemTime::UNIX_EPOCH + Duration::from_secs(s);
        let date = "Thu, 01 Jan 1970 00:16:40 GMT";
        assert_eq!(clock_ahead(date, at(999), at(1002)), Some(0));
        assert_eq!(clock_ahead(date, at(1100), at(1101)), Some(100));
        assert_eq!(clock_ahead(date, at(900), at(901)), Some(-99));
        assert_eq!(clock_ahead("soon", at(1), at(2)), None);
    }
}
