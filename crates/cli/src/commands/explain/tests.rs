//! Everything has a description, every name it mentions is one, and pages say what they should.

use super::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn page(asked: &str) -> String {
    look_up(asked).map_or_else(|why| format!("error: {why}"), |answer| answer.text())
}

#[test]
fn every_thing_says_what_it_is_and_full_names_are_unique() {
    let mut seen = BTreeSet::new();
    for thing in catalog().0 {
        let name = thing.full_name();
        assert!(!thing.what.is_empty(), "{name} does not say what it is: {:?}", thing.what);
        assert!(seen.insert(name.clone()), "{name} is described twice");
    }
    assert!(seen.len() > 200, "{}", seen.len());
}

#[test]
fn every_stage_and_condition_is_explained_in_full() {
    let catalog = catalog();
    for thing in catalog.of(Kind::Stage).chain(catalog.of(Kind::Condition)) {
        let empty = thing.why.is_empty() || thing.check.is_empty();
        assert!(!empty && !thing.fails.is_empty() && !thing.see.is_empty(), "{}", thing.full_name());
        assert!(thing.kind == Kind::Condition || !thing.upstream.is_empty(), "{}", thing.full_name());
    }
}

/// A crate may forget to hand its list on, or describe a condition as tests do.
#[test]
fn every_condition_of_the_sources_is_found() {
    let below = |dir: PathBuf| {
        fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect::<Vec<_>>()
    };
    let crates = below(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    let mut paths: Vec<_> = crates.into_iter().map(|of| of.join("src")).collect();
    let (catalog, mut found) = (catalog(), 0);
    while let Some(path) = paths.pop() {
        let source = fs::read_to_string(&path).unwrap_or_default();
        let program = source.split("\nmod tests {").next().unwrap_or_default();
        let of_tests = path.to_string_lossy().ends_with("tests.rs");
        assert!(of_tests || !program.contains("Awaited::in_test("), "{}", path.display());
        let (_, rows) = program.split_once("\nconditions! {").unwrap_or_default();
        let rows = rows.lines().filter(|line| line.ends_with("\": {") && line.contains(" = \""));
        for name in rows.filter_map(|row| row.split('"').nth(1)) {
            assert!(matches!(catalog.find(&format!("condition.{name}")), Found::One(_)), "{name}");
            found += 1;
        }
        paths.extend(below(path));
    }
    assert_eq!(found, catalog.of(Kind::Condition).count());
}

/// A name that leads nowhere is worse than none.
#[test]
fn see_also_leads_somewhere() {
    let catalog = catalog();
    for thing in &catalog.0 {
        for name in &thing.see {
            assert!(matches!(catalog.find(name), Found::One(_)), "{} mentions {name}", thing.full_name());
        }
    }
}

#[test]
fn every_command_is_found_by_its_words() {
    for name in
        ["lab up", "command.lab up", "command.wait-for bootstrap-complete", "bootkube", "stage verify"]
    {
        let found = look_up(name).map(|answer| answer.text()).unwrap_or_else(|why| why);
        assert!(found.contains("command.") && !found.contains("did you mean"), "{name}: {found}");
    }
    let page = page("command.lab up");
    assert!(page.contains("--masters: Number of control-plane machines"), "{page}");
}

#[test]
fn pages_are_as_written() {
    assert_eq!(page("stage.6"), include_str!("golden/stage.txt"));
    assert_eq!(page("etcd-bootstrap"), include_str!("golden/stage.txt"));
    assert_eq!(page("22623"), include_str!("golden/port.txt"));
    assert_eq!(page("cert.etcd-signer"), include_str!("golden/cert.txt"));
    assert_eq!(page("/etc/kubernetes/manifests/etcd-member-pod.yaml"), include_str!("golden/file.txt"));
    assert_eq!(page("seed.003.7"), include_str!("golden/seed.txt"));
}

#[test]
fn the_seeds_steps_are_found_by_number_and_by_name() {
    for number in 1..=15 {
        assert!(page(&format!("seed.003.{number}")).contains("SEE ALSO"), "{number}");
    }
    for (asked, leads) in [
        ("render-etcd-bootstrap", "stage.etcd-bootstrap"),
        ("seed.run-cluster-bootstrap", "stage.cb-bootstrap"),
        ("seed.000.7", "stage.cb-bootstrap"),
        ("seed.001.11", "component.etcd-operator"),
        ("seed.002.1", "stage.wait-for-etcd"),
    ] {
        assert!(page(asked).contains(leads), "{asked}: {}", page(asked));
    }
}

#[test]
fn unknown_names_suggest_and_shared_names_ask() {
    let said = page("etcd-bootstrp");
    assert!(said.contains("did you mean one of these?\n  stage.etcd-bootstrap\n"), "{said}");
    let said = page("bootstrap");
    assert!(said.contains("these?\n  stage.cb-bootstrap\n") && !said.contains("cert."), "{said}");
    assert!(page("prot.6443").contains("port.6443"), "{}", page("prot.6443"));
    let said = page("machine-config-server");
    assert!(said.contains("several things") && said.contains("component.machine-config-server"), "{said}");
    assert!(said.contains("cert.machine-config-server") && said.contains("command."), "{said}");
    assert!(page("xyzzy").contains("lists what can be asked"));
    for asked in ["installconfig.networkin", "field.networkin"] {
        assert!(page(asked).contains("did you mean networking?"), "{}", page(asked));
    }
    assert!(page("networkin").contains("installconfig.networking"), "{}", page("networkin"));
}

#[test]
fn fields_are_found_by_any_of_their_names() {
    assert!(page("installconfig").starts_with("KIND:     InstallConfig\nVERSION:  v1\n"));
    let want =
        seedling_assets::config::explain("installconfig.networking.clusterNetwork").unwrap_or_default();
    for asked in [
        "installconfig.networking.clusterNetwork",
        "installconfig.networking.clusterNetwork[0]",
        "field.networking.clusternetwork",
        "networking.clusterNetwork",
    ] {
        assert_eq!(page(asked), want, "{asked}");
    }
}

#[test]
fn a_line_of_a_log_leads_to_what_is_waited_for() {
    for (asked, name) in [
        ("waiting for container kube-apiserver to stop: running", "condition.container-stopped"),
        ("worker-0 to be Ready: no progress for 1800s on worker-0; last seen: x", "condition.node-ready"),
        ("port 22623 to be free", "condition.recover-port-free"),
    ] {
        assert!(page(asked).starts_with(name), "{asked}: {}", page(asked));
    }
}

#[test]
fn json_is_json() {
    for asked in [
        "",
        "stage.6",
        "6443",
        "cert.root-ca",
        "/etc/kubernetes",
        "lab up",
        "installconfig",
        "installconfig.networking.clusterNetwork",
        "networking",
        "seed.003.1",
    ] {
        let json = look_up(asked).map(|answer| answer.json());
        let Ok(Ok(json)) = json else { panic!("{asked}") };
        let value: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
        assert!(value.is_object(), "{asked}: {json}");
        if !asked.is_empty() {
            assert!(
                value["kind"].is_string() && value["what"].as_str().is_some_and(|w| !w.is_empty()),
                "{asked}: {json}"
            );
        }
    }
}

#[test]
fn the_overview_names_every_kind() {
    let text = page("");
    for kind in Kind::ALL {
        assert!(text.contains(&format!("\n{}.NAME: ", kind.word())), "{text}");
    }
    assert!(text.contains("etcd-bootstrap") && text.contains("6443"), "{text}");
}
