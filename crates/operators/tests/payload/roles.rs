//! What the operators' roles allow: enough for all that they do, and not more. A real API server decides.

use super::control_plane::{ControlPlane, payload};
use super::machine_config::{as_service_account, put};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD};
use kube::api::{Patch, PatchParams};
use seedling_cluster::lease::lead;
use seedling_cluster::manifest::{api, delete};
use seedling_components::kube_apiserver::encryption::{KEYS, KEYS_SECRET, Keys};
use seedling_machine_config_server::bootstrapper::Tokens;
use seedling_operators::runtime::Context;
use seedling_operators::{daemon_set, etcd, kube_apiserver, kube_controller_manager, kube_scheduler};
use seedling_pki::{CaSpec, KeyAlgorithm, new_ca};
use seedling_types::names::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

type Account = (&'static str, &'static str);
const ETCD: Account = (NS_ETCD_OPERATOR, "etcd-operator");
const KAS: Account = (NS_KAS_OPERATOR, "kube-apiserver-operator");
const KCM: Account = (NS_KCM_OPERATOR, "kube-controller-manager-operator");
const SCHEDULER: Account = (NS_SCHEDULER_OPERATOR, "kube-scheduler-operator");
const NETWORK: Account = (NS_NETWORK_OPERATOR, "network-operator");
const DNS: Account = (NS_DNS_OPERATOR, "dns-operator");
const MACHINE_CONFIG: Account = (NS_MCO, "machine-config-operator");
const SERVER: Account = (NS_MCO, "machine-config-server");
const APPROVER: Account = (NS_APPROVER, "machine-approver-sa");
const REWRITER: Account = (NS_KAS_OPERATOR, "secrets-rewriter");
const INSTALLER: Account = (NS_ETCD, "installer-sa");
const ALL: [Account; 9] = [ETCD, KAS, KCM, SCHEDULER, NETWORK, DNS, MACHINE_CONFIG, SERVER, APPROVER];

/// Everything of the release but what would run, and what is only taken away.
async fn release(plane: &ControlPlane) {
    for name in [NS_CONFIG, NS_CONFIG_MANAGED, NS_MCO] {
        put(&plane.client, namespace(name)).await;
    }
    let dir = tempfile::tempdir().unwrap();
    payload(dir.path());
    let mut files: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort_by_key(|path| (!path.to_str().unwrap().ends_with(".crd.yaml"), path.clone()));
    for path in files.iter().filter(|p| p.extension().is_some_and(|e| e == "yaml")) {
        let object: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let gone = object["metadata"]["annotations"]["release.openshift.io/delete"] == "true";
        if !gone && object["kind"] != "Deployment" {
            put(&plane.client, object).await;
        }
    }
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// `verb resource[.group][/sub] [name] [in namespace]`, as refusals are told.
async fn may(plane: &ControlPlane, (namespace, name): Account, what: &str) -> bool {
    let (what, place) = what.split_once(" in ").unwrap_or((what, ""));
    let mut words = what.split(' ');
    let (verb, resource) = (words.next().unwrap(), words.next().unwrap());
    let (resource, sub) = resource.split_once('/').unwrap_or((resource, ""));
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let attributes = json!({"verb": verb, "group": group, "resource": resource, "subresource": sub,
        "namespace": place, "name": words.next().unwrap_or_default()});
    let groups = json!([
        "system:serviceaccounts",
        format!("system:serviceaccounts:{namespace}"),
        "system:authenticated"
    ]);
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {},
        "spec": {"user": format!("system:serviceaccount:{namespace}:{name}"), "groups": groups, "resourceAttributes": attributes}});
    let api = seedling_cluster::manifest::api(
        &plane.client,
        "authorization.k8s.io/v1",
        "SubjectAccessReview",
        None,
    )
    .await;
    let answer =
        api.unwrap().create(&Default::default(), &serde_json::from_value(review).unwrap()).await.unwrap();
    answer.data["status"]["allowed"] == true
}

