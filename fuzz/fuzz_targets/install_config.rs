//! Any bytes as install-config.yaml: answered without a panic, and what is accepted has a normal form that says the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use seedling_assets::config::problem::report;
use seedling_assets::config::{Context, InstallConfig};

fuzz_target!(
    |data: &[u8]| {
        let Ok(text) = std::str::from_utf8(data) else { return };
        let context = Context::new("rhel-10");
        match InstallConfig::parse(text, &context) {
            Ok(config) => {
                let written = serde_json::to_string(&config.merged).expect("a config is JSON");
                let again = InstallConfig::parse(&written, &context).expect("a normal form is valid");
                assert_eq!(again.merged, config.merged);
            }
            Err(problems) => assert!(!report(&problems).is_empty(), "refused without a reason"),
        }
    }
);
