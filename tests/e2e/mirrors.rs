//! Behind a proxy, from a mirror: a cluster that grows from an authenticated registry with a private CA, which only a proxy reaches. The
//! install-config's pull secret, imageDigestSources, additionalTrustBundle and proxy are all that the nodes have of it.

use crate::{Suite, diagnose, finish, start};
use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use seedling_e2e::{Lab, judge, output, run, seedling, text, wait};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/e2e/outside.sh");
const MACHINES: [&str; 7] =
    ["--masters", "1", "--workers", "1", "--seed-images=false", "--probe", "--assets"];
const MINUTES: Duration = Duration::from_secs(120);
const USER: &str = "puller";
const PASSWORD: &str = "s3cret-of-puller";
const PROXY: &str = "http://guest:letmeout@192.168.100.250:3128";
/// What the pull secret and the trust bundle are for; the registry has another name, and another port with a stranger's certificate.
const MIRROR: &str = "mirror.corp.example:5000/copies/of-seedling";
const OTHER_NAME: &str = "other.corp.example:5000/copies/of-seedling/tools:mirrored";
const OTHER_CA: &str = "mirror.corp.example:5001/copies/of-seedling/tools:mirrored";

/// Registry and proxy; gone when dropped.
struct Outside {
    dir: tempfile::TempDir,
    lab: String,
}

impl Outside {
    fn script(&self, what: &str) -> Command {
        let mut command = Command::new(SCRIPT);
        command.arg(what).arg(self.dir.path());
        command
    }
    fn assets(&self) -> PathBuf {
        self.dir.path().join("assets")
    }
    fn log(&self, of: &str) -> Result<String> {
        let path = self.dir.path().join(format!("{of}.log"));
        std::fs::read_to_string(&path).with_context(|| path.display().to_string())
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        if let Err(e) = run(self.script("down").arg(&self.lab)) {
            eprintln!("{e:#}");
        }
    }
}

pub(crate) fn checks(suite: &mut Suite) {
    let lab = Lab { name: "e2e-mirrors".into() };
    let mut outside = None;
    let there = suite.check("a_registry_and_a_proxy_are_outside", || {
        outside = Some(prepared(&lab)?);
        Ok(())
    });
    let Some(outside) = outside.filter(|_| there) else { return };
    let assets = outside.assets().display().to_string();
    let grown = suite.check("a_cluster_grows_from_a_mirror_behind_a_proxy", || {
        finish(start(&lab, &MACHINES.into_iter().chain([assets.as_str()]).collect::<Vec<_>>())?)
    });
    if grown {
        suite.check("every_image_came_from_the_mirror_with_the_pull_secret", || mirrored(&lab, &outside));
        suite.check("the_nodes_have_no_other_way_to_it", || no_other_way(&lab));
        suite.check("nodes_carry_what_the_install_config_says", || carried(&lab));
        suite.check("the_clusters_objects_say_the_same", || objects(&lab));
        suite.check("a_pod_by_digest_is_pulled_from_a_mirror_of_another_name", || by_digest(&lab, &outside));
        suite.check("a_pod_is_pulled_by_tag_where_there_is_no_mirror", || by_tag(&lab));
        suite.check("what_must_fail_fails_and_says_why", || refused(&lab));
        suite.check("only_root_may_use_the_nodes_credentials", || key_is_needed(&lab));
        suite.check("a_wrong_pull_secret_is_named", || wrong_pull_secret(&lab));
    }
    if !suite.failed.is_empty() {
        diagnose(&lab);
        println!("--- proxy\n{}", outside.log("proxy").unwrap_or_default());
        for node in ["bootstrap", "master-0", "worker-0"] {
            let log = run(&mut lab.lab(&["logs", node, "--journal", "-u", "registry-mirrors.service"]));
            println!("--- mirrors of {node}\n{}", crate::tail(log.unwrap_or_else(|e| format!("{e:#}"))));
        }
    }
    drop(outside);
    suite.check("lab_down_removes_it", || run(&mut lab.lab(&["down"])).map(drop));
}

fn release() -> Result<Value> {
    Ok(serde_json::from_str(&run(seedling().args(["release", "info", "-o", "json"]))?)?)
}

