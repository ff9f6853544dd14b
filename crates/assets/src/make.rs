//! Assets made of other assets. Pure, but for keys, serial numbers and names that must be new.

use crate::bootstrap;
use crate::config::InstallConfig;
use crate::given::{CONFIG_FILE, Given, parse_release};
use crate::graph::engine::Made;
use crate::graph::{self, Id, OfRole, ROLES};
use crate::identity::{self, Identity};
use crate::kubeconfig::{self, Kubeconfig};
use crate::store::Files;
use crate::yaml::to_yaml;
use crate::{CreateError, Message, machine_config, manifests, overrides, pointer, shape};
use seedling_pki::table::{self, Cluster};
use seedling_pki::{CertKey, KeyPair, bundle, ssh_keypair};
use seedling_types::NodeToken;
use seedling_types::admission::{Admission, Issued};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;
use time::format_description::well_known::Rfc3339;

pub fn make(given: &Given, id: Id, made: &Made, say: &mut Vec<Message>) -> Result<Files, CreateError> {
    let config = &given.config;
    if let Some(of) = ROLES.iter().find(|of| [of.pointer, of.machines, of.customizations].contains(&id)) {
        return of_role(given, of, id, made, say);
    }
    if let Some(files) = certificate(given, id, made)? {
        return Ok(files);
    }
    Ok(match id {
        graph::INSTALL_CONFIG => one(CONFIG_FILE, &given.normalised),
        graph::CLUSTER_ID => Identity::new(&config.name).into_files(),
        graph::KEY_PARAMETERS => one("algorithm", &given.keys().to_string()),
        graph::SERVICE_ACCOUNT => key_pair("tls/service-account", given.service_account()?),
        graph::BOOTSTRAP_SSH => key_pair("tls/bootstrap-ssh", ssh_keypair()?),
        // Only where the user brings one; otherwise it is made on the bootstrap node.
        graph::BOUND_SERVICE_ACCOUNT => Files::new(),
        graph::PASSWORD => one("auth/kubeadmin-password", &identity::password()),
        graph::PASSWORD_SECRET => {
            one("hash", &identity::hash(made.file(graph::PASSWORD, "auth/kubeadmin-password")?)?)
        }
        graph::OPENSHIFT_INSTALL => manifests::install(&given.version, &given.options.invoker)?,
        graph::MANIFESTS => common(given, made, say)?,
        graph::OPENSHIFT => {
            let hash = made.file(graph::PASSWORD_SECRET, "hash")?;
            let mut files = manifests::openshift(config, hash)?;
            files.extend(made.files(graph::OPENSHIFT_INSTALL)?.clone());
            files
        }
        graph::CLUSTER_API => one("000_capi-namespace.yaml", ""),
        graph::KUBECONFIG_ADMIN
        | graph::KUBECONFIG_INTERNAL
        | graph::KUBECONFIG_KUBELET
        | graph::KUBECONFIG_LOOPBACK => kubeconfig(given, id, made)?,
        graph::CVO_IGNORE => overrides::ignore(made.files(graph::MANIFESTS)?, made.files(graph::OPENSHIFT)?)?,
        graph::RELEASE => {
            let path = given.options.release.join("release.json");
            return Err(CreateError::Release(format!("there is no {}", path.display())));
        }
        graph::INVENTORY => Files::new(),
        graph::NODE_POINTERS => node_pointers(given, made)?,
        graph::BOOTSTRAP | graph::IN_PLACE => bootstrap(given, id, made)?,
        graph::METADATA => {
            let metadata = metadata(config, &Identity::of(made)?);
            one("metadata.json", &metadata.to_string())
        }
        _ => return Err(CreateError::Missing(id)),
    })
}

/// For those who take a cluster away again.
fn metadata(config: &InstallConfig, identity: &Identity) -> Value {
    let mut metadata = json!({
        "clusterName": config.name, "clusterID": identity.cluster_id, "infraID": identity.infra_id,
    });
    if let Some(baremetal) = shape::baremetal(config) {
        metadata["baremetal"] = json!({
            "libvirtURI": baremetal.libvirt_uri,
            "bootstrapProvisioningIP": baremetal.bootstrap_provisioning_ip,
            "provisioningHostIP": baremetal.cluster_provisioning_ip,
        });
    }
    metadata["featureSet"] = config.merged.feature_set.clone().into();
    let gates = |on: bool| -> Vec<_> {
        config.feature_gates.iter().filter(|(_, o)| **o == on).map(|(name, _)| name).collect()
    };
    metadata["customFeatureSet"] = match config.feature_gates.is_empty() {
        true => Value::Null,
        false => json!({ "enabled": gates(true), "disabled": gates(false) }),
    };
    metadata
}

