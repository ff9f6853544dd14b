//! What the user gave and what lies in the asset directory: read and checked as a whole before anything is made.

use crate::config::{Context, InstallConfig, PASSED_OVER, parse_hosts};
use crate::graph::engine::{Found, Made, Workshop};
use crate::graph::{self, Id, ROLES};
use crate::store::{self, Files, Store};
use crate::yaml::to_yaml;
use crate::{CreateError, Message, Options, Target, USER, expiry, machine_config, make, pointer, shape};
use seedling_pki::table::{self, Signer};
use seedling_pki::{CertKey, KeyAlgorithm, KeyPair, PkiError, check_signer, keypair_of, rsa_keypair};
use seedling_types::{Host, Inventory, ReleaseInfo};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread::JoinHandle;

pub const CONFIG_FILE: &str = "install-config.yaml";
pub const BOUND_KEY: &str = "tls/bound-service-account-signing-key";
/// Marks `manifests/` as a whole set that an earlier run wrote.
const WHOLE_SET: &str = "manifests/cluster-config.yaml";

pub struct Given<'a> {
    store: &'a Store<'a>,
    pub options: &'a Options,
    target: Target,
    pub config: InstallConfig,
    /// The install-config with all defaults.
    pub normalised: String,
    config_on_disk: bool,
    pub inventory: Option<Inventory>,
    hosts: Option<String>,
    /// By machine; none for a server that is open to everybody.
    tokens: Files,
    pub release: Option<String>,
    pub version: String,
    keys: KeyAlgorithm,
    /// Made beside everything else: looking for two large primes takes as long as all the rest.
    service_account: Mutex<Option<JoinHandle<Result<KeyPair, PkiError>>>>,
}

impl<'a> Given<'a> {
    pub fn read(
        store: &'a Store<'a>,
        target: Target,
        options: &'a Options,
        old: &BTreeMap<String, Files>,
    ) -> Result<Self, CreateError> {
        let known =
            |id: Id, file: &str| old.get(&format!("*{id}")).and_then(|files| files.get(file)).cloned();
        let release = store::read(&options.release.join("release.json"))?;
        let version = match &release {
            Some(text) => parse_release(text)?.version,
            None => env!("CARGO_PKG_VERSION").into(),
        };
        let on_disk = store.read(CONFIG_FILE)?;
        let config_on_disk = on_disk.is_some();
        let text = on_disk.or_else(|| known(graph::INSTALL_CONFIG, CONFIG_FILE));
        let text = text.ok_or_else(|| CreateError::NoInstallConfig(store.path("")))?;

        let mut problems = Vec::new();
        let context = Context {
            stream: stream(&version),
            lenient: options.invoker != USER,
            skip_host_crypto: options.skip_host_crypto,
        };
        let config = InstallConfig::parse(&text, &context).map_err(|found| problems.extend(found)).ok();
        let hosts = read_hosts(store, options)?;
        let inventory = hosts.clone().or_else(|| known(graph::INVENTORY, "hosts.yaml"));
        let inventory =
            inventory.and_then(|yaml| parse_hosts(&yaml).map_err(|found| problems.extend(found)).ok());
        if let (Some(config), Some(inventory)) = (&config, &inventory) {
            problems.extend(config.check_hosts(inventory));
        }
        let Some(config) = config.filter(|_| problems.is_empty()) else {
            return Err(CreateError::Config { target, problems });
        };
        let tokens =
            tokens(inventory.as_ref().filter(|_| !options.open), |host| known(graph::NODE_TOKENS, host));
        let normalised = to_yaml(&config.merged)?;
        let bootstraps = matches!(target, Target::IgnitionConfigs | Target::SingleNodeIgnitionConfig);
        let known_already = old.contains_key(&format!("*{}", graph::SERVICE_ACCOUNT));
        let early = (bootstraps && !known_already).then(|| std::thread::spawn(rsa_keypair));
        let refused = |why: String| CreateError::Refused(vec![format!("pki.signerCertificates.key: {why}")]);
        let keys = options.keys.or(shape::keys(&config).map_err(refused)?).unwrap_or_default();
        Ok(Self {
            store,
            options,
            target,
            config,
            normalised,
            config_on_disk,
            inventory,
            hosts,
            tokens,
            release,
            version,
            keys,
            service_account: Mutex::new(early),
        })
    }

