//! Real clients: a Deployment and a Service, by name and across nodes; logs, exec, port-forward.

use crate::Suite;
use anyhow::{Context, Result, ensure};
use seedling_e2e::{Lab, judge, name, run, seedling, wait};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Of four static pods and the kubelet; its links lead nowhere from here, and are left out.
const CERTIFICATES_OF_A_MASTER: usize = 15;

pub(crate) fn checks(suite: &mut Suite, lab: &Lab) {
    suite.check("the_network_config_says_what_is_so", || {
        let network =
            run(&mut lab.kubectl(&["get", "network.config.openshift.io", "cluster", "-o", "json"]))?;
        let network: Value = serde_json::from_str(&network)?;
        let (spec, status) = (&network["spec"], &network["status"]);
        for field in ["clusterNetwork", "serviceNetwork", "networkType"] {
            ensure!(!spec[field].is_null() && spec[field] == status[field], "{field}: {status}");
        }
        let card = run(&mut lab.lab(&["exec", "master-0", "--", "cat", "/sys/class/net/eth0/mtu"]))?;
        ensure!(
            status["clusterNetworkMTU"].as_u64() == card.trim().parse().ok(),
            "{status}, and a card has {card}"
        );
        Ok(())
    });
    let created = suite.check("kubectl_rolls_out_a_deployment", || deploy(lab));
    if !created {
        return;
    }
    suite.check("pods_are_on_different_nodes_and_reach_each_other", || {
        let pods = pods(lab)?;
        let node = |p: &Value| p["spec"]["nodeName"].as_str().unwrap_or_default().to_string();
        ensure!(node(&pods[0]) != node(&pods[1]), "both on {}", node(&pods[0]));
        for (from, to) in [(0, 1), (1, 0)] {
            let url = format!("http://{}:8080/", pods[to]["status"]["podIP"].as_str().unwrap_or_default());
            let page = exec(lab, name(&pods[from]), &["wget", "-qO-", &url])?;
            ensure!(page.trim() == name(&pods[to]), "{page}");
        }
        Ok(())
    });
    suite.check("the_service_answers_by_dns_name", || {
        let pods = pods(lab)?;
        let names: Vec<_> = pods.iter().map(name).collect();
        for pod in &names {
            let page = exec(lab, pod, &["wget", "-qO-", "http://hello.default.svc.cluster.local/"])?;
            ensure!(names.contains(&page.trim()), "{page}");
        }
        Ok(())
    });
    suite.check("kubectl_logs_and_exec_work", || {
        let pods = pods(lab)?;
        let log = run(&mut lab.kubectl(&["logs", name(&pods[0])]))?;
        ensure!(log.contains("serving as"), "{log}");
        ensure!(exec(lab, name(&pods[0]), &["hostname"])?.trim() == name(&pods[0]));
        Ok(())
    });
    suite.check("kubectl_port_forward_works", || port_forward(lab));
    suite.check("no_certificate_ends_within_thirty_days", || {
        let node = lab.dir().join("nodes/master-0");
        let script = "for f in upper/etc/kubernetes/static-pod-resources/*/secrets/*/*.crt kubelet/pki/*.pem; do \
            [ -e $f ] || continue; openssl x509 -in $f -noout -checkend 2592000 >/dev/null && echo good $f || echo soon $f; done";
        let listing = run(Command::new("sh").arg("-c").arg(script).current_dir(node))?;
        judge::certificates(&listing, CERTIFICATES_OF_A_MASTER)
    });
}

fn deploy(lab: &Lab) -> Result<()> {
    let release: Value = serde_json::from_str(&run(seedling().args(["release", "info", "-o", "json"]))?)?;
    let image = release["images"]["tools"].as_str().context("the release has no image for test workloads")?;
    let script = "mkdir -p /tmp/www && hostname > /tmp/www/index.html && echo serving as $(hostname) && \
        exec httpd -f -p 8080 -h /tmp/www";
    let labels = json!({"app": "hello"});
    let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}]}});
    let container = json!({"name": "web", "image": image, "command": ["sh", "-c", script],
        "readinessProbe": {"httpGet": {"port": 8080, "path": "/"}, "periodSeconds": 1}});
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "hello"}, "spec": {
            "replicas": 2, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"affinity": apart, "containers": [container]}}}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hello"}, "spec": {
            "selector": labels, "ports": [{"port": 80, "targetPort": 8080}]}},
    ]});
    let mut apply = lab.kubectl(&["apply", "-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    apply.stdin.take().context("no stdin")?.write_all(objects.to_string().as_bytes())?;
    ensure!(apply.wait()?.success(), "kubectl apply failed");
    run(&mut lab.kubectl(&["rollout", "status", "deployment/hello", "--timeout=120s"])).map(drop)
}

fn pods(lab: &Lab) -> Result<Vec<Value>> {
    let pods = lab.items(&["pods", "-l", "app=hello"])?;
    ensure!(pods.len() == 2, "{} pods", pods.len());
    Ok(pods)
}

fn exec(lab: &Lab, pod: &str, command: &[&str]) -> Result<String> {
    run(lab.kubectl(&["exec", pod, "--"]).args(command))
}

fn port_forward(lab: &Lab) -> Result<()> {
    let mut forward = lab
        .kubectl(&["port-forward", "deployment/hello", ":8080"])
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    let mut asked = || -> Result<()> {
        let mut line = String::new();
        std::io::BufRead::read_line(
            &mut std::io::BufReader::new(forward.stdout.as_mut().context("no stdout")?),
            &mut line,
        )?;
        let port: u16 = line
            .split("127.0.0.1:")
            .nth(1)
            .and_then(|s| s.split_whitespace().next())
            .context(line.clone())?
            .parse()?;
        wait("an answer through the forward", Duration::from_secs(20), || {
            let mut stream = TcpStream::connect(("127.0.0.1", port))?;
            stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
            let mut page = String::new();
            stream.read_to_string(&mut page)?;
            Ok(page.contains("hello-").then_some(()))
        })
    };
    let result = asked();
    forward.kill()?;
    forward.wait()?;
    result
}
