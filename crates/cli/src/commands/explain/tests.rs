//! Everything has a description, every name it mentions is one, and pages say what they should.

use super::*;
use std::collections::BTreeSet;

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
fn every_stage_is_explained_in_full() {
    for thing in catalog().of(Kind::Stage) {
        let empty = [&thing.why, &thing.check, &thing.upstream].iter().any(|text| text.is_empty());
        assert!(!empty && !thing.fails.is_empty() && !thing.see.is_empty(), "{}", thing.full_name());
    }
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
    assert!(page("prot.6443").contains("port.6443"), "{}", page("prot.6443"));
    let said = page("machine-config-server");
    assert!(said.contains("several things") && said.contains("component.machine-config-server"), "{said}");
    assert!(said.contains("cert.machine-config-server") && said.contains("command."), "{said}");
    assert!(page("xyzzy").contains("lists what can be asked"));
    assert!(page("installconfig.networkin").contains("did you mean networking?"));
}

#[test]
fn fields_are_as_before() {
    assert!(page("installconfig").starts_with("KIND:     InstallConfig\nVERSION:  v1\n"));
    assert_eq!(
        page("installconfig.networking"),
        seedling_assets::config::explain("installconfig.networking").unwrap_or_default()
    );
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
        "installconfig.networking.clusterNetwork",
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