fn one(path: &str, contents: &str) -> Files {
    [(path.to_string(), contents.to_string())].into()
}

fn key_pair(path: &str, pair: KeyPair) -> Files {
    [(format!("{path}.key"), pair.key), (format!("{path}.pub"), pair.public)].into()
}

/// A pair of the table, by file name.
pub fn pair(made: &Made, file: &str) -> Result<CertKey, CreateError> {
    let signers = table::SIGNERS.iter().map(|s| (s.asset, s.file));
    let mut known = signers.chain(table::LEAVES.iter().map(|l| (l.asset, l.file)));
    let (id, _) = known.find(|(_, f)| *f == file).ok_or(CreateError::Missing("certificate"))?;
    let part = |end: &str| made.file(id, &format!("tls/{file}.{end}")).map(str::to_string);
    Ok(CertKey { cert: part("crt")?, key: part("key")? })
}

fn certificate(given: &Given, id: Id, made: &Made) -> Result<Option<Files>, CreateError> {
    let files = |file: &str, pair: CertKey| {
        Some([(format!("tls/{file}.crt"), pair.cert), (format!("tls/{file}.key"), pair.key)].into())
    };
    let now = given.options.now;
    let keys = || made.file(graph::KEY_PARAMETERS, "algorithm").map(|name| name.parse().unwrap_or_default());
    if let Some(signer) = table::SIGNERS.iter().find(|signer| signer.asset == id) {
        return Ok(files(signer.file, signer.make(keys()?, now)?));
    }
    if let Some(leaf) = table::LEAVES.iter().find(|leaf| leaf.asset == id) {
        let vips = shape::api_vips(&given.config);
        let cluster = Cluster {
            domain: &given.config.domain,
            service_address: given.config.networks.service_address(1),
            api_vips: &vips,
        };
        return Ok(files(leaf.file, leaf.make(&pair(made, leaf.signer)?, &cluster, keys()?, now)?));
    }
    let Some(row) = table::BUNDLES.iter().find(|bundle| bundle.asset == id) else { return Ok(None) };
    let signers: Result<Vec<_>, _> =
        row.signers.iter().map(|file| Ok::<_, CreateError>(pair(made, file)?.cert)).collect();
    let signers = signers?;
    let signers: Vec<_> = signers.iter().map(String::as_str).collect();
    Ok(Some(one(&format!("tls/{}.crt", row.file), &bundle(&signers))))
}

fn common(given: &Given, made: &Made, say: &mut Vec<Message>) -> Result<Files, CreateError> {
    if given.config.masters_schedulable() {
        say.push(Message::warning(
            "Making control-plane schedulable by setting MastersSchedulable to true for Scheduler cluster settings",
        ));
    }
    let (root_ca, server) = (pair(made, "root-ca")?, pair(made, "machine-config-server")?);
    for (what, pair) in [("CA", &root_ca), ("TLS", &server)] {
        let (from, until) = seedling_pki::validity(&pair.cert)?;
        let [from, until] = [from, until].map(|time| time.format(&Rfc3339).unwrap_or_default());
        let text = format!("Successfully populated MCS {what} cert information: root-ca {until} {from}");
        say.push(Message::info(text));
    }
    manifests::common(&manifests::Inputs {
        config: &given.config,
        identity: &Identity::of(made)?,
        root_ca: &root_ca,
        machine_config_server: &server,
        version: &given.version,
    })
}

fn of_role(
    given: &Given,
    of: &OfRole,
    id: Id,
    made: &Made,
    say: &mut Vec<Message>,
) -> Result<Files, CreateError> {
    if !shape::has_pool(&given.config, of.pool) {
        return Ok(Files::new());
    }
    let pointer = |made: &Made| -> Result<String, CreateError> {
        let root_ca = pair(made, "root-ca")?.cert;
        Ok(serde_json::to_string(&pointer::pointer(&shape::pointer_host(&given.config), of.pool, &root_ca))?)
    };
    if id == of.pointer {
        return Ok(one(of.pointer_file, &pointer(made)?));
    }
    let current = made.file(of.pointer, of.pointer_file)?;
    if id == of.machines {
        // Without a machine beside it nothing could hold the addresses of bare metal.
        if of.pool == "master" && given.config.masters == 1 && shape::baremetal(&given.config).is_some() {
            return Err(CreateError::SingleNode("baremetal"));
        }
        return manifests::machines(&given.config, &Identity::of(made)?, of.pool, current);
    }
    // Machines are sent on to the machine-config server, so what was added to their pointer config is served from there.
    let Some(added) = pointer::additions(of.pointer_file, current, &pointer(made)?)? else {
        return Ok(Files::new());
    };
    say.push(Message::info(format!(
        "{} pointer ignition was modified. Saving contents to a machineconfig",
        of.name
    )));
    let path = format!("openshift/99_openshift-installer-ignition_{}.yaml", of.pool);
    Ok(one(&path, &to_yaml(&machine_config::of_pointer(of.pool, added))?))
}

