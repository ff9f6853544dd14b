//! `up`: from nothing, or from what is left, to machines that are switched on.

use crate::step::{self, Pace};
use crate::store::{Lab, Labs, Record};
use crate::{LabError, LabSpec, all, at, chaos, helper, preflight, sysctls};
use futures::future::join_all;
use seedling_machines::network::Network;
use seedling_machines::{Machine, Progress, cgroup, image, qemu};
use std::fs;
use std::path::PathBuf;

pub struct Options {
    /// The program that is the helper when called with `helper run --config FILE`: this one.
    pub helper_program: PathBuf,
    /// Otherwise everything is made, and the machines stay off.
    pub switch_on: bool,
    /// How bootkube works on the bootstrap machine.
    pub pace: Pace,
}

impl Options {
    pub fn this_program() -> std::io::Result<Self> {
        Ok(Self { helper_program: std::env::current_exe()?, switch_on: true, pace: Pace::Free })
    }
}

/// What runs is left running, what is missing is made: twice is harmless, and so is a run that was killed before.
pub async fn up(
    labs: &Labs,
    spec: LabSpec,
    options: &Options,
    progress: Progress<'_>,
) -> Result<Lab, LabError> {
    let _lock = labs.lock(&spec.name, progress).await?;
    let mut lab = match labs.find(&spec.name)? {
        Some(lab) if lab.record.spec.is_same_lab(&spec) => lab,
        Some(_) => return Err(LabError::Differs(spec.name)),
        None => create(labs, spec, progress).await?,
    };
    sysctls::take_over(&lab.dir).await?;
    cgroup::raise_share();
    boots_over_the_network(labs, &mut lab, progress).await?;
    if lab.record.api.is_some() {
        chaos::heal(&lab).await;
    }
    let spec = &lab.record.spec;
    Network::of_lab(&spec.name).ensure_bridge(&spec.helper_places()).await?;

    let machines = lab.machines();
    let prepared = join_all(machines.iter().map(|machine| lab.prepare(machine)));
    let (api, prepared) = tokio::join!(helper::ensure(&lab, &options.helper_program), prepared);
    all(prepared)?;
    lab.record.api = Some(api?);
    lab.save()?;
    progress("helper listens");
    step::set(&lab, &options.pace).await?;
    if !options.switch_on {
        return Ok(lab);
    }

    all(join_all(machines.iter().map(|m| switch_on(&lab, m, progress))).await)?;
    Ok(lab)
}

/// Writes down what the lab is to be before any of it is made, so that `down` knows what to look for.
async fn create(labs: &Labs, spec: LabSpec, progress: Progress<'_>) -> Result<Lab, LabError> {
    preflight::load_modules();
    let facts = preflight::gather(&labs.state, image::path(&labs.cache).exists());
    let refusals = preflight::refusals(&facts);
    if !refusals.is_empty() {
        return Err(LabError::Preflight(refusals));
    }
    let image = image::ensure(&labs.cache, progress).await?;
    let dir = labs.dir(&spec.name);
    at(&dir, fs::create_dir_all(&dir))?;
    let lab = Lab { dir, record: Record { spec, image, boot_image: None, api: None } };
    lab.save()?;
    Ok(lab)
}

/// What QEMU machines need of this one, once for a lab: programs, the boot image, and whether KVM works.
pub(crate) async fn boots_over_the_network(
    labs: &Labs,
    lab: &mut Lab,
    progress: Progress<'_>,
) -> Result<(), LabError> {
    let firmwares: Vec<_> = lab.record.spec.hardware().map(|hardware| hardware.firmware).collect();
    if firmwares.is_empty() {
        return Ok(());
    }
    firmwares.into_iter().try_for_each(qemu::check_installed)?;
    let image = match &lab.record.boot_image {
        Some(image) => image.clone(),
        None => seedling_image::boot::ensure(&labs.cache, progress).await?,
    };
    qemu::acceleration(&image, progress).await?;
    if lab.record.boot_image.is_none() {
        lab.record.boot_image = Some(image);
        lab.save()?;
    }
    Ok(())
}

async fn switch_on(lab: &Lab, machine: &Machine, progress: Progress<'_>) -> Result<(), LabError> {
    lab.switch_on(&machine.name).await?;
    progress(&format!("{} is on", machine.name));
    Ok(())
}
