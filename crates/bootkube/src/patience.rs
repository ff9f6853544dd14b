//! How long nothing may move: ConfigMap openshift-config/bring-up, which a person put among the manifests; the operators read the same
//! object from the cluster.

use seedling_types::names::NS_CONFIG;
use serde_json::Value;
use std::path::Path;

const CONFIGMAP: &str = "bring-up";
const KEY: &str = "no-progress-minutes";

/// `dir` is bootkube's. None: nobody said anything that makes sense.
pub fn no_progress_minutes(dir: &Path) -> Option<u32> {
    // Where the assets put it, and where the first stage moves it.
    let files =
        ["manifests", "openshift"].into_iter().filter_map(|folder| std::fs::read_dir(dir.join(folder)).ok());
    let texts = files.flatten().flatten().filter_map(|file| std::fs::read_to_string(file.path()).ok());
    // There are many manifests, and most are large.
    let mut named = texts.filter(|text| text.contains(KEY));
    named.find_map(|text| parse(&serde_saphyr::from_str(&text).ok()?))
}

fn parse(object: &Value) -> Option<u32> {
    let named = object["kind"] == "ConfigMap"
        && object["metadata"]["namespace"] == NS_CONFIG
        && object["metadata"]["name"] == CONFIGMAP;
    let minutes = object["data"][KEY].as_str().filter(|_| named)?;
    minutes.trim().parse().ok().filter(|minutes| *minutes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whole_minutes_of_the_one_config_map() {
        let map = |name: &str, minutes: &str| json!({"kind": "ConfigMap", "metadata": {"namespace": NS_CONFIG, "name": name}, "data": {KEY: minutes}});
        assert_eq!(parse(&map(CONFIGMAP, " 7 ")), Some(7));
        for other in [map("other", "7"), map(CONFIGMAP, "0"), map(CONFIGMAP, "7m"), json!({})] {
            assert_eq!(parse(&other), None, "{other}");
        }
    }
}
