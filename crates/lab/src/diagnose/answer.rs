//! Somebody else who answers: an HTTP status for every request, one address for every name, or nothing on a port that is taken.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::str::FromStr;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Status(u16),
    Dns([u8; 4]),
    Silence,
}

impl FromStr for Answer {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "silence" {
            return Ok(Self::Silence);
        }
        let status = || text.parse().ok().map(Self::Status);
        let address = || text.parse::<Ipv4Addr>().ok().map(|address| Self::Dns(address.octets()));
        status().or_else(address).ok_or_else(|| "an HTTP status, an address, or silence".into())
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{status}"),
            Self::Dns(address) => write!(f, "{}", Ipv4Addr::from(*address)),
            Self::Silence => f.write_str("silence"),
        }
    }
}

/// Until it is killed.
pub fn answer(port: u16, with: Answer) -> io::Result<()> {
    match with {
        Answer::Dns(address) => {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
            let mut query = [0; 1500];
            loop {
                let (length, from) = socket.recv_from(&mut query)?;
                if let Some(reply) = one_address(&query[..length], address) {
                    let _ = socket.send_to(&reply, from);
                }
            }
        }
        Answer::Status(status) => {
            for stream in TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?.incoming() {
                let Ok(mut stream) = stream else { continue };
                let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
                let _ = stream.read(&mut [0; 4096]);
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status} No\r\nWWW-Authenticate: Basic realm=\"fault\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                );
            }
            Ok(())
        }
        Answer::Silence => {
            let _listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
            loop {
                std::thread::park();
            }
        }
    }
}

/// The question again, with one A record for its name; other types have no answer.
fn one_address(query: &[u8], address: [u8; 4]) -> Option<Vec<u8>> {
    let mut end = 12;
    while *query.get(end)? != 0 {
        end += usize::from(query[end]) + 1;
    }
    let question = query.get(12..end + 5)?;
    let is_address = question.get(question.len() - 4..)? == [0, 1, 0, 1];
    let mut reply = query.get(..2)?.to_vec();
    reply.extend([0x85, 0x80, 0, 1, 0, u8::from(is_address), 0, 0, 0, 0]);
    reply.extend(question);
    if is_address {
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4]);
        reply.extend(address);
    }
    Some(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for answer in [Answer::Status(401), Answer::Dns([192, 168, 100, 99]), Answer::Silence] {
            assert_eq!(answer.to_string().parse(), Ok(answer));
        }
        assert!("x".parse::<Answer>().is_err());
    }

    #[test]
    fn every_name_has_the_address_and_nothing_else() {
        let query = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01";
        let reply = one_address(query, [1, 2, 3, 4]).unwrap_or_default();
        assert!(reply.starts_with(b"\x12\x34\x85\x80") && reply.ends_with(&[0, 4, 1, 2, 3, 4]));
        let other = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x1c\x00\x01";
        assert_eq!(one_address(other, [1, 2, 3, 4]).map(|reply| reply[7]), Some(0));
        assert_eq!(one_address(b"short", [0; 4]), None);
    }
}
