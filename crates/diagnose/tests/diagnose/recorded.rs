//! Every recorded run of upstream's `analyze`: the same lines, the same end.

use seedling_diagnose::{Bundle, upstream};
use serde_json::Value;
use std::path::Path;

/// Upstream joins a relative directory twice and finds nothing; here it is found (docs/differences.md).
const BETTER: [&str; 1] = ["(relative --dir, default bundle)"];
/// No bundle; its message is compared below.
const MISSING: &str = "(--file missing)";

fn said(bundle: Result<Bundle, seedling_diagnose::BundleError>) -> (String, u64) {
    match bundle {
        Err(error) => (format!("level=fatal msg={error}\n"), 1),
        Ok(bundle) => {
            let mut text = String::new();
            for (level, message) in upstream::analyze(&bundle) {
                for line in message.split('\n') {
                    let message = if line.is_empty() { String::new() } else { format!(" msg={line}") };
                    text += &format!("level={}{message}\n", level.name());
                }
            }
            (text, 0)
        }
    }
}

#[test]
fn upstreams_lines_byte_for_byte() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let recorded = std::fs::read_to_string(data.join("analyze.jsonl")).unwrap_or_default();
    let mut compared = 0;
    for line in recorded.lines() {
        let case: Value = serde_json::from_str(line).unwrap_or_default();
        let name = case["case"].as_str().unwrap_or_default();
        if BETTER.contains(&name) {
            continue;
        }
        let (said, exit) = if name == MISSING {
            let (said, exit) = said(Bundle::open(Path::new("/nowhere/nope.tar.gz")));
            (said.replace("/nowhere", "$DIR"), exit)
        } else {
            said(Bundle::open(&data.join("analyze").join(name).join("log-bundle-20260820100000.tar.gz")))
        };
        assert_eq!(
            (said.as_str(), exit),
            (case["stderr"].as_str().unwrap_or("?"), case["exit"].as_u64().unwrap_or(9)),
            "{name}"
        );
        compared += 1;
    }
    assert_eq!(compared, 20);
}
