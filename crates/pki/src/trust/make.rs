//! From rows to certificates.

use super::{Leaf, Names, Signer, Start};
use crate::{
    CaSpec, CertKey, KeyAlgorithm, LAG, LeafSpec, Result, issue, new_backdated_ca, new_ca, renew_ca,
};
use seedling_types::{ClusterDomain, Host, Role};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use time::{Duration, OffsetDateTime};

/// What of the cluster goes into certificates.
pub struct Cluster<'a> {
    pub domain: &'a ClusterDomain,
    /// Addresses of the Service `kubernetes`: the first host of service networks.
    pub service_addresses: Vec<IpAddr>,
    /// Addresses under which api-int is reached where there is no DNS name for it yet.
    pub api_vips: &'a [IpAddr],
    /// The machines of the inventory.
    pub hosts: &'a [Host],
}

/// DNS names and addresses.
type Sans = (Vec<String>, Vec<IpAddr>);

impl Signer {
    pub fn make(&self, alg: KeyAlgorithm, now: OffsetDateTime) -> Result<CertKey> {
        match self.start {
            Start::Now => new_ca(&self.spec(self.cn), alg, now),
            Start::Backdated => new_backdated_ca(&self.spec(self.cn), alg, now),
            Start::Dated => new_ca(&self.spec(&dated(self.cn, now)), alg, now),
        }
    }

    /// The same signer with the same key, valid from now on: what it signed stays good.
    pub fn renew(&self, old_key: &str, now: OffsetDateTime) -> Result<CertKey> {
        let spec = self.spec(self.cn);
        match self.start {
            Start::Backdated => {
                renew_ca(&CaSpec { validity: spec.validity + LAG, ..spec }, old_key, now - LAG)
            }
            _ => renew_ca(&spec, old_key, now),
        }
    }

    /// The one that takes its place. It is valid at once for everybody whose clock is not far from ours, and its name says when it was made:
    /// two with the same name could not be told apart by those who see a certificate of theirs.
    pub fn make_next(&self, validity: Duration, now: OffsetDateTime) -> Result<CertKey> {
        let spec = CaSpec { cn: &dated(self.next_cn, now), ou: Some("openshift"), validity };
        new_backdated_ca(&spec, KeyAlgorithm::default(), now)
    }

    fn spec<'a>(&self, cn: &'a str) -> CaSpec<'a> {
        CaSpec { cn, ou: self.ou, validity: self.validity }
    }
}

fn dated(cn: &str, now: OffsetDateTime) -> String {
    format!("{cn}@{}", now.unix_timestamp())
}

impl Leaf {
    /// The installer's. Without a cluster it has no names.
    pub fn make(
        &self,
        ca: &CertKey,
        cluster: Option<&Cluster>,
        alg: KeyAlgorithm,
        now: OffsetDateTime,
    ) -> Result<CertKey> {
        let names = cluster.map(|cluster| self.names.of(cluster, None)).unwrap_or_default();
        issue(ca, &self.spec(self.cn, names, self.validity), alg.of_leaf(), now)
    }

    /// Stems of the files in its Secret.
    pub fn stems(&self, cluster: &Cluster) -> Vec<String> {
        self.pairs(cluster).into_iter().map(|(stem, _)| stem).collect()
    }

    /// All files of its Secret, by name.
    pub fn make_files(
        &self,
        ca: &CertKey,
        cluster: &Cluster,
        validity: Duration,
        now: OffsetDateTime,
    ) -> Result<BTreeMap<String, String>> {
        let mut files = BTreeMap::new();
        for (stem, member) in self.pairs(cluster) {
            let cn = member.map_or(self.cn.to_string(), |host| host.address.to_string());
            let spec = self.spec(&cn, self.names.of(cluster, member), validity);
            let pair = issue(ca, &spec, KeyAlgorithm::default(), now)?;
            files.extend([(format!("{stem}.crt"), pair.cert), (format!("{stem}.key"), pair.key)]);
        }
        Ok(files)
    }

    pub fn secret_type(&self) -> &'static str {
        if self.names == Names::EtcdMember { "Opaque" } else { "kubernetes.io/tls" }
    }

    /// Stem of the files, and the etcd member that they are for.
    fn pairs<'a>(&self, cluster: &Cluster<'a>) -> Vec<(String, Option<&'a Host>)> {
        if self.names != Names::EtcdMember {
            return vec![("tls".into(), None)];
        }
        let members = cluster.hosts.iter().filter(|host| host.role != Role::Worker);
        let both = members.flat_map(|host| {
            let name = if host.role == Role::Bootstrap { "bootstrap" } else { &host.name };
            ["peer", "serving"].map(|kind| (format!("etcd-{kind}-{name}"), Some(host)))
        });
        both.collect()
    }

    fn spec<'a>(&'a self, cn: &'a str, (dns, ips): Sans, validity: Duration) -> LeafSpec<'a> {
        LeafSpec {
            cn,
            organizations: self.organizations.iter().map(|o| o.to_string()).collect(),
            usages: self.usages,
            dns,
            ips,
            validity,
            append_parent: self.append_parent,
            key_usage: self.key_usage,
        }
    }
}

impl Names {
    fn of(self, cluster: &Cluster, member: Option<&Host>) -> Sans {
        let loopback: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        match self {
            Names::None => (vec![], vec![]),
            Names::Localhost => (vec!["localhost".into()], loopback.into()),
            Names::ServiceNetwork => {
                let ends = ["", ".default", ".default.svc", ".default.svc.cluster.local"];
                let all = ["kubernetes", "openshift"].iter();
                let dns = all.flat_map(|name| ends.map(|end| format!("{name}{end}")));
                (dns.collect(), cluster.service_addresses.clone())
            }
            Names::Api => (vec![cluster.domain.api()], vec![]),
            Names::ApiInt => (vec![cluster.domain.api_int()], vec![]),
            Names::MachineConfigServer => {
                let vips = cluster.api_vips.iter().map(IpAddr::to_string);
                (vips.chain([cluster.domain.api_int()]).collect(), cluster.api_vips.to_vec())
            }
            Names::EtcdMember => {
                let dns = [
                    "localhost",
                    "etcd.kube-system.svc",
                    "etcd.kube-system.svc.cluster.local",
                    "etcd.openshift-etcd.svc",
                    "etcd.openshift-etcd.svc.cluster.local",
                ];
                let ips = loopback.into_iter().chain(member.into_iter().flat_map(Host::addresses));
                (dns.map(String::from).into(), ips.collect())
            }
        }
    }
}
