//! What a person put among the manifests for the time before there is an API to ask: ConfigMaps of openshift-config, which the
//! operators later read from the cluster.

use seedling_pki::Policy;
use seedling_types::names::{CERTIFICATES_CONFIGMAP, NS_CONFIG};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const BRING_UP: &str = "bring-up";
const NO_PROGRESS: &str = "no-progress-minutes";

/// `dir` is bootkube's. None: nobody said anything that makes sense.
pub(crate) fn no_progress_minutes(dir: &Path) -> Option<u32> {
    let minutes = configmap(dir, BRING_UP)?.remove(NO_PROGRESS)?;
    minutes.trim().parse().ok().filter(|minutes| *minutes > 0)
}

/// How long certificates live. One with mistakes counts as none, here as later; then the operators say so.
pub(crate) fn certificate_policy(dir: &Path) -> Policy {
    let data = configmap(dir, CERTIFICATES_CONFIGMAP).unwrap_or_default();
    Policy::parse(&data).unwrap_or_else(|wrong| {
        println!("ConfigMap {CERTIFICATES_CONFIGMAP} counts as if it were not there: {}", wrong.join("; "));
        Policy::default()
    })
}

fn configmap(dir: &Path, name: &str) -> Option<BTreeMap<String, String>> {
    // Where the assets put it, and where the first stage moves it.
    let folders = ["manifests", "openshift"].into_iter().filter_map(|f| std::fs::read_dir(dir.join(f)).ok());
    let texts = folders.flatten().flatten().filter_map(|file| std::fs::read_to_string(file.path()).ok());
    // There are many manifests, and most are large.
    let mut named = texts.filter(|text| text.contains(name) && text.contains(NS_CONFIG));
    named.find_map(|text| data_of(&serde_saphyr::from_str(&text).ok()?, name))
}

fn data_of(object: &Value, name: &str) -> Option<BTreeMap<String, String>> {
    let metadata = &object["metadata"];
    let is_it =
        object["kind"] == "ConfigMap" && metadata["namespace"] == NS_CONFIG && metadata["name"] == name;
    is_it.then(|| serde_json::from_value(object["data"].clone()).unwrap_or_default())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn whole_minutes_of_the_one_config_map() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("openshift")).unwrap();
        let said = |name: &str, minutes: &str| {
            let map = format!(
                "kind: ConfigMap\nmetadata: {{namespace: {NS_CONFIG}, name: {name}}}\ndata: {{{NO_PROGRESS}: {minutes:?}}}\n"
            );
            std::fs::write(dir.path().join("openshift/any.yaml"), map).unwrap();
            no_progress_minutes(dir.path())
        };
        assert_eq!(said(BRING_UP, " 7 "), Some(7));
        assert_eq!(said("bring-up-2", "7"), None);
        assert_eq!(said(BRING_UP, "0"), None);
        assert_eq!(said(BRING_UP, "7m"), None);
        assert_eq!(certificate_policy(dir.path()), Policy::default());
    }
}
