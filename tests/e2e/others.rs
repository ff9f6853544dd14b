//! A site that keeps its servers: real dnsmasq gives names and addresses, real HAProxy balances, with what `helper export` makes of the
//! lab's helper.yaml. The helper has only the Ignition configs and the registry.

use crate::{Suite, diagnose, finish, start};
use anyhow::{Result, ensure};
use seedling_e2e::{Lab, condition, judge, run, seedling};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const HELPER: &str = "192.168.100.1";
const DOMAIN: &str = "lab.seedling.lab";

/// They end with this value.
struct Servers(Vec<Child>);

impl Drop for Servers {
    fn drop(&mut self) {
        for server in &mut self.0 {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

pub(crate) fn checks(suite: &mut Suite) {
    let lab = Lab { name: "e2e-others".into() };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/need.sh");
    let mut install = Command::new(script);
    install.args(["dnsmasq=dnsmasq-base", "haproxy=haproxy", "dig=bind9-dnsutils"]);
    if !suite.check("dnsmasq_and_haproxy_are_installed", || run(&mut install).map(drop)) {
        return;
    }
    let mut servers = None;
    let prepared = suite.check("a_lab_leaves_names_addresses_and_balancing_to_others", || {
        run(&mut lab.lab(&["up", "--prepare", "--workers", "1", "--without", "dhcp,dns,load-balancer"]))?;
        servers = Some(serve(&lab)?);
        Ok(())
    });
    if prepared && suite.check("a_cluster_grows_behind_dnsmasq_and_haproxy", || finish(start(&lab, &[])?)) {
        suite.check("they_did_the_work", || theirs(&lab));
        suite.check("the_cluster_is_whole", || whole(&lab));
        suite.check("a_master_is_missed_by_nobody", || balanced(&lab));
    }
    if !suite.failed.is_empty() {
        diagnose(&lab);
        for log in ["dnsmasq.log", "haproxy.log"] {
            println!("--- {log}\n{}", std::fs::read_to_string(lab.dir().join(log)).unwrap_or_default());
        }
    }
    drop(servers);
    suite.check("lab_down_removes_it", || run(&mut lab.lab(&["down"])).map(drop));
}

/// In the lab's network.
fn inside(lab: &Lab, program: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &format!("seedling-{}", lab.name), program]);
    command
}

fn serve(lab: &Lab) -> Result<Servers> {
    let dir = lab.dir();
    let mut servers = Servers(vec![]);
    let flag = |name: &str, file: &str| format!("--{name}={}", dir.join(file).display());
    let mut dnsmasq = inside(lab, "dnsmasq");
    dnsmasq.args(["--keep-in-foreground", "--user=root", "--log-dhcp", "--log-facility=-"]).args([
        flag("conf-file", "dnsmasq.conf"),
        flag("dhcp-leasefile", "dnsmasq.leases"),
        flag("pid-file", "dnsmasq.pid"),
    ]);
    let mut haproxy = inside(lab, "haproxy");
    haproxy.args(["-db", "-f"]).arg(dir.join("haproxy.cfg"));
    for (name, mut command) in [("dnsmasq", dnsmasq), ("haproxy", haproxy)] {
        let mut export = seedling();
        export
            .args(["helper", "export", name, "--config"])
            .arg(dir.join("helper.yaml"))
            .arg("--dir")
            .arg(&dir);
        run(&mut export)?;
        let log = std::fs::File::create(dir.join(format!("{name}.log")))?;
        servers.0.push(command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?);
    }
    Ok(servers)
}

/// Leases of dnsmasq's, and not a word of DHCP or balancing in the helper's log.
fn theirs(lab: &Lab) -> Result<()> {
    let leases = std::fs::read_to_string(lab.dir().join("dnsmasq.leases"))?;
    for name in ["bootstrap", "master-0", "master-1", "master-2", "worker-0"] {
        ensure!(leases.contains(&format!(" {name} ")), "{name} has no lease:\n{leases}");
    }
    let foreign = |e: &&serde_json::Value| {
        e["event"] == "dhcp" || e["event"] == "backend" || e["event"] == "connection"
    };
    let events = lab.events()?;
    let ours: Vec<_> = events.iter().filter(foreign).collect();
    ensure!(ours.is_empty(), "the helper did their work: {ours:?}");
    let answer =
        run(inside(lab, "dig").args(["+short", &format!("@{HELPER}"), &format!("api-int.{DOMAIN}")]))?;
    ensure!(answer.trim() == HELPER, "api-int is {answer:?}");
    Ok(())
}

fn whole(lab: &Lab) -> Result<()> {
    let nodes = lab.items(&["nodes"])?;
    ensure!(nodes.len() == 4, "{} nodes", nodes.len());
    ensure!(nodes.iter().all(|node| condition(node, "Ready") == Some("True")), "{nodes:#?}");
    judge::settled(&lab.items(&["clusteroperators"])?)?;
    lab.one_etcd_cluster()
}

/// HAProxy sees that a master is off, and asks the others.
fn balanced(lab: &Lab) -> Result<()> {
    run(&mut lab.lab(&["power", "master-1", "kill"]))?;
    seedling_e2e::wait("HAProxy to take master-1 out", std::time::Duration::from_secs(60), || {
        let log = std::fs::read_to_string(lab.dir().join("haproxy.log"))?;
        Ok(log.contains("Server api/master-1 is DOWN").then_some(()))
    })?;
    for _ in 0..9 {
        lab.get(&["namespace", "default"])?;
    }
    run(&mut lab.lab(&["power", "master-1", "on"])).map(drop)
}
