//! Who may have a config: the machine of the inventory that asks from its own address, with its own token, while that is good.

use crate::proxy::Caller;
use seedling_types::{Admission, Host, Inventory, Role, admission};

pub(crate) struct Asked<'a> {
    pub caller: &'a Caller,
    pub pool: &'a str,
    /// Of the header `Authorization: Bearer …`.
    pub token: Option<&'a str>,
}

/// The machine at an address.
pub(crate) fn machine<'a>(caller: &Caller, inventory: &'a Inventory) -> Option<&'a Host> {
    inventory.by_address(caller.address()?)
}

/// Why it may have it, or why not. Headers that name a client (X-Forwarded-For and the like) are nobody's word.
pub(crate) fn admit(
    asked: &Asked,
    inventory: &Inventory,
    admission: &Admission,
) -> Result<&'static str, String> {
    if admission.open {
        return Ok("the server is open to everybody");
    }
    let Some(address) = asked.caller.address() else {
        return Err(
            "the load balancer does not say for whom it asks: it must send PROXY protocol version 2".into()
        );
    };
    let host = machine(asked.caller, inventory)
        .filter(|host| host.role != Role::Bootstrap)
        .ok_or_else(|| format!("no master or worker of the inventory has the address {address}"))?;
    let (name, role) = (&host.name, host.role.as_str());
    if asked.pool != role {
        return Err(format!("{name} is a {role}"));
    }
    let token = asked.token.ok_or("it brings no token: its pointer must be nodes/<name>.ign")?;
    let again = format!("`seedling node reissue {name}` makes a new one");
    let issued = admission.nodes.get(name).ok_or_else(|| format!("no token was made for {name}; {again}"))?;
    if !same(&admission::digest(token), &issued.sha256) {
        return Err(format!("this is not the token of {name}"));
    }
    match &issued.spent {
        Some(spent) => Err(format!("the token was spent for the certificate of {}; {again}", spent.at)),
        None => Ok("the token is good"),
    }
}

/// In constant time; and these are digests, of which a stranger cannot choose a prefix.
fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use seedling_types::NodeToken;
    use seedling_types::admission::{Issued, Spent};
    use std::net::{IpAddr, Ipv4Addr};

    const HOSTS: &str = "hosts:\n\
        - {name: bootstrap, role: bootstrap, mac: '52:54:00:00:00:01', address: 10.0.0.10}\n\
        - {name: master-0, role: master, mac: '52:54:00:00:00:02', address: 10.0.0.11, secondAddress: 'fd00::11'}\n\
        - {name: master-1, role: master, mac: '52:54:00:00:00:03', address: 10.0.0.12}\n\
        - {name: worker-0, role: worker, mac: '52:54:00:00:00:04', address: 10.0.0.21}\n\
        - {name: worker-1, role: worker, mac: '52:54:00:00:00:05', address: 10.0.0.22}\n\
        loadBalancers: [10.0.0.1]\n";

    fn from(last: u8) -> Caller {
        Caller::Direct(Ipv4Addr::new(10, 0, 0, last).into())
    }

    #[test]
    fn only_the_machine_itself_with_its_own_unspent_token() {
        let inventory = Inventory::parse(HOSTS).unwrap();
        let token = |n: u8| NodeToken::new([n; 32]);
        let issued = |n: u8, spent| Issued { sha256: token(n).digest(), spent };
        let spent = Some(Spent { at: "T".into(), key: "k".into() });
        let nodes = [
            ("bootstrap".into(), issued(10, None)),
            ("master-0".into(), issued(11, None)),
            ("master-1".into(), issued(12, spent)),
            ("worker-0".into(), issued(21, None)),
        ];
        let admission = Admission { open: false, nodes: nodes.into() };
        let (balancer, client) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 11]));
        let cases = [
            ("itself", from(11), "master", Some(11), Ok(())),
            ("through the balancer", Caller::Through { balancer, client }, "master", Some(11), Ok(())),
            ("a worker", from(21), "worker", Some(21), Ok(())),
            ("without a token", from(11), "master", None, Err("brings no token")),
            ("another's token", from(11), "master", Some(21), Err("not the token of master-0")),
            ("its token elsewhere", from(12), "master", Some(11), Err("not the token of master-1")),
            ("a stranger with a token", from(99), "master", Some(11), Err("no master or worker")),
            ("the bootstrap machine", from(10), "master", Some(10), Err("no master or worker")),
            ("a master as a worker", from(11), "worker", Some(11), Err("is a master")),
            ("a worker as a master", from(21), "master", Some(21), Err("is a worker")),
            ("a worker as another pool", from(21), "infra", Some(21), Err("is a worker")),
            ("a spent token", from(12), "master", Some(12), Err("spent")),
            ("no token was made", from(22), "worker", Some(22), Err("reissue worker-1")),
            ("the balancer itself", Caller::Balancer(balancer), "master", Some(11), Err("PROXY")),
            ("loopback", Caller::Direct(Ipv4Addr::LOCALHOST.into()), "master", Some(11), Err("127.0.0.1")),
            (
                "at its second address",
                Caller::Direct("fd00::11".parse().unwrap()),
                "master",
                Some(11),
                Ok(()),
            ),
            ("IPv6", Caller::Direct("::1".parse().unwrap()), "master", Some(11), Err("::1")),
        ];
        for (what, caller, pool, number, wanted) in cases {
            let bearer = number.map(|n| token(n).bearer());
            let token = bearer.as_ref().and_then(|b| b.strip_prefix("Bearer "));
            let asked = Asked { caller: &caller, pool, token };
            match (admit(&asked, &inventory, &admission), wanted) {
                (Ok(_), Ok(())) => {}
                (Err(said), Err(why)) => assert!(said.contains(why), "{what}: {said}"),
                (got, _) => panic!("{what}: {got:?}"),
            }
            let open = Admission { open: true, ..Admission::default() };
            assert!(admit(&asked, &inventory, &open).is_ok(), "{what}");
        }
    }
}
