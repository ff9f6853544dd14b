//! One etcd cluster, or two that call themselves by one name: `force-new-cluster` keeps the cluster's id, so an id proves nothing.
//!
//! In: what each master's own member says of the list, of the raft term and of its data at one revision. Out: whether all say the same.

use crate::{Lab, Result, conditions};
use seedling_steps::{Condition, Probe, wait_for};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// A member that was struck last is there again in a second or two, and elects with the others.
const AGREE_WITHIN: Duration = Duration::from_secs(60);

/// What one member says; its `etcdctl` asks nobody else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    pub node: String,
    pub cluster: u64,
    pub term: u64,
    pub leader: u64,
    /// Id, name and vote of each member of the list.
    pub list: BTreeSet<(u64, String, bool)>,
    /// The latest it has.
    pub revision: i64,
    pub data: Data,
}

/// HashKV: what was compacted up to which revision is part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Data {
    pub revision: i64,
    pub compacted: i64,
    pub hash: u64,
}

/// The first thing on which they are not one.
pub fn one_cluster(members: &[Member]) -> Result<(), String> {
    fn same<T: PartialEq + std::fmt::Debug>(
        what: &str,
        members: &[Member],
        of: impl Fn(&Member) -> T,
    ) -> Result<(), String> {
        if members.windows(2).all(|pair| of(&pair[0]) == of(&pair[1])) {
            return Ok(());
        }
        let said: Vec<_> = members.iter().map(|m| format!("{} says {:?}", m.node, of(m))).collect();
        Err(format!("etcd has no one {what}: {}", said.join(", ")))
    }
    same("cluster id", members, |m| m.cluster)?;
    same("member list", members, |m| m.list.clone())?;
    same("raft term", members, |m| m.term)?;
    same("leader", members, |m| m.leader)?;
    same("revision compacted to", members, |m| (m.data.revision, m.data.compacted))?;
    same("hash of its data", members, |m| m.data)?;
    let Some(first) = members.first() else { return Err("no etcd member was asked".into()) };
    let voters: Vec<_> = first.list.iter().filter(|(_, _, votes)| *votes).collect();
    if voters.len() != members.len() || first.list.len() != voters.len() {
        return Err(format!("{} masters, but etcd's members are {:?}", members.len(), first.list));
    }
    if !voters.iter().any(|(id, ..)| *id == first.leader) {
        return Err(format!("{:x} leads, and is not on the list", first.leader));
    }
    Ok(())
}

/// Asks all masters until they agree, for a minute at most: an election or a compaction may just be under way.
pub async fn agree(lab: &Lab) -> Result<()> {
    let condition = Condition::within(&conditions::ONE_CLUSTER, AGREE_WITHIN, "etcdctl member list, on each");
    let agreed = wait_for(&condition, Duration::from_millis(500), async || match ask_all(lab).await {
        Ok(members) => one_cluster(&members).map_or_else(Probe::Unmet, Probe::Met),
        Err(why) => Probe::Unmet(why),
    });
    Ok(agreed.await?)
}

async fn ask_all(lab: &Lab) -> Result<Vec<Member>, String> {
    let mut members = Vec::new();
    for master in lab.record.spec.inventory.masters() {
        let status = etcdctl(lab, &master.name, "endpoint status").await?;
        let list = etcdctl(lab, &master.name, "member list").await?;
        members.push(member(&master.name, &status, &list).ok_or_else(|| format!("{status} {list}"))?);
    }
    // All have come as far as the last of them.
    let revision = members.iter().map(|m| m.revision).min().unwrap_or_default();
    for member in &mut members {
        let asked = format!("endpoint hashkv --rev={revision}");
        let answer = etcdctl(lab, &member.node, &asked).await?;
        member.data = data(revision, &answer).ok_or_else(|| answer.to_string())?;
    }
    Ok(members)
}

async fn etcdctl(lab: &Lab, node: &str, command: &str) -> Result<Value, String> {
    let script = format!("crictl exec $(crictl ps -q --name '^etcd$') etcdctl {command} -w json");
    let machine = lab.machine(node).map_err(|e| e.to_string())?;
    let answer = machine.exec_output(&["sh", "-c", &script]).await.map_err(|e| e.to_string())?;
    serde_json::from_str(&answer).map_err(|e| format!("{e}: {answer}"))
}

