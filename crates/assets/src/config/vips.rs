//! Virtual addresses of a platform: of the API and of ingress, one or one of each family, in a machine network.

use super::go;
use super::model::Networking;
use super::network::{machines, services};
use super::problem::Problem;
use ipnet::IpNet;
use std::net::IpAddr;

/// `apiVIPs` and `ingressVIPs` of a platform.
pub(super) fn check(
    net: &Networking,
    path: &str,
    lists: [(&[String], &str); 2],
    user_managed: bool,
    problems: &mut Vec<Problem>,
) {
    let [(api, _), (ingress, _)] = lists;
    for ((vips, field), (other, word, of)) in
        lists.into_iter().zip([(ingress, "API", "ingress"), (api, "Ingress", "API")])
    {
        let path = format!("{path}.{field}");
        match vips.len() {
            0 => {
                let why = format!("must specify at least one VIP for the {word}");
                problems.push(Problem::required(&path, why).hint("an unused address of a machine network"));
            }
            1 | 2 => {
                each_vip(net, &path, vips, if word == "API" { other } else { &[] }, user_managed, problems)
            }
            count => {
                problems.push(Problem::too_many(&path, count, 2).hint("one, or one of each family"));
                continue;
            }
        }
        if vips.is_empty() {
            continue;
        }
        if other.is_empty() {
            let (field, set) = if word == "API" { ("ingressVIPs", "API") } else { ("apiVIPs", "ingress") };
            let path =
                path.rsplit_once('.').map_or(field.to_string(), |(start, _)| format!("{start}.{field}"));
            problems.push(Problem::required(
                &path,
                format!("must specify VIP for {of}, when VIP for {set} is set"),
            ));
        }
        vip_families(net, &path, vips, word, problems);
    }
}

fn each_vip(
    net: &Networking,
    path: &str,
    vips: &[String],
    other: &[String],
    user_managed: bool,
    problems: &mut Vec<Problem>,
) {
    for vip in vips {
        let address: Option<IpAddr> = vip.parse().ok();
        if address.is_none() {
            problems.push(not_an_ip(path, vip));
        }
        if user_managed {
            continue;
        }
        for _ in other.iter().filter(|o| address.is_some() && o.parse().ok() == address) {
            let why = "VIP for API must not be one of the Ingress VIPs";
            problems.push(Problem::invalid_text(path, vip, why).hint("choose another address"));
        }
        if let Err(why) = in_machine_network(net, address) {
            problems
                .push(Problem::invalid_text(path, vip, why).hint("an unused address of a machine network"));
        }
    }
}

fn vip_families(net: &Networking, path: &str, vips: &[String], word: &str, problems: &mut Vec<Problem>) {
    let v6 = |vip: &String| matches!(vip.parse(), Ok(IpAddr::V6(_)));
    let family = |v6: bool| if v6 { "IPv6" } else { "IPv4" };
    if let [vip] = vips {
        let services = services(net);
        let dual = services.iter().any(|n| matches!(n, IpNet::V4(_)))
            && services.iter().any(|n| matches!(n, IpNet::V6(_)));
        let primary = machines(net).first().is_some_and(|n| matches!(n, IpNet::V6(_)));
        if dual && v6(vip) != primary {
            let why = format!(
                "VIP for the {word} must be of the same IP family with machine network's primary IP Family for dual-stack IPv4/IPv6"
            );
            problems.push(
                Problem::invalid_text(path, vip, why).hint(format!("choose an {} address", family(primary))),
            );
        }
    } else if let [a, b] = vips {
        let valid = vips.iter().all(|vip| vip.parse::<IpAddr>().is_ok());
        if !valid || v6(a) == v6(b) {
            let why = format!("If two {word} VIPs are given, one must be an IPv4 address, the other an IPv6");
            problems.push(Problem::invalid_json(path, &vips, why).hint("keep one, or one of each family"));
        }
    }
}

pub(super) fn not_an_ip(path: &str, text: &str) -> Problem {
    Problem::invalid_text(path, text, format!("{} is not a valid IP", go::quote(text)))
        .hint("write an address")
}

fn in_machine_network(net: &Networking, address: Option<IpAddr>) -> Result<(), String> {
    let machines = machines(net);
    if address.is_some_and(|address| machines.iter().any(|n| n.contains(&address))) {
        return Ok(());
    }
    let all: Vec<_> = machines.iter().map(ToString::to_string).collect();
    Err(format!("IP expected to be in one of the machine networks: {}", all.join(",")))
}
