//! Clusters with IPv6: one that has both families, and one that has nothing else. Addresses, names, pods and Services are asked by every
//! family that the cluster has.

use crate::workers::create;
use crate::{Suite, diagnose, finish, start};
use anyhow::{Context, Result, ensure};
use seedling_e2e::{Lab, judge, name, run, seedling, wait};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::process::Command;
use std::time::Duration;

const DOMAIN: &str = "lab.seedling.lab";
const HELPER6: &str = "fd5e:ed00:0:100::1";
const HELPER4: &str = "192.168.100.1";
const WITHIN: Duration = Duration::from_secs(120);

/// `--stack`, and how many families that is.
struct Stack {
    flag: &'static str,
    families: usize,
    checks: [&'static str; 7],
}

const STACKS: [Stack; 2] = [
    Stack {
        flag: "dual",
        families: 2,
        checks: [
            "a_dual_stack_cluster_grows",
            "its_nodes_have_an_address_of_each_family",
            "the_helper_answers_for_both_families",
            "pods_reach_each_other_by_both_families",
            "a_service_answers_at_both_its_addresses",
            "pods_keep_away_from_configs_by_both_families",
            "verify_finds_nothing_wrong_with_both_families",
        ],
    },
    Stack {
        flag: "ipv6",
        families: 1,
        checks: [
            "a_cluster_grows_by_ipv6_alone",
            "its_nodes_have_nothing_but_ipv6",
            "the_helper_answers_by_ipv6",
            "pods_reach_each_other_by_ipv6",
            "a_service_answers_by_ipv6",
            "pods_keep_away_from_configs_by_ipv6",
            "verify_finds_nothing_wrong_with_ipv6",
        ],
    },
];

pub(crate) fn checks(suite: &mut Suite) {
    for stack in STACKS {
        let lab = Lab { name: format!("e2e-{}", stack.flag) };
        let [grows, nodes, names, pods, service, kept_away, verify] = stack.checks;
        if suite.check(grows, || grown(&lab, &stack)) {
            suite.check(nodes, || addresses(&lab, &stack));
            suite.check(names, || answered(&lab, &stack));
            suite.check(pods, || reached(&lab, &stack));
            suite.check(service, || served(&lab, &stack));
            suite.check(kept_away, || away(&lab, &stack));
            suite.check(verify, || run(seedling().args(["verify", "--name", &lab.name])).map(drop));
        }
        if !suite.failed.is_empty() {
            diagnose(&lab);
        }
        suite.check("lab_down_removes_it", || run(&mut lab.lab(&["down"])).map(drop));
    }
}

/// With a worker, which was approved by its addresses, and etcd on the masters only, known by their main ones.
fn grown(lab: &Lab, stack: &Stack) -> Result<()> {
    finish(start(lab, &["--stack", stack.flag, "--workers", "1", "--probe"])?)?;
    lab.one_etcd_cluster()?;
    judge::settled(&lab.items(&["clusteroperators"])?)?;
    let script = "crictl exec $(crictl ps -q --name '^etcd$') etcdctl member list -w json";
    let members: Value = serde_json::from_str(&lab.shell("master-0", script)?)?;
    let urls: Vec<_> = members["members"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|member| member["peerURLs"][0].as_str())
        .collect();
    let of_family = |url: &&str| url.starts_with("https://[fd5e:") == (stack.families == 1);
    ensure!(urls.len() == 3 && urls.iter().all(of_family), "{urls:?}");
    let json = run(seedling().args(["csr", "--lab", &lab.name, "-o", "json"]))?;
    let requests: Vec<Value> = serde_json::from_str(&json)?;
    let issued = requests.iter().filter(|r| r["node"] == "worker-0" && r["issued"] == true).count();
    ensure!(issued >= 2, "worker-0 has {issued} certificates: {requests:#?}");
    Ok(())
}

fn texts(value: &Value, field: &str) -> Vec<String> {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(|one| one[field].as_str().or(one.as_str()).map(String::from)).collect()
}

/// The main one first; the second is of the other family.
fn each_family(found: &[String], stack: &Stack) -> Result<()> {
    let of = |text: &String| text.split('/').next().and_then(|text| text.parse::<IpAddr>().ok());
    let six: Vec<_> = found.iter().map(|text| of(text).map(|address| address.is_ipv6())).collect();
    let wanted = if stack.families == 2 { vec![Some(false), Some(true)] } else { vec![Some(true)] };
    ensure!(six == wanted, "{found:?}");
    Ok(())
}

fn addresses(lab: &Lab, stack: &Stack) -> Result<()> {
    let nodes = lab.items(&["nodes"])?;
    ensure!(nodes.len() == 4, "{} nodes", nodes.len());
    for node in &nodes {
        let of_type = |kind: &str| -> Vec<Value> {
            let all = node["status"]["addresses"].as_array().into_iter().flatten();
            all.filter(|address| address["type"] == kind).cloned().collect()
        };
        let internal = texts(&json!(of_type("InternalIP")), "address");
        each_family(&internal, stack).with_context(|| format!("addresses of {}", name(node)))?;
        each_family(&texts(&node["spec"]["podCIDRs"], ""), stack).with_context(|| name(node).to_string())?;
    }
    let network = lab.get(&["network.config.openshift.io", "cluster"])?;
    each_family(&texts(&network["status"]["serviceNetwork"], ""), stack)?;
    each_family(&texts(&network["status"]["clusterNetwork"], "cidr"), stack)
}

fn dig(lab: &Lab, words: &[&str]) -> Result<String> {
    let enter = format!("--net=/run/netns/seedling-{}", lab.name);
    let said = run(Command::new("nsenter").arg(enter).args(["dig", "+short", "+tries=1"]).args(words))?;
    Ok(said.trim().to_string())
}

/// Names, and names of addresses, by each of the helper's own addresses.
fn answered(lab: &Lab, stack: &Stack) -> Result<()> {
    let helpers: &[&str] = if stack.families == 2 { &[HELPER4, HELPER6] } else { &[HELPER6] };
    for helper in helpers {
        let at = format!("@{helper}");
        for (of, wanted) in [("master-1", "fd5e:ed00:0:100::12"), ("api", HELPER6), ("x.apps", HELPER6)] {
            let said = dig(lab, &[&at, "AAAA", &format!("{of}.{DOMAIN}")])?;
            ensure!(said == wanted, "{of} is {said:?} by {helper}");
        }
        let four = dig(lab, &[&at, "A", &format!("master-1.{DOMAIN}")])?;
        ensure!(four == if stack.families == 2 { "192.168.100.12" } else { "" }, "{four:?}");
        let name = dig(lab, &[&at, "-x", "fd5e:ed00:0:100::12"])?;
        ensure!(name == format!("master-1.{DOMAIN}."), "{name:?}");
        let by_tcp = dig(lab, &[&at, "+tcp", "AAAA", &format!("api-int.{DOMAIN}")])?;
        ensure!(by_tcp == HELPER6, "{by_tcp:?}");
    }
    Ok(())
}

/// A web server on every node, and a Service in front of them.
fn deploy(lab: &Lab) -> Result<Vec<Value>> {
    let release: Value = serde_json::from_str(&run(seedling().args(["release", "info", "-o", "json"]))?)?;
    let script =
        "mkdir -p /tmp/www && hostname > /tmp/www/index.html && exec httpd -f -p '[::]:8080' -h /tmp/www";
    let labels = json!({"app": "web"});
    let container = json!({"name": "web", "image": release["images"]["tools"], "command": ["sh", "-c", script],
        "readinessProbe": {"httpGet": {"port": 8080, "path": "/"}, "periodSeconds": 1}});
    let pod = json!({"tolerations": [{"operator": "Exists"}], "terminationGracePeriodSeconds": 0,
        "containers": [container]});
    create(
        lab,
        &json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "web"}, "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod}}},
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {
                "ipFamilyPolicy": "PreferDualStack", "selector": labels, "ports": [{"port": 80, "targetPort": 8080}]}},
        ]}),
    )?;
    run(&mut lab.kubectl(&["rollout", "status", "daemonset/web", "--timeout=120s"]))?;
    pods(lab)
}

