//! The modules a Go program was built from, as Go writes them into every program (`go version -m` shows the same).

use crate::error::{At, Result};
use crate::oci::Layout;
use seedling_types::ReleaseInfo;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::Path;

const MAGIC: &[u8] = b"\xff Go buildinf:";
/// Go puts the record at such a place.
const ALIGNED: usize = 16;
const HEADER: usize = 32;
/// The strings follow the header, instead of pointers to them: Go 1.18 and later.
const INLINE: u8 = 2;

/// Of one program.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BuildInfo {
    /// The Go version.
    pub go: String,
    /// The package of its `main`.
    pub path: String,
    /// Module path and version.
    pub modules: BTreeSet<(String, String)>,
}

impl BuildInfo {
    /// Of the module that `main` is in; none if it is our own.
    pub(super) fn version(&self) -> Option<&str> {
        let of = |module: &str| {
            self.path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let modules = self.modules.iter().filter(|(module, _)| of(module));
        modules.max_by_key(|(module, _)| module.len()).map(|(_, version)| version.as_str())
    }
}

pub(super) fn build_info(program: &[u8]) -> Option<BuildInfo> {
    let at = program.chunks_exact(ALIGNED).position(|chunk| chunk.starts_with(MAGIC))? * ALIGNED;
    if program.get(at + MAGIC.len() + 1)? & INLINE == 0 {
        return None;
    }
    let (go, rest) = string(program.get(at + HEADER..)?)?;
    let (modules, _) = string(rest)?;
    let mut info = BuildInfo { go: String::from_utf8_lossy(go).into_owned(), ..BuildInfo::default() };
    let mut replaced = None;
    // Between two marks of sixteen bytes, which are no text.
    for line in String::from_utf8_lossy(modules).lines() {
        let words: Vec<_> = line.split('\t').collect();
        if words[0].ends_with("path") {
            info.path = words.get(1).unwrap_or(&"").to_string();
        }
        // `mod` is the module that `main` is in; one of our own has no version.
        let ["mod" | "dep" | "=>", module, version, ..] = words[..] else { continue };
        if version == "(devel)" {
            replaced = None;
            continue;
        }
        let module = (module.to_string(), version.to_string());
        if words[0] == "=>" {
            // Built instead of the module on the line before.
            if let Some(before) = replaced.take() {
                info.modules.remove(&before);
            }
        } else {
            replaced = Some(module.clone());
        }
        info.modules.insert(module);
    }
    Some(info)
}

/// A length of seven bits a byte, and so many bytes.
fn string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut length = 0usize;
    for (place, byte) in bytes.iter().enumerate().take(5) {
        length |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return bytes.get(place + 1..)?.split_at_checked(length);
        }
    }
    None
}

/// Every Go program of a release by name: those of `bin/` and those in the images.
pub(super) fn programs(dir: &Path, release: &ReleaseInfo) -> Result<BTreeMap<String, BuildInfo>> {
    let mut found = BTreeMap::new();
    let bin = dir.join("bin");
    for entry in fs::read_dir(&bin).at(&bin)? {
        let path = entry.at(&bin)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        found.extend(build_info(&fs::read(&path).at(&path)?).map(|info| (name, info)));
    }
    let layout = Layout::open(&dir.join("oci"))?;
    let mut layers = BTreeSet::new();
    for spec in release.images.values() {
        let digest = spec.rsplit_once('@').map_or(spec.as_str(), |(_, digest)| digest);
        layers.extend(layout.parts(digest)?.into_iter().skip(1).map(|layer| layer.digest));
    }
    for layer in layers {
        let path = layout.path(&layer);
        let mut tar = tar::Archive::new(BufReader::new(File::open(&path).at(&path)?));
        for entry in tar.entries().at(&path)? {
            let mut entry = entry.at(&path)?;
            let program = entry.path().at(&path)?.file_name().map(|name| name.to_string_lossy().into_owned());
            let Some(program) = program.filter(|name| !found.contains_key(name)) else { continue };
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).at(&path)?;
            found.extend(build_info(&bytes).map(|info| (program, info)));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_is_found_and_read() {
        let mut program = b"\x7fELF".to_vec();
        program.resize(5 * ALIGNED, 0);
        program.extend(MAGIC);
        program.extend([8, INLINE]);
        program.resize(program.len().next_multiple_of(HEADER) + ALIGNED, 0);
        let modules = "0123456789abcdefpath\ta.b/c/cmd/x\nmod\ta.b/c\tv1.0.0\th1:x=\ndep\town\t(devel)\t\ndep\told\tv1\n=>\tnew\tv2\th1:y=\n0123456789abcdef";
        program.push(8);
        program.extend(b"go1.26.8");
        program.extend([(modules.len() & 0x7f) as u8 | 0x80, (modules.len() >> 7) as u8]);
        program.extend(modules.bytes());
        let modules = [("a.b/c", "v1.0.0"), ("new", "v2")].map(|(m, v)| (m.to_string(), v.to_string()));
        let path = "a.b/c/cmd/x".into();
        let want = BuildInfo { go: "go1.26.8".into(), path, modules: modules.into() };
        assert_eq!(want.version(), Some("v1.0.0"));
        assert_eq!(build_info(&program), Some(want));
        // Cut anywhere it is no record, and no panic.
        assert!((0..program.len()).all(|end| build_info(&program[..end]).is_none()));
    }
}
