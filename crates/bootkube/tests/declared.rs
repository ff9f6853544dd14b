//! A stage that only renders reads and writes what it declares: it runs in a root that has nothing else, then without each of its
//! inputs in turn, and with other ones. Its check fails before it has run and holds afterwards.
#![expect(clippy::unwrap_used, reason = "tests")]

use futures::future::LocalBoxFuture;
use seedling_assets::{Options, Target, create};
use seedling_bootkube::{Context, Error, Outcome, PLAN, PlannedStage, run_plan};
use seedling_pki::trust;
use seedling_steps::{Stage, matches_pattern};
use seedling_types::names::{CERTIFICATES_CONFIGMAP, NS_CONFIG};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tempfile::TempDir;

/// Path of the node → contents.
type Tree = BTreeMap<String, String>;

/// What is read before the first stage, for all of them, and how to make another one of it: a stage that uses it makes something else.
type Other = fn(&str) -> String;
const OF_ALL: [(&str, Other); 5] = [
    ("release.json", other_release),
    ("hosts.yaml", |text| text.replace("192.168.100.", "192.168.101.")),
    ("manifests/cluster-config.yaml", |text| text.replace("172.30.", "172.31.").replace("10.128.", "10.64.")),
    ("manifests/cvo-overrides.yaml", |text| changed(text, "clusterID: ")),
    ("manifests/cluster-infrastructure-02-config.yml", |text| changed(text, "infrastructureName: ")),
];

fn changed(text: &str, field: &str) -> String {
    assert!(text.contains(field), "{text}");
    text.replace(field, &format!("{field}other"))
}

/// With other images and another version, and with all that this payload lacks.
fn other_release(text: &str) -> String {
    let mut release: Value = serde_json::from_str(&text.replace(&"0".repeat(64), &"1".repeat(64))).unwrap();
    release["version"] = "9.9.9".into();
    for operator in ["cluster-authentication", "cluster-ingress", "cluster-node-tuning"] {
        release["images"][format!("{operator}-operator")] = "there".into();
    }
    release["images"]["cloud-credential-operator"] = "there".into();
    release.to_string()
}

fn release() -> Value {
    let image = |name: &str| format!("registry.seedling.internal/seedling/{name}@sha256:{}", "0".repeat(64));
    let programs =
        ["seedling", "kubectl", "containerd", "containerd-shim-runc-v2", "ctr", "crictl", "runc", "kubelet"];
    let kube = ["kube-apiserver", "kube-controller-manager", "kube-scheduler"];
    let images = ["pause", "seedling", "etcd"].into_iter().chain(kube);
    let images: BTreeMap<_, _> = images.map(|name| (name, image(name))).collect();
    let binaries = programs.map(|name| (name, json!({"sha512": "0".repeat(128), "size": 1})));
    json!({
        "version": "5.0.0", "kubernetesVersion": "1.36.4", "releaseImage": image("release"), "images": images,
        "binaries": BTreeMap::from(binaries), "components": {},
    })
}

/// A bootstrap node after Ignition and release-image.service.
fn bootstrap_node() -> Tree {
    let dir = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    put("release.json", &release().to_string());
    put(
        "install-config.yaml",
        "apiVersion: v1\nbaseDomain: example.com\nmetadata: {name: ocp4}\nplatform: {none: {}}\n\
         pullSecret: '{\"auths\":{\"r\":{\"auth\":\"eA==\"}}}'\nsshKey: ssh-ed25519 \
         AAAAC3NzaC1lZDI1NTE5AAAAIJD1L38PLq39QJkTAyV6NKX2AJyqiAQ9gfXq1yGBrzmh core\n",
    );
    put(
        "hosts.yaml",
        "hosts:\n- {name: b, role: bootstrap, mac: '52:54:00:a4:db:5f', address: 192.168.100.10}\n\
         - {name: m1, role: master, mac: '52:54:00:8b:a1:17', address: 192.168.100.11}\n\
         - {name: m2, role: master, mac: '52:54:00:ea:8b:9d', address: 192.168.100.12}\n\
         - {name: m3, role: master, mac: '52:54:00:f8:87:c7', address: 192.168.100.13}\n",
    );
    let options = Options { release: dir.path().into(), ..Options::default() };
    create(Target::IgnitionConfigs, dir.path(), &options).unwrap();
    let ignition: Value =
        serde_json::from_str(&fs::read_to_string(dir.path().join("bootstrap.ign")).unwrap()).unwrap();
    let file = |file: &Value| {
        let contents = seedling_ignition::decode(file.pointer("/contents/source")?.as_str()?)?;
        Some((file["path"].as_str()?.to_string(), String::from_utf8(contents).ok()?))
    };
    let mut tree: Tree = ignition["storage"]["files"].as_array().unwrap().iter().filter_map(file).collect();
    let owner = json!({"clusterID": "id", "infraID": "ocp4", "etcdCluster": "cafe"});
    let certificates = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": NS_CONFIG, "name": CERTIFICATES_CONFIGMAP},
        "data": {"kubelet": "48h"},
    });
    for (path, object) in [
        ("openshift/lives.yaml", certificates),
        ("release-manifests/0000_00_cluster-version-operator_01.yaml", json!({"kind": "Namespace"})),
        (
            "release-manifests/0000_10_config_01_infrastructures.crd.yaml",
            json!({"kind": "CustomResourceDefinition"}),
        ),
        ("release-manifests/0000_30_etcd-operator_01.yaml", json!({"kind": "Namespace"})),
        ("/var/lib/etcd/cluster.json", owner),
    ] {
        tree.insert(on_node(path), object.to_string());
    }
    tree
}

