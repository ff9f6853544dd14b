//! Network boot: which file of the boot image is served to whom, and how far each machine has installed itself. The state
//! (`types::boot`) is a file a machine, read at every question, since `node reissue` writes it too.

pub mod http;
pub mod images;
pub mod script;

use crate::HelperError;
use crate::events::EventLog;
use crate::http::is_file_name;
use crate::live::Live;
use script::{Boot, NO_DEVICE, ROOTFS, ROOTFS_IMG};
use seedling_steps::write_atomic;
use seedling_types::boot::{BootState, BootStep, Next, Report, Reported};
use seedling_types::helper::{BootConfig, HelperEventKind, ImageKind};
use seedling_types::{HelperConfig, Host};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

const SNP_LOADER: &str = "snponly.efi";
const EFI_LOADER: &str = "ipxe.efi";

#[derive(Clone)]
pub struct Boots {
    live: Live,
    events: EventLog,
    /// Between reading a state and writing it.
    turn: Arc<Mutex<()>>,
}

/// `node reissue`: the machine installs itself at its next boot, whatever is on its disk. False: it does not boot over the network.
pub fn want(config: &HelperConfig, host: &str) -> Result<bool, HelperError> {
    if config.boot_of(host).is_none() || config.inventory.by_name(host).is_none() {
        return Ok(false);
    }
    let path = config.boot_state(host);
    write(&path, &BootState::wanted(now())).map_err(|source| HelperError::Write { path, source })?;
    Ok(true)
}

/// What is known of a machine; what cannot be read is a machine that was never installed.
pub fn state(config: &HelperConfig, host: &str) -> BootState {
    let json = std::fs::read(config.boot_state(host)).ok();
    json.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default()
}

/// A file of the boot image: by its plain name, a file itself and no link to one elsewhere.
pub fn image_file(boot: &BootConfig, name: &str) -> Option<PathBuf> {
    let path = boot.image_dir.join(name);
    (is_file_name(name) && std::fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()))
        .then_some(path)
}

/// What UEFI fetches: the loader that only uses the firmware's own driver for the network, if the image has it. The other one replaces
/// drivers, and some firmware hangs when it ends.
pub fn efi_loader(boot: &BootConfig) -> &'static str {
    if image_file(boot, SNP_LOADER).is_some() { SNP_LOADER } else { EFI_LOADER }
}

/// The name that the image's root file system has.
pub fn rootfs(boot: &BootConfig) -> &'static str {
    let there = |name| image_file(boot, name).is_some();
    if boot.kind == ImageKind::Coreos && there(ROOTFS_IMG) && !there(ROOTFS) { ROOTFS_IMG } else { ROOTFS }
}

impl Boots {
    pub fn new(live: Live, events: EventLog) -> Self {
        Self { live, events, turn: Arc::default() }
    }

    /// The machine's script, or its menu, as `write` makes it; and that it was given.
    pub fn give(
        &self,
        config: &HelperConfig,
        host: &Host,
        write: impl Fn(&Boot, Next) -> String,
    ) -> Option<String> {
        let boot = config.boot_of(&host.name)?;
        let next = state(config, &host.name).next();
        let step = match next {
            Next::Install => BootStep::Install,
            Next::Disk => BootStep::Disk,
        };
        self.say(host, step, None);
        Some(write(&Boot { config, boot, host, rootfs: rootfs(boot) }, next))
    }

    pub fn report(&self, host: &Host, report: &Report) -> Result<(), HelperError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let config = self.live.config();
        let Some(next) = state(&config, &host.name).report(report, now()) else { return Ok(()) };
        let path = config.boot_state(&host.name);
        // A report that was not kept must not be answered as if it were: the machine would install itself again and again.
        write(&path, &next).map_err(|source| HelperError::Write { path, source })?;
        self.say(host, next.install.into(), next.message);
        Ok(())
    }

    /// CoreOS's installer reports nothing: it fetches the config, writes the disk and boots from it.
    pub fn has_config(&self, host: &Host) {
        let config = self.live.config();
        let Some(boot) = config.boot_of(&host.name) else { return };
        if boot.kind == ImageKind::Coreos && boot.device(&host.name) != NO_DEVICE {
            let message = Some("it has its config; CoreOS does not report its end".to_string());
            if let Err(error) = self.report(host, &Report { state: Reported::Installed, message }) {
                tracing::error!(host = host.name, %error, "cannot keep that a machine was installed");
            }
        }
    }

    fn say(&self, host: &Host, state: BootStep, message: Option<String>) {
        self.events.send(HelperEventKind::Boot { host: host.name.clone(), state, message });
    }
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

fn write(path: &Path, state: &BootState) -> std::io::Result<()> {
    write_atomic(path, serde_json::to_vec(state).map_err(std::io::Error::other)?, 0o600)
}
