use super::*;
use seedling_steps::journal::{fold, lines};

fn bar(step: &str, from: f64, to: f64, waits: bool) -> Bar {
    Bar { step: step.into(), from, to, waits }
}

fn row(node: &str, bars: Vec<Bar>) -> Row {
    Row { node: node.into(), bars }
}

fn steps(path: &[Part]) -> Vec<(&str, &str, f64, f64)> {
    path.iter().map(|p| (p.node.as_str(), p.step.as_str(), p.from, p.to)).collect()
}

#[test]
fn the_path_follows_the_slowest_and_has_no_gaps() {
    let rows = [
        row("lab", vec![bar("grow", 0.0, 20.0, true)]),
        row("a", vec![bar("boot", 0.0, 3.0, false), bar("wait", 3.0, 18.0, true)]),
        row("b", vec![bar("boot", 0.0, 5.0, false), bar("pods", 5.0, 12.0, false)]),
        row("c", vec![bar("boot", 0.0, 4.0, false), bar("pods", 4.0, 15.0, false)]),
    ];
    let path = path::critical(&rows, 20.0);
    let want = [
        ("c", "boot", 0.0, 4.0),
        ("c", "pods", 4.0, 15.0),
        ("a", "wait", 15.0, 18.0),
        ("lab", "grow", 18.0, 20.0),
    ];
    // From 18 to 20 only the lab waited; before that the node's own wait is the more particular one.
    assert_eq!(steps(&path), want);
    assert!(path.windows(2).all(|p| p[0].to == p[1].from));
}

#[test]
fn nothing_written_down_is_said() {
    let path = path::critical(&[row("a", vec![bar("boot", 1.0, 2.0, false)])], 3.0);
    assert_eq!(
        steps(&path),
        [
            ("", "nothing that was written down", 0.0, 1.0),
            ("a", "boot", 1.0, 2.0),
            ("", "nothing that was written down", 2.0, 3.0)
        ]
    );
}

#[test]
fn records_and_events_become_bars() {
    let inventory = Inventory::parse(
        "hosts:\n- {name: bootstrap, role: bootstrap, mac: '52:54:00:5e:ed:10', address: 192.168.100.10}\n\
         - {name: master-0, role: master, mac: '52:54:00:5e:ed:11', address: 192.168.100.11}\n\
         - {name: worker-0, role: worker, mac: '52:54:00:5e:ed:1b', address: 192.168.100.21}\n",
    )
    .unwrap_or_else(|e| panic!("{e:?}"));
    let events: Vec<HelperEvent> = [
        r#"{"time":"1970-01-01T00:00:02.000Z","event":"dhcp","message":"DISCOVER","mac":"52:54:00:5E:ED:11"}"#,
        r#"{"time":"1970-01-01T00:00:03.000Z","event":"http","method":"GET","path":"/ign/x","status":200,"remote":"192.168.100.11","userAgent":"","bytes":1}"#,
        r#"{"time":"1970-01-01T00:00:05.000Z","event":"connection","port":22623,"remote":"192.168.100.11","backend":"bootstrap"}"#,
        // A worker asks the bootstrap machine in vain, and is served by a master.
        r#"{"time":"1970-01-01T00:00:03.000Z","event":"http","method":"GET","path":"/ign/x","status":200,"remote":"192.168.100.21","userAgent":"","bytes":1}"#,
        r#"{"time":"1970-01-01T00:00:05.000Z","event":"connection","port":22623,"remote":"192.168.100.21","backend":"bootstrap"}"#,
        r#"{"time":"1970-01-01T00:00:07.000Z","event":"connection","port":22623,"remote":"192.168.100.21","backend":"master-0"}"#,
        r#"{"time":"1970-01-01T00:00:08.000Z","event":"http","method":"GET","path":"/bin/x","status":200,"remote":"192.168.100.21","userAgent":"","bytes":1}"#,
        r#"{"time":"1970-01-01T00:00:09.000Z","event":"backend","port":6443,"host":"master-0","healthy":true,"reason":"ready"}"#,
    ]
    .iter()
    .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}")))
    .collect();
    let journal = r#"{"time":"1970-01-01T00:00:04Z","who":"bootkube","step":"cb-bootstrap","event":"begin"}
{"time":"1970-01-01T00:00:08Z","who":"bootkube","step":"cb-bootstrap","event":"end"}"#;
    let installs = r#"{"time":"1970-01-01T00:00:05Z","who":"installer/etcd-pod","step":"revision-1","event":"begin"}
{"time":"1970-01-01T00:00:05Z","who":"installer/etcd-pod","step":"revision-1/files","event":"begin"}
{"time":"1970-01-01T00:00:06Z","who":"installer/etcd-pod","step":"revision-1","event":"end"}"#;
    let state = |text: &str| fold(&lines(text.as_bytes()));
    let journals =
        [("bootstrap".to_string(), state(journal)), ("master-0".to_string(), state(installs))].into();
    let milestones = [("machines switched on".to_string(), 0.5), ("the API to answer: v1".to_string(), 10.0)];
    let input = Input {
        started: 1000,
        milestones: &milestones,
        journals: &journals,
        events: &events,
        inventory: &inventory,
    };
    let timeline = timeline(&input);
    let bars: Vec<_> = (timeline.rows.iter())
        .flat_map(|r| r.bars.iter().map(|b| (r.node.as_str(), b.step.as_str(), b.from, b.to)))
        .collect();
    assert_eq!(
        bars,
        [
            ("lab", "machines switched on", 0.0, 0.5),
            ("lab", "the API to answer", 0.5, 10.0),
            ("bootstrap", "bootkube cb-bootstrap", 3.0, 7.0),
            ("master-0", "power to DHCP", 0.0, 1.0),
            ("master-0", "DHCP to pointer", 1.0, 2.0),
            ("master-0", "waits for its configuration", 2.0, 4.0),
            ("master-0", "installer/etcd-pod revision-1", 4.0, 5.0),
            ("worker-0", "waits for its configuration", 2.0, 6.0),
            ("worker-0", "fetches its software", 6.0, 7.0),
        ]
    );
    assert!(terminal(&timeline).contains("critical path, 10.0s"));
    let drawn = svg(&timeline);
    assert!(drawn.starts_with("<svg") && drawn.ends_with("</svg>\n") && drawn.contains("#d62728"));
}
