//! Any bytes as a manifest of the user's: taken or refused, never a panic, and what is taken can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use seedling_assets::{Files, version_overrides};

const VERSION: &str = "apiVersion: config.openshift.io/v1\nkind: ClusterVersion\nmetadata: {name: version}\nspec: {}\n";

fuzz_target!(
    |data: &[u8]| {
        let Ok(text) = std::str::from_utf8(data) else { return };
        let overrides = ("manifests/cvo-overrides.yaml".to_string(), VERSION.to_string());
        let own = Files::from([("openshift/own.yaml".to_string(), text.to_string())]);
        if let Ok(made) = version_overrides(&Files::from([overrides]), &own) {
            let again = Files::from([("manifests/cvo-overrides.yaml".into(), made["manifests/cvo-overrides.yaml"].clone())]);
            version_overrides(&again, &Files::new()).expect("what was written is a manifest");
        }
        // The same in the place of the version object itself.
        let replaced = Files::from([("manifests/cvo-overrides.yaml".to_string(), text.to_string())]);
        let _ = version_overrides(&replaced, &Files::new());
    }
);