/// What nobody needs whose work is his own.
const NEVER: &[&str] = &[
    "list secrets",
    "watch secrets",
    "get secrets bootstrap in kube-system",
    "list secrets in kube-system",
    "get secrets pull-secret in openshift-config",
    "list secrets in openshift-config",
    "list secrets in openshift-config-managed",
    "create secrets in kube-system",
    "create pods in kube-system",
    "create pods in default",
    "create pods/exec in openshift-etcd",
    "create clusterrolebindings.rbac.authorization.k8s.io",
    "create clusterrolebindings.rbac.authorization.k8s.io mine",
    "patch clusterroles.rbac.authorization.k8s.io cluster-admin",
    "escalate clusterroles.rbac.authorization.k8s.io",
    "bind clusterroles.rbac.authorization.k8s.io cluster-admin",
    "create roles.rbac.authorization.k8s.io in kube-system",
    "create rolebindings.rbac.authorization.k8s.io in kube-system",
    "impersonate users",
    "impersonate groups",
    "impersonate serviceaccounts in kube-system",
    "create serviceaccounts/token default in kube-system",
    "delete nodes master-0",
    "get nodes/proxy master-0",
    "patch clusterversions.config.openshift.io version",
    "delete namespaces openshift-etcd",
    "create validatingwebhookconfigurations.admissionregistration.k8s.io",
    "patch clusteroperators.config.openshift.io/status cluster-version",
];

/// An operator's Secrets are its own: namespace, and who may list them.
const SECRETS: &[(&str, &[Account])] = &[
    (NS_ETCD, &[ETCD]),
    (NS_ETCD_OPERATOR, &[]),
    (NS_KAS, &[KAS]),
    (NS_KAS_OPERATOR, &[KAS]),
    (NS_KCM, &[KCM]),
    (NS_KCM_OPERATOR, &[KCM]),
    (NS_SCHEDULER, &[SCHEDULER]),
    (NS_SCHEDULER_OPERATOR, &[]),
    (NS_MCO, &[]),
    (NS_CVO, &[]),
    (NS_NETWORK, &[]),
    (NS_DNS, &[]),
];

/// What the test below does not get an operator to do, and a few doors that are open by a hand's breadth.
const TABLE: &[(Account, &str, bool)] = &[
    (KAS, "watch secrets etcd-client in openshift-etcd", true),
    (KAS, "get secrets etcd-signer in openshift-etcd", false),
    (KAS, "get secrets csr-signer in openshift-kube-controller-manager-operator", false),
    (KAS, "create serviceaccounts/token secrets-rewriter in openshift-kube-apiserver-operator", true),
    (KAS, "create serviceaccounts/token kube-apiserver-operator in openshift-kube-apiserver-operator", false),
    (REWRITER, "list secrets", true),
    (REWRITER, "update secrets a in anywhere", true),
    (REWRITER, "delete secrets a in anywhere", false),
    (KCM, "get secrets kube-control-plane-signer in openshift-kube-apiserver-operator", false),
    (SCHEDULER, "get secrets kube-control-plane-signer in openshift-kube-apiserver-operator", false),
    (SCHEDULER, "get secrets kube-controller-manager-client-cert-key in openshift-config-managed", false),
    (KCM, "get secrets initial-service-account-private-key in openshift-config", true),
    (ETCD, "delete configmaps revision-status-1 in openshift-etcd", true),
    (KAS, "delete configmaps revision-status-1 in openshift-kube-apiserver", true),
    (KAS, "delete configmaps revision-status-1 in openshift-etcd", false),
    (ETCD, "delete pods installer-1-m in openshift-etcd", true),
    (ETCD, "delete pods kube-apiserver-m in openshift-kube-apiserver", false),
    (ETCD, "patch etcds.operator.openshift.io/status cluster", true),
    (ETCD, "patch etcds.operator.openshift.io cluster", false),
    (ETCD, "patch kubeapiservers.operator.openshift.io/status cluster", false),
    (ETCD, "patch roles.rbac.authorization.k8s.io installer in openshift-etcd", true),
    (ETCD, "patch roles.rbac.authorization.k8s.io other in openshift-etcd", false),
    (ETCD, "update leases.coordination.k8s.io etcd-operator-lock in openshift-etcd-operator", true),
    (ETCD, "patch configmaps certificates in openshift-config", false),
    (NETWORK, "patch networks.config.openshift.io/status cluster", true),
    (NETWORK, "create clusterrolebindings.rbac.authorization.k8s.io openshift-network-flannel", true),
    (NETWORK, "get pods p in anywhere", true),
    (NETWORK, "list pods", false),
    (DNS, "get secrets a in openshift-dns", false),
    (SERVER, "create serviceaccounts/token node-bootstrapper in openshift-machine-config-operator", true),
    (
        SERVER,
        "create serviceaccounts/token machine-config-operator in openshift-machine-config-operator",
        false,
    ),
    (SERVER, "get secrets node-bootstrapper-token in openshift-machine-config-operator", false),
    (APPROVER, "patch secrets node-tokens in openshift-machine-config-operator", true),
    (
        APPROVER,
        "update leases.coordination.k8s.io machine-approver-lock in openshift-cluster-machine-approver",
        true,
    ),
    (APPROVER, "create leases.coordination.k8s.io in openshift-cluster-machine-approver", true),
    (
        MACHINE_CONFIG,
        "update leases.coordination.k8s.io machine-config-operator-lock in openshift-machine-config-operator",
        true,
    ),
    (MACHINE_CONFIG, "create leases.coordination.k8s.io in openshift-machine-config-operator", true),
    // Nothing, until its operator says which revision it is about.
    (INSTALLER, "get secrets etcd-all-certs-1 in openshift-etcd", false),
];

