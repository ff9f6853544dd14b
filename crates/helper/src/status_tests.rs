use super::*;
use crate::testing::config;

const MAC: &str = "52:54:00:00:00:21";
const WORKER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 168, 100, 21));

/// A word an event, of worker-0.
fn event(word: &str) -> Kind {
    let (what, detail) = word.split_once('=').unwrap_or((word, ""));
    let http = |path: &str, status| Kind::Http {
        method: "GET".into(),
        path: path.into(),
        status,
        remote: WORKER,
        host: None,
        user_agent: String::new(),
        bytes: 1,
    };
    let tftp = |status: &str| Kind::Tftp {
        file: detail.into(),
        remote: WORKER,
        host: None,
        bytes: 1,
        status: status.into(),
    };
    let boot = |state| Kind::Boot { host: "worker-0".into(), state, message: Some("no disk".into()) };
    match what {
        "dhcp" => Kind::Dhcp { message: detail.into(), mac: MAC.into(), host: None, address: None },
        "stranger" => {
            Kind::Dhcp { message: detail.into(), mac: "52:54:00:00:00:99".into(), host: None, address: None }
        }
        "check" => {
            Kind::Dhcp { message: detail.into(), mac: "02:5E:ED:01:02:03".into(), host: None, address: None }
        }
        "tftp" => tftp("ok"),
        "stopped" => tftp("the machine stopped it: enough"),
        "missing" => tftp("not found"),
        "boot" => boot(serde_json::from_value(detail.into()).unwrap()),
        "get" => http(detail, 200),
        "denied" => http(detail, 403),
        "mcs" => Kind::Connection { port: 22623, remote: WORKER, host: None, backend: "master-0".into() },
        other => panic!("{other}"),
    }
}

fn of(boot: Option<&str>, words: &str) -> Status {
    let mut config = config();
    config.boot = boot.map(|yaml| serde_saphyr::from_str(yaml).unwrap());
    let events: Vec<_> = (0..)
        .zip(words.split_whitespace())
        .map(|(second, word)| HelperEvent {
            time: format!("2026-01-01T00:00:{second:02}.000Z"),
            what: event(word),
        })
        .collect();
    status(&config, &events, |_| BootState::default(), &Leases::default())
}

#[test]
fn the_first_broken_link_is_named() {
    let boot = Some("{imageDir: /b}");
    let kernel =
        "dhcp=ACK tftp=undionly.kpxe dhcp=ACK boot=install get=/boot/vmlinuz get=/boot/initramfs.img";
    let table = [
        (None, "", Some("address"), "never asked"),
        (None, "dhcp=DISCOVER dhcp=OFFER", Some("address"), "never asked"),
        (None, "dhcp=ELSEWHERE", Some("address"), "another DHCP server"),
        (None, "dhcp=ACK", Some("config"), "no Ignition config"),
        (None, "dhcp=ACK denied=/ign/x", Some("config"), "/ign/x was answered 403"),
        (None, "dhcp=ACK get=/ign/x", Some("machine-config"), "22623"),
        (None, "dhcp=ACK get=/ign/x mcs", Some("software"), "waits for the masters"),
        (None, "dhcp=ACK get=/ign/x mcs get=/bin/kubelet", None, "everything"),
        (boot, "dhcp=ACK", Some("boot loader"), "from the network first"),
        (boot, "dhcp=ACK stopped=undionly.kpxe", Some("boot loader"), "from the network first"),
        (boot, "dhcp=ACK missing=undionly.kpxe", Some("boot loader"), "TFTP of undionly.kpxe: not found"),
        (boot, "dhcp=ACK tftp=undionly.kpxe", Some("script"), "no script"),
        (boot, "dhcp=ACK boot=install", Some("kernel"), "kernel whole"),
        (
            boot,
            "tftp=pxelinux.0 missing=pxelinux.cfg/uuid tftp=pxelinux.cfg/01-x tftp=vmlinuz",
            Some("initramfs"),
            "kernel whole",
        ),
        (boot, kernel, Some("installed"), "not installed itself"),
        (
            boot,
            &format!("{kernel} boot=installing boot=failed"),
            Some("installed"),
            "cannot install itself: no disk",
        ),
        (boot, &format!("{kernel} get=/ign/x boot=installed"), Some("machine-config"), "22623"),
        (Some("{imageDir: /b, installDevice: none}"), kernel, Some("config"), "no Ignition config"),
    ];
    for (boot, words, broken, says) in table {
        let status = of(boot, words);
        let worker = status.machines.iter().find(|m| m.name == "worker-0").unwrap();
        assert_eq!(worker.broken, broken, "{words}");
        assert!(worker.says.contains(says), "{words}: {}", worker.says);
    }
}

#[test]
fn strangers_are_listed() {
    let status =
        of(None, "stranger=DISCOVER stranger=REFUSED stranger=DISCOVER dhcp=DISCOVER check=DISCOVER");
    let row = Unknown {
        mac: "52:54:00:00:00:99".into(),
        seen: "2026-01-01T00:00:02.000Z".into(),
        asked: 2,
        address: None,
    };
    assert_eq!(status.unknown, [row]);
    let table = status.table();
    assert!(table.contains("?          -               -        -          00:00:02  unknown, asked 2 times: seedling node add NAME --mac 52:54:00:00:00:99"), "{table}");
    assert!(table.starts_with("MACHINE    ADDRESS"), "{table}");
}
