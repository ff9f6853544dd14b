//! Every certificate of a running cluster is renewed while a prober writes and reads: as servers show them, and as files on masters.

use crate::masters::whole;
use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use seedling_e2e::judge::{self, MASTERS};
use seedling_e2e::{Lab, output, run, seedling, text, wait};
use seedling_lab::probe;
use seedling_pki::trust::{self, Names};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Kubelets ask for new certificates two to four minutes after they got one: the signer gives them five minutes in the past as well.
const POLICY: &str = "apiVersion: v1\nkind: ConfigMap\n\
    metadata: {namespace: openshift-config, name: certificates}\ndata: {kubelet: 5m}\n";
/// Of some nine thousand. Every API server and every etcd member is stopped once or twice, one after the other. A leader that
/// stops drops what came to it through another member (docs/design/etcd.md, "The leader moves"): one was seen on a busy machine.
const FAILED_AT_MOST: usize = 3;
/// Operand, and the directory of its files on a master.
const OPERANDS: [(&str, &str); 4] = [
    ("etcd", "etcd-pod"),
    ("kubeapiserver", "kube-apiserver-pod"),
    ("kubecontrollermanager", "kube-controller-manager-pod"),
    ("kubescheduler", "kube-scheduler-pod"),
];
/// Port and the name that is asked for.
const SERVERS: [(u16, &str); 7] = [
    (2379, "localhost"),
    (2380, "localhost"),
    (6443, "localhost"),
    (6443, "kubernetes.default.svc"),
    (6443, "api"),
    (6443, "api-int"),
    (10250, "localhost"),
];

/// A file for `lab up --manifest`.
pub(crate) fn policy() -> Result<PathBuf> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("certificates.yaml");
    std::fs::write(&path, POLICY)?;
    Ok(path)
}

pub(crate) fn renewed(lab: &Lab) -> Result<()> {
    let started = Instant::now();
    let (shown, files) = (shown(lab)?, files(lab)?);
    let signer = subject(lab)?;
    let prober = Prober::start(lab)?;
    let mut renew = seedling();
    renew.args(["certs", "renew", "--lab", &lab.name]).stdin(Stdio::null()).stderr(Stdio::piped());
    let renew = renew.stdout(Stdio::piped()).spawn()?;
    kill_operators(lab)?;
    let said = renew.wait_with_output()?;
    ensure!(said.status.success(), "{}", text(&said.stderr));
    println!("{} ({:.0} s)", text(&said.stdout).trim(), started.elapsed().as_secs_f32());

    let now_files = self::files(lab)?;
    let expected = files_of_a_master() * MASTERS.len();
    ensure!(files.len() == expected && now_files.len() == expected, "{} files", now_files.len());
    let kept: Vec<_> = files.iter().filter(|(name, digest)| now_files[*name] == **digest).collect();
    ensure!(kept.is_empty(), "not renewed: {kept:?}");
    let new_signer = subject(lab)?;
    ensure!(new_signer != signer, "{signer} still signs");
    wait("kubelets' certificates from the new signer", Duration::from_secs(420), || {
        for node in MASTERS {
            let current = "openssl x509 -noout -issuer -in /var/lib/kubelet/pki/kubelet-client-current.pem";
            let issuer = lab.shell(node, current)?;
            ensure!(issuer.contains(&new_signer), "{node}: client certificate of {issuer}");
            let serving = show(lab, node, 10250, "localhost", "-issuer")?;
            ensure!(serving.contains(&new_signer), "{node}: serving certificate of {serving}");
        }
        Ok(Some(()))
    })?;
    // An API server may be on its way to the next key of Secrets, and show nothing for a moment.
    let now_shown = wait("every server to show its certificate", Duration::from_secs(180), || {
        self::shown(lab).map(Some)
    })?;
    let kept: Vec<_> = shown.iter().filter(|(server, print)| now_shown[*server] == **print).collect();
    ensure!(kept.is_empty(), "still shown: {kept:?}");
    let certificates = shown.len() + files.len() + MASTERS.len();
    println!("{certificates} certificates are new ({:.0} s)", started.elapsed().as_secs_f32());

    wait("Secrets encrypted with a new key", Duration::from_secs(300), || encrypted(lab, 2).map(Some))?;
    println!("Secrets are encrypted with the next key ({:.0} s)", started.elapsed().as_secs_f32());

    whole(lab)?;
    for node in MASTERS {
        let pod = format!("etcd-{node}");
        run(&mut lab.kubectl(&["-n", "openshift-etcd", "logs", &pod, "--tail=1"]))?;
        run(&mut lab.kubectl(&[
            "-n",
            "openshift-etcd",
            "exec",
            &pod,
            "--",
            "etcdctl",
            "endpoint",
            "health",
        ]))?;
    }
    prober.lost_nothing()
}

/// All that renew, without a warning, when the first master has the new bundles and the others do not.
fn kill_operators(lab: &Lab) -> Result<()> {
    wait("the first API server with new certificates", Duration::from_secs(180), || {
        let status = lab.get(&["kubeapiserver", "cluster"])?["status"].clone();
        let nodes = status["nodeStatuses"].as_array().cloned().unwrap_or_default();
        Ok(nodes.iter().any(|n| n["currentRevision"].as_i64() > Some(1)).then_some(()))
    })?;
    for operator in ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"] {
        let namespace = format!("openshift-{operator}-operator");
        run(&mut lab.kubectl(&["-n", &namespace, "delete", "pod", "--all", "--grace-period=0", "--force"]))?;
    }
    Ok(())
}