/// What is declared is below bootkube's folder, unless it says otherwise; behind a bracket people read why.
fn on_node(declared: &str) -> String {
    let path = declared.split(" (").next().unwrap();
    assert!(!path.contains(' '), "{declared}: no path");
    if path.starts_with('/') { path.into() } else { format!("/opt/openshift/{path}") }
}

/// Whether a path is declared: `*` is any part of it.
fn is_in(path: &str, declared: &[&str]) -> bool {
    declared.iter().any(|pattern| matches_pattern(&on_node(pattern), path))
}

/// What a stage left: new contents, or nothing where a file was.
type Left = BTreeMap<String, Option<String>>;

fn planted(tree: &Tree) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, contents) in tree {
        let path = root.path().join(&path[1..]);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
    root
}

async fn run(step: &PlannedStage, tree: &Tree) -> Result<Left, String> {
    let root = planted(tree);
    let look = || {
        let mut found = BTreeMap::new();
        walk(root.path(), root.path(), &mut found);
        found
    };
    let before = look();
    let context = Context::load(root.path()).unwrap_or_else(|e| panic!("{}: {e:#}", step.stage.name));
    step.work(&context).await.map_err(|e| format!("{e:#}"))?;
    let after = look();
    let gone = before.keys().filter(|path| !after.contains_key(*path)).map(|path| (path.clone(), None));
    // Files are replaced as a whole: a new one has another number.
    let written = after.iter().filter(|(path, number)| before.get(*path) != Some(number));
    let text = |path: &String| Some(fs::read_to_string(root.path().join(&path[1..])).unwrap());
    Ok(gone.chain(written.map(|(path, _)| (path.clone(), text(path)))).collect())
}

fn walk(root: &Path, dir: &Path, found: &mut BTreeMap<String, u64>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(root, &path, found);
        } else {
            let name = format!("/{}", path.strip_prefix(root).unwrap().display());
            found.insert(name, fs::metadata(&path).unwrap().ino());
        }
    }
}

/// Without what is new each time: keys, certificates, and files that are others although the inputs are the same.
fn lasting(left: &Left, random: &BTreeSet<String>) -> Left {
    let lasting = |(path, text): (&String, &Option<String>)| {
        (path.clone(), text.as_deref().filter(|_| !random.contains(path)).map(without_keys))
    };
    left.iter().map(lasting).collect()
}

fn without_keys(text: &str) -> String {
    let mut parts = text.split("-----BEGIN ");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |all, part| all + "PEM" + part.split_once("-----END ").map_or(part, |(_, rest)| rest))
}

