//! Trust: tokens in their pointers and nowhere else, configs for nobody but their machine, one key a node, pods kept out.

use crate::Suite;
use anyhow::{Context, Result, ensure};
use seedling_e2e::{Lab, name, output, run, seedling, text, wait};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const MASTERS: [&str; 3] = ["master-0", "master-1", "master-2"];
const NS: &str = "openshift-machine-config-operator";

/// While the machines boot: what a process was started with anybody on the machine can read.
pub(crate) fn while_booting(suite: &mut Suite, lab: &Lab) {
    suite.check("no_process_was_given_a_token_to_start_with", || {
        wait("the pointer configs", Duration::from_secs(60), || tokens(lab).map(Some))?;
        no_process_has(lab)
    });
}

pub(crate) fn checks(suite: &mut Suite, lab: &Lab) {
    suite.check("tokens_are_in_no_log_record_journal_or_process", || {
        no_process_has(lab)?;
        nowhere_else(lab)
    });
    suite.check("each_master_got_its_config_from_its_own_address", || served(lab));
    suite.check("a_spent_token_is_refused", || {
        let token = own_token(lab, "master-0")?;
        asks(lab, "master-0", Some(&token), "403")?;
        audited(lab, "master-0", "spent")
    });
    suite.check("without_a_token_there_is_no_config", || asks(lab, "master-1", None, "403"));
    suite.check("headers_do_not_make_an_address", || {
        let forged = "-H 'X-Forwarded-For: 192.168.100.12' -H 'Forwarded: for=192.168.100.12'";
        curl(lab, "master-0", &format!("{forged} https://$api:22623/config/master"), "403")
    });
    suite.check("plain_http_is_on_loopback_only", || {
        curl(lab, "master-0", "http://localhost:22624/healthz", "200")?;
        curl(lab, "master-0", "http://192.168.100.11:22624/healthz", "000")
    });
    suite.check("without_credentials_the_api_tells_its_health_only", || anonymous(lab));
    suite.check("who_changed_what_is_written_down", || changes(lab));
    suite.check("operators_are_refused_nothing", || refused(lab));
    suite.check("a_node_keeps_nothing_to_ask_for_certificates_with", || forgotten(lab));
    suite.check("a_second_key_is_refused_until_the_node_is_issued_anew", || second_key(lab));
    suite.check("an_issued_token_is_good_for_its_machine_only", || issued_anew(lab));
    suite.check("pods_cannot_reach_the_machine_config_server", || pods(lab));
}

/// Their roles are made for what they do; the API's audit log leaves most reads out, so their own logs are read.
fn refused(lab: &Lab) -> Result<()> {
    let mut looked_at = 0;
    for operator in lab.items(&["deployments", "-A"])? {
        let namespace = operator["metadata"]["namespace"].as_str().unwrap_or_default();
        if !namespace.starts_with("openshift-") {
            continue;
        }
        let name = format!("deployment/{}", name(&operator));
        let log = run(&mut lab.kubectl(&["logs", "-n", namespace, &name]))?;
        let refused: Vec<_> = log.lines().filter(|line| line.contains("refuses (403)")).collect();
        ensure!(refused.is_empty(), "{name}: {}", refused.join("; "));
        looked_at += 1;
    }
    ensure!(looked_at >= 8, "only {looked_at} operators were found");
    Ok(())
}

fn forgotten(lab: &Lab) -> Result<()> {
    for node in MASTERS {
        let left = lab.shell(node, "ls /etc/kubernetes/kubeconfig 2>/dev/null || echo gone")?;
        ensure!(left.trim() == "gone", "{node}: {left}");
    }
    Ok(())
}

/// By machine, from the pointer configs, which nobody else may read.
fn tokens(lab: &Lab) -> Result<Vec<String>> {
    MASTERS.iter().map(|node| own_token(lab, node)).collect()
}

