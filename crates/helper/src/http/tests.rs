use super::*;
use crate::testing::config;

#[test]
fn only_the_machine_itself_gets_its_ignition_file() {
    let inventory = config().inventory;
    let ask = |mac: &str, last: u8| {
        entitled(&inventory, mac, [192, 168, 100, last].into())
            .map(|h| h.name.as_str())
            .map_err(|e| e.0.as_u16())
    };
    let table = [
        ("52:54:00:00:00:11", 11, Ok("master-0")),
        ("52-54-00-00-00-11", 11, Ok("master-0")),
        ("52:54:00:00:00:10", 10, Ok("bootstrap")),
        ("52:54:00:00:00:10", 11, Err(403)),
        ("52:54:00:00:00:11", 1, Err(403)),
        ("52:54:00:00:00:99", 11, Err(404)),
        ("", 11, Err(404)),
        ("../master", 11, Err(404)),
    ];
    for (mac, last, expected) in table {
        assert_eq!(ask(mac, last), expected, "{mac} from .{last}");
    }
}

#[test]
fn file_names() {
    for good in ["kubelet", "kube-apiserver", "ctr-2.3", "a..b"] {
        assert!(is_file_name(good), "{good}");
    }
    for bad in ["", ".", "..", "/", "/etc/passwd", "../x", "a/b", "a/", "./a", "a/..", "a/."] {
        assert!(!is_file_name(bad), "{bad}");
    }
}
