//! Asset "Release Image Pull Spec": release.json, as `seedling release build` left it.

use crate::graph::{Asset, Found, Id, Parents};
use crate::store::one;
use crate::{CreateError, Result};
use seedling_types::ReleaseInfo;

pub(crate) const ID: Id = "releaseimage.Image";
pub(crate) const FILE: &str = "release.json";

pub(crate) fn asset() -> Asset {
    let missing = |p: &Parents| format!("there is no {}", p.run().options.release.join(FILE).display());
    Asset::new(ID, "Release Image Pull Spec", &[], move |p, _| Err(CreateError::Release(missing(p)))).loaded(
        |given, _| {
            Ok(given.release.as_ref().map(|text| Found { files: one(FILE, text), ..Found::default() }))
        },
    )
}

pub(crate) fn of(made: &Parents) -> Result<ReleaseInfo> {
    parse(made.file(ID, FILE)?)
}

pub(crate) fn parse(text: &str) -> Result<ReleaseInfo> {
    serde_json::from_str(text).map_err(|e| CreateError::Release(format!("{FILE}: {e}")))
}
