//! What was seen, before anybody judges it. What was not asked is not there, and is not judged.

use crate::verify::Asked;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub names: Vec<Resolved>,
    pub balancer: Vec<Answers>,
    pub ports: Vec<PortUse>,
    pub dhcp: Option<Offers>,
    /// hosts.yaml was read; each error as it is told.
    pub inventory: Option<Result<usize, Vec<String>>>,
    pub neighbours: Vec<Neighbour>,
    pub pull: Option<Pull>,
    /// The asset directory, and its certificates.
    pub certificates: Option<(String, Asked<Vec<Age>>)>,
    pub ignition: Vec<Spec>,
    pub clock: Option<Clock>,
    pub disk: Option<Disk>,
    pub machine: Option<Machine>,
    /// Seconds since 1970.
    pub now: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    Address,
    /// What name an address has.
    Pointer,
}

/// What an answer has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// One of these; none given: any address.
    OneOf(Vec<IpAddr>),
    /// The balancer's: not that of a machine.
    NotOf(Vec<IpAddr>),
    Name(String),
    Nothing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The check it belongs to.
    pub check: crate::Check,
    /// For an address, that address.
    pub name: String,
    pub query: Query,
    pub wanted: Wanted,
    /// Who was asked.
    pub server: String,
    /// Nothing: there is no such name.
    pub answer: Asked<Vec<String>>,
}

/// Somebody accepted a connection, and perhaps spoke TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    pub at: String,
    /// The answer's certificate: subject and issuer; none: it accepted, and nobody is behind it yet. Not asked: the name leads nowhere.
    pub who: Option<Asked<Option<(String, String)>>>,
    /// Whether one of our authorities signed it, if they are known: every cluster's have the same names.
    pub ours: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortUse {
    pub port: u16,
    /// `TCP` or `UDP`.
    pub protocol: &'static str,
    pub what: &'static str,
    /// The program that holds it; none: it is free.
    pub holder: Option<String>,
    /// Programs that may.
    pub ours: &'static [&'static str],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offers {
    pub interface: String,
    pub servers: Asked<Vec<Ipv4Addr>>,
    /// The one server that may offer.
    pub ours: Option<Ipv4Addr>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    pub name: String,
    pub address: IpAddr,
    /// Its own.
    pub mac: String,
    /// Who has the address now; none: nobody answers. Err: the network is not this machine's.
    pub seen: Asked<Option<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pull {
    pub image: String,
    pub from: String,
    /// Bytes that were read and have their digest, and layers that are there.
    pub pulled: Asked<(u64, usize)>,
}

/// A certificate's life, in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Age {
    pub place: String,
    pub from: i64,
    pub until: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    pub file: String,
    pub version: Asked<String>,
    /// The newest that the machines' Ignition understands, as minor of 3.
    pub newest: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    pub url: String,
    pub ahead: Asked<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    pub dir: PathBuf,
    /// Of each write, in microseconds, in any order.
    pub micros: Asked<Vec<u64>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    pub memory_bytes: u64,
    pub processors: usize,
    pub host_name: String,
    /// What it is called, and whether it is there.
    pub kernel: Vec<(&'static str, bool)>,
}
