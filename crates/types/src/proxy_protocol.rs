//! PROXY protocol, version 2: with it a layer-4 load balancer tells a server whose connection it passes on.
//!
//! Spoken by the helper's load balancer to the machine-config server; haproxy's `send-proxy-v2` is the same.

use std::net::{IpAddr, SocketAddr};

/// No TLS and no HTTP connection starts with its first byte.
pub const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family, length of what follows.
pub const HEAD: usize = 16;
/// Addresses and all the extras a balancer may add; a header that claims more is none.
pub const MAX_REST: usize = 2048;

const VERSION_2_LOCAL: u8 = 0x20;
const VERSION_2_PROXY: u8 = 0x21;
const TCP_OVER_IPV4: u8 = 0x11;
const TCP_OVER_IPV6: u8 = 0x21;
/// Two addresses and two ports.
const IPV4_ADDRESSES: u16 = 12;
const IPV6_ADDRESSES: u16 = 36;

/// What goes before the first byte of the client. Client and server may be of different families: the balancer has both.
pub fn header(client: SocketAddr, server: SocketAddr) -> Vec<u8> {
    let ends = [client, server];
    let mut bytes = SIGNATURE.to_vec();
    match (client.ip(), server.ip()) {
        (IpAddr::V4(client), IpAddr::V4(server)) => {
            bytes.extend([VERSION_2_PROXY, TCP_OVER_IPV4]);
            bytes.extend(IPV4_ADDRESSES.to_be_bytes());
            bytes.extend([client, server].iter().flat_map(|a| a.octets()));
        }
        _ => {
            bytes.extend([VERSION_2_PROXY, TCP_OVER_IPV6]);
            bytes.extend(IPV6_ADDRESSES.to_be_bytes());
            bytes.extend(ends.iter().flat_map(|end| match end.ip() {
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                IpAddr::V6(address) => address.octets(),
            }));
        }
    }
    bytes.extend(ends.iter().flat_map(|end| end.port().to_be_bytes()));
    bytes
}

/// How many bytes follow the head; `None`: it is no such header.
pub fn rest_length(head: &[u8; HEAD]) -> Option<usize> {
    let length = usize::from(u16::from_be_bytes([head[14], head[15]]));
    let known = matches!(head[12], VERSION_2_LOCAL | VERSION_2_PROXY);
    (head.starts_with(&SIGNATURE) && known && length <= MAX_REST).then_some(length)
}

/// Whose connection it is; `None`: the balancer's own (a health check), or one it cannot name.
pub fn client(head: &[u8; HEAD], rest: &[u8]) -> Option<IpAddr> {
    match (head[12], head[13]) {
        (VERSION_2_PROXY, TCP_OVER_IPV4) => {
            let address = rest.get(..usize::from(IPV4_ADDRESSES))?.first_chunk::<4>()?;
            Some(IpAddr::from(*address))
        }
        (VERSION_2_PROXY, TCP_OVER_IPV6) => {
            let address = rest.get(..usize::from(IPV6_ADDRESSES))?.first_chunk::<16>()?;
            Some(IpAddr::from(*address).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn split(bytes: &[u8]) -> ([u8; HEAD], &[u8]) {
        let (head, rest) = bytes.split_at(HEAD);
        (head.try_into().unwrap(), rest)
    }

    #[test]
    fn what_is_written_is_read() {
        let (client_is, server) = ("192.168.100.11:40000", "192.168.100.10:22623");
        let bytes = header(client_is.parse().unwrap(), server.parse().unwrap());
        let (head, rest) = split(&bytes);
        assert_eq!(rest_length(&head), Some(rest.len()));
        assert_eq!(client(&head, rest), Some("192.168.100.11".parse().unwrap()));
        assert_eq!(bytes[24..28], [0x9c, 0x40, 0x58, 0x5f]);
    }

    #[test]
    fn both_families_and_a_balancer_between_them() {
        for (client_is, server) in [
            ("[fd00::b]:40000", "[fd00::a]:22623"),
            ("[fd00::b]:40000", "10.0.0.1:22623"),
            ("10.0.0.2:1", "[fd00::a]:2"),
        ] {
            let from: SocketAddr = client_is.parse().unwrap();
            let bytes = header(from, server.parse().unwrap());
            let (head, rest) = split(&bytes);
            assert_eq!(rest_length(&head), Some(36));
            assert_eq!(client(&head, rest), Some(from.ip()), "{client_is} to {server}");
        }
    }

    #[test]
    fn what_is_not_a_clients_address_is_none() {
        let bytes = header("1.2.3.4:5".parse().unwrap(), "6.7.8.9:10".parse().unwrap());
        let (head, rest) = split(&bytes);
        let with = |index: usize, value: u8| {
            let mut head = head;
            head[index] = value;
            head
        };
        assert_eq!(client(&with(12, VERSION_2_LOCAL), rest), None, "a health check");
        assert_eq!(client(&with(13, TCP_OVER_IPV6), rest), None, "IPv6, and too short for it");
        assert_eq!(client(&with(13, 0x12), rest), None, "UDP");
        assert_eq!(client(&head, &rest[..3]), None, "cut short");
        assert_eq!(rest_length(&with(12, 0x11)), None, "version 1");
        assert_eq!(rest_length(&with(0, b'G')), None, "something else");
        assert_eq!(rest_length(&with(14, 0xff)), None, "too long");
    }
}