/// What is wrong with what a stage declares.
async fn check(step: &PlannedStage, node: &Tree) -> Vec<String> {
    let (reads, writes) = (step.stage.reads, step.stage.writes);
    let of_all: BTreeMap<String, Other> =
        OF_ALL.iter().map(|(name, other)| (on_node(name), *other)).collect();
    let removed: Vec<_> = writes.iter().copied().filter(|path| path.ends_with(" (removed)")).collect();
    let mut there = node.clone();
    there.retain(|path, _| of_all.contains_key(path) || is_in(path, reads) || is_in(path, &removed));

    let (left, again, with_all) =
        match (run(step, &there).await, run(step, &there).await, run(step, node).await) {
            (Ok(left), Ok(again), Ok(with_all)) => (left, again, with_all),
            (Err(e), ..) | (_, Err(e), _) => return vec![format!("fails with what it declares: {e}")],
            (.., Err(e)) => return vec![format!("fails: {e}")],
        };
    let differs = |path: &&String| {
        lasting(&left, &BTreeSet::new()).get(*path) != lasting(&again, &BTreeSet::new()).get(*path)
    };
    let random: BTreeSet<String> = left.keys().filter(differs).cloned().collect();
    let same = |other: &Left| lasting(&left, &random) == lasting(other, &random);

    let mut wrong = Vec::new();
    if !same(&with_all) {
        wrong.push("reads more than it declares".into());
    }
    for path in left.keys().filter(|path| !is_in(path, writes)) {
        wrong.push(format!("writes {path}, undeclared"));
    }
    for pattern in writes.iter().filter(|pattern| !left.keys().any(|path| is_in(path, &[**pattern]))) {
        wrong.push(format!("does not write {pattern}"));
    }
    for pattern in reads.iter().filter(|pattern| !of_all.contains_key(&on_node(pattern))) {
        let mut without = there.clone();
        without.retain(|path, _| of_all.contains_key(path) || !is_in(path, &[*pattern]));
        if without.len() == there.len() {
            wrong.push(format!("nothing is {pattern}"));
        } else if run(step, &without).await.is_ok_and(|other| same(&other)) {
            wrong.push(format!("does not read {pattern}"));
        }
    }
    for (path, other) in of_all {
        let mut with_other = there.clone();
        let text = other(&there[&path]);
        assert_ne!(text, there[&path]);
        with_other.insert(path.clone(), text);
        let used = !run(step, &with_other).await.is_ok_and(|other| same(&other));
        if used && !is_in(&path, reads) {
            wrong.push(format!("reads {path}, undeclared"));
        } else if !used && reads.iter().any(|read| on_node(read) == path) {
            wrong.push(format!("does not read {path}"));
        }
    }
    wrong
}

