//! What a bring-up full of trouble proves. Pure.

use crate::probe::Report;
use serde::{Deserialize, Serialize};

/// What was seen of one bring-up.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Why it did not grow, if it did not.
    pub not_grown: Option<String>,
    pub report: Option<Report>,
    /// Whether etcd's members are one cluster at the end, or why not.
    pub one_cluster: Result<(), String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "verdict", content = "why")]
pub enum Verdict {
    /// Struck, and nothing was lost.
    Green,
    Red(String),
    /// The victim was not there: this proves nothing.
    Missed(String),
}

/// Of one case: how its strike went, and what became of the cluster. One that did not get its turn before others of its
/// bring-up broke the cluster proves nothing; a cluster that broke without any strike is everybody's.
pub fn judge(strike: &Result<String, String>, any_struck: bool, seen: &Seen) -> Verdict {
    match (strike, seen.broken()) {
        (Ok(_), None) => Verdict::Green,
        (Ok(_), Some(why)) => Verdict::Red(why),
        (Err(_), Some(why)) if !any_struck => Verdict::Red(why),
        (Err(why), _) => Verdict::Missed(why.clone()),
    }
}

impl Seen {
    /// What is wrong, if anything.
    pub fn broken(&self) -> Option<String> {
        if let Some(why) = &self.not_grown {
            return Some(why.clone());
        }
        let Some(report) = &self.report else { return Some("the prober left no report".into()) };
        if !report.kept_everything() {
            return Some(report.summary());
        }
        self.one_cluster.clone().err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Bad, Writes};

    #[test]
    fn green_needs_a_strike_and_a_whole_cluster() {
        let struck: Result<String, String> = Ok("killed".into());
        let missed: Result<String, String> = Err("no etcd".into());
        let writes = Writes { operations: 9, unknown: 1, keys: 2, judged: 2, red: vec![] };
        let probed = || Report {
            acknowledged: 5,
            clusters: ["a".to_string()].into(),
            writes: writes.clone(),
            ..Report::default()
        };
        let well = || Seen { not_grown: None, report: Some(probed()), one_cluster: Ok(()) };
        let lost = Report { lost: vec![4], ..probed() };
        let red = |seen: Seen| matches!(judge(&struck, true, &seen), Verdict::Red(_));
        assert_eq!(judge(&struck, true, &well()), Verdict::Green);
        assert_eq!(judge(&missed, true, &well()), Verdict::Missed("no etcd".into()));
        assert!(red(Seen { not_grown: Some("no progress".into()), ..well() }));
        assert!(red(Seen { report: None, ..well() }));
        assert!(red(Seen { report: Some(lost), ..well() }));
        // Nothing acknowledged is missing, and yet two histories: only this finds it.
        let bad = Bad { key: 1, at_first: vec![None], history: vec![] };
        let split = Report { writes: Writes { red: vec![bad], ..writes.clone() }, ..probed() };
        assert!(red(Seen { report: Some(split), ..well() }));
        assert!(red(Seen { report: Some(Report { acknowledged: 0, ..probed() }), ..well() }));
        assert!(red(Seen { one_cluster: Err("two leaders".into()), ..well() }));
        let broken = Seen { report: None, ..well() };
        assert!(matches!(judge(&missed, true, &broken), Verdict::Missed(_)));
        assert!(matches!(judge(&missed, false, &broken), Verdict::Red(_)));
    }
}
