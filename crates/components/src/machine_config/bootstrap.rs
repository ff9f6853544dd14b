//! Stage mco-bootstrap: what the bootstrap machine-config server serves from, and what the cluster gets of the same.

use super::*;
use crate::Outside;
use crate::node::NodeParams;
use seedling_types::names::{NS_CONFIG, NS_MCO};

pub struct Inputs<'a> {
    pub node: NodeParams<'a>,
    pub outside: Outside,
    /// root-ca.crt: signs the machine-config server's certificate.
    pub root_ca: &'a str,
    /// kube-apiserver-complete-client-ca-bundle.crt: the clients that a kubelet trusts.
    pub kube_ca: &'a str,
    /// The installer's `99-*-ssh` and what users added; see `read_machine_configs`.
    pub extra: Vec<MachineConfig>,
}

const POOLS: [&str; 2] = ["master", "worker"];

/// Files for `/etc/mcs/bootstrap`, by relative path.
pub fn render_bootstrap(inputs: &Inputs) -> Result<BTreeMap<String, Vec<u8>>, RenderError> {
    let (configs, controller) = (all_configs(inputs)?, inputs.controller());
    let mut files =
        BTreeMap::from([(format!("controller-config/{CONTROLLER_CONFIG}.yaml"), yaml(&controller))]);
    for name in POOLS {
        let pool = pool(name);
        let rendered = render(&pool, &configs, &controller, &inputs.node.release.version)?;
        let pool = with_configuration(pool.clone(), &rendered.metadata.name, &selected(&pool, &configs));
        files.insert(format!("machine-pools/{name}.yaml"), yaml(&pool));
        files.insert(format!("machine-configs/{}.yaml", rendered.metadata.name), yaml(&rendered.to_value()));
    }
    Ok(files)
}

/// Manifests for the cluster, by file name. Installer's and users' MachineConfigs are manifests already.
pub fn cluster_manifests(inputs: &Inputs) -> Result<BTreeMap<String, Vec<u8>>, RenderError> {
    let mut files = BTreeMap::new();
    let mut put = |name: &str, object: Value| files.insert(name.to_string(), yaml(&object));
    put("00_openshift-machine-config-operator-ns.yaml", namespace());
    put("machineconfigcontroller-controllerconfig.yaml", inputs.controller());
    for name in POOLS {
        put(&format!("{name}.machineconfigpool.yaml"), pool(name));
    }
    for mc in inputs.own()? {
        put(&format!("{}.machineconfig.yaml", mc.metadata.name), mc.to_value());
    }
    put("csr-bootstrap-role-binding.yaml", joins());
    put("csr-renewal-role-binding.yaml", renews());
    put("kube-apiserver-serving-ca-configmap.yaml", serving_ca(inputs.kube_ca));
    Ok(files)
}

impl Inputs<'_> {
    fn controller(&self) -> Value {
        controller_config(&self.node, self.root_ca, self.kube_ca)
    }
    /// The built-in ones.
    fn own(&self) -> Result<Vec<MachineConfig>, RenderError> {
        let outside = outside_configs(self.node.domain, &self.outside);
        Ok(machine_configs(&self.node)?.into_iter().chain(outside).collect())
    }
}

fn all_configs(inputs: &Inputs) -> Result<Vec<MachineConfig>, RenderError> {
    Ok(inputs.extra.iter().cloned().chain(inputs.own()?).collect())
}

fn namespace() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": NS_MCO,
            "labels": {"openshift.io/run-level": "1", "pod-security.kubernetes.io/enforce": "privileged"},
        },
    })
}

/// With the kubeconfig that the machine-config server hands out a machine may request a node's first certificate.
fn joins() -> Value {
    binding(
        "system-bootstrap-node-bootstrapper",
        "system:node-bootstrapper",
        json!({"kind": "ServiceAccount", "name": "node-bootstrapper", "namespace": NS_MCO}),
    )
}

/// A node renews its own client certificate without being asked again.
fn renews() -> Value {
    binding(
        "system-bootstrap-node-renewal",
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}),
    )
}

fn binding(name: &str, role: &str, subject: Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    })
}

fn serving_ca(kube_ca: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "initial-kube-apiserver-server-ca", "namespace": NS_CONFIG},
        "data": {"ca-bundle.crt": kube_ca},
    })
}

fn yaml(object: &Value) -> Vec<u8> {
    // Strings, numbers, lists and maps always have a YAML form.
    serde_saphyr::to_string(object).unwrap_or_default().into_bytes()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::testing::release;
    use seedling_types::ClusterDomain;
    use std::net::Ipv4Addr;

    fn parse(bytes: &[u8]) -> Value {
        serde_saphyr::from_str(std::str::from_utf8(bytes).unwrap()).unwrap()
    }

    #[test]
    fn the_cluster_comes_to_the_same_names() {
        let (domain, release) = (ClusterDomain("ocp4.example.com".into()), release());
        let service_networks = vec![ipnet::Ipv4Net::new_assert(Ipv4Addr::new(172, 30, 0, 0), 16).into()];
        let pod_networks = vec![ipnet::Ipv4Net::new_assert(Ipv4Addr::new(10, 128, 0, 0), 14).into()];
        let node = NodeParams { domain: &domain, release: &release, service_networks, pod_networks };
        let ssh = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\n\
            metadata: {name: 99-master-ssh, labels: {machineconfiguration.openshift.io/role: master}}\n\
            spec: {baseOSExtensionsContainerImage: '', extensions: null, fips: false, kernelArguments: null, config: {\
            ignition: {version: 3.2.0}, passwd: {users: [{name: core, sshAuthorizedKeys: [ssh-ed25519 AAAA c]}]}}}\n";
        let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";
        let extra = read_machine_configs([("99_ssh.yaml", ssh), ("x.yaml", other)]).unwrap();
        let outside = Outside { pull_secret: "{}".into(), ..Outside::default() };
        let inputs = Inputs { node, outside, root_ca: "ROOT\n", kube_ca: "KUBE\n", extra };
        let files = render_bootstrap(&inputs).unwrap();
        let paths: Vec<_> = files.keys().map(|p| p.split('/').next().unwrap()).collect();
        assert_eq!(
            paths,
            ["controller-config", "machine-configs", "machine-configs", "machine-pools", "machine-pools"]
        );

        // What the operator will find in the cluster.
        let manifests = cluster_manifests(&inputs).unwrap();
        let texts: Vec<_> =
            manifests.iter().map(|(n, b)| (n.as_str(), std::str::from_utf8(b).unwrap())).collect();
        let mut configs = read_machine_configs(texts).unwrap();
        configs.extend(inputs.extra);
        let controller = parse(&manifests["machineconfigcontroller-controllerconfig.yaml"]);
        for name in POOLS {
            let there = render(
                &parse(&manifests[&format!("{name}.machineconfigpool.yaml")]),
                &configs,
                &controller,
                "0.1.0",
            )
            .unwrap();
            let here = parse(&files[&format!("machine-pools/{name}.yaml")]);
            assert_eq!(here["spec"]["configuration"]["name"], there.metadata.name.as_str());
            let file = &files[&format!("machine-configs/{}.yaml", there.metadata.name)];
            assert_eq!(serde_json::from_value::<MachineConfig>(parse(file)).unwrap(), there);
        }
    }
}