#[tokio::test]
async fn stages_read_and_write_what_they_declare() {
    let mut node = bootstrap_node();
    let mut wrong = Vec::new();
    for step in PLAN.iter().filter(|step| step.renders()) {
        wrong.extend(check(step, &node).await.iter().map(|what| format!("{} {what}", step.stage.name)));
        if holds_before(step, &node).await {
            wrong.push(format!("{} has a check that holds before it has run", step.stage.name));
        }
        run_on(&mut node, step).await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

async fn run_on(node: &mut Tree, step: &PlannedStage) {
    for (path, contents) in run(step, node).await.unwrap() {
        match contents {
            Some(contents) => drop(node.insert(path, contents)),
            None => drop(node.remove(&path)),
        }
    }
}

/// What the installer and bootkube make for a running cluster is handed to it, and nothing else is.
#[tokio::test]
async fn pairs_and_bundles_of_the_trust_table_are_handed_over() {
    let mut node = bootstrap_node();
    for step in PLAN.iter().filter(|step| step.renders()) {
        run_on(&mut node, step).await;
    }
    let manifests = node.iter().filter(|(path, _)| path.starts_with("/opt/openshift/manifests/"));
    let objects: Vec<Value> = manifests.filter_map(|(_, text)| serde_saphyr::from_str(text).ok()).collect();
    let name = |object: &Value| {
        let part = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_string();
        format!("{}/{}", part("namespace"), part("name"))
    };
    let names = |of: &dyn Fn(&Value) -> bool| {
        objects.iter().filter(|object| of(object)).map(name).collect::<BTreeSet<_>>()
    };
    let (secrets, maps) = (names(&|o| o["kind"] == "Secret"), names(&|o| o["kind"] == "ConfigMap"));
    let mut pairs = BTreeSet::new();
    for part in &trust::TABLE {
        let owned = part.signers.iter().map(|row| row.owned).chain(part.leaves.iter().map(|row| row.owned));
        for owned in owned.filter(|owned| owned.is_kept()) {
            let name = format!("{}/{}", owned.namespace, owned.secret);
            assert_eq!(secrets.contains(&name), part.made_by != "operator", "{name}");
            pairs.insert(name);
        }
        for bundle in part.bundles.iter().filter(|bundle| !bundle.configmap.is_empty()) {
            let name = format!("{}/{}", bundle.namespace, bundle.configmap);
            assert_eq!(maps.contains(&name), part.made_by != "operator", "{name}");
        }
    }
    let tls = names(&|o| o["type"] == "kubernetes.io/tls");
    assert!(tls.is_subset(&pairs), "{:?}", tls.difference(&pairs));
}

/// Whether the check of a stage that does something says that it was done.
async fn holds_before(step: &PlannedStage, node: &Tree) -> bool {
    let root = planted(node);
    let context = Context::load(root.path()).unwrap();
    let holds = (step.check)(&context).await.is_ok();
    holds && !matches!((step.run)(&context).await, Ok(Outcome::NotInPayload(_)))
}

#[tokio::test]
async fn a_key_that_cannot_be_read_is_not_made_anew() {
    let mut node = bootstrap_node();
    node.insert("/opt/openshift/tls/kubelet-client-signer.crt".into(), "of an earlier stage".into());
    for (stage, file) in [
        ("config-bootstrap", "csr-signer.key"),
        ("etcd-bootstrap", "etcd-signer.json"),
        ("kube-apiserver-bootstrap", "kube-apiserver-encryption-keys.json"),
        ("kube-apiserver-bootstrap", "bound-service-account-signing-key.key"),
    ] {
        let root = planted(&node);
        let path = root.path().join("opt/openshift/tls").join(file);
        fs::write(&path, [0xff]).unwrap();
        let step = PLAN.iter().find(|step| step.stage.name == stage).unwrap();
        let failed = (step.run)(&Context::load(root.path()).unwrap()).await.unwrap_err().to_string();
        assert!(failed.starts_with(&format!("cannot read {}", path.display())), "{failed}");
        assert_eq!(fs::read(&path).unwrap(), [0xff]);
    }
}

fn sees_another(_: &Context) -> LocalBoxFuture<'_, Result<(), Error>> {
    Box::pin(async { Err(Error::Seen("another".into())) })
}

#[tokio::test]
async fn a_check_that_fails_stops_the_plan_unless_it_is_advisory() {
    let mut node = bootstrap_node();
    node.remove("/var/lib/etcd/cluster.json");
    let step = |name: &str| PLAN.iter().find(|step| step.stage.name == name).unwrap();
    let with = |step: &PlannedStage, check| PlannedStage { stage: step.stage, run: step.run, check };
    let (first, second) = (step("openshift-manifests"), step("api-bootstrap"));
    let done = |root: &TempDir, name: &str| root.path().join(format!("opt/openshift/{name}.done")).exists();

    let root = planted(&node);
    let plan = [with(first, sees_another), with(second, second.check)];
    let stopped = run_plan(root.path(), &plan).await.unwrap_err();
    assert_eq!(
        stopped.to_string(),
        "stage openshift-manifests: check failed (each file of openshift/ is in manifests/): another"
    );
    assert!(!done(&root, "openshift-manifests") && !done(&root, "api-bootstrap"));
    let record = fs::read_to_string(root.path().join("var/log/openshift/bootkube.json")).unwrap();
    assert!(record.contains("check failed") && !record.contains("api-bootstrap"), "{record}");

    // The same node, after what was wrong has been corrected.
    let plan =
        [with(step("resolve-api-url"), sees_another), with(first, first.check), with(second, second.check)];
    run_plan(root.path(), &plan).await.unwrap();
    assert!(
        ["api-dns-resolved", "openshift-manifests", "api-bootstrap"].iter().all(|name| done(&root, name))
    );
    let record = fs::read_to_string(root.path().join("var/log/openshift/bootkube.json")).unwrap();
    assert!(record.contains("api resolves: another"), "{record}");
}

/// The check sees what it is for.
#[tokio::test]
async fn wrong_declarations_are_found() {
    let node = bootstrap_node();
    let first = &PLAN[0];
    let declared = |reads, writes| PlannedStage {
        stage: Stage { reads, writes, ..first.stage },
        run: first.run,
        check: first.check,
    };
    type Paths = &'static [&'static str];
    let cases: [(Paths, Paths, &str); 7] = [
        (&["openshift/*"], &["manifests/*"], ""),
        (&[], &["manifests/*"], "fails with what it declares"),
        (&["openshift/9*"], &["manifests/*"], "reads more than it declares"),
        (&["openshift/*", "tls/*"], &["manifests/*"], "does not read tls/*"),
        (&["openshift/*", "hosts.yaml"], &["manifests/*"], "does not read /opt/openshift/hosts.yaml"),
        (&["openshift/*"], &["manifests/9*"], "writes /opt/openshift/manifests/lives.yaml, undeclared"),
        (&["openshift/*"], &["manifests/*", "tls/*"], "does not write tls/*"),
    ];
    for (reads, writes, said) in cases {
        let wrong = check(&declared(reads, writes), &node).await.join("; ");
        assert!(wrong.contains(said) && wrong.is_empty() == said.is_empty(), "{said}: {wrong}");
    }
}