fn own_token(lab: &Lab, node: &str) -> Result<String> {
    let path = pointer(lab, node);
    let mode = std::fs::metadata(&path).with_context(|| path.display().to_string())?.permissions().mode();
    ensure!(mode & 0o777 == 0o600, "{} has mode {mode:o}", path.display());
    let pointer: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    let header = pointer.pointer("/ignition/config/merge/0/httpHeaders/0/value").and_then(Value::as_str);
    let token = header.and_then(|h| h.strip_prefix("Bearer ")).context("the pointer has no token")?;
    ensure!(token.len() == 64, "the token has {} characters", token.len());
    Ok(token.into())
}

fn pointer(lab: &Lab, node: &str) -> PathBuf {
    lab.dir().join(format!("assets/nodes/{node}.ign"))
}

/// Machines are containers: their processes are this machine's too.
fn no_process_has(lab: &Lab) -> Result<()> {
    let tokens = tokens(lab)?;
    let mut looked_at = 0;
    for entry in std::fs::read_dir("/proc")?.flatten() {
        for file in ["cmdline", "environ"] {
            let Ok(contents) = std::fs::read(entry.path().join(file)) else { continue };
            looked_at += 1;
            ensure!(!has(&contents, &tokens), "{}/{file} has a token", entry.path().display());
        }
    }
    ensure!(looked_at > 20, "only {looked_at} files of processes");
    Ok(())
}

/// Everything the lab keeps: the helper's logs, consoles, the nodes' disks with their records, pod logs and journals.
fn nowhere_else(lab: &Lab) -> Result<()> {
    let tokens = tokens(lab)?;
    let allowed = |path: &Path| {
        path.starts_with(lab.dir().join("assets/nodes")) || path.ends_with(".openshift_install_state.json")
    };
    let mut search = Command::new("grep");
    search.args(["-r", "-l", "-a", "-F", "--exclude-dir=containerd"]);
    for token in &tokens {
        search.args(["-e", token]);
    }
    let found = text(&output(search.arg(lab.dir()))?.stdout);
    let leaks: Vec<_> = found.lines().filter(|path| !allowed(Path::new(path))).collect();
    ensure!(leaks.is_empty(), "a token is in {leaks:?}");
    ensure!(found.lines().count() >= 4, "the search does not even find the pointers: {found}");
    // Journals may compress what is long.
    for node in ["bootstrap"].iter().chain(&MASTERS) {
        let journal = run(&mut lab.lab(&["logs", node, "--journal"]))?;
        ensure!(journal.lines().count() > 50, "{node} has no journal");
        ensure!(!has(journal.as_bytes(), &tokens), "a token is in the journal of {node}");
    }
    Ok(())
}

fn has(haystack: &[u8], tokens: &[String]) -> bool {
    let text = String::from_utf8_lossy(haystack);
    tokens.iter().any(|token| text.contains(token))
}

/// The bootstrap server's audit log is still on its disk.
fn served(lab: &Lab) -> Result<()> {
    let log = lab.dir().join("nodes/bootstrap/upper/var/log/machine-config-server/audit.log");
    let log = std::fs::read_to_string(&log).with_context(|| log.display().to_string())?;
    let lines = log.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    for (node, last) in MASTERS.iter().zip(11..) {
        let allowed = lines.iter().find(|l| l["node"] == *node && l["verdict"] == "allowed");
        let line = allowed.with_context(|| format!("{node} is not in\n{log}"))?;
        ensure!(line["address"] == format!("192.168.100.{last}"), "{line}");
        ensure!(line["loadBalancer"] == "192.168.100.1", "{line}");
        let agent = line["request"]["userAgent"].as_str().unwrap_or_default();
        ensure!(agent.starts_with("Ignition/") && line["request"]["status"] == 200, "{line}");
    }
    Ok(())
}

/// What the masters' servers wrote down of a machine.
fn audited(lab: &Lab, node: &str, why: &str) -> Result<()> {
    let logs: Vec<_> = MASTERS
        .iter()
        .map(|m| lab.shell(m, "cat /var/log/machine-config-server/audit.log 2>/dev/null || true"))
        .collect::<Result<_>>()?;
    let found = logs.iter().flat_map(|log| log.lines()).any(|line| {
        serde_json::from_str::<Value>(line).is_ok_and(|l| {
            l["node"] == node
                && l["verdict"] == "refused"
                && l["reason"].as_str().is_some_and(|r| r.contains(why))
        })
    });
    ensure!(found, "no refusal of {node} says {why:?}:\n{}", logs.join("\n"));
    Ok(())
}

