//! Trouble on single links: what a machine sends to another is lost, all of it or a share, one way or both.
//!
//! Packets are dropped where they arrive, so that the sender notices nothing but silence; by a table of nftables of our own, in the
//! network namespaces of the machines and the helper. A namespace that goes takes its table along.

use super::Fault;
use crate::{Lab, LabError, Result, all};
use futures::future::join_all;
use seedling_machines::network::Network;
use seedling_types::{Inventory, Role};
use std::net::IpAddr;

/// As the other end of a link, and as what is struck.
pub const HELPER: &str = "helper";
/// All masters but the struck one.
pub const MASTERS: &str = "masters";
/// Of what comes over a lossy link, in hundredths.
const SHARE: u8 = 30;
/// Loaded, it leaves nothing of what was loaded before.
pub const HEALED: &str = "table inet seedling_chaos\ndelete table inet seedling_chaos\n";

/// Somebody on the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// The helper has none.
    pub node: Option<String>,
    pub address: IpAddr,
}

/// What one of them does not get any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pub at: Party,
    pub from: Vec<IpAddr>,
    /// In hundredths; 100 is everything.
    pub share: u8,
}

pub(super) fn is_of_links(fault: Fault) -> bool {
    matches!(fault, Fault::CutLink | Fault::Deaf | Fault::Mute | Fault::Lossy)
}

/// The other ends of a link of `on` that a word stands for; without a word, all of them.
pub(super) fn peers(
    word: Option<&str>,
    on: &str,
    inventory: &Inventory,
    helper: IpAddr,
) -> Result<Vec<Party>, String> {
    let others = inventory.hosts.iter().filter(|host| host.name != on);
    let chosen = others.filter(|host| match word {
        None => true,
        Some(MASTERS) => host.role == Role::Master,
        Some(name) => host.name == name,
    });
    let mut parties: Vec<_> =
        chosen.map(|host| Party { node: Some(host.name.clone()), address: host.address }).collect();
    if matches!(word, None | Some(HELPER)) {
        parties.push(Party { node: None, address: helper });
    }
    match parties.is_empty() {
        true => Err(format!("{on} has no link to {:?}", word.unwrap_or_default())),
        false => Ok(parties),
    }
}

/// Who loses what.
pub fn plan(fault: Fault, on: &Party, peers: &[Party]) -> Vec<Loss> {
    let share = if fault == Fault::Lossy { SHARE } else { 100 };
    let comes = Loss { at: on.clone(), from: peers.iter().map(|p| p.address).collect(), share };
    let goes = peers.iter().map(|peer| Loss { at: peer.clone(), from: vec![on.address], share });
    match fault {
        Fault::CutLink | Fault::Lossy => std::iter::once(comes).chain(goes).collect(),
        Fault::Deaf => vec![comes],
        Fault::Mute => goes.collect(),
        _ => Vec::new(),
    }
}

/// Before anything else looks at a packet. At the helper only what is for itself: it also has the bridge, and some kernels show it
/// what passes there.
pub fn rules(loss: &Loss) -> String {
    let from: Vec<_> = loss.from.iter().map(ToString::to_string).collect();
    let family = if loss.at.address.is_ipv4() { "ip" } else { "ip6" };
    let to =
        if loss.at.node.is_none() { format!(" {family} daddr {}", loss.at.address) } else { String::new() };
    let some =
        if loss.share < 100 { format!(" numgen random mod 100 < {}", loss.share) } else { String::new() };
    format!(
        "{HEALED}table inet seedling_chaos {{\n chain lost {{\n  type filter hook prerouting priority raw; policy accept;\n  \
         {family} saddr {{ {} }}{to}{some} drop\n }}\n}}\n",
        from.join(", ")
    )
}

/// Of a machine of this lab.
fn party(lab: &Lab, on: &str) -> Result<Party> {
    lab.machine(on)?;
    let host = lab.record.spec.inventory.by_name(on);
    let address = host.map_or(lab.record.spec.helper, |host| host.address);
    Ok(Party { node: Some(on.into()), address })
}

