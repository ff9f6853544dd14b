//! The targets of `create`: load what is there, make what is missing, write, consume.

use crate::bootstrap::{self, Kubeconfigs, certificate};
use crate::config::{Context, InstallConfig, parse_hosts};
use crate::manifests::{self, Manifests};
use crate::state::{self, State};
use crate::store::{self, Asset, Store};
use crate::yaml::to_yaml;
use crate::{CreateError, Level, Message, Options, Outcome, Target, pointer};
use seedling_pki::table::{self, Cluster};
use seedling_pki::{rsa_keypair, ssh_keypair};
use seedling_types::{Inventory, ReleaseInfo, Role};
use serde_json::json;
use std::path::{Path, PathBuf};
use time::format_description::well_known::Rfc3339;

const INSTALL_CONFIG: &str = "install-config.yaml";
/// Marks `manifests/` as a whole set that an earlier run wrote.
const WHOLE_SET: &str = "manifests/cluster-config.yaml";

pub fn create(target: Target, dir: &Path, options: &Options) -> Result<Outcome, CreateError> {
    let mut run = Run { target, dir, options, store: Store::new(dir), messages: vec![] };
    match target {
        Target::InstallConfig => run.install_config()?,
        Target::Manifests => run.manifests()?,
        Target::IgnitionConfigs => run.ignition_configs()?,
    }
    Ok(Outcome { messages: run.messages })
}

struct Run<'a> {
    target: Target,
    dir: &'a Path,
    options: &'a Options,
    store: Store,
    messages: Vec<Message>,
}

/// Everything that was loaded or made before a target writes.
struct Loaded {
    config: InstallConfig,
    inventory: Option<Inventory>,
    release: Option<ReleaseInfo>,
    state: State,
    /// Files that this run read and the target replaces.
    consumed: Vec<String>,
}

