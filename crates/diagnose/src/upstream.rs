//! What `openshift-install analyze` says about a bundle, line by line. Pure.

use crate::bundle::Bundle;
use crate::services::Service;
use seedling_observe::Level;
use std::collections::BTreeMap;

const INVALID: &str =
    "Invalid log bundle or the bootstrap machine could not be reached and bootstrap logs were not collected";

/// The service a file is the record of. A name with a dot is none, and neither is a file of a bundle without a root directory.
pub(crate) fn service_of(path: &str) -> Option<&str> {
    let name = path.strip_prefix("bootstrap/services/")?.strip_suffix(".json")?;
    (!name.is_empty() && !name.contains(['.', '/'])).then_some(name)
}

/// Lines in upstream's words; a message of several lines is one here.
pub fn analyze(bundle: &Bundle) -> Vec<(Level, String)> {
    let mut lines = Vec::new();
    let mut services = BTreeMap::new();
    let records: Vec<_> = bundle.iter().filter_map(|(path, json)| Some((service_of(path)?, json))).collect();
    for (name, json) in &records {
        match Service::parse(json) {
            Ok(service) => drop(services.insert(*name, service)),
            Err(why) => lines.push((Level::Info, format!("Could not analyze the {name}.service: {why}"))),
        }
    }
    if records.is_empty() {
        lines.push((Level::Error, INVALID.into()));
        return lines;
    }
    for name in ["release-image", "bootkube"] {
        let service = services.remove(name).unwrap_or_default();
        if service.starts == 0 {
            let text = format!("The bootstrap machine did not execute the {name}.service systemd unit");
            lines.push((Level::Error, text));
            break;
        }
        if !service.successful {
            lines.push((Level::Error, failed(name, &service.failing_stage)));
            lines.push((Level::Info, service.last_error));
            break;
        }
    }
    lines
}

fn failed(service: &str, stage: &str) -> String {
    match (service, stage) {
        ("release-image", _) => "The bootstrap machine failed to download the release image".into(),
        (_, "konnectivity-server-bootstrap") => {
            "The bootstrap machine failed to start the konnectivity server".into()
        }
        (_, "konnectivity-cleanup") => {
            "The bootstrap machine failed to clean up konnectivity resources".into()
        }
        (_, stage) => format!("The bootkube service failed at stage \"{stage}\""),
    }
}
