//! Keys with which API servers encrypt Secrets before they reach etcd's disks, and how one follows another: known everywhere before
//! anybody writes with it, forgotten only when nothing is left that needs it.
//!
//! In: the keys, and those that each master's API server runs with. Out: the next step, and the config for API servers. Pure.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Of a revision, and where it holds them.
pub const SECRET: &str = "encryption-config";
pub const SECRET_KEY: &str = "encryption-config.yaml";
pub const ON_BOOTSTRAP: &str = "kube-apiserver-encryption-config.yaml";
/// In the operator's namespace: the keys themselves, as JSON.
pub const KEYS_SECRET: &str = "encryption-keys";
pub const KEYS: &str = "keys.json";

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// A number, counted up; etcd's data says with which it was written.
    pub name: u32,
    /// 32 bytes, in base64.
    pub secret: String,
    /// Seconds since 1970.
    pub made: i64,
}

/// One key, or two while one follows the other.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    pub writes: Key,
    /// Only read with: the next one before it writes, the last one until nothing is left of it.
    pub reads: Option<Key>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStep {
    Keep,
    MakeNext,
    WriteWithNext,
    /// Write all Secrets once more, then forget the old key.
    ForgetLast,
}

impl Keys {
    pub fn first(secret: String, made: i64) -> Self {
        Self { writes: Key { name: 1, secret, made }, reads: None }
    }

    /// `running`: what the API servers of all masters go by; `due`: the key is old enough, or somebody asked.
    pub fn step(&self, running: &[Vec<u32>], due: bool) -> KeyStep {
        let everywhere = |want: &dyn Fn(&[u32]) -> bool| running.iter().all(|names| want(names));
        match &self.reads {
            None if due => KeyStep::MakeNext,
            Some(next) if next.name > self.writes.name && everywhere(&|names| names.contains(&next.name)) => {
                KeyStep::WriteWithNext
            }
            Some(last)
                if last.name < self.writes.name
                    && everywhere(&|names| names.first() == Some(&self.writes.name)) =>
            {
                KeyStep::ForgetLast
            }
            _ => KeyStep::Keep,
        }
    }

    pub fn with_next(self, secret: String, made: i64) -> Self {
        Self { reads: Some(Key { name: self.writes.name + 1, secret, made }), ..self }
    }

    pub fn writing_with_next(self) -> Self {
        match self.reads {
            Some(next) => Self { writes: next, reads: Some(self.writes) },
            None => self,
        }
    }

    pub fn without_last(self) -> Self {
        Self { reads: None, ..self }
    }

    /// An API server writes with the first; what is not encrypted can be read, as on a cluster that had no keys yet.
    pub fn config(&self) -> Value {
        let keys = std::iter::once(&self.writes).chain(&self.reads);
        let keys: Vec<_> =
            keys.map(|key| json!({"name": key.name.to_string(), "secret": key.secret})).collect();
        json!({
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "EncryptionConfiguration",
            "resources": [{"resources": ["secrets"], "providers": [{"secretbox": {"keys": keys}}, {"identity": {}}]}],
        })
    }
}

/// Names of the keys in a config, the one that writes first; none in one that cannot be read.
pub fn names(config: &Value) -> Vec<u32> {
    let keys = config.pointer("/resources/0/providers/0/secretbox/keys").and_then(Value::as_array);
    keys.into_iter().flatten().filter_map(|key| key["name"].as_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn of(keys: &Keys) -> Vec<u32> {
        names(&keys.config())
    }

    #[test]
    fn one_key_follows_another() {
        let one = Keys::first("a".into(), 0);
        assert_eq!(of(&one), [1]);
        assert_eq!(one.step(&vec![vec![1]; 3], false), KeyStep::Keep);
        assert_eq!(one.step(&vec![vec![1]; 3], true), KeyStep::MakeNext);
        let two = one.with_next("b".into(), 9);
        assert_eq!(of(&two), [1, 2]);
        assert_eq!(two.step(&[vec![1, 2], vec![1]], true), KeyStep::Keep, "one master does not know it");
        assert_eq!(two.step(&[vec![1, 2], vec![1, 2]], false), KeyStep::WriteWithNext);
        let writing = two.writing_with_next();
        assert_eq!(of(&writing), [2, 1]);
        assert_eq!(
            writing.step(&[vec![2, 1], vec![1, 2]], true),
            KeyStep::Keep,
            "one master writes with the old one"
        );
        assert_eq!(writing.step(&vec![vec![2, 1]; 2], true), KeyStep::ForgetLast);
        assert_eq!(of(&writing.without_last()), [2]);
        assert!(names(&json!({})).is_empty());
    }

    proptest! {
        /// Masters take up configs at any time, each at its own; whatever lies in etcd, every master can read it.
        #[test]
        fn every_master_can_always_read_everything(turns in proptest::collection::vec(0..5usize, 1..200)) {
            let mut keys = Keys::first("k".into(), 0);
            let mut running = vec![of(&keys); 3];
            let mut data = BTreeSet::from([1]);
            for turn in turns {
                match turn {
                    3 => keys = match keys.step(&running, true) {
                        KeyStep::Keep => keys,
                        KeyStep::MakeNext => keys.with_next("k".into(), 0),
                        KeyStep::WriteWithNext => keys.writing_with_next(),
                        KeyStep::ForgetLast => {
                            // Through any master: all of them write with the same one.
                            data = BTreeSet::from([running[0][0]]);
                            keys.without_last()
                        }
                    },
                    4 => { data.insert(running[0][0]); }
                    master => running[master] = of(&keys),
                }
                let written: Vec<_> = running.iter().map(|names| names[0]).chain(data.clone()).collect();
                for names in &running {
                    prop_assert!(written.iter().all(|key| names.contains(key)), "{written:?} {running:?}");
                }
            }
        }
    }
}