/// The same as the role's, with the machine's own token.
fn node_pointers(given: &Given, made: &Made) -> Result<Files, CreateError> {
    let (host, root_ca) = (shape::pointer_host(&given.config), pair(made, "root-ca")?.cert);
    let tokens = made.files(graph::NODE_TOKENS)?;
    let mut files = Files::new();
    for machine in given.inventory.iter().flat_map(pointer::joining) {
        if let Some(token) = tokens.get(&machine.name) {
            let own = pointer::own_pointer(&host, machine.role, &root_ca, &serde_json::from_str(token)?);
            files.insert(pointer::node_file(&machine.name), serde_json::to_string(&own)?);
        }
    }
    Ok(files)
}

/// What the machine-config server knows of the tokens: their digests.
fn admission(made: &Made) -> Result<Admission, CreateError> {
    let tokens = made.files(graph::NODE_TOKENS)?;
    let mut nodes = BTreeMap::new();
    for (name, token) in tokens {
        let token: NodeToken = serde_json::from_str(token)?;
        nodes.insert(name.clone(), Issued { sha256: token.digest(), spent: None });
    }
    Ok(Admission { open: tokens.is_empty(), nodes })
}

fn kubeconfig(given: &Given, id: Id, made: &Made) -> Result<Files, CreateError> {
    let row = kubeconfig::ROWS.iter().find(|row| row.id == id).ok_or(CreateError::Missing(id))?;
    let ca = table::BUNDLES.iter().find(|b| b.file == row.bundle).map_or(id, |b| b.asset);
    let text = Kubeconfig {
        cluster: &given.config.name,
        server: row.server(&given.config.domain),
        ca: made.file(ca, &format!("tls/{}.crt", row.bundle))?,
        user: row.user,
        client: &pair(made, row.client)?,
    };
    Ok(one(row.file, &text.to_yaml()?))
}

fn bootstrap(given: &Given, id: Id, made: &Made) -> Result<Files, CreateError> {
    let release = parse_release(made.file(graph::RELEASE, "release.json")?)?;
    let inventory = given.inventory.as_ref();
    let inputs = bootstrap::Inputs {
        config: &given.config,
        made,
        release: &release,
        inventory,
        admission: &admission(made)?,
        node_ip: node_ip(given)?,
    };
    let config = bootstrap::config(&inputs)?;
    if id == graph::BOOTSTRAP {
        return Ok(one("bootstrap.ign", &serde_json::to_string(&config)?));
    }
    let disk = in_place_disk(given)?;
    let config = config.merge(bootstrap::in_place(&disk));
    Ok(one("bootstrap-in-place-for-live-iso.ign", &serde_json::to_string(&config)?))
}

fn node_ip(given: &Given) -> Result<Option<IpAddr>, CreateError> {
    let Some(text) = &given.options.bootstrap_node_ip else { return Ok(None) };
    let why = format!("OPENSHIFT_INSTALL_BOOTSTRAP_NODE_IP: Invalid value: {text:?}: must be an IP address");
    text.parse().map(Some).map_err(|_| CreateError::Refused(vec![why]))
}

fn in_place_disk(given: &Given) -> Result<String, CreateError> {
    let mut refused = Vec::new();
    if given.config.masters != 1 {
        let masters = given.config.masters;
        refused.push(format!(
            "controlPlane.replicas: Invalid value: {masters}: bootstrap in place requires a single ControlPlane replica"
        ));
    }
    match shape::installation_disk(&given.config) {
        None => refused.push(
            "bootstrapInPlace: Required value: bootstrapInPlace is required when creating a single node bootstrap-in-place ignition"
                .into(),
        ),
        Some("") => refused.push(
            "bootstrapInPlace.installationDisk: Required value: installationDisk must be set the target disk drive for the installation"
                .into(),
        ),
        Some(disk) if refused.is_empty() => return Ok(disk.into()),
        Some(_) => {}
    }
    Err(CreateError::Refused(refused))
}