#[tokio::test]
#[ignore = "needs a built release"]
async fn roles_allow_what_is_needed_and_no_more() {
    let plane = ControlPlane::start().await;
    release(&plane).await;
    let mut wrong = Vec::new();
    let mut check = async |account: Account, what: &str, want: bool| {
        if may(&plane, account, what).await != want {
            wrong.push(format!("{} {} {what}", account.1, if want { "may not" } else { "may" }));
        }
    };
    for account in ALL {
        for what in NEVER {
            check(account, what, false).await;
        }
        for (namespace, owners) in SECRETS {
            check(account, &format!("list secrets in {namespace}"), owners.contains(&account)).await;
        }
    }
    for (account, what, want) in TABLE {
        check(*account, what, *want).await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the machine-config server gives a joining machine, asked for with the server's own rights.
#[tokio::test]
#[ignore = "needs a built release"]
async fn what_a_machine_joins_with_ends() {
    let plane = ControlPlane::start().await;
    release(&plane).await;
    put(&plane.client, config_map(NS_MCO, "kubeconfig-data", &[("ca-bundle.crt", "CA")])).await;
    let server = as_service_account(&plane, SERVER.0, SERVER.1).await;
    let tokens = Tokens::default();
    let mut given = String::new();
    plane
        .until("the server's rights", async || {
            given = tokens.kubeconfig(&server, "https://api-int:6443").await.map_err(|e| format!("{e:#}"))?;
            Ok(())
        })
        .await;
    assert_eq!(
        tokens.kubeconfig(&server, "https://api-int:6443").await.unwrap(),
        given,
        "one for all who ask now"
    );
    let given: Value = serde_saphyr::from_str(&given).unwrap();
    let token = given["users"][0]["user"]["token"].as_str().unwrap();
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    assert_eq!(claims["sub"], format!("system:serviceaccount:{NS_MCO}:node-bootstrapper"));
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 24 * 3600);
    let bootstrapper = (NS_MCO, "node-bootstrapper");
    for what in
        NEVER.iter().chain(&["list nodes", "get secrets node-tokens in openshift-machine-config-operator"])
    {
        assert!(!may(&plane, bootstrapper, what).await, "{what}");
    }
}

fn config_map(namespace: &str, name: &str, data: &[(&str, &str)]) -> Value {
    let data: BTreeMap<_, _> = data.iter().copied().collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}, "data": data})
}

