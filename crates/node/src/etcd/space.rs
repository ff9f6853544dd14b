//! `seedling etcd free-space`: an etcd that is full takes writes again.
//!
//! A full etcd refuses every write, those of operators too: their leases end, and nobody in the cluster may repair it. So this runs on
//! a master and asks only etcd. Killed anywhere, it can run again.

use crate::{Error, Result};
use seedling_cluster::etcd::{Etcd, EtcdTls, Member, Space};
use std::collections::BTreeSet;
use std::time::Duration;

/// A large database on a slow disk is copied.
const DEFRAGMENTED_WITHIN: Duration = Duration::from_secs(600);
/// Of the quota: more than this is full again before anybody can delete something.
const ROOM_BELOW_PERCENT: u64 = 90;

/// A member, before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freed {
    pub name: String,
    pub before: Space,
    pub after: Space,
}

/// What a member says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    member: Member,
    leads: bool,
    /// None: it does not answer.
    space: Option<Space>,
}

/// `endpoint`: of any member.
pub async fn free_space(endpoint: &str, tls: &EtcdTls, say: &dyn Fn(&str)) -> Result<Vec<Freed>> {
    let mut etcd = Etcd::connect_for(DEFRAGMENTED_WITHIN, &[endpoint.to_string()], tls).await?;
    let members = etcd.agreed_members().await?;
    let full = etcd.full_members().await?;
    let turns = turns(look(&members, tls).await, &full)?;
    let revision = etcd.revision().await?;
    etcd.forget_before(revision).await?;
    say(&format!("etcd has forgotten what its keys were before revision {revision}"));
    let mut freed = Vec::new();
    for Seen { member, space, .. } in &turns {
        let Some(before) = *space else {
            say(&format!("{}: does not answer, and is left as it is", member.name));
            continue;
        };
        let mut etcd = Etcd::connect_for(DEFRAGMENTED_WITHIN, &member.client_urls, tls).await?;
        etcd.defragment().await?;
        let after = etcd.status().await?.space;
        say(&format!("{}: {} MB, {} MB before", member.name, mb(after.file), mb(before.file)));
        freed.push(Freed { name: member.name.clone(), before, after });
    }
    has_room(&freed)?;
    for id in full {
        etcd.is_no_longer_full(id).await?;
        say(&format!("member {id:x} is no longer full"));
    }
    Ok(freed)
}

async fn look(members: &[Member], tls: &EtcdTls) -> Vec<Seen> {
    let asked = members.iter().map(|member| async move {
        let status = async { Etcd::connect(&member.client_urls, tls).await.ok()?.status().await.ok() }.await;
        let leads = status.is_some_and(|s| s.leader == member.id);
        Seen { member: member.clone(), leads, space: status.map(|s| s.space) }
    });
    futures::future::join_all(asked).await
}

/// Who is defragmented after whom: the leader last, so that the lead moves once at most. A member stops for as long as it takes: while
/// another one is down that would stop the cluster, which only a full one bears, since it takes no writes anyway.
fn turns(mut seen: Vec<Seen>, full: &BTreeSet<u64>) -> Result<Vec<Seen>> {
    let silent: Vec<_> = seen.iter().filter(|s| s.space.is_none()).map(|s| s.member.name.as_str()).collect();
    if !silent.is_empty() && full.is_empty() {
        let silent = silent.join(", ");
        return Err(Error::Seen(format!(
            "{silent} does not answer, and each member stops while it is defragmented: repair that first"
        )));
    }
    seen.sort_by_key(|s| s.leads);
    Ok(seen)
}

/// Otherwise it is full again at once.
fn has_room(freed: &[Freed]) -> Result<()> {
    let percent = |space: &Space| (space.file * 100).checked_div(space.quota).unwrap_or_default();
    match freed.iter().find(|f| percent(&f.after) >= ROOM_BELOW_PERCENT) {
        None => Ok(()),
        Some(Freed { name, after, .. }) => Err(Error::Seen(format!(
            "{name} still has {} MB of the {} MB that it may have: delete keys that nobody needs (etcdctl del in etcd's container \
             works while etcd is full), then run this again",
            mb(after.file),
            mb(after.quota)
        ))),
    }
}

fn mb(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn seen(name: &str, leads: bool, answers: bool) -> Seen {
        let member =
            Member { id: 1, name: name.into(), peer_urls: vec![], client_urls: vec![], learner: false };
        Seen { member, leads, space: answers.then_some(Space::default()) }
    }

    #[test]
    fn the_leader_is_last() {
        let all = vec![seen("a", true, true), seen("b", false, true), seen("c", false, true)];
        let turns = turns(all, &BTreeSet::new()).unwrap();
        assert_eq!(turns.iter().map(|s| s.member.name.as_str()).collect::<Vec<_>>(), ["b", "c", "a"]);
    }

    #[test]
    fn a_cluster_that_takes_writes_is_not_stopped() {
        let all = vec![seen("a", true, true), seen("b", false, false)];
        assert!(
            turns(all.clone(), &BTreeSet::new()).unwrap_err().to_string().starts_with("b does not answer")
        );
        assert_eq!(turns(all, &BTreeSet::from([7])).unwrap().len(), 2);
    }

    #[test]
    fn it_is_not_said_to_have_room_when_it_has_none() {
        let after = |file| Freed {
            name: "a".into(),
            before: Space::default(),
            after: Space { file, used: file, quota: 100 << 20 },
        };
        assert!(has_room(&[after(89 << 20)]).is_ok());
        assert!(
            has_room(&[after(1), after(90 << 20)]).unwrap_err().to_string().contains("90 MB of the 100 MB")
        );
    }
}