fn asks(lab: &Lab, node: &str, token: Option<&str>, status: &str) -> Result<()> {
    let header = token.map(|t| format!("-H 'Authorization: Bearer {t}'")).unwrap_or_default();
    curl(lab, node, &format!("{header} https://$api:22623/config/master"), status)
}

/// On a machine; `$api` is what machines ask.
fn curl(lab: &Lab, node: &str, request: &str, status: &str) -> Result<()> {
    let script = format!(
        ". /etc/kubernetes/apiserver-url.env; api=$KUBERNETES_SERVICE_HOST; \
         curl -sk --max-time 10 -o /dev/null -w '%{{http_code}}' {request} || true"
    );
    let said = lab.shell(node, &script)?;
    ensure!(said.trim() == status, "{node} got {said}, not {status}");
    Ok(())
}

fn anonymous(lab: &Lab) -> Result<()> {
    for path in ["/healthz", "/livez", "/readyz"] {
        curl(lab, "master-0", &format!("https://localhost:6443{path}"), "200")?;
    }
    for path in [
        "/version",
        "/api",
        "/apis",
        "/openapi/v3",
        "/readyz/ping",
        "/api/v1/namespaces/kube-public/configmaps",
    ] {
        curl(lab, "master-0", &format!("https://localhost:6443{path}"), "401")?;
    }
    Ok(())
}

/// A Secret that is made: by whom, and without what is in it.
fn changes(lab: &Lab) -> Result<()> {
    let contents = "audited-0123456789";
    run(&mut lab.kubectl(&[
        "create",
        "secret",
        "generic",
        "audited",
        &format!("--from-literal=key={contents}"),
    ]))?;
    run(&mut lab.kubectl(&["delete", "secret", "audited"]))?;
    let mut lines = Vec::new();
    for node in MASTERS {
        let log = lab.shell(
            node,
            "cat /var/log/kube-apiserver/audit.log; stat -c %a /var/log/kube-apiserver/audit.log",
        )?;
        ensure!(log.trim_end().ends_with("600"), "others may read {node}'s audit log");
        ensure!(!log.contains(contents), "the Secret's contents are in {node}'s audit log");
        lines.extend(log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()));
    }
    for verb in ["create", "delete"] {
        let of = |line: &&Value| line["verb"] == verb && line["objectRef"]["name"] == "audited";
        let line = lines.iter().find(of).with_context(|| format!("no {verb} of the Secret"))?;
        ensure!(
            line["user"]["username"] == "system:admin" && line["responseStatus"]["code"].is_u64(),
            "{line:#}"
        );
    }
    Ok(())
}

fn requests(lab: &Lab) -> Result<Vec<Value>> {
    let listed = run(seedling().args(["csr", "-o", "json", "--lab", &lab.name]).env_remove("KUBECONFIG"))?;
    Ok(serde_json::from_str(&listed)?)
}

fn request(lab: &Lab, name: &str) -> Result<Value> {
    let found = requests(lab)?.into_iter().find(|r| r["name"] == name);
    found.with_context(|| format!("`seedling csr` does not list {name}"))
}

fn reissue(lab: &Lab, node: &str) -> Result<()> {
    let args = ["node", "reissue", node, "--lab", &lab.name];
    let written = run(seedling().args(args).env_remove("KUBECONFIG"))?;
    ensure!(Path::new(written.trim()) == pointer(lab, node), "{written}");
    Ok(())
}

