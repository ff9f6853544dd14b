//! Asset "Install Config": what the user wrote, with all defaults.

use crate::graph::{Asset, Found, Id};
use crate::store::one;
use crate::yaml::to_yaml;

pub(crate) const ID: Id = "installconfig.InstallConfig";
pub(crate) const FILE: &str = "install-config.yaml";

pub(crate) fn asset() -> Asset {
    Asset::new(ID, "Install Config", &[], |p, _| Ok(one(FILE, &to_yaml(&p.config()?.merged)?))).loaded(
        |given, _| {
            let normalised = one(FILE, &to_yaml(&given.config.merged)?);
            Ok(given.config_on_disk.then(|| Found::all_of(normalised)))
        },
    )
}
