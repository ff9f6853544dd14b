//! Builds the programs of a group from its go.mod. The folder they land in is named by everything that decides them, so
//! its presence is the cache.

use crate::bill::Group;
use crate::build::UNFINISHED;
use crate::error::{At, ReleaseError, Result, output, output_telling};
use crate::progress::{Plan, Progress};
use crate::retry::retrying;
use crate::toolchain::{GO, Toolchain};
use crate::tree::hex;
use seedling_types::template::{render, table};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const HINT: &str = "the module proxy may be slow or lack a version; run `seedling release build` again, it continues where it stopped";

const TELL_EVERY: Duration = Duration::from_secs(30);

/// Version of a module as go.mod requires it.
pub(crate) fn required(go_mod: &str, module: &str) -> Option<String> {
    go_mod.lines().find_map(|line| {
        let mut words = line.trim().trim_start_matches("require ").split_whitespace();
        (words.next() == Some(module)).then(|| words.next().map(str::to_string))?
    })
}

pub(crate) fn version(source: &Path, dir: &str, module: &str) -> Result<String> {
    let path = source.join(dir).join("go.mod");
    required(&fs::read_to_string(&path).at(&path)?, module).ok_or_else(|| {
        ReleaseError::invalid(format!("{} does not require {module}", path.display()), "pin it there")
    })
}

fn link_flags(group: &Group, version: &str) -> Result<String> {
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let values = [("version", version), ("major", major), ("minor", minor)];
    let mut flags = "-s -w".to_string();
    for stamp in group.stamps {
        let stamp = render(stamp, table(&values))
            .map_err(|e| ReleaseError::invalid(format!("stamp {stamp:?}: {e}"), "correct it in bill.rs"))?;
        flags.extend([" -X ", &stamp]);
    }
    Ok(flags + if group.c_tags.is_some() { " -linkmode external -extldflags -static" } else { "" })
}

/// The folder that holds a group's programs once they are built.
pub(crate) fn place(source: &Path, cache: &Path, group: &Group) -> Result<PathBuf> {
    let flags = link_flags(group, &version(source, group.dir, group.module)?)?;
    let key = key(&source.join(group.dir), group, &flags)?;
    Ok(cache.join("go").join(format!("{}-{}", group.dir, &key[..16])))
}

/// Downloads the modules that a group is made of. Only to be quicker: what fails here is tried again, and reported, when the group is built.
pub(crate) fn fetch(go: &Toolchain, source: &Path, group: &Group) {
    let _ = output(&mut list(go, &source.join(group.dir), group), HINT);
}

fn list(go: &Toolchain, dir: &Path, group: &Group) -> Command {
    let mut command = go.command(dir);
    command.args(["list", "-deps"]).args(group.programs.iter().map(|(_, package)| package));
    command
}

/// Builds the group into its place, and says how far it is.
pub(crate) fn build(
    go: &Toolchain,
    source: &Path,
    cache: &Path,
    group: &Group,
    plan: &Plan,
    progress: &Progress,
) -> Result<()> {
    let dir = source.join(group.dir);
    let version = version(source, group.dir, group.module)?;
    let flags = link_flags(group, &version)?;
    let done = place(source, cache, group)?;
    let start = Instant::now();
    let tell = |detail: &str, share: f64| {
        progress.step(format!("payload: {} {detail}: {}", group.dir, plan.left(share, start.elapsed())));
    };
    tell(&format!("{version} ({})", names(group)), 0.0);
    let parent = cache.join("go");
    let temporary = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&parent).at(&parent)?;
    let packages = group.programs.iter().map(|(_, package)| package);
    retrying(progress, group.dir, || {
        let all = output(&mut list(go, &dir, group), HINT)?.lines().count();
        let mut command = go.command(&dir);
        // The linker drops debug information; not making it first saves a fifth of the time.
        command
            .args([
                "build",
                "-v",
                "-trimpath",
                "-buildvcs=false",
                "-gcflags=all=-dwarf=false",
                "-ldflags",
                &flags,
                "-o",
            ])
            .arg(temporary.path());
        if let Some(tags) = group.c_tags {
            command.env("CGO_ENABLED", "1").args(["-tags", tags]);
        }
        command.args(packages.clone());
        let (mut built, mut told) = (0, Instant::now());
        output_telling(&mut command, HINT, |line| {
            built += usize::from(!line.starts_with("go: "));
            if told.elapsed() > TELL_EVERY {
                told = Instant::now();
                tell(&format!("{built} of {all} packages"), built as f64 / all.max(1) as f64);
            }
        })
    })?;
    for (name, package) in group.programs {
        let built = temporary.path().join(go_name(package, group.dir));
        fs::rename(&built, temporary.path().join(name)).at(&built)?;
    }
    fs::rename(temporary.keep(), &done).at(&done)?;
    remove_older(&parent, group.dir, &done)
}

/// The name `go build` gives a program: the last word of its path that is not a major version.
fn go_name<'a>(package: &'a str, dir: &'a str) -> &'a str {
    let major = |word: &str| word.strip_prefix('v').is_some_and(|n| n.parse::<u32>().is_ok());
    let path = if package == "." { dir } else { package };
    path.rsplit('/').find(|word| !major(word)).unwrap_or(path)
}