/// Asked as the machines ask, by somebody who has their bootstrap credentials.
fn second_key(lab: &Lab) -> Result<()> {
    let first = requests(lab)?;
    for node in MASTERS {
        let issued = |r: &&Value| r["node"] == node && r["kind"] == "client" && r["issued"] == true;
        ensure!(first.iter().any(|r| issued(&r)), "no first certificate of {node} is listed: {first:?}");
    }
    let (node, csr) = ("master-1", "second-key");
    ask(lab, node, csr)?;
    wait("the refusal", Duration::from_secs(30), || {
        let seen = request(lab, csr)?;
        ensure!(seen["verdict"] == "refused", "{seen}");
        let reason = seen["reason"].as_str().unwrap_or_default();
        ensure!(reason.contains("another key") && reason.contains("reissue master-1"), "{reason}");
        Ok(Some(()))
    })?;
    reissue(lab, node)?;
    wait("the second certificate", Duration::from_secs(30), || {
        let seen = request(lab, csr)?;
        Ok((seen["verdict"] == "approved" && seen["issued"] == true).then_some(()))
    })?;
    // With that the new token is spent as well.
    asks(lab, node, Some(&own_token(lab, node)?), "403")?;
    audited(lab, node, "spent")
}

fn ask(lab: &Lab, node: &str, csr: &str) -> Result<()> {
    let make = "openssl ecparam -name prime256v1 -genkey -noout | openssl req -new -key /dev/stdin -subj";
    let pem = run(Command::new("sh")
        .args(["-c", &format!("{make} '/O=system:nodes/CN=system:node:{node}' | base64 -w0")]))?;
    let object = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": csr},
        "spec": {"signerName": "kubernetes.io/kube-apiserver-client-kubelet", "request": pem.trim(),
            "usages": ["digital signature", "client auth"]},
    });
    let account = format!("system:serviceaccount:{NS}:node-bootstrapper");
    let mut create = lab.kubectl(&["create", "--as", &account, "-f", "-"]);
    for group in [
        format!("system:serviceaccounts:{NS}"),
        "system:serviceaccounts".into(),
        "system:authenticated".into(),
    ] {
        create.args(["--as-group", &group]);
    }
    let mut create = create.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    serde_json::to_writer(create.stdin.take().context("no stdin")?, &object)?;
    ensure!(create.wait()?.success(), "kubectl create failed");
    Ok(())
}

fn issued_anew(lab: &Lab) -> Result<()> {
    let node = "master-2";
    let old = own_token(lab, node)?;
    reissue(lab, node)?;
    let new = own_token(lab, node)?;
    ensure!(old != new, "the token is the old one");
    asks(lab, node, Some(&old), "403")?;
    asks(lab, "master-0", Some(&new), "403")?;
    asks(lab, node, Some(&new), "200")?;
    // A machine killed while booting asks again.
    asks(lab, node, Some(&new), "200")
}

/// The Deployment `hello` has a pod on two nodes. That the same pod reaches the API there shows that it is not the network.
fn pods(lab: &Lab) -> Result<()> {
    let pods = lab.items(&["pods", "-l", "app=hello"])?;
    ensure!(!pods.is_empty(), "there is no pod to try it from");
    let api = lab.shell("master-0", ". /etc/kubernetes/apiserver-url.env; echo $KUBERNETES_SERVICE_HOST")?;
    for pod in &pods {
        let reaches = |host: &str, port: u16| -> Result<bool> {
            let script = format!("nc -w 5 {host} {port} </dev/null");
            Ok(output(&mut lab.kubectl(&["exec", name(pod), "--", "sh", "-c", &script]))?.status.success())
        };
        let own = pod["status"]["hostIP"].as_str().context("no hostIP")?;
        let gateway =
            pod["status"]["podIP"].as_str().and_then(|ip| Some(format!("{}.1", ip.rsplit_once('.')?.0)));
        for host in [own, "192.168.100.11", "192.168.100.12", "192.168.100.13", "192.168.100.1", api.trim()] {
            ensure!(reaches(host, 6443)?, "{} cannot even reach {host}:6443", name(pod));
            ensure!(!reaches(host, 22623)?, "{} reaches {host}:22623", name(pod));
            ensure!(!reaches(host, 22624)?, "{} reaches {host}:22624", name(pod));
        }
        let gateway = gateway.context("no podIP")?;
        ensure!(!reaches(&gateway, 22623)?, "{} reaches {gateway}:22623", name(pod));
    }
    // The machines themselves do.
    curl(lab, "master-0", "https://192.168.100.12:22623/healthz", "200")
}
