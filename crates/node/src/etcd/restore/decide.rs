//! Whether a restore may be ordered, and what a person is asked before. Pure.

use super::backup::Backup;
use seedling_cluster::recovery::Tail;
use std::collections::{BTreeMap, BTreeSet};

/// What is seen on this master.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub node: String,
    /// Masters of the inventory beside this one.
    pub others: Vec<String>,
    /// Those whose etcd answers, with or without a leader.
    pub answer: Vec<String>,
    /// This member, if it answers.
    pub own: Option<Own>,
    /// None: there is no data.
    pub log: Option<Result<Log, String>>,
    /// Clusters that this machine was part of, or knows to be given up.
    pub known: BTreeSet<u64>,
    /// Static pods and their revisions.
    pub runs: BTreeMap<String, i64>,
    pub backup: Option<Backup>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Own {
    pub has_leader: bool,
    pub voters: usize,
    pub revision: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Log {
    pub tail: Tail,
    pub written: String,
}

/// What is said before anything is done; or why nothing is.
pub(super) fn question(seen: &Seen) -> Result<String, String> {
    if !seen.answer.is_empty() {
        let them = seen.answer.join(" and ");
        return Err(format!(
            "{them} still answers: a restore beside it would make a second cluster. If it and this master are a majority, nothing is lost; \
             otherwise switch it off first: it joins the restored cluster when it comes back"
        ));
    }
    if let Some(own) = seen.own
        && own.has_leader
        && (seen.backup.is_none() || own.voters > 1)
    {
        return Err(match seen.backup {
            None => "this member has a leader: etcd works, and nothing has to be restored".into(),
            Some(_) => {
                "this member has a leader: a majority still answers. Switch the other masters off first"
                    .into()
            }
        });
    }
    let what = match &seen.backup {
        Some(backup) => of_backup(seen, backup)?,
        None => of_own_data(seen)?,
    };
    let others = if seen.others.is_empty() { String::new() } else { lost(&seen.others.join(" and ")) };
    Ok(format!("{what}{others}"))
}

fn lost(others: &str) -> String {
    format!(
        "\n{others} must be off, or lost for good, and stay so until this is done. After that they come back one by one or together, with \
         new disks or old ones, and join this master; what is on old disks is moved aside there. They must not come back while this master is \
         off: two of three with old disks, and nobody to tell them, would go on as the old cluster."
    )
}

fn of_own_data(seen: &Seen) -> Result<String, String> {
    let Some(log) = &seen.log else {
        return Err(
            "this master has no etcd data: run this on one that has, or name a snapshot (--snapshot)".into(),
        );
    };
    let revision = seen.own.map(|own| format!(" (revision {})", own.revision)).unwrap_or_default();
    let has = match log {
        Ok(Log { tail, written }) => format!(
            "up to entry {}{revision}, last written {written}; {} of them the lost members may not have agreed to",
            tail.last,
            tail.may_lose()
        ),
        Err(e) => format!("as far as its log can be read{revision}: {e}"),
    };
    Ok(format!(
        "etcd goes on as a new cluster of {} alone, with all that is in this member's data: {has}.\nLOST is whatever the other members \
         agreed on without this one, and that may be writes that clients were told are kept. If another master's disk can be saved, compare \
         first: the one with the higher number has more.",
        seen.node
    ))
}

fn of_backup(seen: &Seen, backup: &Backup) -> Result<String, String> {
    let from = format!("{} of {} on {}", backup.revision, backup.made, backup.node);
    let of_this = seen.known.is_empty()
        || seen.known.contains(&backup.cluster)
        || backup.given_up.iter().any(|cluster| seen.known.contains(cluster));
    if !of_this {
        return Err(format!(
            "the snapshot is of another cluster: {:x}, and this machine was part of {}",
            backup.cluster,
            seen.known.iter().map(|id| format!("{id:x}")).collect::<Vec<_>>().join(", ")
        ));
    }
    // API servers read Secrets with the keys of their revision, and a pod's files are for its own machine.
    if backup.node != seen.node && backup.runs != seen.runs {
        return Err(format!(
            "the snapshot was made on {}, which ran other revisions of its static pods ({}) than {} does now ({}): run this on {}",
            backup.node,
            listed(&backup.runs),
            seen.node,
            listed(&seen.runs),
            backup.node
        ));
    }
    let unknown = match seen.known.is_empty() {
        true => "\nThis machine has no etcd data: whether the snapshot is of its cluster cannot be seen.",
        false => "",
    };
    let static_pods = match backup.runs == seen.runs {
        true => "",
        false => "\nThe static pods of that time are put back; those of now are moved aside.",
    };
    Ok(format!(
        "etcd goes back to revision {from}, as a new cluster of {} alone.\nLOST is everything that was written since.{unknown}{static_pods}",
        seen.node
    ))
}

fn listed(runs: &BTreeMap<String, i64>) -> String {
    runs.iter().map(|(pod, revision)| format!("{pod} {revision}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(revision: i64) -> BTreeMap<String, i64> {
        [("etcd-pod".to_string(), revision)].into()
    }
    fn alone() -> Seen {
        let tail = Tail { commit: 7, last: 9, term: 2, changes_members: false };
        Seen {
            node: "master-2".into(),
            others: vec!["master-0".into(), "master-1".into()],
            log: Some(Ok(Log { tail, written: "2026-11-17T04:00:00Z".into() })),
            known: [5].into(),
            runs: runs(3),
            ..Seen::default()
        }
    }
    fn backup(node: &str, cluster: u64, revision: i64) -> Option<Backup> {
        Some(Backup { node: node.into(), cluster, revision: 40, runs: runs(revision), ..Backup::default() })
    }

    #[test]
    fn a_restore_is_refused_where_it_would_make_two_clusters_or_is_not_needed() {
        let own = |has_leader, voters| Some(Own { has_leader, voters, revision: 40 });
        let snapshot = || backup("master-2", 5, 3);
        for (seen, expected) in [
            (alone(), "LOST is whatever the other members"),
            (Seen { own: own(false, 3), ..alone() }, "entry 9 (revision 40), last written 2026"),
            (Seen { own: own(true, 3), ..alone() }, "!nothing has to be restored"),
            (Seen { own: own(true, 1), ..alone() }, "!nothing has to be restored"),
            (Seen { answer: vec!["master-0".into()], ..alone() }, "!master-0 still answers"),
            (Seen { answer: vec!["master-0".into()], backup: snapshot(), ..alone() }, "!still answers"),
            (Seen { log: None, ..alone() }, "!no etcd data"),
            (Seen { log: Some(Err("torn".into())), ..alone() }, "as far as its log can be read: torn"),
            (Seen { backup: snapshot(), ..alone() }, "goes back to revision 40"),
            (Seen { backup: snapshot(), own: own(true, 3), ..alone() }, "!a majority still answers"),
            (Seen { backup: snapshot(), own: own(true, 1), others: vec![], ..alone() }, "written since."),
            (Seen { backup: backup("master-2", 6, 3), ..alone() }, "!of another cluster: 6"),
            (
                Seen { backup: backup("master-2", 6, 3), log: None, known: [].into(), ..alone() },
                "cannot be seen",
            ),
            (Seen { backup: backup("master-2", 5, 2), ..alone() }, "static pods of that time are put back"),
            (
                Seen { backup: backup("master-0", 5, 3), ..alone() },
                "on master-0, as a new cluster of master-2",
            ),
            (Seen { backup: backup("master-0", 5, 2), ..alone() }, "!run this on master-0"),
        ] {
            let said = question(&seen).unwrap_or_else(|refusal| format!("!{refusal}"));
            let refused = expected.strip_prefix('!');
            assert_eq!(refused.is_some(), said.starts_with('!'), "{said}");
            assert!(said.contains(refused.unwrap_or(expected)), "{said}");
        }
    }

    #[test]
    fn a_snapshot_of_before_or_after_a_restore_is_of_the_same_cluster() {
        let of = |known: &[u64], backup: Backup| {
            question(&Seen { known: known.iter().copied().collect(), backup: Some(backup), ..alone() })
                .is_ok()
        };
        let Some(made) = backup("master-2", 6, 3) else { return };
        assert!(of(&[5, 6], made.clone()), "this machine knows that 6 was given up");
        assert!(
            of(&[5], Backup { given_up: [5].into(), ..made.clone() }),
            "5 was given up before it was made"
        );
        assert!(!of(&[5], made));
    }
}