fn secret(namespace: &str, name: &str, data: &[(&str, &str)]) -> Value {
    let data: BTreeMap<_, _> = data.iter().copied().collect();
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": name}, "stringData": data})
}

const INSTALL_CONFIG: &str =
    "{apiVersion: v1, baseDomain: example.com, metadata: {name: ocp4}, controlPlane: {replicas: 1},
  networking: {clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 23}], serviceNetwork: [172.30.0.0/16]}}";
const HOSTS: &str = "hosts:
- {name: bootstrap, role: bootstrap, mac: '52:54:00:00:00:01', address: 127.0.0.1}
- {name: master-0, role: master, mac: '52:54:00:00:00:02', address: 127.0.0.2}
";

/// What bootkube leaves behind, and one master.
async fn bootkube(plane: &ControlPlane) {
    let now = time::OffsetDateTime::now_utc();
    let image =
        |name: &str| (name.to_string(), format!("registry.seedling.internal/seedling/{name}@sha256:1"));
    let images: BTreeMap<_, _> =
        ["seedling", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"].map(image).into();
    let release = json!({"version": "0.1.0", "kubernetesVersion": "1.36.4", "releaseImage": "r", "images": images,
        "binaries": {}, "components": {}});
    let made = [
        config_map("kube-system", "cluster-config-v1", &[("install-config", INSTALL_CONFIG)]),
        config_map("kube-system", "bootstrap", &[("status", "complete")]),
        config_map(NS_CONFIG, INVENTORY_CONFIGMAP, &[("hosts.yaml", HOSTS)]),
        config_map(NS_CONFIG, "release", &[("release.json", &release.to_string())]),
    ];
    for object in made {
        put(&plane.client, object).await;
    }
    let ca = |cn: &str| {
        let spec = CaSpec { cn, ou: None, validity: time::Duration::days(3650) };
        new_ca(&spec, KeyAlgorithm::EcdsaP256, now).unwrap()
    };
    let mut certs = BTreeMap::new();
    for (namespace, name) in [
        (NS_ETCD, "etcd-signer"),
        (NS_ETCD, "etcd-client"),
        (NS_KAS_OPERATOR, "localhost-serving-signer"),
        (NS_KAS_OPERATOR, "service-network-serving-signer"),
        (NS_KAS_OPERATOR, "loadbalancer-serving-signer"),
        (NS_KAS_OPERATOR, "kube-apiserver-to-kubelet-signer"),
        (NS_KAS_OPERATOR, "aggregator-client-signer"),
        (NS_KAS_OPERATOR, "kube-control-plane-signer"),
        (NS_KCM_OPERATOR, "csr-signer"),
    ] {
        let pair = ca(name);
        let mut object = secret(namespace, name, &[("tls.crt", &pair.cert), ("tls.key", &pair.key)]);
        object["type"] = "kubernetes.io/tls".into();
        put(&plane.client, object).await;
        certs.insert(name, pair.cert);
    }
    let keys = serde_json::to_string(&Keys::first("A".repeat(43) + "=", now.unix_timestamp())).unwrap();
    put(&plane.client, secret(NS_KAS_OPERATOR, KEYS_SECRET, &[(KEYS, &keys)])).await;
    let key = [("service-account.key", "k"), ("service-account.pub", "p")];
    put(&plane.client, secret(NS_KAS_OPERATOR, "next-bound-service-account-signing-key", &key)).await;
    put(&plane.client, secret(NS_CONFIG, "initial-service-account-private-key", &key)).await;
    put(&plane.client, config_map(NS_ETCD, "etcd-ca-bundle", &[("ca-bundle.crt", &certs["etcd-signer"])]))
        .await;
    for (name, data) in [
        ("kube-apiserver-server-ca", &certs["loadbalancer-serving-signer"]),
        ("csr-controller-ca", &certs["csr-signer"]),
        ("kube-apiserver-client-ca", &certs["kube-control-plane-signer"]),
    ] {
        put(&plane.client, config_map(NS_CONFIG_MANAGED, name, &[("ca-bundle.crt", data)])).await;
    }
    put(
        &plane.client,
        config_map(NS_CONFIG_MANAGED, "sa-token-signing-certs", &[("service-account-001.pub", "p")]),
    )
    .await;
    let labels = json!({"node-role.kubernetes.io/master": ""});
    put(
        &plane.client,
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "master-0", "labels": labels}}),
    )
    .await;
}

