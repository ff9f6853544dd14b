//! What the user gave and what lies in the asset directory: read and checked as a whole before anything is made.

use crate::config::{Context, InstallConfig, PASSED_OVER, parse_hosts};
use crate::graph::{Found, Id};
use crate::store::{self, Files, Store, one};
use crate::{
    CreateError, Message, Options, Result, Target, USER, install_config, keys, nodes, release, shape,
};
use seedling_pki::{KeyAlgorithm, KeyPair, PkiError, rsa_keypair};
use seedling_types::Inventory;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread::JoinHandle;

pub(crate) const HOSTS_FILE: &str = "hosts.yaml";

/// How this run was asked for. It is no asset: nothing is made again because it changed.
pub(crate) struct Run<'a> {
    pub options: &'a Options,
    /// The release's, or this program's.
    pub version: String,
    /// What signers' keys are made with.
    pub keys: KeyAlgorithm,
    /// Made beside everything else: looking for two large primes takes as long as all the rest.
    service_account: Mutex<Option<JoinHandle<Result<KeyPair, PkiError>>>>,
}

pub(crate) struct Given<'a> {
    pub store: &'a Store<'a>,
    pub run: Run<'a>,
    target: Target,
    pub config: InstallConfig,
    pub config_on_disk: bool,
    pub inventory: Option<Inventory>,
    /// hosts.yaml, as it lies there.
    pub hosts: Option<String>,
    /// release.json, as it lies there.
    pub release: Option<String>,
}

impl Run<'_> {
    pub(crate) fn service_account(&self) -> Result<KeyPair> {
        let early = self.service_account.lock().ok().and_then(|mut early| early.take());
        let made = early.and_then(|thread| thread.join().ok()).unwrap_or_else(rsa_keypair);
        Ok(made?)
    }
}

impl<'a> Given<'a> {
    pub(crate) fn read(
        store: &'a Store<'a>,
        target: Target,
        options: &'a Options,
        old: &BTreeMap<String, Files>,
    ) -> Result<Self> {
        let known =
            |id: Id, file: &str| old.get(&format!("*{id}")).and_then(|files| files.get(file)).cloned();
        let release_json = store::read(&options.release.join(release::FILE))?;
        let version = match &release_json {
            Some(text) => release::parse(text)?.version,
            None => env!("CARGO_PKG_VERSION").into(),
        };
        let on_disk = store.read(install_config::FILE)?;
        let config_on_disk = on_disk.is_some();
        let text = on_disk.or_else(|| known(install_config::ID, install_config::FILE));
        let text = text.ok_or_else(|| CreateError::NoInstallConfig(store.path("")))?;

        let mut problems = Vec::new();
        let context = Context {
            stream: stream(&version),
            lenient: options.invoker != USER,
            skip_host_crypto: options.skip_host_crypto,
        };
        let config = InstallConfig::parse(&text, &context).map_err(|found| problems.extend(found)).ok();
        let hosts = read_hosts(store, options)?;
        let inventory = hosts.clone().or_else(|| known(nodes::INVENTORY, HOSTS_FILE));
        let inventory =
            inventory.and_then(|yaml| parse_hosts(&yaml).map_err(|found| problems.extend(found)).ok());
        if let (Some(config), Some(inventory)) = (&config, &inventory) {
            problems.extend(config.check_hosts(inventory));
        }
        let Some(config) = config.filter(|_| problems.is_empty()) else {
            return Err(CreateError::Config { target, problems });
        };
        let bootstraps = matches!(target, Target::IgnitionConfigs | Target::SingleNodeIgnitionConfig);
        let known_already = old.contains_key(&format!("*{}", keys::SERVICE_ACCOUNT));
        let early = (bootstraps && !known_already).then(|| std::thread::spawn(rsa_keypair));
        let refused = |why: String| CreateError::Refused(vec![format!("pki.signerCertificates.key: {why}")]);
        let keys = options.keys.or(shape::keys(&config).map_err(refused)?).unwrap_or_default();
        let run = Run { options, version, keys, service_account: Mutex::new(early) };
        Ok(Self { store, run, target, config, config_on_disk, inventory, hosts, release: release_json })
    }

    pub(crate) fn warnings(&self) -> Vec<Message> {
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
                if !self.run.options.open {
                    let open = "Without hosts.yaml the machine-config server will answer whoever reaches it";
                    warnings.push(Message::warning(open));
                }
            }
            Some(inventory)
                if bootstraps && !self.run.options.open && inventory.load_balancers.is_empty() =>
            {
                warnings.push(Message::warning(
                    "hosts.yaml names no loadBalancers: machines must reach the machine-config server directly; behind a balancer \
                     that is not named they are refused",
                ));
            }
            _ => {}
        }
        warnings
    }

    /// A file that is an asset by itself.
    pub(crate) fn file(&self, path: &str) -> Result<Option<Found>> {
        let found = self.store.read(path)?;
        Ok(found.map(|contents| Found::all_of(one(path, &contents))))
    }
}

fn read_hosts(store: &Store, options: &Options) -> Result<Option<String>> {
    match &options.hosts {
        Some(path) => match store::read(path)? {
            Some(text) => Ok(Some(text)),
            None => Err(CreateError::io(path, std::io::ErrorKind::NotFound.into())),
        },
        None => store.read(HOSTS_FILE),
    }
}

/// The node OS stream that goes with a version.
fn stream(version: &str) -> &'static str {
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok()).unwrap_or_default();
    if major < 5 { "rhel-9" } else { "rhel-10" }
}
