//! The zones as data, and the lookup: name and type → records, no data, no such name, or not ours.

use crate::HelperError;
use hickory_proto::rr::rdata::{A, AAAA, NS, PTR, SOA, SRV};
use hickory_proto::rr::{Name, RData, RecordType};
use ipnet::IpNet;
use seedling_types::{HelperConfig, ports};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// How long a resolver may remember that a name is missing: a machine may be added at any time.
const NEGATIVE_TTL: u32 = 5;

pub struct Zones(Vec<Zone>);

pub struct Zone {
    pub origin: Name,
    pub soa: SOA,
    /// Names compare without regard to case.
    names: BTreeMap<Name, Vec<RData>>,
}

pub enum Found<'a> {
    Records(Vec<&'a RData>),
    /// The name is there, this type is not: NOERROR with the zone's SOA.
    NoData(&'a Zone),
    /// NXDOMAIN with the zone's SOA.
    NoName(&'a Zone),
    Outside,
}

impl Zones {
    /// `serial` must grow with every change: whoever copies a zone looks at nothing else.
    pub fn of(config: &HelperConfig, serial: u32) -> Result<Self, HelperError> {
        let domain = &config.cluster_domain;
        let origin = name(&domain.0)?;
        let helper = name(&domain.helper())?;

        let mut forward = Zone::new(origin, &helper, serial);
        for ours in [domain.api(), domain.api_int(), domain.helper(), format!("*.{}", domain.apps())] {
            for here in config.addresses() {
                forward.add(name(&ours)?, record(here));
            }
        }
        if config.etcd_srv {
            let service = name(&format!("_etcd-server-ssl._tcp.{}", domain.0))?;
            for (index, master) in config.inventory.masters().iter().enumerate() {
                let member = name(&domain.host(&format!("etcd-{index}")))?;
                for address in master.addresses() {
                    forward.add(member.clone(), record(address));
                }
                forward.add(service.clone(), RData::SRV(SRV::new(0, 10, ports::ETCD_PEER, member)));
            }
        }
        // Machines behind a relay are in other networks.
        let own =
            config.networks().map(|network| Ok(Zone::new(name(&reverse_origin(network))?, &helper, serial)));
        let mut reverse = own.collect::<Result<Vec<_>, HelperError>>()?;
        let mut back = |address: IpAddr, target: Name| -> Result<(), HelperError> {
            let (owner, data) = (name(&reverse_name(address))?, RData::PTR(PTR(target)));
            let at = reverse.iter().position(|zone| zone.origin.zone_of(&owner));
            let at = match at {
                Some(at) => at,
                None => {
                    reverse.push(Zone::new(name(&reverse_origin(around(address)))?, &helper, serial));
                    reverse.len() - 1
                }
            };
            reverse[at].add(owner, data);
            Ok(())
        };
        for ours in [domain.api(), domain.api_int()] {
            for here in config.addresses() {
                back(here, name(&ours)?)?;
            }
        }
        for host in &config.inventory.hosts {
            let host_name = name(&domain.host(&host.name))?;
            for address in host.addresses() {
                forward.add(host_name.clone(), record(address));
                back(address, host_name.clone())?;
            }
        }
        Ok(Self(std::iter::once(forward).chain(reverse).collect()))
    }

    pub fn serial(&self) -> u32 {
        self.0.first().map_or(0, |zone| zone.soa.serial)
    }

    pub fn lookup(&self, name: &Name, kind: RecordType) -> Found<'_> {
        let Some(zone) = self.0.iter().find(|z| z.origin.zone_of(name)) else { return Found::Outside };
        let Some(data) = zone.find(name) else { return Found::NoName(zone) };
        let records: Vec<_> =
            data.iter().filter(|d| kind == RecordType::ANY || d.record_type() == kind).collect();
        if records.is_empty() { Found::NoData(zone) } else { Found::Records(records) }
    }
}

impl Zone {
    fn new(origin: Name, server: &Name, serial: u32) -> Self {
        let soa = SOA::new(server.clone(), origin.clone(), serial, 3600, 600, 86400, NEGATIVE_TTL);
        let mut zone = Self { origin: origin.clone(), soa: soa.clone(), names: BTreeMap::new() };
        zone.add(origin.clone(), RData::SOA(soa));
        zone.add(origin, RData::NS(NS(server.clone())));
        zone
    }

    fn add(&mut self, name: Name, data: RData) {
        self.names.entry(name).or_default().push(data);
    }

    /// RFC 4592: the name itself; else the wildcard right below its closest existing ancestor.
    fn find(&self, name: &Name) -> Option<&[RData]> {
        if let Some(data) = self.names.get(name) {
            return Some(data);
        }
        if self.exists(name) {
            return Some(&[]);
        }
        let mut ancestor = name.base_name();
        while !self.exists(&ancestor) {
            ancestor = ancestor.base_name();
        }
        let wildcard = ancestor.prepend_label("*").ok()?;
        self.names.get(&wildcard).map(Vec::as_slice)
    }

    /// A name exists if it, or anything below it, has records (an empty non-terminal). The origin always does.
    fn exists(&self, name: &Name) -> bool {
        self.names.keys().any(|n| name.zone_of(n))
    }
}

fn name(text: &str) -> Result<Name, HelperError> {
    Name::from_ascii(format!("{}.", text.trim_end_matches('.'))).map_err(|_| HelperError::Domain(text.into()))
}

fn record(address: IpAddr) -> RData {
    match address {
        IpAddr::V4(address) => RData::A(A(address)),
        IpAddr::V6(address) => RData::AAAA(AAAA(address)),
    }
}

/// The network that is assumed where none is known.
fn around(address: IpAddr) -> IpNet {
    let prefix = if address.is_ipv4() { 24 } else { 64 };
    IpNet::new(address, prefix).map_or(IpNet::from(address), |network| network.trunc())
}

/// Reverse zones are cut at labels; a network between two cuts gets the larger zone.
pub(crate) fn reverse_origin(network: IpNet) -> String {
    let (bits, most) = if network.addr().is_ipv4() { (8, 3) } else { (4, 31) };
    let labels = usize::from(network.prefix_len() / bits).clamp(1, most);
    arpa(network.network(), labels)
}

pub(crate) fn reverse_name(address: IpAddr) -> String {
    arpa(address, usize::MAX)
}

/// The first labels of an address, the other way round: octets of IPv4, half octets of IPv6.
fn arpa(address: IpAddr, labels: usize) -> String {
    let (all, zone): (Vec<String>, _) = match address {
        IpAddr::V4(address) => (address.octets().iter().map(u8::to_string).collect(), "in-addr"),
        IpAddr::V6(address) => {
            let halves = address.octets().into_iter().flat_map(|octet| [octet >> 4, octet & 15]);
            (halves.map(|half| format!("{half:x}")).collect(), "ip6")
        }
    };
    let labels: Vec<_> = all.into_iter().take(labels).rev().collect();
    format!("{}.{zone}.arpa", labels.join("."))
}