/// What kubelets do: installers end well, and what they installed runs.
async fn kubelet(plane: &ControlPlane, (namespace, pod, app, _): Operand) {
    let installers = plane.list("v1", "Pod", "app=installer").await;
    let installers = installers.iter().filter(|i| i["metadata"]["namespace"] == namespace);
    for installer in installers.filter(|i| i["status"]["phase"] != "Succeeded") {
        let revision = &installer["metadata"]["labels"]["revision"];
        let name = format!("{pod}-master-0");
        let _ = delete(&plane.client, "v1", "Pod", Some(namespace), &name).await;
        let labels = json!({"app": app, "revision": revision});
        let metadata = json!({"namespace": namespace, "name": name, "labels": labels});
        let spec = json!({"containers": [{"name": "c", "image": "i"}]});
        put(&plane.client, json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}))
            .await;
        let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        for (name, status) in [
            (name.as_str(), ready),
            (installer["metadata"]["name"].as_str().unwrap(), json!({"phase": "Succeeded"})),
        ] {
            let metadata = json!({"namespace": namespace, "name": name});
            let status = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status});
            let api = api(&plane.client, "v1", "Pod", Some(namespace)).await.unwrap();
            api.patch_status(name, &PatchParams::apply("test").force(), &Patch::Apply(&status))
                .await
                .unwrap();
        }
    }
}

/// Namespace, static pod, its label and the kind of its settings.
type Operand = (&'static str, &'static str, &'static str, &'static str);
const OPERANDS: [Operand; 4] = [
    (NS_ETCD, "etcd", "etcd", "Etcd"),
    (NS_KAS, "kube-apiserver", "openshift-kube-apiserver", "KubeAPIServer"),
    (NS_KCM, "kube-controller-manager", "kube-controller-manager", "KubeControllerManager"),
    (NS_SCHEDULER, "openshift-kube-scheduler", "scheduler", "KubeScheduler"),
];

/// Until every operand runs this revision or a later one. One waits for another: a certificate is renewed when all trust its new signer.
async fn revision(plane: &ControlPlane, least: i64) {
    plane
        .until(&format!("every operand at revision {least}"), async || {
            let mut seen = vec![];
            for operand in OPERANDS {
                kubelet(plane, operand).await;
                let settings = plane.get("operator.openshift.io/v1", operand.3, None, "cluster").await;
                seen.push((operand.3, settings["status"]["nodeStatuses"][0].clone()));
            }
            match seen.iter().all(|(_, node)| node["currentRevision"].as_i64() >= Some(least)) {
                true => Ok(()),
                false => Err(format!("{seen:?}; refused: {}", plane.refused().join("; "))),
            }
        })
        .await;
}

async fn there(plane: &ControlPlane, api_version: &str, kind: &str, namespace: &str, name: &str) {
    plane
        .until(&format!("{kind} {namespace}/{name}"), async || {
            let found = plane.get(api_version, kind, Some(namespace).filter(|ns| !ns.is_empty()), name).await;
            let refused = || format!("not there; refused: {}", plane.refused().join("; "));
            if found.is_null() { Err(refused()) } else { Ok(()) }
        })
        .await;
}