fn tools_digest() -> Result<String> {
    let release = release()?;
    let tools = release["images"]["tools"].as_str().and_then(|tools| tools.split_once('@'));
    Ok(tools.context("the release has no tools")?.1.into())
}

/// Packages, certificates, install-config, the lab's network with its machines off, and then what is outside.
fn prepared(lab: &Lab) -> Result<Outside> {
    let outside = Outside { dir: tempfile::tempdir()?, lab: lab.name.clone() };
    print!("{}", run(&mut outside.script("packages"))?);
    run(&mut outside.script("certificates"))?;
    std::fs::create_dir_all(outside.assets())?;
    let authority = std::fs::read_to_string(outside.dir.path().join("corp-ca.crt"))?;
    let config = install_config(&authority);
    std::fs::write(outside.assets().join("install-config.yaml"), serde_json::to_string_pretty(&config)?)?;
    let assets = outside.assets().display().to_string();
    run(lab.lab(&["up", "--prepare"]).args(MACHINES.iter().filter(|flag| **flag != "--probe")).arg(&assets))?;
    let release = release()?;
    let images = release["images"].as_object().context("no images")?.keys().map(String::as_str);
    let oci = cache().join("release/oci");
    let mut up = outside.script("up");
    print!("{}", run(up.arg(&lab.name).arg(oci).args(images.chain(["release"])))?);
    Ok(outside)
}

fn cache() -> PathBuf {
    std::env::var_os("SEEDLING_CACHE").map_or_else(|| Path::new("/var/cache/seedling").into(), PathBuf::from)
}

fn pull_secret(password: &str) -> String {
    let auth = STANDARD.encode(format!("{USER}:{password}"));
    json!({"auths": {"mirror.corp.example:5000": {"auth": auth}}}).to_string()
}

fn install_config(authority: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "baseDomain": "seedling.lab",
        "metadata": {"name": "lab"},
        "controlPlane": {"name": "master", "replicas": 1},
        "compute": [{"name": "worker", "replicas": 1}],
        "networking": {
            "networkType": "OVNKubernetes",
            "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}],
            "serviceNetwork": ["172.30.0.0/16"],
            "machineNetwork": [{"cidr": "192.168.100.0/24"}],
        },
        "platform": {"none": {}},
        "pullSecret": pull_secret(PASSWORD),
        "additionalTrustBundle": authority,
        "proxy": {"httpProxy": PROXY, "httpsProxy": PROXY, "noProxy": ".internal.corp.example"},
        "imageDigestSources": [
            // The helper has these images too, and must not be asked.
            {"source": "registry.seedling.internal/seedling", "mirrors": [MIRROR], "sourcePolicy": "NeverContactSource"},
            // Its first mirror does not have it.
            {"source": "quay.example.com/team/app", "mirrors": ["mirror.corp.example:5000/nowhere/app", format!("{MIRROR}/tools")]},
        ],
    })
}

/// By the logs of those who gave, and of the one who must not have been asked.
fn mirrored(lab: &Lab, outside: &Outside) -> Result<()> {
    let registry = outside.log("corp")?;
    let release = release()?;
    let images = release["images"].as_object().context("no images")?.values().filter_map(Value::as_str);
    for image in images.filter(|image| !image.contains("/tools@")) {
        let (name, digest) = image.split_once('@').context("no digest")?;
        let name = name.rsplit('/').next().unwrap_or_default();
        let path = format!("/v2/copies/of-seedling/{name}/manifests/{digest}");
        judge::pulled(&registry, &path, "10.77.0.1:").with_context(|| image.to_string())?;
    }
    let proxy = outside.log("proxy")?;
    for machine in ["192.168.100.10", "192.168.100.11", "192.168.100.21"] {
        ensure!(proxy.contains(machine), "the proxy has not heard of {machine}");
    }
    ensure!(proxy.contains("CONNECT mirror.corp.example:5000"), "nobody connected to the mirror:\n{proxy}");
    ensure!(!proxy.contains("seedling.lab"), "what is inside went through the proxy:\n{proxy}");
    let asked =
        lab.events()?.into_iter().filter(|e| e["path"].as_str().is_some_and(|p| p.starts_with("/v2/")));
    ensure!(asked.count() == 0, "the helper's registry was asked");
    Ok(())
}