    pub fn warnings(&self) -> Vec<Message> {
        let bootstraps = matches!(self.target, Target::IgnitionConfigs | Target::SingleNodeIgnitionConfig);
        let mut warnings: Vec<_> = Vec::new();
        // Once more than that would be noise: the config of an earlier run has been warned about.
        if self.config_on_disk {
            warnings.extend(self.config.warnings.iter().map(|text| match text.as_str() {
                PASSED_OVER => Message::info(text),
                _ => Message::warning(text),
            }));
        }
        let text =
            "There is no hosts.yaml: the bootstrap node will wait for one in /opt/openshift/hosts.yaml";
        match &self.inventory {
            None if bootstraps => {
                warnings.push(Message::warning(text));
                if !self.options.open {
                    let open = "Without hosts.yaml the machine-config server will answer whoever reaches it";
                    warnings.push(Message::warning(open));
                }
            }
            Some(inventory) if bootstraps && !self.options.open && inventory.load_balancers.is_empty() => {
                warnings.push(Message::warning(
                    "hosts.yaml names no loadBalancers: machines must reach the machine-config server directly; behind a balancer \
                     that is not named they are refused",
                ));
            }
            _ => {}
        }
        warnings
    }

    pub fn keys(&self) -> KeyAlgorithm {
        self.keys
    }

    pub fn service_account(&self) -> Result<KeyPair, CreateError> {
        let early = self.service_account.lock().ok().and_then(|mut early| early.take());
        let made = early.and_then(|thread| thread.join().ok()).unwrap_or_else(rsa_keypair);
        Ok(made?)
    }

    /// A file that is an asset by itself.
    fn file(&self, path: &str) -> Result<Option<Found>, CreateError> {
        let found = self.store.read(path)?;
        Ok(found.map(|contents| all_of([(path.to_string(), contents)].into())))
    }

    /// An asset that is never taken away.
    fn kept(&self, path: &str, contents: Option<&String>) -> Option<Found> {
        let files = |contents: &String| [(path.to_string(), contents.clone())].into();
        contents.map(|contents| Found { files: files(contents), ..Found::default() })
    }

    fn manifests(&self, known: bool) -> Result<Option<Found>, CreateError> {
        let found = self.store.manifests("manifests")?;
        let whole = found.contains_key(WHOLE_SET) || (!known && !found.is_empty());
        Ok(whole.then(|| all_of(found)))
    }

    /// Files of `openshift/` that belong to machines of a pool, or to none.
    fn openshift(&self, pool: Option<&str>) -> Result<Option<Found>, CreateError> {
        let mut found = self.store.manifests("openshift")?;
        found.retain(|path, _| machine_config::pool_of(path) == pool);
        let whole = match pool {
            Some(pool) => found.contains_key(&machine_config::user_data(pool)),
            None => !found.is_empty(),
        };
        Ok(whole.then(|| all_of(found)))
    }

    fn bound_key(&self) -> Result<Option<Found>, CreateError> {
        let path = format!("{BOUND_KEY}.key");
        let Some(key) = self.store.read(&path)? else { return Ok(None) };
        let pair = keypair_of(&key)?;
        let files = [(path.clone(), key), (format!("{BOUND_KEY}.pub"), pair.public)].into();
        Ok(Some(Found { files, consumed: vec![path], insisted: true }))
    }

    fn own_signer(&self, signer: &Signer) -> Result<Option<Found>, CreateError> {
        if !self.options.own_signers {
            return Ok(None);
        }
        let [cert, key] = ["crt", "key"].map(|end| format!("tls/{}.{end}", signer.file));
        let wrong =
            |file: &str, why: &str| Err(CreateError::OwnSigner { file: file.into(), why: why.into() });
        let pair = match (self.store.read(&cert)?, self.store.read(&key)?) {
            (Some(cert), Some(key)) => CertKey { cert, key },
            (None, None) => return Ok(None),
            (Some(_), None) => return wrong(&key, "is missing, and its certificate is there"),
            (None, Some(_)) => return wrong(&cert, "is missing, and its key is there"),
        };
        if let Err(error) = check_signer(&pair, self.options.now) {
            return wrong(&cert, &error.to_string());
        }
        let files = [(cert, pair.cert), (key, pair.key)].into();
        Ok(Some(Found { files, consumed: vec![], insisted: true }))
    }
}