async fn work(plane: &ControlPlane) {
    revision(plane, 1).await;
    // Everything is renewed: certificates, signers step by step, the key of Secrets. Certificates know whole seconds only, and what was made
    // in this one is not older than it.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let moment = time::OffsetDateTime::now_utc().replace_nanosecond(0).unwrap();
    let moment = moment.format(&time::format_description::well_known::Rfc3339).unwrap();
    put(&plane.client, config_map(NS_CONFIG, CERTIFICATES_CONFIGMAP, &[(seedling_pki::RENEW, &moment)]))
        .await;
    revision(plane, 2).await;
    let rbac = "rbac.authorization.k8s.io/v1";
    for (api_version, kind, namespace, name) in [
        ("apps/v1", "DaemonSet", NS_NETWORK, "flannel"),
        ("apps/v1", "DaemonSet", NS_NETWORK, "kube-proxy"),
        (rbac, "ClusterRoleBinding", "", "openshift-network-kube-proxy"),
        ("apps/v1", "DaemonSet", NS_DNS, "dns-default"),
        (rbac, "ClusterRoleBinding", "", "openshift-dns"),
    ] {
        there(plane, api_version, kind, namespace, name).await;
    }
    for name in ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "network", "dns"] {
        plane
            .until(&format!("the status of {name}"), async || {
                let seen = plane.get("config.openshift.io/v1", "ClusterOperator", None, name).await;
                if seen["status"]["conditions"].is_array() { Ok(()) } else { Err(seen.to_string()) }
            })
            .await;
    }
    // The installer: the revision that is installed, and nothing else.
    let role = plane.get(rbac, "Role", Some(NS_ETCD), "installer").await;
    let named = role["rules"][1]["resourceNames"][0].as_str().unwrap().to_string();
    assert!(named.starts_with("etcd-all-certs-"), "{role}");
    plane
        .until("leave for the installer", async || {
            let allowed = may(plane, INSTALLER, &format!("get secrets {named} in {NS_ETCD}")).await;
            if allowed { Ok(()) } else { Err(role.to_string()) }
        })
        .await;
    for not in [
        "get secrets etcd-signer",
        "get secrets etcd-client",
        "list secrets",
        "get secrets etcd-all-certs-99",
    ] {
        assert!(!may(plane, INSTALLER, &format!("{not} in {NS_ETCD}")).await, "{not}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a built release"]
async fn operators_are_refused_nothing_they_do() {
    let plane = ControlPlane::start().await;
    release(&plane).await;
    super::bootkube(&plane, tempfile::tempdir().unwrap().path(), json!([])).await;
    bootkube(&plane).await;
    let mut leading = BTreeMap::new();
    for (account, lock) in [
        (ETCD, "etcd-operator-lock"),
        (KAS, "kube-apiserver-operator-lock"),
        (KCM, "kube-controller-manager-operator-lock"),
        (SCHEDULER, "kube-scheduler-operator-lock"),
        (NETWORK, "network-operator-lock"),
        (DNS, "dns-operator-lock"),
    ] {
        let update = format!("update leases.coordination.k8s.io {lock} in {}", account.0);
        plane
            .until("the API server to know all roles", async || {
                if may(&plane, account, &update).await { Ok(()) } else { Err(update.clone()) }
            })
            .await;
        let client = as_service_account(&plane, account.0, account.1).await;
        let leadership = lead(client.clone(), account.0, lock, "test").await.unwrap();
        leading.insert(account, (client, leadership));
    }
    let of = |account: Account| {
        let (client, leadership) = &leading[&account];
        Context { fence: Some(leadership.fence()), ..client.clone().into() }
    };
    let ended = tokio::select! {
        () = work(&plane) => None,
        ended = etcd::run(of(ETCD)) => Some(ended),
        ended = kube_apiserver::run(of(KAS)) => Some(ended),
        ended = kube_controller_manager::run(of(KCM)) => Some(ended),
        ended = kube_scheduler::run(of(SCHEDULER)) => Some(ended),
        ended = daemon_set::operate(of(NETWORK), &daemon_set::NETWORK, super::given) => Some(ended),
        ended = daemon_set::operate(of(DNS), &daemon_set::DNS, super::given) => Some(ended),
    };
    assert!(ended.is_none(), "an operator ended: {ended:?}");
    for (_, leadership) in leading.into_values() {
        leadership.release().await;
    }
    assert_eq!(plane.refused(), Vec::<String>::new());
}
