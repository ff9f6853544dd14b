//! How long a master may come no further before nobody waits for it any more.

use crate::{Cache, ClusterError};
use seedling_types::names::NS_CONFIG;
use serde_json::Value;
use std::time::Duration;

/// In namespace openshift-config; it need not be there.
const CONFIGMAP: &str = "bring-up";
const KEY: &str = "patience-minutes";
pub const DEFAULT: Duration = Duration::from_secs(5 * 60);

pub async fn read(cache: &Cache) -> Result<Duration, ClusterError> {
    Ok(parse(cache.get("v1", "ConfigMap", Some(NS_CONFIG), CONFIGMAP).await?.as_ref()))
}

/// Anything but a whole number of minutes from one on is as good as nothing.
fn parse(config_map: Option<&Value>) -> Duration {
    let minutes = config_map.and_then(|c| c["data"][KEY].as_str()?.trim().parse::<u32>().ok());
    minutes.filter(|m| *m > 0).map_or(DEFAULT, |m| Duration::from_secs(60 * u64::from(m)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_parameter_is_whole_minutes() {
        let of = |text: &str| parse(Some(&json!({"data": {KEY: text}}))).as_secs();
        assert_eq!((of("1"), of(" 20 ")), (60, 1200));
        assert_eq!((of("0"), of("5m"), of("-1"), parse(None).as_secs()), (300, 300, 300, 300));
    }
}
