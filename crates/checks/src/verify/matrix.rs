//! Who must reach whom: the connection matrix of a bring-up, and of what is left after it. Pure.

use seedling_types::{Host, Role, ports};

/// In the place of a machine's name and address: where nodes look for the API.
pub const BALANCER: &str = "balancer";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub to: String,
    /// None: the node knows the balancer by name.
    pub address: Option<String>,
    pub port: u16,
}

/// `hosts` are those that take part; a bootstrap machine that has left does not.
pub fn wanted(from: &Host, hosts: &[Host]) -> Vec<Wanted> {
    use Role::{Bootstrap, Master, Worker};
    let mut all = Vec::new();
    for to in hosts.iter().filter(|to| to.name != from.name) {
        let reach: &[u16] = match (from.role, to.role) {
            (Bootstrap, Master) => &[ports::ETCD_CLIENT, ports::ETCD_PEER, ports::API, ports::KUBELET],
            (Master, Bootstrap) => &[ports::MCS, ports::ETCD_CLIENT, ports::ETCD_PEER],
            (Master, Master) => &[ports::ETCD_CLIENT, ports::ETCD_PEER, ports::API, ports::KUBELET],
            // An API server asks kubelets for logs and for shells.
            (Master, Worker) => &[ports::KUBELET],
            _ => &[],
        };
        let address = Some(to.address.to_string());
        all.extend(reach.iter().map(|&port| Wanted { to: to.name.clone(), address: address.clone(), port }));
    }
    if from.role != Bootstrap {
        let balanced = [ports::API, ports::MCS];
        all.extend(balanced.map(|port| Wanted { to: BALANCER.into(), address: None, port }));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, role: Role, last: u8) -> Host {
        Host {
            name: name.into(),
            role,
            mac: String::new(),
            address: [10, 0, 0, last].into(),
            second_address: None,
        }
    }

    #[test]
    fn the_seeds_matrix() {
        let hosts = [
            host("bootstrap", Role::Bootstrap, 1),
            host("m0", Role::Master, 2),
            host("m1", Role::Master, 3),
            host("w0", Role::Worker, 4),
        ];
        let said = |n: usize| {
            let all = wanted(&hosts[n], &hosts).into_iter();
            all.map(|w| format!("{}:{}", w.to, w.port)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(said(0), "m0:2379 m0:2380 m0:6443 m0:10250 m1:2379 m1:2380 m1:6443 m1:10250");
        assert_eq!(
            said(1),
            "bootstrap:22623 bootstrap:2379 bootstrap:2380 m1:2379 m1:2380 m1:6443 m1:10250 w0:10250 balancer:6443 balancer:22623"
        );
        assert_eq!(said(3), "balancer:6443 balancer:22623");
    }
}
