//! What machines and the API have to say, each asked with its own time limit, beside each other.

use crate::bundle::Bundle;
use kube::Client;
use seedling_steps::run_script;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;
use tokio::process::Command;

/// For a root shell on the machine, by any way; with `ROOT` set, for one beside the machine's disk.
const SCRIPT: &str = include_str!("collect/collect.sh");
/// The script says what it is at; a machine in emulation takes minutes for all of it.
const MACHINE_SILENT: Duration = Duration::from_secs(60);
const API_WITHIN: Duration = Duration::from_secs(5);
const RESOURCE_WITHIN: Duration = Duration::from_secs(10);

/// One line for people: what is being asked, and what was not there.
pub type Told<'a> = &'a (dyn Fn(&str) + Sync);

/// Where a machine's files go: upstream has the bootstrap machine's units at the root.
pub fn placed(files: Bundle, bootstrap: bool, dir: &str) -> Bundle {
    let mut placed = Bundle::default();
    for (path, content) in files.iter() {
        let content = content.to_vec();
        match path.strip_prefix("machine/") {
            Some(path) if bootstrap && (path.starts_with("unit-status/") || path == "failed-units.txt") => {
                placed.insert(path, content);
            }
            Some(path) => placed.insert(format!("{dir}{path}"), content),
            None => placed.insert(path, content),
        }
    }
    placed
}

/// `shell` runs `sh -s` as root on the machine.
pub async fn machine(shell: Command) -> Result<Bundle, String> {
    let printed = run_script(shell, SCRIPT, MACHINE_SILENT).await?;
    if printed.stdout.is_empty() {
        return Err(printed.last_complaint().unwrap_or("it said nothing").into());
    }
    Bundle::read_tar(printed.stdout.as_slice(), false).map_err(|e| e.to_string())
}

/// By the system's ssh, as upstream does: user core, host keys not asked for, never a question.
fn ssh(host: &str, keys: &[PathBuf]) -> Command {
    let mut ssh = Command::new("ssh");
    for option in [
        "BatchMode=yes",
        "StrictHostKeyChecking=no",
        "UserKnownHostsFile=/dev/null",
        "ConnectTimeout=10",
        "LogLevel=ERROR",
    ] {
        ssh.args(["-o", option]);
    }
    for key in keys {
        ssh.arg("-i").arg(key);
    }
    // A host that begins with a dash is no option.
    ssh.args(["-l", "core", "--", host, "sudo", "-n", "sh", "-s"]);
    ssh
}

/// What is said while gathering, for people and for `gather.log`.
pub struct Log<'a> {
    told: Told<'a>,
    text: Mutex<String>,
}

impl<'a> Log<'a> {
    pub fn new(told: Told<'a>) -> Self {
        Self { told, text: Mutex::default() }
    }

    pub fn say(&self, line: &str) {
        (self.told)(line);
        *self.text.lock().unwrap_or_else(|e| e.into_inner()) += &format!("{line}\n");
    }

    /// The bundle without secrets, and with this log.
    pub fn finish(self, bundle: Bundle) -> Bundle {
        let (mut bundle, left_out) = bundle.redacted();
        left_out.iter().for_each(|line| self.say(line));
        bundle.insert("gather.log", self.text.into_inner().unwrap_or_else(|e| e.into_inner()).into_bytes());
        bundle
    }
}

/// Everybody at once; who does not answer is missing, and named. An error if nobody does.
pub async fn by_ssh(
    bootstrap: &str,
    masters: &[String],
    keys: &[PathBuf],
    api: Result<Client, String>,
    told: Told<'_>,
) -> Result<Bundle, String> {
    let hosts = std::iter::once((bootstrap, true)).chain(masters.iter().map(|host| (host.as_str(), false)));
    let log = Log::new(told);
    let machines = hosts.map(async |(host, is_bootstrap)| {
        let below = if is_bootstrap { "bootstrap/".to_string() } else { format!("control-plane/{host}/") };
        match machine(ssh(host, keys)).await {
            Ok(files) => {
                log.say(&format!("{host}: gathered"));
                placed(files, is_bootstrap, &below)
            }
            Err(why) => {
                log.say(&format!("{host}: left out: {why}"));
                Bundle::default()
            }
        }
    });
    let api = async { resources(&api?).await };
    let (machines, api) = tokio::join!(futures::future::join_all(machines), api);
    let mut bundle = Bundle::default();
    machines.into_iter().for_each(|files| bundle.insert_all("", files));
    if bundle.is_empty() {
        return Err("no machine answered by ssh as core, so there is nothing to keep".into());
    }
    match api {
        Ok(files) => bundle.insert_all("", files),
        Err(why) => log.say(&format!("API: left out: {why}")),
    }
    bundle.insert("clock.txt", format!("{}\n", now()).into_bytes());
    Ok(log.finish(bundle))
}

