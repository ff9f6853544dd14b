//! What the facts amount to. Pure.

use super::{ADDRESS, ELSEWHERE, FIELDS, FILES, FRONT, Facts, RUNS};
use crate::preflight::Wanted;
use crate::{Finding, Outcome};
use seedling_types::helper::HelperServer;
use seedling_types::{HelperConfig, Role};
use std::net::IpAddr;

pub fn judge(facts: &Facts) -> Vec<Finding> {
    let config = &facts.config;
    let mut all = vec![Finding::of(&FIELDS, "helper.yaml", "its fields fit together", fields(config))];
    all.extend(files(facts));
    all.push(address(facts));
    all.extend(facts.elsewhere.iter().map(|asked| {
        let on = format!("{} by {}", asked.name, asked.server);
        let hand = format!("dig @{} {}", asked.server, asked.name);
        match (&asked.answer, &asked.wanted) {
            (Err(why), _) => Finding::new(&ELSEWHERE, &on, Outcome::Ok, format!("no answer: {why}")),
            (Ok(found), _) if found.is_empty() => {
                Finding::new(&ELSEWHERE, &on, Outcome::Ok, "it knows no such name")
            }
            (Ok(found), Wanted::OneOf(wanted)) => {
                let known: Vec<_> = wanted.iter().map(IpAddr::to_string).collect();
                let wrong = found.iter().filter(|address| !known.contains(address));
                let wrong =
                    wrong.map(|address| format!("it says {address}, and ours is {}", known.join(", ")));
                Finding::of(&ELSEWHERE, &on, "it says the same", wrong.collect())
            }
            (Ok(found), _) => Finding::new(&ELSEWHERE, &on, Outcome::Ok, found.join(", ")),
        }
        .seen(asked.answer.clone().map(|found| found.join("\n")).unwrap_or_else(|why| why), hand)
    }));
    let fronts = facts.fronts.iter().filter(|front| front.accepts);
    let wrong: Vec<_> = fronts
        .map(|front| {
            format!("{} leads to {}, which accepts connections on {}", front.name, front.address, front.port)
        })
        .collect();
    if !config.without.contains(&HelperServer::LoadBalancer) {
        all.push(Finding::of(&FRONT, &config.cluster_domain.api(), "no other balancer answers", wrong));
    }
    all.push(running(facts));
    all
}

/// What does not fit together.
pub(super) fn fields(config: &HelperConfig) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut expect = |met: bool, message: String| {
        if !met {
            wrong.push(message);
        }
    };
    let networks: Vec<_> = config.networks().collect();
    let network = networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    let address = config.address;
    let inside = |a: IpAddr| {
        networks
            .iter()
            .any(|n| n.contains(&a) && a != n.network() && (n.addr().is_ipv6() || a != n.broadcast()))
    };
    expect(
        config.network.contains(&address) && inside(address),
        format!("address: {address} is not in network {}", config.network),
    );
    if let Some(second) = config.second_address {
        expect(
            second.addr().is_ipv4() != address.is_ipv4(),
            format!("secondAddress: {second} is of the same family as address"),
        );
    }
    expect(
        config.addresses().all(|own| config.inventory.load_balancers.contains(&own))
            || config.without.contains(&HelperServer::LoadBalancer),
        format!(
            "inventory.loadBalancers: add {address}, or the machine-config server does not believe the helper's balancer"
        ),
    );
    if let Some(router) = config.router {
        expect(inside(router.into()), format!("router: {router} is not in network {network}"));
    }
    for host in &config.inventory.hosts {
        let near = host.addresses().all(inside) || !config.relays.is_empty();
        expect(
            near,
            format!("{}: {} is not in network {network}, and there are no relays", host.name, host.address),
        );
        expect(
            config.addresses().all(|own| !host.is_at(own)),
            format!("{}: {} is the helper's own address", host.name, host.address),
        );
    }
    if let Some(pool) = &config.pool {
        let (from, to) = (pool.from, pool.to);
        expect(from <= to, format!("pool: {from} is behind {to}"));
        expect(
            inside(from.into()) && inside(to.into()),
            format!("pool: {from} to {to} is not in network {network}"),
        );
    }
    for forwarder in config.forwarders.iter().filter(|f| config.addresses().any(|own| own == **f)) {
        expect(
            false,
            format!("forwarders: {forwarder} is the helper itself: a question would go round for ever"),
        );
    }
    expect(config.inventory.role(Role::Master).next().is_some(), "inventory: there is no master".into());
    if let Some(boot) = &config.boot {
        let named = boot.hosts.iter().flatten().chain(boot.install_devices.keys());
        for name in named.filter(|name| config.inventory.by_name(name).is_none()) {
            expect(false, format!("boot: {name} is not in the inventory"));
        }
    }
    wrong
}

fn files(facts: &Facts) -> Vec<Finding> {
    let one = |needed: &super::Needed| {
        let wrong = if needed.there { vec![] } else { vec![format!("there is no {}", needed.what)] };
        Finding::of(&FILES, &needed.path, needed.what.clone(), wrong)
            .seen("", format!("ls -l {}", needed.path))
            .or_next(|| needed.make.to_string())
    };
    facts.files.iter().map(one).collect()
}

fn address(facts: &Facts) -> Finding {
    let (address, interface) = (facts.config.address, &facts.config.interface);
    let of = |name: &str| {
        facts.locals.iter().filter(|(of, _)| of == name).map(|(_, a)| a.to_string()).collect::<Vec<_>>()
    };
    let on: Vec<_> =
        facts.locals.iter().filter(|(_, a)| *a == address).map(|(name, _)| name.as_str()).collect();
    let wrong = match on.as_slice() {
        [] => vec![match of(interface).as_slice() {
            [] => format!("no interface has {address}, and {interface} has no address or does not exist"),
            others => format!("no interface has {address}; {interface} has {}", others.join(", ")),
        }],
        names if names.contains(&interface.as_str()) => vec![],
        names => vec![format!("{address} is on {}, and DHCP would answer on {interface}", names.join(", "))],
    };
    let seen: String = facts.locals.iter().map(|(name, address)| format!("{name} {address}\n")).collect();
    Finding::of(&ADDRESS, &format!("{interface} {address}"), "this machine has it", wrong)
        .seen(seen, "ip address")
}

fn running(facts: &Facts) -> Finding {
    let on = facts.config.address.to_string();
    let own: Vec<_> = facts.config.addresses().map(|address| address.to_string()).collect();
    let Some(running) = &facts.running else {
        return Finding::new(&RUNS, &on, Outcome::Ok, "it does not run yet");
    };
    let mut wrong = Vec::new();
    if !running.up_to_date {
        wrong.push("it goes by another config than the one on disk".to_string());
    }
    if let Err(why) = &running.http {
        wrong.push(format!("HTTP does not answer: {why}"));
    }
    match &running.dns {
        Some(Err(why)) => wrong.push(format!("DNS does not answer: {why}")),
        // Its own addresses, and nobody else's.
        Some(Ok(found)) if found.is_empty() || found.iter().any(|one| !own.contains(one)) => {
            wrong.push(format!("DNS says that api-int is {}", found.join(", ")))
        }
        _ => {}
    }
    let well = format!("process {} answers, by this config", running.pid);
    Finding::of(&RUNS, &on, well, wrong)
        .seen("", "systemctl status seedling-helper; journalctl -u seedling-helper")
}