/// SHA-256 of what every server of every master shows.
fn shown(lab: &Lab) -> Result<BTreeMap<String, String>> {
    let mut prints = BTreeMap::new();
    for node in MASTERS {
        for (port, name) in SERVERS {
            let print = show(lab, node, port, name, "-fingerprint")?;
            prints.insert(format!("{node}:{port} as {name}"), print);
        }
    }
    Ok(prints)
}

fn show(lab: &Lab, node: &str, port: u16, name: &str, what: &str) -> Result<String> {
    let domain = "$(. /etc/kubernetes/apiserver-url.env; echo ${KUBERNETES_SERVICE_HOST#api-int.})";
    let name = if name.starts_with("api") { format!("{name}.{domain}") } else { name.into() };
    let script = format!(
        "openssl s_client -connect localhost:{port} -servername {name} </dev/null 2>/dev/null | openssl x509 -noout {what}"
    );
    let shown = lab.shell(node, &script)?;
    ensure!(!shown.trim().is_empty(), "{node}:{port} shows nothing");
    Ok(shown)
}

/// Certificates that operators bring to a master, also inside kubeconfigs: two for each of the four machines with etcd, one for each other row.
fn files_of_a_master() -> usize {
    let leaves = trust::leaves().filter(|leaf| !leaf.owned.operator.is_empty());
    let leaves = leaves.map(|leaf| if leaf.names == Names::EtcdMember { 2 * (MASTERS.len() + 1) } else { 1 });
    leaves.sum::<usize>() + trust::signers().filter(|signer| !signer.mounted_by.is_empty()).count()
}

/// Digest of each certificate and kubeconfig in the revisions that run.
fn files(lab: &Lab) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    for (kind, directory) in OPERANDS {
        let settings = lab.get(&[kind, "cluster"])?;
        for node in settings["status"]["nodeStatuses"].as_array().into_iter().flatten() {
            let (name, revision) = (node["nodeName"].as_str().unwrap_or_default(), &node["currentRevision"]);
            let script = format!(
                "cd /etc/kubernetes/static-pod-resources/{directory}-{revision}/secrets && \
                 find . -name '*.crt' -o -name kubeconfig | xargs sha256sum"
            );
            for line in lab.shell(name, &script)?.lines() {
                let (digest, file) = line.split_once(char::is_whitespace).context(line.to_string())?;
                found.insert(format!("{name} {directory} {}", file.trim()), digest.into());
            }
        }
    }
    Ok(found)
}

/// Common name of the certificate that signs kubelets'.
fn subject(lab: &Lab) -> Result<String> {
    let script = "openssl x509 -noout -subject -in $(ls -d /etc/kubernetes/static-pod-resources/kube-controller-manager-pod-* \
        | sort -V | tail -1)/secrets/csr-signer/tls.crt";
    let said = lab.shell("master-0", script)?;
    Ok(said.rsplit("CN").next().context("no CN")?.trim_matches([' ', '=', '\n']).to_string())
}

struct Prober(Child);

impl Prober {
    fn start(lab: &Lab) -> Result<Self> {
        let mut probe = seedling();
        probe.args(["probe", "--name", &lab.name, "--until", "1h", "-o", "json"]);
        Ok(Self(probe.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?))
    }

    fn lost_nothing(self) -> Result<()> {
        output(Command::new("kill").args(["-INT", &self.0.id().to_string()]))?;
        let ended = self.0.wait_with_output()?;
        let report: probe::Report = serde_json::from_slice(&ended.stdout).context(text(&ended.stderr))?;
        println!("the prober: {}", report.summary());
        ensure!(ended.status.success(), "{}", report.summary());
        judge::probed(&report, FAILED_AT_MOST)
    }
}

/// As etcd has them on its disk: all by this key, which is the only one left.
pub(crate) fn encrypted(lab: &Lab, key: u32) -> Result<()> {
    let keys = lab.get(&["secret", "-n", "openshift-kube-apiserver-operator", "encryption-keys"])?;
    let keys = keys["data"]["keys.json"].as_str().context("no keys")?;
    let keys: Value = serde_json::from_slice(&STANDARD.decode(keys)?)?;
    ensure!(
        keys["writes"]["name"] == key && keys["reads"].is_null(),
        "key {} writes",
        keys["writes"]["name"]
    );
    let get = ["etcdctl", "get", "/registry/secrets/", "--prefix", "-w", "json"];
    let raw = run(lab.kubectl(&["-n", "openshift-etcd", "exec", "etcd-master-0", "--"]).args(get))?;
    let raw: Value = serde_json::from_str(&raw)?;
    let all = raw["kvs"].as_array().context("no Secrets")?;
    let prefix = format!("k8s:enc:secretbox:v1:{key}:");
    for pair in all {
        let part = |name: &str| STANDARD.decode(pair[name].as_str().unwrap_or_default());
        ensure!(part("value")?.starts_with(prefix.as_bytes()), "{} is not {prefix}", text(&part("key")?));
    }
    ensure!(all.len() > 20, "only {} Secrets", all.len());
    Ok(())
}
