//! The kube-apiserver operator: the API on every master, by revision, with certificates that outlive the installer's.

use crate::static_pod::certificates::{
    LEAF, client_leaf, leaf, required_configmap, required_secret, signer, tls_files,
};
use crate::static_pod::{self, Desired, Env, Health, Names, Operand};
use anyhow::Result;
use kube::Client;
use seedling_components::{Place, kube_apiserver};
use seedling_pki::{LeafSpec, Usage};
use seedling_types::names::{NS_CONFIG_MANAGED, NS_ETCD, NS_KAS, NS_KAS_OPERATOR};
use seedling_types::ports;
use std::collections::BTreeMap;
use std::net::IpAddr;

const NAMES: Names = Names {
    operator: "kube-apiserver",
    kind: "KubeAPIServer",
    namespace: NS_KAS,
    operator_namespace: NS_KAS_OPERATOR,
    pod: "kube-apiserver",
    pod_configmap: kube_apiserver::POD_CONFIGMAP,
};

/// Serving certificate ← signer, and whom it names.
struct Serving {
    secret: &'static str,
    signer: &'static str,
    dns: Vec<String>,
    ips: Vec<IpAddr>,
}

pub async fn run(client: Client) -> Result<()> {
    let env = Env::load(client).await?;
    let operand = Operand {
        names: NAMES,
        desired: |env| Box::pin(desired(env)),
        health: Box::new(|env, masters| Box::pin(health(env, masters))),
    };
    static_pod::run(&env, &operand).await
}

fn serving(env: &Env) -> [Serving; 4] {
    let service = ["kubernetes", "openshift"].iter().flat_map(|name| {
        ["", ".default", ".default.svc", ".default.svc.cluster.local"].map(|suffix| format!("{name}{suffix}"))
    });
    let local = vec![std::net::Ipv4Addr::LOCALHOST.into(), std::net::Ipv6Addr::LOCALHOST.into()];
    let row = |secret, signer, dns, ips| Serving { secret, signer, dns, ips };
    [
        row("localhost-serving-cert-certkey", "localhost-serving-signer", vec!["localhost".into()], local),
        row(
            "service-network-serving-certkey",
            "service-network-serving-signer",
            service.collect(),
            vec![env.config.service_address(1).into()],
        ),
        row(
            "external-loadbalancer-serving-certkey",
            "loadbalancer-serving-signer",
            vec![env.config.domain.api()],
            vec![],
        ),
        row(
            "internal-loadbalancer-serving-certkey",
            "loadbalancer-serving-signer",
            vec![env.config.domain.api_int()],
            vec![],
        ),
    ]
}

async fn desired(env: &Env) -> Result<Desired> {
    let cache = &env.cache;
    let mut secrets = BTreeMap::new();
    for row in serving(env) {
        let (signer, _) = signer(cache, NS_KAS_OPERATOR, row.signer).await?;
        let spec = LeafSpec {
            cn: "system:kube-apiserver",
            organizations: vec!["kube-master".into()],
            usages: &[Usage::Server],
            dns: row.dns,
            ips: row.ips,
            validity: LEAF,
            append_parent: true,
            key_usage: true,
        };
        secrets.insert(
            row.secret.to_string(),
            tls_files(&leaf(cache, NS_KAS, row.secret, &signer, &spec).await?),
        );
    }
    let (to_kubelet, _) = signer(cache, NS_KAS_OPERATOR, "kube-apiserver-to-kubelet-signer").await?;
    let spec = client_leaf("system:kube-apiserver", &["kube-master"]);
    let pair = leaf(cache, NS_KAS, "kubelet-client", &to_kubelet, &spec).await?;
    secrets.insert("kubelet-client".into(), tls_files(&pair));
    let (aggregator, previous) = signer(cache, NS_KAS_OPERATOR, "aggregator-client-signer").await?;
    let spec = client_leaf("system:openshift-aggregator", &["kube-master"]);
    let pair = leaf(cache, NS_KAS, "aggregator-client", &aggregator, &spec).await?;
    secrets.insert("aggregator-client".into(), tls_files(&pair));
    secrets.insert("etcd-client".into(), required_secret(cache, NS_ETCD, "etcd-client").await?);
    let bound = required_secret(cache, NS_KAS_OPERATOR, "next-bound-service-account-signing-key").await?;
    secrets.insert("bound-service-account-signing-key".into(), bound);

    let aggregator_ca = BTreeMap::from([(
        "ca-bundle.crt".to_string(),
        aggregator.cert.clone() + previous.as_deref().unwrap_or_default(),
    )]);
    let mut configmaps = BTreeMap::from([("aggregator-client-ca".to_string(), aggregator_ca)]);
    let copied = [
        ("client-ca", NS_CONFIG_MANAGED, "kube-apiserver-client-ca"),
        ("kubelet-serving-ca", NS_CONFIG_MANAGED, "kubelet-serving-ca"),
        ("sa-token-signing-certs", NS_CONFIG_MANAGED, "sa-token-signing-certs"),
        ("etcd-serving-ca", NS_ETCD, "etcd-ca-bundle"),
    ];
    for (name, namespace, source) in copied {
        configmaps.insert(name.into(), required_configmap(cache, namespace, source).await?);
    }
    let pod = kube_apiserver::pod(&env.config, &env.release, Place::Master, "NODE_IP")?;
    Ok(Desired { configmaps, secrets, pod })
}

/// Seen working: most masters' own servers say that they are ready.
async fn health(env: &Env, masters: &[String]) -> Health {
    let hosts: Vec<_> = masters.iter().filter_map(|name| env.inventory.by_name(name)).collect();
    let asked = hosts.iter().map(|host| {
        let request = env.http.get(format!("https://{}:{}/readyz", host.address, ports::API)).send();
        async move { request.await.is_ok_and(|response| response.status().is_success()) }
    });
    let ready = futures::future::join_all(asked).await.into_iter().filter(|ready| *ready).count();
    let wanted = env.inventory.masters().len();
    Health { working: ready > wanted / 2, message: format!("{ready} of {wanted} API servers are ready") }
}
