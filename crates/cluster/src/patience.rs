//! How long a master may make no progress before the others stop waiting for it.

use crate::{Cache, Result};
use seedling_api::{ConfigMap, Files};
use seedling_types::names::NS_CONFIG;
use std::time::Duration;

/// In namespace openshift-config; it need not be there.
const CONFIGMAP: &str = "bring-up";
const KEY: &str = "patience-minutes";
pub const DEFAULT: Duration = Duration::from_secs(5 * 60);

pub async fn read(cache: &Cache) -> Result<Duration> {
    let map = cache.get::<ConfigMap>(Some(NS_CONFIG), CONFIGMAP).await?;
    Ok(parse(map.as_ref().and_then(|map| map.file(KEY))))
}

/// Anything but a positive whole number of minutes counts as not set.
fn parse(text: Option<&str>) -> Duration {
    let minutes = text.and_then(|text| text.trim().parse::<u32>().ok());
    minutes.filter(|m| *m > 0).map_or(DEFAULT, |m| Duration::from_secs(60 * u64::from(m)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameter_is_whole_minutes() {
        let of = |text: &str| parse(Some(text)).as_secs();
        assert_eq!((of("1"), of(" 20 ")), (60, 1200));
        assert_eq!((of("0"), of("5m"), of("-1"), parse(None).as_secs()), (300, 300, 300, 300));
    }
}