impl Run<'_> {
    fn install_config(&mut self) -> Result<(), CreateError> {
        let loaded = self.load()?;
        let text = loaded.state.install_config.clone();
        self.store.write(&[
            Asset::secret(state::FILE, loaded.state.to_json()?),
            Asset::secret(INSTALL_CONFIG, text),
        ])?;
        self.info(format!("Install-Config created in: {}", self.dir.display()));
        Ok(())
    }

    fn manifests(&mut self) -> Result<(), CreateError> {
        let mut loaded = self.load()?;
        self.fill_manifests(&mut loaded)?;
        let mut assets = vec![Asset::secret(state::FILE, loaded.state.to_json()?)];
        assets.extend(loaded.state.manifests.iter().map(manifest));
        assets.push(Asset::public("000_capi-namespace.yaml", ""));
        self.store.write(&assets)?;
        self.store
            .consume(loaded.consumed.iter().filter(|path| !loaded.state.manifests.contains_key(*path)))?;
        let dir = self.dir.display();
        self.info(format!("Manifests created in: {dir}, {dir}/manifests and {dir}/openshift"));
        Ok(())
    }

    fn ignition_configs(&mut self) -> Result<(), CreateError> {
        let mut loaded = self.load()?;
        self.fill_manifests(&mut loaded)?;
        if loaded.inventory.is_none() {
            self.warn(
                "There is no hosts.yaml: the bootstrap node will wait for one in /opt/openshift/hosts.yaml",
            );
        }
        self.fill_certificates(&mut loaded)?;
        let Loaded { config, inventory, release: Some(release), state, consumed } = &loaded else {
            return Err(self.no_release());
        };
        let (Some(service_account), Some(bootstrap_ssh)) = (&state.service_account, &state.bootstrap_ssh)
        else {
            return Err(CreateError::State("the service-account key is missing".into()));
        };
        let bootstrap = bootstrap::config(&bootstrap::Inputs {
            config,
            manifests: &state.manifests,
            certificates: &state.certificates,
            service_account,
            bootstrap_ssh,
            release,
            inventory: inventory.as_ref(),
        })?;
        let root_ca = &certificate(&state.certificates, "root-ca")?.cert;
        let pointer = |role| serde_json::to_string(&pointer::pointer(&config.domain, role, root_ca));
        let bundles = table::bundles(&state.certificates);
        let kubeconfigs = Kubeconfigs { config, certificates: &state.certificates, bundles: &bundles };
        let metadata = json!({
            "clusterName": config.name, "clusterID": state.identity.cluster_id, "infraID": state.identity.infra_id,
            "featureSet": "", "customFeatureSet": null,
        });
        self.store.write(&[
            Asset::secret(state::FILE, state.to_json()?),
            Asset::secret("auth/kubeconfig", kubeconfigs.admin(&config.domain.api())?),
            Asset::secret("auth/kubeadmin-password", &state.identity.kubeadmin_password),
            Asset::public("master.ign", pointer(Role::Master)?),
            Asset::public("worker.ign", pointer(Role::Worker)?),
            Asset::secret("bootstrap.ign", serde_json::to_string(&bootstrap)?),
            Asset::public("metadata.json", metadata.to_string()),
        ])?;
        self.store.consume(consumed)?;
        let dir = self.dir.display();
        self.info(format!("Ignition-Configs created in: {dir} and {dir}/auth"));
        Ok(())
    }

    /// Reads everything that is given and checks it as a whole, before anything is made.
    fn load(&mut self) -> Result<Loaded, CreateError> {
        let release = self.release()?;
        let version = release.as_ref().map_or(env!("CARGO_PKG_VERSION"), |r| &r.version);
        let old = self.store.read(state::FILE)?.map(|json| State::parse(&json)).transpose()?;
        let given = self.store.read(INSTALL_CONFIG)?;
        let text = given.as_ref().or(old.as_ref().map(|state| &state.install_config));
        let text = text.ok_or_else(|| CreateError::NoInstallConfig(self.dir.to_path_buf()))?;

        let mut problems = Vec::new();
        let context = Context::from_environment(stream(version));
        let config = InstallConfig::parse(text, &context).map_err(|found| problems.extend(found)).ok();
        let hosts = self.hosts()?;
        let inventory =
            hosts.and_then(|yaml| parse_hosts(&yaml).map_err(|found| problems.extend(found)).ok());
        if let (Some(config), Some(inventory)) = (&config, &inventory) {
            problems.extend(config.check_hosts(inventory));
        }
        let Some(config) = config.filter(|_| problems.is_empty()) else {
            return Err(CreateError::Config { target: self.target, problems });
        };

        for warning in &config.warnings {
            self.warn(warning);
        }

        // Before anything is dropped or made: bootstrap.ign cannot be without it.
        if self.target == Target::IgnitionConfigs && release.is_none() {
            return Err(self.no_release());
        }

        let mut consumed = Vec::new();
        if given.is_some() && self.target != Target::InstallConfig {
            self.info("Consuming Install Config from target directory");
            consumed.push(INSTALL_CONFIG.to_string());
        }
        let normalised = to_yaml(&config.merged)?;
        let state = match old {
            Some(state) if state.install_config == normalised => state,
            old => {
                self.discard(old.is_some(), &mut consumed)?;
                State::new(normalised, &config.name)?
            }
        };
        Ok(Loaded { config, inventory, release, state, consumed })
    }

    /// Manifests that belong to another install-config are of no use.
    fn discard(&mut self, changed: bool, consumed: &mut Vec<String>) -> Result<(), CreateError> {
        for (folder, asset) in [("manifests", "Common Manifests"), ("openshift", "Openshift Manifests")] {
            let found = self.store.manifests(folder)?;
            if changed && !found.is_empty() {
                self.warn(format!(
                    "Discarding the {asset} that was provided in the target directory because its dependencies are dirty and it \
                     needs to be regenerated"
                ));
                self.store.consume(found.keys())?;
                consumed.extend(found.into_keys());
            }
        }
        Ok(())
    }

    /// What is on the disk wins over what was made before; a folder of the user's own files is added to.
    fn fill_manifests(&mut self, loaded: &mut Loaded) -> Result<(), CreateError> {
        let first = loaded.state.manifests.is_empty();
        if first {
            loaded.state.manifests = self.generate(loaded)?;
        }
        for folder in ["manifests", "openshift"] {
            let found = self.store.manifests(folder)?;
            if found.is_empty() {
                continue;
            }
            if !first && folder == "manifests" && !found.contains_key(WHOLE_SET) {
                self.warn(format!(
                    "Ignoring manifests/ because {WHOLE_SET} is missing; the files made before are used"
                ));
                continue;
            }
            if !first {
                loaded.state.manifests.retain(|path, _| !path.starts_with(folder));
            }
            if self.target == Target::IgnitionConfigs {
                self.tell_consumed(folder, &found);
            }
            loaded.consumed.extend(found.keys().cloned());
            loaded.state.manifests.extend(found);
        }
        Ok(())
    }

    fn generate(&mut self, loaded: &mut Loaded) -> Result<Manifests, CreateError> {
        let Loaded { config, state, release, .. } = loaded;
        if config.masters_schedulable() {
            self.warn("Making control-plane schedulable by setting MastersSchedulable to true for Scheduler cluster settings");
        }
        let made = &mut state.certificates;
        table::make("machine-config-server", made, &cluster(config), self.options.keys, self.options.now)?;
        let (root_ca, machine_config_server) =
            (certificate(made, "root-ca")?, certificate(made, "machine-config-server")?);
        for (what, pair) in [("CA", root_ca), ("TLS", machine_config_server)] {
            let (from, until) = seedling_pki::validity(&pair.cert)?;
            let [from, until] = [from, until].map(|time| time.format(&Rfc3339).unwrap_or_default());
            self.info(format!("Successfully populated MCS {what} cert information: root-ca {until} {from}"));
        }
        manifests::generate(&manifests::Inputs {
            config,
            identity: &state.identity,
            root_ca,
            machine_config_server,
            version: release.as_ref().map_or(env!("CARGO_PKG_VERSION"), |r| &r.version),
            invoker: &self.options.invoker,
        })
    }

    /// The rest of the table. What an earlier run made is kept, unless it is too old to start a cluster with.
    fn fill_certificates(&mut self, loaded: &mut Loaded) -> Result<(), CreateError> {
        let (config, state) = (&loaded.config, &mut loaded.state);
        let mut expired = Vec::new();
        for (name, pair) in &state.certificates {
            let until = seedling_pki::not_after(&pair.cert)?;
            if until <= self.options.now {
                expired.push(format!("{name}.crt expired at {}", until.format(&Rfc3339).unwrap_or_default()));
            }
        }
        if !expired.is_empty() {
            return Err(CreateError::Expired(expired));
        }
        table::make_all(&mut state.certificates, &cluster(config), self.options.keys, self.options.now)?;
        state.service_account.get_or_insert(rsa_keypair()?);
        state.bootstrap_ssh.get_or_insert(ssh_keypair()?);
        Ok(())
    }

    fn hosts(&self) -> Result<Option<String>, CreateError> {
        match &self.options.hosts {
            Some(path) => match store::read(path)? {
                Some(text) => Ok(Some(text)),
                None => Err(CreateError::io(path, std::io::ErrorKind::NotFound.into())),
            },
            None => self.store.read("hosts.yaml"),
        }
    }

    fn release(&self) -> Result<Option<ReleaseInfo>, CreateError> {
        let Some(text) = store::read(&self.release_file())? else { return Ok(None) };
        let broken =
            |e: serde_json::Error| CreateError::Release(format!("{}: {e}", self.release_file().display()));
        serde_json::from_str(&text).map(Some).map_err(broken)
    }
    fn release_file(&self) -> PathBuf {
        self.options.release.join("release.json")
    }
    fn no_release(&self) -> CreateError {
        CreateError::Release(format!("there is no {}", self.release_file().display()))
    }

    fn tell_consumed(&mut self, folder: &str, found: &Manifests) {
        let has = |start: &str| found.keys().any(|path| path.starts_with(start));
        let machines = |role: &str| {
            has(&format!("openshift/99_openshift-cluster-api_{role}"))
                || has(&format!("openshift/99_openshift-machineconfig_99-{role}"))
        };
        let assets: &[(&str, bool)] = if folder == "manifests" {
            &[("Common Manifests", true)]
        } else {
            &[
                ("Openshift Manifests", true),
                ("Master Machines", machines("master")),
                ("Worker Machines", machines("worker")),
                ("OpenShift Install (Manifests)", has("openshift/openshift-install-manifests.yaml")),
            ]
        };
        for (asset, _) in assets.iter().filter(|(_, there)| *there) {
            self.info(format!("Consuming {asset} from target directory"));
        }
    }
    fn info(&mut self, text: impl Into<String>) {
        self.messages.push(Message { level: Level::Info, text: text.into() });
    }
    fn warn(&mut self, text: impl Into<String>) {
        self.messages.push(Message { level: Level::Warning, text: text.into() });
    }
}

fn cluster(config: &InstallConfig) -> Cluster<'_> {
    Cluster { domain: &config.domain, service_address: config.networks.service_address(1) }
}

/// A Secret is for its owner's eyes; everything else here is not secret.
fn manifest((path, contents): (&String, &String)) -> Asset {
    let secret = contents.lines().any(|line| line.trim_end() == "kind: Secret") || path.ends_with(".json");
    Asset { path: path.clone(), contents: contents.clone(), secret }
}

/// The node OS stream that goes with a version.
fn stream(version: &str) -> &'static str {
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok()).unwrap_or_default();
    if major < 5 { "rhel-9" } else { "rhel-10" }
}
