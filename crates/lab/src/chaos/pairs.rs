//! Two strikes on the restore of a lost majority: one brings it about, the other comes while it happens.
//!
//! Of two voters, bootstrap and the only master, the master is lost for longer than the cluster waits, and comes back while bootstrap
//! continues alone.

use super::{Case, Step};
use seedling_types::Inventory;
use std::time::Duration;

pub const MASTERS: u8 = 1;
pub const PATIENCE_MINUTES: u32 = 1;
pub const LASTS: Duration = Duration::from_secs(90);

/// How the other voter is lost.
const LOST: [&str; 3] = [
    "kill.node.master-0@etcd-carried",
    "freeze.node.master-0@etcd-carried",
    "cut-link.node.master-0+bootstrap@etcd-carried",
];
/// What comes on top, while bootstrap continues alone.
const THEN: [&str; 5] = [
    "kill.bootkube.bootstrap@going-alone",
    "freeze.bootkube.bootstrap@going-alone",
    "kill.kubelet.bootstrap@going-alone",
    "kill.node.bootstrap@going-alone",
    "kill.everything.everything@going-alone",
];

/// Each with each.
pub fn pairs(steps: &[Step], inventory: &Inventory) -> Result<Vec<[Case; 2]>, String> {
    let case = |id| Case::parse(id, steps, inventory);
    let each = LOST.into_iter().flat_map(|lost| THEN.map(|then| (lost, then)));
    each.map(|(lost, then)| Ok([case(lost)?, case(then)?])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_pair_can_be_done_on_the_machines_there_are() {
        let steps = crate::chaos::steps(["cb-bootstrap", "wait-for-ceo"]);
        let pairs = pairs(&steps, &crate::default_inventory(MASTERS)).unwrap_or_else(|e| panic!("{e}"));
        let ids: BTreeSet<_> = pairs.iter().map(|[a, b]| format!("{a} {b}")).collect();
        assert_eq!(ids.len(), LOST.len() * THEN.len());
    }
}
