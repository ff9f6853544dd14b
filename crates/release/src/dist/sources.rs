//! What Seedling and its payload are made of: crates, Go modules, Debian packages.

use crate::error::{At, Result, output};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Of one piece of software.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin {
    pub name: String,
    pub version: String,
    /// <https://github.com/package-url/purl-spec>
    pub purl: String,
    /// Lower-case hex.
    pub sha256: Option<String>,
    /// As SPDX writes it; none where nobody said.
    pub licence: Option<String>,
}

/// The crates that are linked into the binary: cargo says which, the lock file has their sums.
pub(super) fn crates(source: &Path) -> Result<Vec<Origin>> {
    let mut cargo = Command::new("cargo");
    cargo.args(["tree", "--locked", "--package", "seedling", "--edges", "normal", "--prefix", "none"]);
    cargo.args(["--target", "x86_64-unknown-linux-gnu", "--format", "{p}\t{l}"]).current_dir(source);
    let tree = output(&mut cargo, "install Rust (https://rustup.rs)")?;
    let lock = source.join("Cargo.lock");
    Ok(linked(&tree, &fs::read_to_string(&lock).at(&lock)?))
}

/// Lines of `cargo tree`, e.g. `anyhow v1.0.99\tMIT OR Apache-2.0`; our own crates have a path behind the version.
fn linked(tree: &str, lock: &str) -> Vec<Origin> {
    let field = |lines: &str, name: &str| -> Option<String> {
        let line = lines.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(" = \"")?.strip_suffix('"'));
        line.map(str::to_string)
    };
    let sums: BTreeMap<_, _> = lock
        .split("[[package]]")
        .filter_map(|package| {
            Some(((field(package, "name")?, field(package, "version")?), field(package, "checksum")?))
        })
        .collect();
    let found: BTreeSet<_> = tree
        .lines()
        .filter_map(|line| {
            let (package, licence) = line.split_once('\t').unwrap_or((line, ""));
            let mut words = package.split_whitespace();
            let (name, version) = (words.next()?, words.next()?.trim_start_matches('v'));
            let sha256 = sums.get(&(name.to_string(), version.to_string()))?.clone();
            // cargo marks what it has shown before.
            let licence = licence.trim_end_matches(" (*)").replace('/', " OR ");
            Some(Origin {
                name: name.into(),
                version: version.into(),
                purl: format!("pkg:cargo/{name}@{version}"),
                sha256: Some(sha256),
                licence: Some(licence).filter(|l| !l.is_empty()),
            })
        })
        .collect();
    found.into_iter().collect()
}

pub(super) fn module(name: &str, version: &str) -> Origin {
    let purl = format!("pkg:golang/{name}@{version}");
    Origin { name: name.into(), version: version.into(), purl, sha256: None, licence: None }
}

fn debian(name: &str, version: &str, architecture: &str, sha256: Option<String>) -> Origin {
    let purl = format!(
        "pkg:deb/debian/{name}@{}?arch={architecture}",
        version.replace('+', "%2B").replace(':', "%3A").replace('~', "%7E")
    );
    Origin { name: name.into(), version: version.into(), purl, sha256, licence: None }
}

/// The packages of a root file system, from dpkg's own list.
pub(super) fn installed(root: &Path) -> Result<Vec<Origin>> {
    let path = root.join("var/lib/dpkg/status");
    let status = fs::read_to_string(&path).at(&path)?;
    let field = |paragraph: &str, name: &str| -> Option<String> {
        paragraph.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(": ")).map(str::to_string)
    };
    let package = |paragraph: &str| {
        let [name, version, architecture] =
            ["Package", "Version", "Architecture"].map(|name| field(paragraph, name));
        Some(debian(&name?, &version?, &architecture?, None))
    };
    let mut found: Vec<_> = status.split("\n\n").filter_map(package).collect();
    found.sort();
    Ok(found)
}

/// The packages that files in images come from, as `release build` located them: `nftables_1.0.6-2_amd64.deb SHA256:…`.
pub(super) fn unpacked(located: &str) -> Vec<Origin> {
    let package = |line: &str| {
        let (file, sha256) = line.split_once(" SHA256:")?;
        let mut words = file.strip_suffix(".deb")?.split('_');
        let (name, version, architecture) = (words.next()?, words.next()?, words.next()?);
        Some(debian(name, &version.replace("%3a", ":"), architecture, Some(sha256.into())))
    };
    located.lines().filter_map(package).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn crates_are_those_that_cargo_shows_with_the_sums_of_the_lock() {
        let tree = "seedling v0.1.0 (/src/crates/cli)\tApache-2.0\nanyhow v1.0.9\tMIT/Apache-2.0\nanyhow v1.0.9\tMIT/Apache-2.0 (*)\n";
        let lock = "[[package]]\nname = \"anyhow\"\nversion = \"1.0.9\"\nchecksum = \"ab\"\n\n[[package]]\nname = \"other\"\nversion = \"1\"\nchecksum = \"cd\"\n\n[[package]]\nname = \"seedling\"\nversion = \"0.1.0\"\n";
        let found = linked(tree, lock);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].purl, "pkg:cargo/anyhow@1.0.9");
        assert_eq!(
            (found[0].sha256.as_deref(), found[0].licence.as_deref()),
            (Some("ab"), Some("MIT OR Apache-2.0"))
        );
    }

    #[test]
    fn packages_are_read_from_dpkg_and_from_file_names() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("var/lib/dpkg")).unwrap();
        let status = "Package: zlib1g\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1:1.2.13+dfsg-1\n\nPackage: base-files\nArchitecture: amd64\nVersion: 12.4\n";
        fs::write(dir.path().join("var/lib/dpkg/status"), status).unwrap();
        let purls: Vec<_> = installed(dir.path()).unwrap().into_iter().map(|o| o.purl).collect();
        assert_eq!(
            purls,
            [
                "pkg:deb/debian/base-files@12.4?arch=amd64",
                "pkg:deb/debian/zlib1g@1%3A1.2.13%2Bdfsg-1?arch=amd64"
            ]
        );
        let found = unpacked("[\"x\"] Some(1)\nconntrack_1%3a1.4.7-1_amd64.deb SHA256:ab\n");
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].version.as_str(), found[0].sha256.as_deref()), ("1:1.4.7-1", Some("ab")));
    }
}