/// Neither by name nor by address.
fn no_other_way(lab: &Lab) -> Result<()> {
    for url in ["https://mirror.corp.example:5000/v2/", "https://10.77.0.2:5000/v2/"] {
        let asked = output(
            lab.lab(&["exec", "worker-0", "--", "curl", "-sk", "-m", "5", "--noproxy", "*"]).arg(url),
        )?;
        ensure!(!asked.status.success(), "{url} answered: {}", text(&asked.stdout));
    }
    Ok(())
}

fn carried(lab: &Lab) -> Result<()> {
    for node in ["master-0", "worker-0"] {
        let secret = lab.exec(node, &["cat", "/var/lib/kubelet/config.json"])?;
        ensure!(secret == pull_secret(PASSWORD), "{node}: another pull secret");
        let environment = lab.exec(node, &["cat", "/etc/mco/proxy.env"])?;
        ensure!(environment.contains(&format!("HTTPS_PROXY={PROXY}\n")), "{node}: {environment}");
        ensure!(environment.contains(",api-int.lab.seedling.lab,"), "{node}: {environment}");
        for unit in ["kubelet", "containerd", "registry-mirrors"] {
            let process =
                format!("tr '\\0' '\\n' </proc/$(systemctl show {unit} -p MainPID --value)/environ");
            ensure!(lab.shell(node, &process)?.contains("HTTPS_PROXY="), "{node}: {unit} knows no proxy");
        }
        // Everything on the machine trusts the CA, not only those who know where the bundle is.
        let curl = format!("curl -sS -x {PROXY} -u {USER}:{PASSWORD} https://mirror.corp.example:5000/v2/");
        ensure!(lab.shell(node, &curl)?.trim() == "{}", "{node}: no answer through the proxy");
        let failed = lab.shell(node, "systemctl --failed --no-legend")?;
        ensure!(failed.trim().is_empty(), "{node}: {failed}");
    }
    Ok(())
}

fn objects(lab: &Lab) -> Result<()> {
    let proxy = lab.get(&["proxy", "cluster"])?;
    ensure!(proxy["spec"]["trustedCA"]["name"] == "user-ca-bundle", "{proxy:#}");
    let no_proxy = proxy["status"]["noProxy"].as_str().unwrap_or_default();
    ensure!(no_proxy.contains(".svc") && no_proxy.contains(".internal.corp.example"), "{no_proxy}");
    let bundle = lab.get(&["configmap", "-n", "openshift-config", "user-ca-bundle"])?;
    ensure!(bundle["data"]["ca-bundle.crt"].as_str().is_some_and(|pem| pem.starts_with("-----BEGIN")));
    let mirrors = lab.get(&["imagedigestmirrorset", "image-digest-mirror"])?;
    ensure!(
        mirrors["spec"]["imageDigestMirrors"][0]["mirrorSourcePolicy"] == "NeverContactSource",
        "{mirrors:#}"
    );
    let secret = lab.get(&["secret", "-n", "openshift-config", "pull-secret"])?;
    let given = secret["data"][".dockerconfigjson"].as_str().unwrap_or_default();
    ensure!(STANDARD.decode(given)? == pull_secret(PASSWORD).as_bytes());
    for pool in ["master", "worker"] {
        let pool = lab.get(&["machineconfigpool", pool])?;
        ensure!(pool["status"]["updatedMachineCount"] == 1, "{:#}", pool["status"]);
    }
    Ok(())
}

fn pod(lab: &Lab, name: &str, image: &str, secret: Option<&str>) -> Result<()> {
    let secrets: Vec<_> = secret.into_iter().map(|name| json!({"name": name})).collect();
    let container =
        json!({"name": "app", "image": image, "imagePullPolicy": "Always", "command": ["sleep", "1000"]});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "nodeName": "worker-0", "terminationGracePeriodSeconds": 0, "imagePullSecrets": secrets, "containers": [container]}});
    crate::workers::create(lab, &pod)
}

fn runs(lab: &Lab, name: &str) -> Result<()> {
    wait(&format!("pod {name} to run"), MINUTES, || {
        let pod = lab.get(&["pod", name])?;
        ensure!(pod["status"]["phase"] == "Running", "{:#}", pod["status"]);
        Ok(Some(()))
    })
}