fn names(group: &Group) -> String {
    group.programs.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn key(dir: &Path, group: &Group, flags: &str) -> Result<String> {
    let mut hash = Sha256::new();
    hash.update(format!("{GO} {flags} {:?}\n", group.programs));
    hash.update(group.c_tags.unwrap_or_default());
    let mut files: Vec<_> = fs::read_dir(dir).at(dir)?.filter_map(|e| Some(e.ok()?.path())).collect();
    files.sort();
    for path in files.iter().filter(|p| p.extension().is_some_and(|e| e == "go" || e == "mod" || e == "sum"))
    {
        hash.update(path.file_name().unwrap_or_default().as_encoded_bytes());
        hash.update(fs::read(path).at(path)?);
    }
    Ok(hex(&hash.finalize()))
}

/// Removes earlier builds of the group; what is in use has hard links elsewhere.
pub(crate) fn remove_older(parent: &Path, prefix: &str, keep: &Path) -> Result<()> {
    for entry in fs::read_dir(parent).at(parent)? {
        let path = entry.at(parent)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let of_prefix = name
            .strip_prefix(prefix)
            .and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|key| key.len() == 16);
        if path != keep && of_prefix {
            fs::remove_dir_all(&path).at(&path)?;
        }
    }
    Ok(())
}

/// The folder of a module that is data, verified against go.sum.
pub fn module_dir(go: &Toolchain, dir: &Path, module: &str, progress: &Progress) -> Result<PathBuf> {
    let json = retrying(progress, module, || {
        output(go.command(dir).args(["mod", "download", "-json", module]), HINT)
    })?;
    let value: serde_json::Value = serde_json::from_str(&json).at(dir)?;
    match value["Dir"].as_str() {
        Some(found) => Ok(found.into()),
        None => Err(ReleaseError::invalid(format!("{module} was not downloaded: {}", value["Error"]), HINT)),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::bill::GROUPS;
    use std::collections::BTreeMap;

    #[test]
    fn versions_come_from_go_mod() {
        let text = "module x\n\nrequire k8s.io/kubernetes v1.36.4\n\nrequire (\n\tk8s.io/api v0.36.4 // indirect\n)\n";
        assert_eq!(required(text, "k8s.io/kubernetes").as_deref(), Some("v1.36.4"));
        assert_eq!(required(text, "k8s.io/api").as_deref(), Some("v0.36.4"));
        assert_eq!(required(text, "k8s.io"), None);
    }

    #[test]
    fn every_group_is_pinned_with_the_same_toolchain() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../release");
        for group in GROUPS {
            version(&source, group.dir, group.module).unwrap();
            let go_mod = fs::read_to_string(source.join(group.dir).join("go.mod")).unwrap();
            // Go leaves the line out where the go line asks for the same.
            let pinned = [format!("\ntoolchain {GO}\n"), format!("\ngo {}\n", &GO[2..])];
            assert!(pinned.iter().any(|line| go_mod.contains(line)), "{}", group.dir);
        }
    }

    /// Module → version that is built, replacements applied.
    fn versions(go_mod: &str) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        for line in go_mod.lines() {
            let line = line.trim().trim_start_matches("require ").trim_start_matches("replace ");
            match line.split_whitespace().collect::<Vec<_>>()[..] {
                [module, "=>", _, version] => found.insert(module.to_string(), version.to_string()),
                [module, version, ..] if version.starts_with('v') => {
                    found.insert(module.to_string(), version.to_string())
                }
                _ => None,
            };
        }
        found
    }

    #[test]
    fn companions_compile_no_package_of_kubernetes_again() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../release");
        let read = |dir: &str| versions(&fs::read_to_string(source.join(dir).join("go.mod")).unwrap());
        let kubernetes = read("kubernetes");
        for dir in ["cri-tools", "flannel", "coredns"] {
            let shared: Vec<_> = read(dir).into_iter().filter(|(m, _)| kubernetes.contains_key(m)).collect();
            assert!(shared.len() > 40, "{dir}: {}", shared.len());
            for (module, version) in shared {
                assert_eq!(kubernetes[&module], version, "{dir}: {module}");
            }
        }
    }

    #[test]
    fn knows_what_go_names_a_program() {
        let cases = [
            ("k8s.io/kubernetes/cmd/kubelet", "kubelet"),
            ("go.etcd.io/etcd/server/v3", "server"),
            (".", "flannel"),
        ];
        for (package, name) in cases {
            assert_eq!(go_name(package, "flannel"), name);
        }
    }

    #[test]
    fn kubernetes_is_stamped() {
        let flags = link_flags(&GROUPS[0], "v1.36.4").unwrap();
        assert!(flags.contains("-X k8s.io/component-base/version.gitVersion=v1.36.4 "), "{flags}");
        assert!(flags.contains("-X k8s.io/component-base/version.gitMinor=36 "), "{flags}");
        for group in GROUPS {
            let flags = link_flags(group, "v1.2.3").unwrap();
            assert!(flags.starts_with("-s -w") && !flags.contains('$'), "{flags}");
        }
    }
}
