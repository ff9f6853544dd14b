//! The bill of materials of what is given away, as SPDX 2.3: which crate, Go module or Debian package is in which of our files.

use super::go;
use super::sources::{self, Origin};
use crate::error::{At, Result};
use crate::info;
use crate::oci::write_atomically;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const DOCUMENT: &str = "SPDXRef-DOCUMENT";
const UNKNOWN: &str = "NOASSERTION";

pub struct Inputs<'a> {
    /// The checkout.
    pub source: &'a Path,
    pub release: &'a Path,
    pub node_image: &'a Path,
    /// Where `release build` noted which packages it unpacked.
    pub cache: &'a Path,
    pub version: &'a str,
    /// RFC 3339, UTC: when the sources were written, not when this ran.
    pub created: &'a str,
}

#[derive(Default)]
struct Bill {
    /// By SPDX id.
    packages: BTreeMap<String, Value>,
    /// From, how, to.
    relations: BTreeSet<(String, &'static str, String)>,
}

impl Bill {
    fn add(&mut self, origin: &Origin) -> String {
        let id = id(&origin.purl);
        let mut package = json!({
            "SPDXID": id, "name": origin.name, "versionInfo": origin.version,
            "downloadLocation": UNKNOWN, "filesAnalyzed": false, "copyrightText": UNKNOWN,
            "licenseConcluded": UNKNOWN, "licenseDeclared": origin.licence.as_deref().unwrap_or(UNKNOWN),
            "externalRefs": [{
                "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": origin.purl,
            }],
        });
        if let Some(sha256) = &origin.sha256 {
            package["checksums"] = json!([{"algorithm": "SHA256", "checksumValue": sha256}]);
        }
        self.packages.insert(id.clone(), package);
        id
    }

    /// Something of ours that others are part of.
    fn own(&mut self, name: &str, version: &str, parts: &[Origin]) -> String {
        let own = Origin {
            name: name.into(),
            version: version.into(),
            purl: format!("pkg:generic/{name}@{version}"),
            sha256: None,
            licence: None,
        };
        let id = self.add(&own);
        for part in parts {
            let part = self.add(part);
            self.relate(&id, "CONTAINS", &part);
        }
        id
    }

    fn relate(&mut self, from: &str, how: &'static str, to: &str) {
        self.relations.insert((from.into(), how, to.into()));
    }
}

/// Letters, digits, `.` and `-` only; the sum keeps apart what that makes alike.
fn id(purl: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let name: String = purl.trim_start_matches("pkg:").chars().map(plain).collect();
    let sum: String = Sha256::digest(purl).iter().take(4).map(|b| format!("{b:02x}")).collect();
    format!("SPDXRef-{name}-{sum}")
}

pub fn write_sbom(inputs: &Inputs, out: &Path) -> Result<()> {
    let release = info::load(inputs.release)?;
    let mut bill = Bill::default();
    let binary = bill.own("seedling", inputs.version, &sources::crates(inputs.source)?);
    let payload = bill.own("seedling-payload", inputs.version, &[]);
    bill.relate(&payload, "CONTAINS", &binary);
    let programs = go::programs(inputs.release, &release)?;
    for (name, info) in &programs {
        let modules = info.modules.iter().map(|(module, version)| sources::module(module, version));
        let modules: Vec<_> = modules.chain([sources::module("stdlib", &info.go)]).collect();
        let program = bill.own(name, info.version().unwrap_or(inputs.version), &modules);
        bill.relate(&payload, "CONTAINS", &program);
    }
    let located = inputs.cache.join("debian/located");
    let images = sources::unpacked(&fs::read_to_string(&located).at(&located)?);
    let machines = sources::installed(inputs.node_image)?;
    for (name, packages) in [("seedling-images", images), ("seedling-node-image", machines)] {
        let part = bill.own(name, inputs.version, &packages);
        bill.relate(&payload, "CONTAINS", &part);
    }
    for top in [&binary, &payload] {
        bill.relate(DOCUMENT, "DESCRIBES", top);
    }
    let text = document(&bill, inputs);
    write_atomically(out, &serde_json::to_vec_pretty(&text).at(out)?)
}

fn document(bill: &Bill, inputs: &Inputs) -> Value {
    let packages: Vec<_> = bill.packages.values().collect();
    let relation = |(from, how, to): &(String, &str, String)| json!({"spdxElementId": from, "relationshipType": how, "relatedSpdxElement": to});
    let relations: Vec<_> = bill.relations.iter().map(relation).collect();
    // A name of its own for each content, and none that is made up anew each time.
    let content = json!([packages, relations]).to_string();
    let sum: String = Sha256::digest(content).iter().map(|b| format!("{b:02x}")).collect();
    json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": DOCUMENT,
        "name": format!("seedling-{}", inputs.version),
        "documentNamespace": format!("https://seedling.invalid/spdx/{}/{sum}", inputs.version),
        "creationInfo": {
            "created": inputs.created,
            "creators": [format!("Tool: seedling-{}", inputs.version)],
        },
        "packages": packages,
        "relationships": relations,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs() -> Inputs<'static> {
        let here = Path::new(".");
        Inputs {
            source: here,
            release: here,
            node_image: here,
            cache: here,
            version: "1.0.0",
            created: "2026-01-01T00:00:00Z",
        }
    }

    fn sample(reverse: bool) -> Value {
        let mut parts = vec![sources::module("a.b/c", "v1.0.0"), sources::module("a.b-c", "v1.0.0")];
        if reverse {
            parts.reverse();
        }
        let mut bill = Bill::default();
        let top = bill.own("x", "1", &parts);
        bill.relate(DOCUMENT, "DESCRIBES", &top);
        document(&bill, &inputs())
    }

    #[test]
    fn the_same_content_gives_the_same_document() {
        assert_eq!(sample(false).to_string(), sample(true).to_string());
    }

    /// What the schema of SPDX 2.3 requires.
    #[test]
    fn the_document_is_complete() {
        let document = sample(false);
        let packages = document["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
        assert_eq!(packages.len(), 3);
        let ids: BTreeSet<_> = packages.iter().map(|p| p["SPDXID"].as_str().unwrap_or_default()).collect();
        assert_eq!(ids.len(), 3, "names that look alike are kept apart");
        let plain = |id: &str| id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.');
        assert!(ids.iter().all(|id| id.strip_prefix("SPDXRef-").is_some_and(plain)), "{ids:?}");
        assert!(packages.iter().all(|p| p["name"].is_string() && p["downloadLocation"].is_string()));
        for relation in document["relationships"].as_array().map(Vec::as_slice).unwrap_or_default() {
            for end in ["spdxElementId", "relatedSpdxElement"] {
                let end = relation[end].as_str().unwrap_or_default();
                assert!(end == DOCUMENT || ids.contains(end), "{end}");
            }
        }
    }
}