pub(super) async fn break_links(lab: &Lab, fault: Fault, on: &str, peer: Option<&str>) -> Result<()> {
    let spec = &lab.record.spec;
    let peers = peers(peer, on, &spec.inventory, spec.helper).map_err(LabError::Strike)?;
    let losses = plan(fault, &party(lab, on)?, &peers);
    let network = Network::of_lab(lab.name());
    let loaded =
        losses.iter().map(async |loss| Ok(network.load_rules(loss.at.node.as_deref(), &rules(loss)).await?));
    all(join_all(loaded).await).map(drop)
}

/// Repairs all links of a lab.
pub(super) async fn heal_links(lab: &Lab) -> Result<()> {
    let network = Network::of_lab(lab.name());
    let nodes = lab.record.spec.inventory.hosts.iter().map(|host| Some(host.name.as_str()));
    let healed = nodes.chain([None]).map(async |node| Ok(network.load_rules(node, HEALED).await?));
    all(join_all(healed).await).map(drop)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const BRIDGE: IpAddr = crate::HELPER;

    fn names(parties: &[Party]) -> Vec<&str> {
        parties.iter().map(|p| p.node.as_deref().unwrap_or(HELPER)).collect()
    }

    #[test]
    fn a_word_names_the_other_end() {
        let inventory = crate::default_inventory(3);
        let of = |word, on| peers(word, on, &inventory, BRIDGE);
        assert_eq!(names(&of(None, "master-1").unwrap()), ["bootstrap", "master-0", "master-2", HELPER]);
        assert_eq!(names(&of(Some(MASTERS), "bootstrap").unwrap()), ["master-0", "master-1", "master-2"]);
        assert_eq!(names(&of(Some(MASTERS), "master-0").unwrap()), ["master-1", "master-2"]);
        assert_eq!(names(&of(Some(HELPER), "master-0").unwrap()), [HELPER]);
        assert_eq!(names(&of(Some("bootstrap"), "master-0").unwrap()), ["bootstrap"]);
        assert!(of(Some("master-0"), "master-0").is_err(), "it has no link to itself");
        assert!(of(Some("master-9"), "master-0").is_err());
    }

    #[test]
    fn each_fault_loses_its_way() {
        let party =
            |name: &str, last| Party { node: Some(name.into()), address: IpAddr::from([10, 0, 0, last]) };
        let (on, a, helper) = (party("m", 1), party("a", 2), Party { node: None, address: BRIDGE });
        let peers = [a.clone(), helper.clone()];
        let said = |fault| -> Vec<_> {
            let losses = plan(fault, &on, &peers);
            losses.into_iter().map(|l| (l.at.node.unwrap_or_default(), l.from.len(), l.share)).collect()
        };
        let to_all = || vec![("a".to_string(), 1, 100), (String::new(), 1, 100)];
        assert_eq!(said(Fault::Deaf), [("m".to_string(), 2, 100)], "it hears nobody, and all hear it");
        assert_eq!(said(Fault::Mute), to_all());
        assert_eq!(said(Fault::CutLink), [vec![("m".to_string(), 2, 100)], to_all()].concat());
        assert!(said(Fault::Lossy).iter().all(|(_, _, share)| *share == 30) && said(Fault::Lossy).len() == 3);
        assert!(said(Fault::Kill).is_empty());
    }

    #[test]
    fn rules_are_whole_files_that_replace_what_was_there() {
        let node = Party { node: Some("m".into()), address: IpAddr::from([10, 0, 0, 1]) };
        let from = vec![IpAddr::from([10, 0, 0, 2]), IpAddr::from([10, 0, 0, 3])];
        let cut = rules(&Loss { at: node, from: from.clone(), share: 100 });
        assert!(cut.starts_with(HEALED), "{cut}");
        assert!(cut.contains("ip saddr { 10.0.0.2, 10.0.0.3 } drop"), "{cut}");
        let helper = Party { node: None, address: BRIDGE };
        let lossy = rules(&Loss { at: helper, from, share: 30 });
        let want = "ip saddr { 10.0.0.2, 10.0.0.3 } ip daddr 192.168.100.1 numgen random mod 100 < 30 drop";
        assert!(lossy.contains(want), "{lossy}");
    }
}