/// What its failed pull says.
fn fails(lab: &Lab, name: &str, words: &str) -> Result<()> {
    wait(&format!("pod {name} to fail with {words:?}"), MINUTES, || {
        let events = lab.items(&["events", "--field-selector", &format!("involvedObject.name={name}")])?;
        let said =
            events.iter().filter_map(|e| e["message"].as_str()).filter(|m| m.starts_with("Failed to pull"));
        let said: Vec<_> = said.collect();
        ensure!(said.iter().any(|message| message.contains(words)), "{said:#?}");
        Ok(Some(()))
    })
}

fn by_digest(lab: &Lab, outside: &Outside) -> Result<()> {
    let digest = tools_digest()?;
    pod(lab, "mirrored", &format!("quay.example.com/team/app@{digest}"), None)?;
    runs(lab, "mirrored")?;
    let path = format!("/v2/copies/of-seedling/tools/manifests/{digest}");
    judge::pulled(&outside.log("corp")?, &path, "10.77.0.1:")
}

/// Straight from the registry, with the kubelet's credentials and with a pod's own.
fn by_tag(lab: &Lab) -> Result<()> {
    for (name, password) in [("good", PASSWORD), ("bad", "wrong")] {
        let server = "--docker-server=other.corp.example:5000";
        let (user, password) = (format!("--docker-username={USER}"), format!("--docker-password={password}"));
        run(&mut lab.kubectl(&["create", "secret", "docker-registry", name, server, &user, &password]))?;
    }
    pod(lab, "straight", &format!("{MIRROR}/tools:mirrored"), None)?;
    pod(lab, "own-secret", OTHER_NAME, Some("good"))?;
    runs(lab, "straight")?;
    runs(lab, "own-secret")
}

fn refused(lab: &Lab) -> Result<()> {
    let cases = [
        ("no-secret", OTHER_NAME, None, "no basic auth credentials"),
        ("wrong-secret", OTHER_NAME, Some("bad"), "401 Unauthorized"),
        ("unknown-authority", OTHER_CA, None, "x509: certificate signed by unknown authority"),
        ("tag-never", "registry.seedling.internal/seedling/tools:mirrored", None, "name the image by digest"),
        (
            "tag-of-source",
            "quay.example.com/team/app:latest",
            None,
            "quay.example.com/team/app: tunnel error",
        ),
    ];
    for (name, image, secret, _) in cases {
        pod(lab, name, image, secret)?;
    }
    for (name, _, _, words) in cases {
        fails(lab, name, words)?;
    }
    Ok(())
}

fn key_is_needed(lab: &Lab) -> Result<()> {
    let url = format!(
        "http://127.0.0.1:22625/v2/seedling/tools/manifests/{}?ns=registry.seedling.internal",
        tools_digest()?
    );
    let said = lab.exec("worker-0", &["curl", "-sS", &url])?;
    ensure!(said.contains("hosts.toml has the key"), "{said}");
    let keyed = "curl -sS -H 'Accept: application/vnd.oci.image.manifest.v1+json' -o /dev/null -w '%{http_code}' -H \"$(sed -n 's/^\\(x-registry-mirrors\\) = \\[\"\\(.*\\)\"\\]/\\1: \\2/p' \
                 /etc/containerd/certs.d/registry.seedling.internal/hosts.toml)\"";
    let said = lab.shell("worker-0", &format!("{keyed} '{url}'"))?;
    ensure!(said == "200", "{said}");
    let mode = lab
        .shell("worker-0", "stat -c %a /etc/containerd/certs.d/*/hosts.toml /var/lib/kubelet/config.json")?;
    ensure!(mode.split_whitespace().all(|mode| mode == "600"), "{mode}");
    Ok(())
}

/// From one moment to the next, and back.
fn wrong_pull_secret(lab: &Lab) -> Result<()> {
    let write =
        |secret: &str| lab.shell("worker-0", &format!("echo '{secret}' >/var/lib/kubelet/config.json"));
    let image = format!("quay.example.com/team/app@{}", tools_digest()?);
    write(&pull_secret("wrong"))?;
    pod(lab, "wrong-node-secret", &image, None)?;
    let failed = fails(
        lab,
        "wrong-node-secret",
        "401 Unauthorized: the pull secret has no credentials for it, or wrong ones",
    );
    write(&pull_secret(PASSWORD))?;
    failed?;
    runs(lab, "wrong-node-secret")
}
