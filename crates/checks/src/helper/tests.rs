use super::judge::fields;
use super::*;
use crate::Outcome;
use crate::preflight::{Query, Wanted};

fn config(change: &str) -> HelperConfig {
    let yaml = "clusterDomain: ocp4.example.com\ninterface: eth1\naddress: 192.168.100.1\nnetwork: 192.168.100.0/24\ninventory:\n  hosts:\n  \
        - {name: master-0, role: master, mac: '52:54:00:00:00:11', address: 192.168.100.11}\n  loadBalancers: [192.168.100.1]\n\
        ignitionDir: /i\nreleaseDir: /r\nevents: /e\nreadyFile: /f\n";
    let text = match change.split_once(" -> ") {
        Some((from, to)) => yaml.replacen(from, to, 1),
        None => format!("{yaml}{change}\n"),
    };
    serde_saphyr::from_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
fn fields_that_do_not_fit_are_named() {
    let table = [
        ("", &[][..]),
        ("router: 192.168.100.254", &[]),
        ("router: 10.0.0.1", &["router: 10.0.0.1"]),
        (
            "address: 192.168.100.1 -> address: 192.168.7.1",
            &["address: 192.168.7.1", "loadBalancers: add 192.168.7.1"],
        ),
        ("100.11} -> 100.1}", &["is the helper's own address"]),
        ("address: 192.168.100.11} -> address: 10.0.0.11}", &["no relays"]),
        ("pool: {from: 192.168.100.99, to: 192.168.100.90}", &["pool: 192.168.100.99 is behind"]),
        ("pool: {from: 192.168.100.99, to: 192.168.101.90}", &["not in network"]),
        ("forwarders: [192.168.100.1]", &["round for ever"]),
        ("role: master -> role: worker", &["there is no master"]),
        ("boot: {imageDir: /b, hosts: [worker-7]}", &["worker-7 is not in the inventory"]),
        ("loadBalancers: [192.168.100.1] -> loadBalancers: []", &["loadBalancers: add"]),
        ("without: [loadBalancer]", &[]),
    ];
    for (change, wanted) in table {
        let found = fields(&config(change));
        assert_eq!(found.len(), wanted.len(), "{change}: {found:?}");
        for part in wanted {
            assert!(found.iter().any(|text| text.contains(part)), "{change}: {found:?}");
        }
    }
}

fn facts() -> Facts {
    Facts {
        config: config(""),
        locals: vec![("eth0".into(), [10, 0, 0, 5].into()), ("eth1".into(), [192, 168, 100, 1].into())],
        files: vec![],
        elsewhere: vec![],
        fronts: vec![],
        running: None,
    }
}

fn failed(facts: &Facts) -> Vec<String> {
    judge(facts)
        .into_iter()
        .filter(|f| f.result != Outcome::Ok)
        .map(|f| format!("{}: {}", f.check.name, f.says))
        .collect()
}

#[test]
fn each_problem_has_its_check() {
    assert_eq!(failed(&facts()), [""; 0]);
    let elsewhere = |answer: &[&str]| Resolved {
        check: ELSEWHERE,
        name: "api.ocp4.example.com".into(),
        query: Query::Address,
        wanted: Wanted::OneOf(vec![[192, 168, 100, 1].into()]),
        server: "10.0.0.53".into(),
        answer: Ok(answer.iter().map(ToString::to_string).collect()),
    };
    let running = |up_to_date, dns: &str| Running {
        pid: 7,
        up_to_date,
        http: Ok(()),
        dns: Some(Ok(dns.split(' ').map(String::from).collect())),
    };
    let needed = |there| Needed {
        path: "/i/master.ign".into(),
        what: "config for masters".into(),
        there,
        make: "make it",
    };
    let front = |accepts| Front { name: "api".into(), address: [10, 0, 0, 9].into(), port: 6443, accepts };
    let table: Vec<(Facts, &str)> = vec![
        (Facts { locals: vec![], ..facts() }, "helper-address: no interface has 192.168.100.1, and eth1"),
        (
            Facts { locals: vec![("eth1".into(), [10, 0, 0, 1].into())], ..facts() },
            "helper-address: no interface has 192.168.100.1; eth1 has 10.0.0.1",
        ),
        (
            Facts { locals: vec![("br0".into(), [192, 168, 100, 1].into())], ..facts() },
            "helper-address: 192.168.100.1 is on br0",
        ),
        (
            Facts { elsewhere: vec![elsewhere(&["10.0.0.9"])], ..facts() },
            "helper-dns-elsewhere: it says 10.0.0.9",
        ),
        (Facts { elsewhere: vec![elsewhere(&["192.168.100.1"]), elsewhere(&[])], ..facts() }, ""),
        (Facts { fronts: vec![front(true)], ..facts() }, "helper-balancer: api leads to 10.0.0.9"),
        (Facts { fronts: vec![front(false)], ..facts() }, ""),
        (Facts { running: Some(running(true, "192.168.100.1")), ..facts() }, ""),
        (
            Facts { running: Some(running(false, "192.168.100.1")), ..facts() },
            "helper-runs: it goes by another config",
        ),
        (
            Facts { running: Some(running(true, "10.0.0.9")), ..facts() },
            "helper-runs: DNS says that api-int is 10.0.0.9",
        ),
        (
            Facts { running: Some(running(true, "192.168.100.1 10.0.0.9")), ..facts() },
            "helper-runs: DNS says that api-int is 192.168.100.1, 10.0.0.9",
        ),
        (Facts { files: vec![needed(true), needed(false)], ..facts() }, "helper-files: there is no config"),
    ];
    for (facts, wanted) in table {
        let found = failed(&facts);
        assert_eq!(found.len(), usize::from(!wanted.is_empty()), "{wanted}: {found:?}");
        assert!(found.iter().all(|text| text.starts_with(wanted)), "{wanted}: {found:?}");
    }
}
