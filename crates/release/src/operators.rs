//! The operators of the payload, one row each. A row and the templates in `release/templates` become the operator's Namespaces,
//! ServiceAccount, Deployment and ClusterOperator. What it may do is written by hand: its roles are in `release/manifests`.

use crate::error::Result;
use crate::manifests::{VERSION, bad};
use seedling_types::names::{NS_APPROVER, NS_CVO};
use seedling_types::template::render;
use serde_json::{Value, json};

/// By convention operator `x` is the Deployment and the ServiceAccount `x-operator` in Namespace openshift-x-operator, and its operands
/// run in openshift-x. A row says where it is otherwise.
pub(crate) struct Operator {
    /// How the names of its manifests begin: run level and component.
    component: &'static str,
    files: &'static [File],
    /// `x`: in `seedling operator <x>`, and the name of its ClusterOperator.
    command: &'static str,
    name: Option<&'static str>,
    namespace: Option<&'static str>,
    account: Option<&'static str>,
    image: &'static str,
    env: &'static [(&'static str, &'static str)],
    memory: Option<&'static str>,
    /// Without any privilege and on a read-only root.
    confined: bool,
    run_level: &'static str,
    /// Upstream's operators of static pods have other labels than the rest, and leave some fields out.
    static_pods: bool,
}

/// The end of a manifest's name, which gives it its place among the component's, and its template.
type File = (&'static str, &'static str);

const NAMESPACE: &str = include_str!("../../../release/templates/namespace.yaml");
const OPERANDS: &str = include_str!("../../../release/templates/operand-namespace.yaml");
const ACCOUNT: &str = include_str!("../../../release/templates/serviceaccount.yaml");
const DEPLOYMENT: &str = include_str!("../../../release/templates/deployment.yaml");
const STATUS: &str = include_str!("../../../release/templates/clusteroperator.yaml");

const WITH_OPERANDS: &[File] = &[
    ("00_namespace", NAMESPACE),
    ("00_operand-namespace", OPERANDS),
    ("01_serviceaccount", ACCOUNT),
    ("03_deployment", DEPLOYMENT),
    ("04_clusteroperator", STATUS),
];

/// What a new operator begins with.
const OPERATOR: Operator = Operator {
    component: "",
    files: &[
        ("00_namespace", NAMESPACE),
        ("01_serviceaccount", ACCOUNT),
        ("03_deployment", DEPLOYMENT),
        ("04_clusteroperator", STATUS),
    ],
    command: "",
    name: None,
    namespace: None,
    account: None,
    image: "${image:seedling}",
    env: &[("RELEASE_VERSION", VERSION)],
    memory: None,
    confined: false,
    run_level: "0",
    static_pods: false,
};
const OF_STATIC_PODS: Operator = Operator {
    files: &[
        ("00_namespace", NAMESPACE),
        ("01_operand-namespace", OPERANDS),
        ("02_serviceaccount", ACCOUNT),
        ("08_deployment", DEPLOYMENT),
        ("09_clusteroperator", STATUS),
    ],
    env: &[],
    memory: Some("20Mi"),
    static_pods: true,
    ..OPERATOR
};

#[rustfmt::skip]
pub(crate) const OPERATORS: &[Operator] = &[
    // Applies every manifest of the payload. Its image is filled in where the payload is used: see `fill_release_image`.
    Operator { component: "0000_00_cluster-version-operator", command: "cluster-version", namespace: Some(NS_CVO),
        image: "$${release-image}", env: &[("RELEASE_IMAGE", "$${release-image}")],
        files: &[("00_namespace", NAMESPACE), ("02_serviceaccount", ACCOUNT), ("04_deployment", DEPLOYMENT)], ..OPERATOR },
    Operator { component: "0000_12_etcd-operator", command: "etcd", ..OF_STATIC_PODS },
    Operator { component: "0000_20_kube-apiserver-operator", command: "kube-apiserver", ..OF_STATIC_PODS },
    Operator { component: "0000_25_kube-controller-manager-operator", command: "kube-controller-manager", ..OF_STATIC_PODS },
    Operator { component: "0000_25_kube-scheduler-operator", command: "kube-scheduler", ..OF_STATIC_PODS },
    // Approves certificates for the machines of the inventory.
    Operator { component: "0000_50_cluster-machine-approver", command: "machine-approver", name: Some("machine-approver"),
        namespace: Some(NS_APPROVER), account: Some("machine-approver-sa"), memory: Some("50Mi"), confined: true, run_level: "1",
        files: &[("00_namespace", NAMESPACE), ("01_serviceaccount", ACCOUNT), ("10_deployment", DEPLOYMENT), ("11_clusteroperator", STATUS)],
        ..OPERATOR },
    // Keeps flannel and kube-proxy on every node.
    Operator { component: "0000_70_cluster-network-operator", command: "network", files: WITH_OPERANDS, env: &[
        ("RELEASE_VERSION", VERSION),
        ("FLANNEL_IMAGE", "${image:flannel}"),
        ("KUBE_PROXY_IMAGE", "${image:kube-proxy}"),
        ("SEEDLING_IMAGE", "${image:seedling}"),
    ], ..OPERATOR },
    // Keeps CoreDNS on every node.
    Operator { component: "0000_70_dns-operator", command: "dns", files: WITH_OPERANDS,
        env: &[("RELEASE_VERSION", VERSION), ("COREDNS_IMAGE", "${image:coredns}")], ..OPERATOR },
    // Renders machine configs, runs the server that hands them out, and labels Nodes.
    Operator { component: "0000_80_machine-config", command: "machine-config", memory: Some("50Mi"), confined: true, run_level: "1",
        files: &[("00_namespace", NAMESPACE), ("02_operator-serviceaccount", ACCOUNT), ("16_operator-deployment", DEPLOYMENT), ("17_clusteroperator", STATUS)],
        env: &[("RELEASE_VERSION", VERSION), ("SEEDLING_IMAGE", "${image:seedling}")], ..OPERATOR },
];

