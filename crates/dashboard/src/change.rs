//! What is different between two stories: all that goes over the wire after the first message.

use crate::story::{Part, Story};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Change {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) set: BTreeMap<String, Part>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) gone: Vec<String>,
}

impl Change {
    pub(crate) fn between(old: &Story, new: &Story) -> Self {
        let changed = new.iter().filter(|(key, part)| old.get(*key) != Some(part));
        let gone = old.keys().filter(|key| !new.contains_key(*key));
        Self { set: changed.map(|(k, p)| (k.clone(), p.clone())).collect(), gone: gone.cloned().collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty() && self.gone.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn story(parts: &BTreeMap<u8, u8>) -> Story {
        let part = |n: &u8| Part::Critical {
            parts: vec![seedling_observe::timeline::Part {
                node: n.to_string(),
                step: String::new(),
                from: 0.0,
                to: 1.0,
            }],
        };
        parts.iter().map(|(key, n)| (key.to_string(), part(n))).collect()
    }

    proptest! {
        #[test]
        fn the_old_and_the_change_make_the_new(old in prop::collection::btree_map(0u8..20, 0u8..3, 0..20), new in prop::collection::btree_map(0u8..20, 0u8..3, 0..20)) {
            let (old, new) = (story(&old), story(&new));
            let change = Change::between(&old, &new);
            prop_assert_eq!(change.is_empty(), old == new);
            prop_assert!(change.set.iter().all(|(key, part)| old.get(key) != Some(part)), "only what differs");
            let mut applied = old;
            applied.retain(|key, _| !change.gone.contains(key));
            applied.extend(change.set);
            prop_assert_eq!(applied, new);
        }
    }
}