impl Workshop for Given<'_> {
    fn on_disk(&self, id: Id, known: Option<&Files>) -> Result<Option<Found>, CreateError> {
        if let Some(of) = ROLES.iter().find(|of| of.pointer == id) {
            return self.file(of.pointer_file);
        }
        if let Some(of) = ROLES.iter().find(|of| of.machines == id) {
            return self.openshift(Some(of.pool));
        }
        if let Some(signer) = table::SIGNERS.iter().find(|signer| signer.asset == id) {
            return self.own_signer(signer);
        }
        match id {
            graph::INSTALL_CONFIG if self.config_on_disk => {
                Ok(Some(all_of([(CONFIG_FILE.into(), self.normalised.clone())].into())))
            }
            // It has no file: upstream takes it for present where the install-config is, and says so.
            graph::KEY_PARAMETERS if self.config_on_disk || self.options.keys.is_some() => {
                let consumed = if self.config_on_disk { vec![CONFIG_FILE.into()] } else { vec![] };
                let files = [("algorithm".into(), self.keys().to_string())].into();
                Ok(Some(Found { files, consumed, insisted: false }))
            }
            graph::INVENTORY => Ok(self.kept("hosts.yaml", self.hosts.as_ref())),
            graph::NODE_TOKENS => Ok(Some(Found { files: self.tokens.clone(), ..Found::default() })),
            graph::RELEASE => Ok(self.kept("release.json", self.release.as_ref())),
            graph::BOUND_SERVICE_ACCOUNT => self.bound_key(),
            graph::OPENSHIFT_INSTALL => self.file("openshift/openshift-install-manifests.yaml"),
            graph::MANIFESTS => self.manifests(known.is_some()),
            graph::OPENSHIFT => self.openshift(None),
            graph::KUBECONFIG_ADMIN if !self.options.refresh => self.file("auth/kubeconfig"),
            graph::BOOTSTRAP if !self.options.refresh => self.file("bootstrap.ign"),
            graph::IN_PLACE if !self.options.refresh => self.file("bootstrap-in-place-for-live-iso.ign"),
            _ => Ok(None),
        }
    }

    fn check(&self, id: Id, files: &Files) -> Result<(), CreateError> {
        let pointers = ROLES.iter().map(|of| (of.pointer, of.pointer_file));
        for (_, file) in pointers.filter(|(pointer, _)| *pointer == id) {
            files.get(file).map_or(Ok(()), |text| pointer::parse(file, text).map(drop))?;
        }
        if [graph::BOOTSTRAP, graph::IN_PLACE].contains(&id) {
            files.iter().try_for_each(|(file, text)| expiry::check(file, text, self.options.now))?;
        }
        Ok(())
    }

    fn make(&self, id: Id, made: &Made, say: &mut Vec<Message>) -> Result<Files, CreateError> {
        make::make(self, id, made, say)
    }
}

fn all_of(files: Files) -> Found {
    Found { consumed: files.keys().cloned().collect(), files, insisted: false }
}

pub fn parse_release(text: &str) -> Result<ReleaseInfo, CreateError> {
    serde_json::from_str(text).map_err(|e| CreateError::Release(format!("release.json: {e}")))
}

fn read_hosts(store: &Store, options: &Options) -> Result<Option<String>, CreateError> {
    match &options.hosts {
        Some(path) => match store::read(path)? {
            Some(text) => Ok(Some(text)),
            None => Err(CreateError::io(path, std::io::ErrorKind::NotFound.into())),
        },
        None => store.read("hosts.yaml"),
    }
}

/// One token a machine of the inventory, kept from run to run: pointers already handed out stay good.
fn tokens(inventory: Option<&Inventory>, known: impl Fn(&str) -> Option<String>) -> Files {
    let token = |host: &Host| {
        let token = known(&host.name).or_else(|| serde_json::to_string(&pointer::new_token()).ok());
        Some((host.name.clone(), token?))
    };
    inventory.into_iter().flat_map(pointer::joining).filter_map(token).collect()
}

/// The node OS stream that goes with a version.
fn stream(version: &str) -> &'static str {
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok()).unwrap_or_default();
    if major < 5 { "rhel-9" } else { "rhel-10" }
}
