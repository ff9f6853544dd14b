//! Merging of whole configs as JSON, so that members Seedling itself never writes (users' MachineConfigs have them) survive.

use serde_json::{Map, Value};

/// Lists whose entries have a name: an entry of the same name is the same thing.
const KEYS: [(&str, &str); 11] = [
    ("files", "path"),
    ("directories", "path"),
    ("links", "path"),
    ("units", "name"),
    ("dropins", "name"),
    ("users", "name"),
    ("groups", "name"),
    ("disks", "device"),
    ("filesystems", "device"),
    ("raid", "name"),
    ("luks", "name"),
];

/// Later wins: a file of the same path is replaced, units and users of the same name are merged, other lists are appended.
pub fn merge_json(base: Value, over: Value) -> Value {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => Value::Object(merge_objects(base, over)),
        (_, over) => over,
    }
}

fn merge_objects(mut base: Map<String, Value>, over: Map<String, Value>) -> Map<String, Value> {
    for (member, value) in over {
        let merged = match (base.remove(&member), value) {
            (Some(Value::Array(have)), Value::Array(more)) => Value::Array(merge_lists(&member, have, more)),
            (Some(have), value) => merge_json(have, value),
            (None, value) => value,
        };
        base.insert(member, merged);
    }
    base
}

fn merge_lists(member: &str, mut have: Vec<Value>, more: Vec<Value>) -> Vec<Value> {
    let key = KEYS.iter().find(|(list, _)| *list == member).map(|(_, key)| *key);
    for item in more {
        let same = match key {
            Some(key) => have.iter_mut().find(|h| h[key] == item[key]),
            None => have.iter_mut().find(|h| **h == item),
        };
        match same {
            // A file is its contents: half of the old one would be neither.
            Some(same) if member == "files" => *same = item,
            Some(same) => *same = merge_json(same.take(), item),
            None => have.push(item),
        }
    }
    have
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn later_wins_by_path_and_name() {
        let base = json!({
            "ignition": {"version": "3.2.0"},
            "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["a"]}]},
            "storage": {"files": [{"path": "/a", "mode": 1, "contents": {"source": "data:,1"}}, {"path": "/b"}]},
            "systemd": {"units": [{"name": "x.service", "enabled": true, "contents": "old"}]},
        });
        let over = json!({
            "ignition": {"version": "3.5.0"},
            "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["a", "b"]}]},
            "storage": {"files": [{"path": "/a", "contents": {"source": "data:,2"}}], "directories": [{"path": "/d"}]},
            "systemd": {"units": [{"name": "x.service", "dropins": [{"name": "d.conf", "contents": "c"}]}, {"name": "y.service"}]},
        });
        let wanted = json!({
            "ignition": {"version": "3.5.0"},
            "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["a", "b"]}]},
            "storage": {
                "files": [{"path": "/a", "contents": {"source": "data:,2"}}, {"path": "/b"}],
                "directories": [{"path": "/d"}],
            },
            "systemd": {"units": [
                {"name": "x.service", "enabled": true, "contents": "old", "dropins": [{"name": "d.conf", "contents": "c"}]},
                {"name": "y.service"},
            ]},
        });
        assert_eq!(merge_json(base, over), wanted);
    }
}
