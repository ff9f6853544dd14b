//! A cluster cannot start with certificates of yesterday: the first signers live for a day.

use crate::error::Stale;
use crate::store::Files;
use crate::{CreateError, Result, pointer};
use seedling_ignition::decode;
use seedling_pki::certificates;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Refuses Ignition configs that carry an expired certificate.
pub(crate) fn check(files: &Files, now: OffsetDateTime) -> Result<()> {
    let mut expired = Vec::new();
    for (file, ignition) in files {
        for (path, pem) in carried(&pointer::parse(file, ignition)?) {
            expired.extend(stale(path.rsplit('/').next().unwrap_or(&path), &pem, now)?);
        }
    }
    if expired.is_empty() { Ok(()) } else { Err(CreateError::Expired(expired)) }
}

pub(crate) fn still_good(name: &str, pem: &str, now: OffsetDateTime) -> Result<()> {
    stale(name, pem, now)?.map_or(Ok(()), |stale| Err(CreateError::Expired(vec![stale])))
}

/// The first certificate of a file decides, as upstream's.
fn stale(name: &str, pem: &str, now: OffsetDateTime) -> Result<Option<Stale>> {
    let first = certificates(pem)?.into_iter().next().filter(|cert| cert.not_after <= now);
    Ok(first.map(|cert| Stale {
        file: name.into(),
        expired_at: cert.not_after.format(&Rfc3339).unwrap_or_default(),
        age_hours: (now - cert.not_before).whole_hours(),
    }))
}

/// Certificate files inside an Ignition config.
pub(crate) fn carried(config: &Value) -> Vec<(String, String)> {
    let files = config.pointer("/storage/files").and_then(Value::as_array);
    let certificate = |file: &Value| {
        let path = file["path"].as_str().filter(|path| path.ends_with(".crt"))?;
        let bytes = decode(file.pointer("/contents/source")?.as_str()?)?;
        Some((path.to_string(), String::from_utf8(bytes).ok()?))
    };
    files.into_iter().flatten().filter_map(certificate).collect()
}
