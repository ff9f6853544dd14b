//! Names as people type them.

use super::*;
use crate::description::Text;
use proptest::prelude::*;

fn catalog() -> Catalog {
    let thing = |kind, name: &str| Description::new(kind, name, &Text::EMPTY);
    let stage = Text {
        reads: &["hosts.yaml"],
        writes: &["tls/etcd-*", "/etc/kubernetes/manifests/etcd.yaml"],
        ..Text::EMPTY
    };
    Catalog(vec![
        Description::new(Kind::Stage, "etcd-bootstrap", &stage).also("6"),
        thing(Kind::Component, "etcd"),
        thing(Kind::Component, "machine-config-server"),
        thing(Kind::Cert, "machine-config-server"),
        thing(Kind::Port, "22623").also("mcs"),
        thing(Kind::Command, "lab up"),
        Description::new(
            Kind::File,
            "/etc/kubernetes/manifests",
            &Text { what: "Static pods.", ..Text::EMPTY },
        ),
        thing(Kind::File, "/opt/openshift"),
        thing(Kind::Condition, "container-stopped").also("container CONTAINER to stop"),
        thing(Kind::Condition, "api-up").also("the API to answer"),
        thing(Kind::Field, "networking.clusterNetwork"),
    ])
}

fn name(found: &Found) -> String {
    match found {
        Found::One(d) => d.full_name(),
        Found::Several(names) => format!("several: {}", names.join(" ")),
        Found::Nothing(names) => format!("nothing: {}", names.join(" ")),
    }
}

#[test]
fn by_full_name_by_name_and_by_number() {
    for (asked, want) in [
        ("stage.etcd-bootstrap", "stage.etcd-bootstrap"),
        ("etcd-bootstrap", "stage.etcd-bootstrap"),
        ("Etcd-Bootstrap", "stage.etcd-bootstrap"),
        ("stage.6", "stage.etcd-bootstrap"),
        ("stage/6", "stage.etcd-bootstrap"),
        ("22623", "port.22623"),
        ("port.mcs", "port.22623"),
        ("command.lab up", "command.lab up"),
        ("command lab up", "command.lab up"),
        ("lab up", "command.lab up"),
        ("machine-config-server", "several: component.machine-config-server cert.machine-config-server"),
        ("cert.machine-config-server", "cert.machine-config-server"),
        ("etcd-botstrap", "nothing: stage.etcd-bootstrap component.etcd"),
        ("port.22632", "nothing: port.22623"),
        ("port.etcd-bootstrap", "nothing: stage.etcd-bootstrap component.etcd"),
        ("networking.clusterNetwork", "installconfig.networking.clusterNetwork"),
        ("the API to answer", "condition.api-up"),
        ("the helper to answer", "nothing: condition.api-up"),
        ("container etcd to stop", "condition.container-stopped"),
        ("waiting for container etcd to stop: running", "condition.container-stopped"),
        ("12:00 INFO waiting for container etcd to stop: running", "condition.container-stopped"),
        (
            "stage x: container etcd to stop: no progress for 180s; last seen: y",
            "condition.container-stopped",
        ),
        ("container etcd to stop now", "nothing: condition.container-stopped"),
        ("zzz", "nothing: "),
        ("", "nothing: "),
    ] {
        assert_eq!(name(&catalog().find(asked)), want, "{asked:?}");
    }
}

#[test]
fn a_path_leads_to_its_directory_and_its_stages() {
    for (asked, written, read) in [
        ("/etc/kubernetes/manifests/etcd.yaml", "stage.etcd-bootstrap", ""),
        ("file./opt/openshift/tls/etcd-client.crt", "stage.etcd-bootstrap", ""),
        ("tls/etcd-client.crt", "stage.etcd-bootstrap", ""),
        ("/opt/openshift/hosts.yaml", "", "stage.etcd-bootstrap"),
        ("/etc/kubernetes/manifests/", "", ""),
    ] {
        let Found::One(file) = catalog().find(asked) else { panic!("{asked}") };
        let fact =
            |name: &str| file.facts.iter().find(|f| f.name == name).map_or("", |f| &f.value).to_string();
        assert_eq!((fact("written by"), fact("read by")), (written.into(), read.into()), "{asked}");
    }
    let Found::One(file) = catalog().find("/etc/kubernetes/manifests/x.yaml") else { panic!() };
    assert_eq!(file.what, "A file below /etc/kubernetes/manifests: static pods.");
    assert!(matches!(catalog().find("/elsewhere/file"), Found::Nothing(_)));
}

#[test]
fn a_page_is_wrapped_and_leaves_out_what_is_empty() {
    let text = Text { what: "It is.", fails: &["one", "two"], see: &["port.1", "port.2"], ..Text::EMPTY };
    let page =
        Description::new(Kind::Port, "1", &text).also("one").fact("protocol", "TCP").fact("none", "").page();
    assert_eq!(
        page,
        "port.1  (also port.one)\n\nWHAT\n  It is.\n\nPROTOCOL\n  TCP\n\nWHAT USUALLY GOES WRONG\n  - one\n  - two\n\n\
         SEE ALSO\n  port.1, port.2\n"
    );
    let why = "word ".repeat(60);
    let page = Description { why: why.trim().into(), ..Description::new(Kind::Port, "1", &text) }.page();
    assert!(page.lines().all(|line| line.len() <= 100), "{page}");
}

proptest! {
    #[test]
    fn anything_can_be_asked(asked in "\\PC{0,40}") {
        let _ = catalog().find(&asked);
    }
}