/// Upstream's names, and where the API has them. No Secrets.
const RESOURCES: [(&str, &str); 24] = [
    ("apiservices", "/apis/apiregistration.k8s.io/v1/apiservices"),
    ("clusteroperators", "/apis/config.openshift.io/v1/clusteroperators"),
    ("clusterversion", "/apis/config.openshift.io/v1/clusterversions"),
    ("configmaps", "/api/v1/configmaps"),
    ("csr", "/apis/certificates.k8s.io/v1/certificatesigningrequests"),
    ("daemonsets", "/apis/apps/v1/daemonsets"),
    ("deployments", "/apis/apps/v1/deployments"),
    ("endpoints", "/api/v1/endpoints"),
    ("etcd", "/apis/operator.openshift.io/v1/etcds"),
    ("events", "/api/v1/events"),
    ("kubeapiserver", "/apis/operator.openshift.io/v1/kubeapiservers"),
    ("kubecontrollermanager", "/apis/operator.openshift.io/v1/kubecontrollermanagers"),
    ("leases", "/apis/coordination.k8s.io/v1/leases"),
    ("machineconfigpools", "/apis/machineconfiguration.openshift.io/v1/machineconfigpools"),
    ("machineconfigs", "/apis/machineconfiguration.openshift.io/v1/machineconfigs"),
    ("namespaces", "/api/v1/namespaces"),
    ("nodes", "/api/v1/nodes"),
    ("pods", "/api/v1/pods"),
    ("rolebindings", "/apis/rbac.authorization.k8s.io/v1/rolebindings"),
    ("roles", "/apis/rbac.authorization.k8s.io/v1/roles"),
    ("scheduler", "/apis/config.openshift.io/v1/schedulers"),
    ("services", "/api/v1/services"),
    ("storageclasses", "/apis/storage.k8s.io/v1/storageclasses"),
    ("validatingwebhooks", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"),
];

/// `resources/`, only if the API answers.
pub async fn resources(client: &Client) -> Result<Bundle, String> {
    let version = tokio::time::timeout(API_WITHIN, client.apiserver_version()).await;
    version.map_err(|_| "no answer within 5 s".to_string())?.map_err(|e| e.to_string())?;
    let asked = RESOURCES.map(|(name, path)| async move {
        let request = kube::core::Request::new(path).list(&Default::default()).ok()?;
        let answer = tokio::time::timeout(RESOURCE_WITHIN, client.request_text(request)).await;
        Some((name, answer.ok()?.ok()?))
    });
    let mut bundle = Bundle::default();
    for (name, json) in futures::future::join_all(asked).await.into_iter().flatten() {
        if name == "nodes" {
            let lists = names(&json);
            bundle.insert("resources/nodes.list", lists.into_bytes());
        }
        bundle.insert(format!("resources/{name}.json"), json.into_bytes());
    }
    Ok(bundle)
}

fn names(list: &str) -> String {
    let list: serde_json::Value = serde_json::from_str(list).unwrap_or_default();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    items.iter().filter_map(|item| Some(format!("{}\n", item.pointer("/metadata/name")?.as_str()?))).collect()
}

/// As upstream names bundles: the local time.
pub fn new_id() -> String {
    jiff::Zoned::now().strftime("%Y%m%d%H%M%S").to_string()
}

/// UTC, as in every clock file of a bundle.
pub fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