fn member(node: &str, status: &Value, list: &Value) -> Option<Member> {
    let status = &status.get(0)?["Status"];
    let on_list = |m: &Value| {
        let votes = m["isLearner"].as_bool() != Some(true);
        Some((m["ID"].as_u64()?, m["name"].as_str().unwrap_or_default().to_string(), votes))
    };
    Some(Member {
        node: node.into(),
        cluster: status["header"]["cluster_id"].as_u64()?,
        term: status["raftTerm"].as_u64()?,
        leader: status["leader"].as_u64()?,
        list: list["members"].as_array()?.iter().map(on_list).collect::<Option<_>>()?,
        revision: status["header"]["revision"].as_i64()?,
        data: Data::default(),
    })
}

fn data(revision: i64, answer: &Value) -> Option<Data> {
    let said = &answer.get(0)?["HashKV"];
    // Left out while nothing was compacted.
    let compacted = said["compact_revision"].as_i64().unwrap_or_default();
    Some(Data { revision, compacted, hash: said["hash"].as_u64()? })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use serde_json::json;

    fn members() -> [Member; 3] {
        let list = [1, 2, 3].map(|id| (id, format!("master-{}", id - 1), true));
        [0, 1, 2].map(|n| Member {
            node: format!("master-{n}"),
            cluster: 7,
            term: 4,
            leader: 2,
            list: list.clone().into(),
            revision: 900 + n,
            data: Data { revision: 900, compacted: 100, hash: 55 },
        })
    }

    #[test]
    fn three_that_agree_are_one() {
        assert_eq!(one_cluster(&members()), Ok(()));
    }

    /// The old check looked at the id alone, which none of these changes.
    #[test]
    fn a_second_cluster_with_the_same_id_is_found() {
        let alone = || BTreeSet::from([(3, "master-2".to_string(), true)]);
        type Change = fn(&mut [Member; 3]);
        let cases: [(&str, Change); 6] = [
            ("raft term", |m| m[2].term = 5),
            ("leader", |m| m[2].leader = 3),
            ("hash of its data", |m| m[2].data.hash = 56),
            ("revision compacted to", |m| m[1].data.compacted = 200),
            ("cluster id", |m| m[0].cluster = 8),
            ("leads, and is not on the list", |m| m.iter_mut().for_each(|m| m.leader = 9)),
        ];
        for (want, change) in cases {
            let mut members = members();
            change(&mut members);
            let said = one_cluster(&members).unwrap_err();
            assert!(said.contains(want), "{want}: {said}");
        }
        let mut split = members();
        (split[2].list, split[2].leader) = (alone(), 3);
        assert!(one_cluster(&split).unwrap_err().contains("member list"));
        // All agree on a list that not all of them are on.
        let mut left = members();
        left.iter_mut().for_each(|m| (m.list, m.leader) = (alone(), 3));
        assert!(one_cluster(&left).unwrap_err().contains("3 masters"));
        let mut learner = members();
        learner
            .iter_mut()
            .for_each(|m| m.list = m.list.iter().map(|(i, n, _)| (*i, n.clone(), *i != 3)).collect());
        assert!(one_cluster(&learner).unwrap_err().contains("3 masters"));
        assert!(one_cluster(&[]).is_err());
    }

    #[test]
    fn etcdctls_answers_are_read() {
        let status = json!([{"Endpoint": "https://localhost:2379", "Status": {
            "header": {"cluster_id": 7, "member_id": 1, "revision": 900, "raft_term": 4}, "leader": 2, "raftTerm": 4}}]);
        let list =
            json!({"header": {}, "members": [{"ID": 1, "name": "master-0"}, {"ID": 2, "isLearner": true}]});
        let read = member("master-0", &status, &list).unwrap();
        assert_eq!((read.cluster, read.term, read.leader, read.revision), (7, 4, 2, 900));
        assert_eq!(read.list, [(1, "master-0".to_string(), true), (2, String::new(), false)].into());
        assert_eq!(member("master-0", &json!([]), &list), None);
        let answer = json!([{"HashKV": {"header": {}, "hash": 55, "compact_revision": 100}}]);
        assert_eq!(data(900, &answer), Some(Data { revision: 900, compacted: 100, hash: 55 }));
        assert_eq!(data(900, &json!([{"HashKV": {}}])), None);
    }
}
