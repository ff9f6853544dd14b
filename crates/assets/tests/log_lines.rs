//! What each recorded run said, line by line, for every config that upstream accepts.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;
use common::{Assets, cases, data};
use seedling_assets::Target;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

/// Lines about the release image, which a release of ours answers by itself, and about the inventory, which upstream does not know.
const ELSEWHERE: [&str; 3] =
    ["Found override for release image", "There is no hosts.yaml", "Without hosts.yaml"];

/// Level and text, without the times of certificates.
fn comparable(line: &str) -> Option<String> {
    let (_, text) = line.split_once(": ")?;
    if ELSEWHERE.iter().any(|start| text.starts_with(start)) {
        return None;
    }
    let without_times = line.split(" root-ca 20").next().unwrap_or(line);
    Some(without_times.to_string())
}

#[test]
fn as_recorded() {
    let mut wrong = Vec::new();
    for case in cases() {
        let assets = Assets::of_case(&case);
        let summary = fs::read_to_string(data(&case).join("summary.json")).unwrap();
        let summary: Value = serde_json::from_str(&summary).unwrap();
        for run in summary["runs"].as_array().unwrap() {
            let target = match run["args"][1].as_str().unwrap() {
                "install-config" => Target::InstallConfig,
                "manifests" => Target::Manifests,
                "ignition-configs" => Target::IgnitionConfigs,
                _ => Target::SingleNodeIgnitionConfig,
            };
            let recorded = run["stderr"].as_str().unwrap().lines().map(|line| {
                let (level, text) = line.strip_prefix("level=").unwrap().split_once(" msg=").unwrap();
                format!("{level}: {}", text.replace("$DIR", "s"))
            });
            let want: BTreeSet<_> = recorded.filter_map(|line| comparable(&line)).collect();
            let mut got: BTreeSet<_> =
                assets.said(target).iter().filter_map(|line| comparable(line)).collect();
            // With an arbiter upstream has lost this file by now.
            if case == "arbiter" {
                got.remove("info: Consuming OpenShift Install (Manifests) from target directory");
            }
            if got != want {
                let missing: Vec<_> = want.difference(&got).collect();
                let extra: Vec<_> = got.difference(&want).collect();
                wrong.push(format!("{case} {target:?}: missing {missing:#?} extra {extra:#?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
