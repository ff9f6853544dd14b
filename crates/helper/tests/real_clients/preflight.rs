//! `seedling preflight` as a client: our DNS answers what it wants, and a foreign DHCP server is found.

use super::lab::{HELPER, Lab};
use seedling_checks::Outcome;
use seedling_checks::preflight::{Facts, ask_all, judge, offers, questions};
use seedling_types::{Inventory, ports};
use std::net::Ipv4Addr;

/// The machine whose DHCP server is nobody's friend.
const STRANGER: Ipv4Addr = Ipv4Addr::new(192, 168, 100, 77);

/// No test: what the tests run inside a machine's namespace.
#[test]
#[ignore = "run by the other tests inside a namespace"]
fn preflight_process() {
    let Ok(hosts) = std::env::var("SEEDLING_TEST_HOSTS") else { return };
    let inventory = Inventory::parse(&hosts).unwrap();
    let asked = async {
        let domain = seedling_types::ClusterDomain("ocp4.example.com".into());
        let names = questions(&domain, Some(&inventory), "nobody-has-this");
        Facts {
            names: ask_all(names, &[(HELPER, ports::DNS).into()]).await,
            dhcp: Some(offers("eth0", seedling_types::inventory::v4(HELPER)).await),
            ..Facts::default()
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for finding in judge(&runtime.block_on(asked)) {
        let result = finding.result == Outcome::Ok;
        println!("{result} {} {}: {}", finding.check.name, finding.on, finding.says);
    }
}

fn preflight(lab: &Lab) -> String {
    let hosts = lab.path("hosts.yaml");
    std::fs::write(&hosts, lab.config.inventory.to_yaml()).unwrap();
    let program = std::env::current_exe().unwrap();
    let script = format!(
        "SEEDLING_TEST_HOSTS=\"$(cat {})\" {} preflight::preflight_process --exact --ignored --nocapture",
        hosts.display(),
        program.display()
    );
    lab.run("master-0", &script).text
}

#[test]
fn our_dns_is_good_and_a_foreign_dhcp_server_is_found() {
    let mut lab = Lab::new(&["master-0", "stranger"]);
    lab.addresses();
    lab.start();
    let text = preflight(&lab);
    let good = text.lines().filter(|line| line.starts_with("true dns-")).count();
    // api and api-int, four machines in both directions, apps, and a name that nobody has.
    assert!(good == 12 && !text.contains("false "), "{text}");
    assert!(
        text.contains("true foreign-dhcp eth0: nobody offers"),
        "ours offers nothing to strangers\n{text}"
    );

    let config = lab.write(
        "udhcpd.conf",
        format!(
            "start {STRANGER}\nend {STRANGER}\ninterface eth0\nlease_file {0}/l\npidfile {0}/p\n",
            lab.path("").display()
        ),
    );
    lab.write("l", "");
    let namespace = lab.namespace("stranger");
    assert!(super::lab::output(&format!("ip -n {namespace} addr add 192.168.100.76/24 dev eth0")).ok);
    assert!(lab.run("stranger", &format!("busybox udhcpd {}", config.display())).ok);
    let text = preflight(&lab);
    let pid = std::fs::read_to_string(lab.path("p")).unwrap_or_default();
    let _ = super::lab::output(&format!("kill {pid}"));
    assert!(text.contains("false foreign-dhcp eth0: 192.168.100.76 offers addresses"), "{text}");
}
