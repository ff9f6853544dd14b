//! How long a master may come no further before nobody waits for it any more. It is taken in whenever it comes.

use seedling_cluster::{Cache, ClusterError};
use seedling_types::names::NS_CONFIG;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// In namespace openshift-config; it need not be there.
const CONFIGMAP: &str = "bring-up";
const KEY: &str = "patience-minutes";
const DEFAULT: Duration = Duration::from_secs(5 * 60);

pub async fn read(cache: &Cache) -> Result<Duration, ClusterError> {
    Ok(parse(cache.get("v1", "ConfigMap", Some(NS_CONFIG), CONFIGMAP).await?.as_ref()))
}

/// Anything but a whole number of minutes from one on is as good as nothing.
fn parse(config_map: Option<&Value>) -> Duration {
    let minutes = config_map.and_then(|c| c["data"][KEY].as_str()?.trim().parse::<u32>().ok());
    minutes.filter(|m| *m > 0).map_or(DEFAULT, |m| Duration::from_secs(60 * u64::from(m)))
}

/// How far each master has come, and since when no further.
#[derive(Debug)]
pub struct Progress<S>(BTreeMap<String, (S, Instant)>);

impl<S> Default for Progress<S> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<S: Ord> Progress<S> {
    /// How long `master` has come no further. Only what it never reached before counts: one that fails again and again stands
    /// still. While it is `well` it does not stand still.
    pub fn stalled(&mut self, master: &str, step: S, well: bool, now: Instant) -> Duration {
        match self.0.get_mut(master) {
            Some((best, since)) => {
                if well || step > *best {
                    *since = now;
                }
                if step > *best {
                    *best = step;
                }
                now.duration_since(*since)
            }
            None => {
                self.0.insert(master.into(), (step, now));
                Duration::ZERO
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_new_heights_and_health_count_as_progress() {
        let start = Instant::now();
        let mut progress = Progress::default();
        let mut at = |minute: u64, step: u32, well: bool| {
            progress.stalled("m", step, well, start + Duration::from_secs(60 * minute)).as_secs() / 60
        };
        assert_eq!(at(0, 0, false), 0);
        assert_eq!(at(3, 0, false), 3);
        assert_eq!(at(4, 2, false), 0);
        assert_eq!(at(5, 1, false), 1);
        assert_eq!(at(6, 2, false), 2);
        assert_eq!(at(9, 1, true), 0);
        assert_eq!(at(11, 2, false), 2);
    }

    #[test]
    fn the_parameter_is_whole_minutes() {
        let of = |text: &str| parse(Some(&json!({"data": {KEY: text}}))).as_secs();
        assert_eq!((of("1"), of(" 20 ")), (60, 1200));
        assert_eq!((of("0"), of("5m"), of("-1"), parse(None).as_secs()), (300, 300, 300, 300));
    }
}