fn pods(lab: &Lab) -> Result<Vec<Value>> {
    let pods = lab.items(&["pods", "-l", "app=web"])?;
    ensure!(pods.len() == 4, "{} pods", pods.len());
    Ok(pods)
}

fn fetch(lab: &Lab, pod: &str, host: &str, port: u16) -> Result<String> {
    let host =
        if host.parse::<IpAddr>().is_ok_and(|a| a.is_ipv6()) { format!("[{host}]") } else { host.into() };
    let url = format!("http://{host}:{port}/");
    Ok(run(&mut lab.kubectl(&["exec", pod, "--", "wget", "-qO-", &url]))?.trim().to_string())
}

/// From each to each: all of them are on different nodes.
fn reached(lab: &Lab, stack: &Stack) -> Result<()> {
    let pods = deploy(lab)?;
    for from in &pods {
        for to in &pods {
            let addresses = texts(&to["status"]["podIPs"], "ip");
            each_family(&addresses, stack)?;
            for address in addresses {
                let said = fetch(lab, name(from), &address, 8080)?;
                ensure!(said == name(to), "{} said {said:?} at {address}, and is {}", name(from), name(to));
            }
        }
    }
    Ok(())
}

/// From pods and from nodes, and by its name.
fn served(lab: &Lab, stack: &Stack) -> Result<()> {
    let addresses = texts(&lab.get(&["service", "web"])?["spec"]["clusterIPs"], "");
    each_family(&addresses, stack)?;
    let pods = pods(lab)?;
    for pod in &pods {
        for host in addresses.iter().map(String::as_str).chain(["web.default.svc.cluster.local"]) {
            let said = fetch(lab, name(pod), host, 80)?;
            ensure!(pods.iter().any(|one| name(one) == said), "{host} said {said:?}");
        }
        let node = pod["spec"]["nodeName"].as_str().context("a pod without a node")?;
        for address in &addresses {
            let host = if address.contains(':') { format!("[{address}]") } else { address.clone() };
            lab.exec(node, &["curl", "-gsS", "-m", "5", &format!("http://{host}/")])?;
        }
    }
    let six = addresses.iter().find(|address| address.contains(':')).context("no IPv6 address")?;
    wait("cluster DNS to have its IPv6 address", WITHIN, || {
        let ask = ["exec", name(&pods[0]), "--", "nslookup", "-type=aaaa", "web.default.svc.cluster.local"];
        let said = run(&mut lab.kubectl(&ask))?;
        ensure!(said.contains(six.as_str()), "{said}");
        Ok(Some(()))
    })
}

/// Neither the machine-config servers nor the helper's files: refused at once, by either family.
fn away(lab: &Lab, stack: &Stack) -> Result<()> {
    let pod = pods(lab)?;
    let pod = name(&pod[0]);
    let connect = |address: &str, port: &str| -> Result<bool> {
        let ask = [
            "exec",
            pod,
            "--",
            "sh",
            "-c",
            &format!("nc -w 3 {address} {port} </dev/null && echo open || echo shut"),
        ];
        Ok(run(&mut lab.kubectl(&ask))?.contains("open"))
    };
    let mut ends = vec![(HELPER6, "fd5e:ed00:0:100::12")];
    if stack.families == 2 {
        ends.push((HELPER4, "192.168.100.12"));
    }
    for (helper, master) in ends {
        ensure!(connect(master, "6443")?, "a pod does not reach the API at {master}");
        for (address, port) in [(helper, "8080"), (helper, "5000"), (helper, "22623"), (master, "22623")] {
            ensure!(!connect(address, port)?, "a pod reaches {address} port {port}");
        }
    }
    Ok(())
}