impl Operator {
    /// File name → object; its strings are still to be completed with images and versions.
    pub(crate) fn manifests(&self) -> Result<Vec<(String, Value)>> {
        let made = self.files.iter().map(|(end, template)| {
            let file = format!("{}_{end}.yaml", self.component);
            let text = render(template, |name| self.value(name)).map_err(|e| bad(&file, &e.to_string()))?;
            let mut object = serde_saphyr::from_str(&text).map_err(|e| bad(&file, &e.to_string()))?;
            self.complete(&mut object);
            Ok((file, object))
        });
        made.collect()
    }

    fn value(&self, name: &str) -> Option<String> {
        let own_name = || self.name.map_or_else(|| format!("{}-operator", self.command), Into::into);
        Some(match name {
            "command" => self.command.into(),
            "name" => own_name(),
            "namespace" => {
                self.namespace.map_or_else(|| format!("openshift-{}-operator", self.command), Into::into)
            }
            "operands" => format!("openshift-{}", self.command),
            "account" => self.account.map_or_else(own_name, Into::into),
            "container" if self.static_pods => "operator".into(),
            "container" => own_name(),
            "label" => if self.static_pods { "app" } else { "k8s-app" }.into(),
            "grace" => if self.static_pods { "5" } else { "10" }.into(),
            "run-level" => self.run_level.into(),
            _ => return None,
        })
    }

    /// What not every row has.
    fn complete(&self, object: &mut Value) {
        match (object["kind"].as_str(), self.static_pods) {
            (Some("Deployment"), _) => self.complete_deployment(object),
            (Some("Namespace"), false) => {
                object["metadata"]["annotations"]["openshift.io/node-selector"] = "".into();
            }
            (Some("ClusterOperator"), false) => {
                let namespaces = self.files.iter().filter_map(|(_, template)| match *template {
                    NAMESPACE => self.value("namespace"),
                    OPERANDS => self.value("operands"),
                    _ => None,
                });
                let related = |name: String| json!({"group": "", "resource": "namespaces", "name": name});
                object["status"]["relatedObjects"] = namespaces.map(related).collect();
            }
            _ => {}
        }
    }

    fn complete_deployment(&self, object: &mut Value) {
        if !self.static_pods {
            object["metadata"]["labels"] = object["spec"]["selector"]["matchLabels"].clone();
        }
        let container = &mut object["spec"]["template"]["spec"]["containers"][0];
        container["image"] = self.image.into();
        if let Some(env) = container["env"].as_array_mut() {
            env.extend(self.env.iter().map(|(name, value)| json!({"name": name, "value": value})));
        }
        if !self.static_pods {
            container["terminationMessagePolicy"] = "FallbackToLogsOnError".into();
        }
        if let Some(memory) = self.memory {
            container["resources"] = json!({"requests": {"cpu": "10m", "memory": memory}});
        }
        if self.confined {
            container["securityContext"] = json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]}});
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// What the rows yield is what was written by hand before there were rows.
    #[test]
    fn objects_are_as_they_were_written() {
        let made: Vec<_> = OPERATORS.iter().flat_map(|operator| operator.manifests().unwrap()).collect();
        let count = made.len();
        let made: BTreeMap<_, _> = made.into_iter().collect();
        assert_eq!(made.len(), count, "two rows make the same file");
        let written = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/operators")).unwrap();
        for path in written.map(|entry| entry.unwrap().path()) {
            let expected: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap();
            assert_eq!(made.get(name), Some(&expected), "{name}");
        }
    }

    #[test]
    fn rows_are_whole() {
        for operator in OPERATORS {
            assert!(!operator.component.is_empty() && !operator.command.is_empty());
            assert_eq!(operator.value("unknown"), None);
        }
    }
}
