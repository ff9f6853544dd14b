use super::*;
use serde_json::json;

#[test]
fn an_unknown_part_is_refused() {
    let known = ["pulled", "chaos"];
    let asked = |arguments: &[&'static str]| parts(arguments.iter().copied(), &known).ok();
    assert_eq!(asked(&[]), Some([].into()));
    assert_eq!(asked(&["--nocapture", "chaos"]), Some(["chaos"].into()));
    assert_eq!(asked(&["pulled", "chaos"]), Some(["chaos", "pulled"].into()));
    assert_eq!(asked(&["choas"]), None);
    assert_eq!(asked(&["chaos", "choas"]), None);
}

fn prober() -> probe::Report {
    let failure =
        json!({"unixMillis": 1, "second": 0.1, "tookMillis": 5, "verb": "get", "error": "x", "stage": ""});
    let mut report = json!({"seconds": 30.0, "requests": {"create": 600}, "slowest": {}, "acknowledged": 600, "demanded": 60,
        "resent": 2, "stale": [], "lost": [], "unwatched": [], "failures": [failure], "windows": [], "clusters": ["a"],
        "writes": {"operations": 500, "unknown": 2, "keys": 80, "judged": 80, "red": []}});
    // A field that is missing is not a field that is empty.
    for key in ["lost", "stale", "failures", "clusters", "acknowledged", "demanded", "writes"] {
        let mut without = report.clone();
        without.as_object_mut().and_then(|r| r.remove(key));
        assert!(serde_json::from_value::<probe::Report>(without).is_err(), "{key}");
    }
    serde_json::from_value(report.take()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn a_prober_may_not_fail_more_often_than_is_said() {
    assert!(probed(&prober(), 1).is_ok());
    assert!(probed(&prober(), 0).is_err());
    assert!(probed(&probe::Report { acknowledged: 90, ..prober() }, 1).is_err());
    assert!(probed(&probe::Report { lost: vec![3], ..prober() }, 1).is_err());
}

fn object(name: &str, conditions: &[(&str, &str)]) -> Value {
    let conditions: Vec<_> = conditions.iter().map(|(t, s)| json!({"type": t, "status": s})).collect();
    json!({"metadata": {"name": name}, "status": {"conditions": conditions}})
}

#[test]
fn a_degraded_operator_is_not_whole() {
    let nodes = MASTERS.map(|n| object(n, &[("Ready", "True")]));
    let operators = |degraded| {
        OPERATORS
            .map(|n| object(n, &[("Available", "True"), ("Progressing", "False"), ("Degraded", degraded)]))
    };
    assert!(whole(&nodes, &operators("False")).is_ok());
    assert!(whole(&nodes, &operators("True")).is_err());
    assert!(whole(&nodes[..2], &operators("False")).is_err());
    assert!(whole(&nodes, &operators("False")[1..]).is_err());
    assert!(whole(&[], &[]).is_err());
}

#[test]
fn every_machine_has_a_journal() {
    let expected: [(&str, &[(&str, &str)]); 2] = [("bootstrap", &[("boot", "x")]), ("master-0", &[])];
    let journal = |node, fate| json!({"node": node, "services": [{"name": "boot", "steps": [{"name": "x", "fate": fate}]}]});
    let good = json!([journal("bootstrap", "done"), journal("master-0", "open")]);
    assert!(journals(&good, &expected).is_ok());
    for bad in [
        json!([]),
        json!({}),
        json!([journal("bootstrap", "done")]),
        json!([journal("bootstrap", "open"), journal("master-0", "done")]),
    ] {
        assert!(journals(&bad, &expected).is_err(), "{bad}");
    }
}

#[test]
fn certificates_must_be_found_to_be_good() {
    assert!(certificates("good a\ngood b\n", 2).is_ok());
    assert!(certificates("good a\nsoon b\n", 2).is_err());
    assert!(certificates("", 2).is_err());
}

fn pods(list: &[(&str, &str)]) -> Result<Vec<Value>> {
    let pod = |(revision, ready): &(&str, &str)| {
        let mut pod = object("p", &[("Ready", ready)]);
        pod["metadata"]["labels"] = json!({"revision": revision});
        pod
    };
    Ok(list.iter().map(pod).collect())
}

#[test]
fn a_roll_is_one_at_a_time_only_if_it_was_seen_so() {
    let (old, new, down) = (("1", "True"), ("2", "True"), ("2", "False"));
    // While a pod is replaced, its mirror is missing for a moment.
    let well: &[&[(&str, &str)]] =
        &[&[old, old, old], &[old, old], &[new, old, old], &[new, down, old], &[new, new, old], &[new; 3]];
    // Two masters at once: one pod is missing, another is not ready. Looks without three pods were once left out.
    let two_down: &[&[(&str, &str)]] =
        &[&[old, old, old], &[down, old], &[new, old, old], &[new, new, old], &[new; 3]];
    let at_once: &[&[(&str, &str)]] = &[&[old, old, old], &[new, new, new]];
    for (looks, fine) in [(well, true), (two_down, false), (at_once, false), (&[], false)] {
        let mut roll = Roll::default();
        looks.iter().for_each(|look| roll.look(pods(look), "2"));
        assert_eq!(roll.one_at_a_time().is_ok(), fine, "{looks:?}");
    }
    let mut blind = Roll::default();
    well.iter().for_each(|look| blind.look(pods(look), "2"));
    blind.look(Err(anyhow::anyhow!("no answer")), "2");
    assert!(blind.one_at_a_time().is_err(), "one look in ten may fail, not one in seven");
}

#[test]
fn chaos_must_have_struck() {
    let report = |green: u64, red: u64, missed: u64| json!({"results": {"green": green, "red": red, "missed": missed, "lost": 0, "stale": 0}});
    assert!(struck(&report(3, 0, 1), 3).is_ok());
    assert!(struck(&report(0, 0, 4), 3).is_err());
    assert!(struck(&report(3, 1, 0), 3).is_err());
    assert!(struck(&json!({"results": {"red": 0}}), 0).is_err());
}

#[test]
fn an_installation_has_its_order() {
    let (mac, address) = ("52:54:00:5e:ed:1b", "192.168.100.21");
    let http = |path: &str| json!({"event": "http", "remote": address, "status": 200, "path": path});
    let boot = |state: &str| json!({"event": "boot", "host": "worker-0", "state": state});
    let events = vec![
        json!({"event": "dhcp", "message": "ACK", "mac": mac}),
        boot("install"),
        http("/boot/vmlinuz"),
        http("/boot/initramfs.img"),
        http("/boot/rootfs.squashfs"),
        http("/ign/52:54:00:5e:ed:1b"),
        boot("installing"),
        boot("installed"),
        boot("disk"),
        json!({"event": "connection", "host": "worker-0", "backend": "bootstrap"}),
        json!({"event": "connection", "host": "worker-0", "backend": "master-1"}),
    ];
    let judged = |events: &[Value]| installed(events, "worker-0", mac, address);
    assert!(judged(&events).is_ok());
    for left_out in [0, 1, 2, 3, 4, 5, 7, 8, 10] {
        let mut fewer = events.clone();
        fewer.remove(left_out);
        assert!(judged(&fewer).is_err(), "{}", events[left_out]);
    }
    let mut late = events.clone();
    late.swap(5, 7);
    assert!(judged(&late).is_err());
}

#[test]
fn a_pull_that_was_not_authorized_is_noticed() {
    let line = |message: &str, from: &str, status: u16| {
        json!({"msg": message, "http.request.uri": "/v2/a", "http.request.remoteaddr": from, "http.response.status": status}).to_string()
    };
    let log = |lines: &[String]| lines.join("\n");
    let shown = line("authorized request", "10.0.0.1:4", 0);
    let given = line("response completed", "10.0.0.1:4", 200);
    assert!(pulled(&log(&[shown.clone(), given.clone()]), "/v2/a", "10.0.0.1:").is_ok());
    assert!(pulled(&log(&[shown.clone(), given.clone()]), "/v2/b", "10.0.0.1:").is_err());
    assert!(pulled(&log(&[shown.clone(), given.clone()]), "/v2/a", "10.0.0.2:").is_err());
    assert!(
        pulled(&log(&[shown, line("response completed", "10.0.0.1:4", 404)]), "/v2/a", "10.0.0.1:").is_err()
    );
    assert!(pulled(&given, "/v2/a", "10.0.0.1:").is_err());
}

#[test]
fn a_learner_is_not_ill() {
    let [healthy, learner, ill] = [
        "https://192.168.100.10:2379 is healthy: successfully committed proposal: took = 36ms",
        "https://192.168.100.12:2379 is unhealthy: failed to commit proposal: etcdserver: rpc not supported for learner",
        "https://192.168.100.11:2379 is unhealthy: failed to commit proposal: context deadline exceeded",
    ];
    for (lines, well) in [
        (vec![healthy], true),
        (vec![healthy, learner], true),
        (vec![learner], false),
        (vec![healthy, ill], false),
        (vec![], false),
    ] {
        assert_eq!(healthy_or_learning(&lines.join("\n")).is_ok(), well, "{lines:?}");
    }
}
