//! Programs that no Go module brings (nft, iptables, conntrack, busybox), from Debian packages unpacked beside the host's own
//! system. Of their libraries only those the programs load go into an image.

use crate::bill::System;
use crate::build::UNFINISHED;
use crate::error::{At, ReleaseError, Result, output};
use crate::gobuild::remove_older;
use crate::oci::write_atomically;
use crate::progress::Progress;
use crate::retry::retrying;
use crate::tree::{Source, Tree, hex};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const HINT: &str = "needs a Debian machine with a reachable mirror; `apt-get update` may help";
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
const LOADER: &str = "ld-linux-x86-64.so.2";
/// Debian puts libraries under both until its merge of /usr is complete in every package.
const LIBRARY_DIRS: [&str; 2] = [LIBRARIES, "lib/x86_64-linux-gnu"];
const SHELL: &str = "awk base64 basename cat chmod chown cp cut date dd df dirname du echo env expr false find grep gzip head hostname \
     httpd id ip kill ln ls mkdir mktemp mount mv nc netstat nslookup od ping printf ps pwd readlink rm rmdir sed seq sh sleep sort \
     stat sync tail tar tee test time timeout top touch tr traceroute true umount uname uniq vi wc wget which xargs yes";
const IPTABLES: [&str; 6] =
    ["iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"];

/// The unpacked packages; the folder is named by the packages' own digests.
pub(crate) struct Packages {
    root: PathBuf,
}

impl Packages {
    pub(crate) fn fetch(source: &Path, cache: &Path, progress: &Progress) -> Result<Self> {
        let list = source.join("debian/packages");
        let text = fs::read_to_string(&list).at(&list)?;
        let wanted: Vec<_> = text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).collect();
        let parent = cache.join("debian");
        let uris = located(&wanted, &parent, progress)?;
        let done = parent.join(format!("root-{}", &hex(&Sha256::digest(&uris))[..16]));
        if !done.exists() {
            progress.step(format!("debian: unpacking {}", wanted.join(", ")));
            let temporary = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&parent).at(&parent)?;
            let root = temporary.path().join("root");
            let files: Vec<_> = uris.lines().filter_map(|l| l.split_whitespace().next()).collect();
            let names: Vec<_> = files.iter().filter_map(|f| f.split('_').next()).collect();
            retrying(progress, "debian", || {
                // The mirror's user cannot write into a folder of root's.
                let mut apt = Command::new("apt-get");
                apt.args(["-q", "-o", "APT::Sandbox::User=root", "download"])
                    .args(&names)
                    .current_dir(temporary.path());
                output(&mut apt, HINT)
            })?;
            for file in fs::read_dir(temporary.path()).at(temporary.path())? {
                let path = file.at(temporary.path())?.path();
                if path.extension().is_some_and(|e| e == "deb") {
                    output(Command::new("dpkg-deb").arg("-x").arg(&path).arg(&root), HINT)?;
                }
            }
            fs::rename(&root, &done).at(&done)?;
            remove_older(&parent, "root", &done)?;
        }
        Ok(Self { root: done })
    }

    pub(crate) fn add(&self, system: System, tree: &mut Tree) -> Result<()> {
        if system == System::None {
            return Ok(());
        }
        tree.file("bin/busybox", 0o755, self.source("bin/busybox")?);
        for name in SHELL.split_whitespace() {
            tree.link(&format!("bin/{name}"), "busybox");
        }
        if system == System::Packets {
            self.add_packets(tree)?;
        }
        Ok(())
    }

    fn add_packets(&self, tree: &mut Tree) -> Result<()> {
        let mut loads: Vec<String> = Vec::new();
        for name in ["nft", "conntrack", "xtables-nft-multi", "xtables-legacy-multi"] {
            let path = format!("usr/sbin/{name}");
            tree.file(&path, 0o755, self.source(&path)?);
            loads.push(path);
        }
        for name in IPTABLES {
            tree.link(&format!("usr/sbin/{name}"), "xtables-nft-multi");
            tree.link(
                &format!("usr/sbin/{}", name.replacen("tables", "tables-legacy", 1)),
                "xtables-legacy-multi",
            );
            tree.link(&format!("usr/sbin/{}", name.replacen("tables", "tables-nft", 1)), "xtables-nft-multi");
        }
        let modules = format!("{LIBRARIES}/xtables");
        for entry in fs::read_dir(self.root.join(&modules)).at(&modules)? {
            let entry = entry.at(&modules)?;
            let path = format!("{modules}/{}", entry.file_name().to_string_lossy());
            if entry.file_type().at(&path)?.is_symlink() {
                let target = fs::read_link(entry.path()).at(&path)?;
                tree.link(&path, &target.to_string_lossy());
            } else {
                tree.file(&path, 0o644, self.source(&path)?);
                loads.push(path);
            }
        }
        let loader = self.library(LOADER)?;
        tree.file(&format!("lib64/{LOADER}"), 0o755, self.source_at(&loader)?);
        for (soname, path) in self.libraries(&loader, &loads)? {
            tree.file(&format!("{LIBRARIES}/{soname}"), 0o644, self.source_at(&path)?);
        }
        Ok(())
    }

    /// What the loader of these packages would load for the programs: name → file.
    fn libraries(&self, loader: &Path, programs: &[String]) -> Result<BTreeMap<String, PathBuf>> {
        let dirs = LIBRARY_DIRS.map(|d| self.root.join(d).to_string_lossy().into_owned()).join(":");
        let mut found = BTreeMap::new();
        for program in programs {
            let mut list = Command::new(loader);
            list.args(["--library-path", &dirs, "--list"]).arg(self.root.join(program));
            found.extend(listed(&output(
                &mut list,
                "a library package is missing: name it in release/debian/packages",
            )?));
        }
        Ok(found)
    }

    fn library(&self, name: &str) -> Result<PathBuf> {
        let candidates = LIBRARY_DIRS.map(|d| self.root.join(d).join(name));
        candidates
            .into_iter()
            .find(|p| p.exists())
            .ok_or_else(|| ReleaseError::invalid(format!("no {name} in the packages"), HINT))
    }

    fn source(&self, path: &str) -> Result<Source> {
        let merged = [self.root.join(path), self.root.join("usr").join(path)];
        let found = merged.iter().find(|p| p.exists());
        self.source_at(
            found.ok_or_else(|| ReleaseError::invalid(format!("no {path} in the packages"), HINT))?,
        )
    }
    fn source_at(&self, path: &Path) -> Result<Source> {
        Ok(Source::immutable(path.canonicalize().at(path)?))
    }

    /// Version of busybox's package, for people.
    pub(crate) fn version(&self) -> String {
        let doc = self.root.join("bin/busybox");
        let out = Command::new(&doc)
            .arg("--help")
            .output()
            .map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
        let line = out.unwrap_or_default();
        line.split_whitespace().nth(1).map(|v| v.trim_start_matches('v').to_string()).unwrap_or_default()
    }
}

/// `locate`, asked again only when the machine's package lists have changed since.
fn located(wanted: &[&str], parent: &Path, progress: &Progress) -> Result<String> {
    let lists = fs::metadata("/var/lib/apt/lists").and_then(|m| m.modified()).ok();
    let asked = format!("{wanted:?} {lists:?}\n");
    let file = parent.join("located");
    if let Some(known) = fs::read_to_string(&file).ok().as_deref().and_then(|text| text.strip_prefix(&asked))
    {
        return Ok(known.to_string());
    }
    let uris = locate(wanted).or_else(|_| {
        progress.step("debian: reading the package lists");
        retrying(progress, "apt-get update", || {
            output(Command::new("apt-get").args(["-q", "update"]), HINT)
        })?;
        locate(wanted)
    })?;
    write_atomically(&file, format!("{asked}{uris}").as_bytes())?;
    Ok(uris)
}

/// One line a package to fetch: file name and digest. Needs no network where the package lists are there.
fn locate(wanted: &[&str]) -> Result<String> {
    let closure = output(Command::new("apt-cache").args(["depends", "--recurse", "-i"]).args(wanted), HINT)?;
    let names = needed(&closure, wanted);
    let uris = output(Command::new("apt-get").args(["download", "--print-uris"]).args(names), HINT)?;
    let mut lines: Vec<_> = uris.lines().filter_map(uri).collect();
    lines.sort();
    Ok(lines.join("\n"))
}

/// `'http://…' FILE SIZE SHA256:…` → `FILE SHA256:…`
fn uri(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let (_, file, _, digest) = (words.next()?, words.next()?, words.next()?, words.next()?);
    Some(format!("{file} {digest}"))
}

/// The wanted packages and the libraries they depend on.
fn needed<'a>(closure: &'a str, wanted: &[&'a str]) -> Vec<&'a str> {
    let top = closure.lines().filter(|l| !l.starts_with([' ', '<']) && !l.contains(':'));
    let mut names: Vec<_> = top.filter(|n| n.starts_with("lib") || wanted.contains(n)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// `libm.so.6 => /root/lib/libm.so.6 (0x…)` → (`libm.so.6`, path)
fn listed(output: &str) -> BTreeMap<String, PathBuf> {
    let lines = output.lines().filter_map(|line| line.trim().split_once(" => "));
    lines
        .filter_map(|(name, rest)| Some((name.to_string(), PathBuf::from(rest.split_once(" (")?.0))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_and_libraries_are_fetched() {
        let closure = "nftables\n  Depends: libc6\n  Depends: netbase\nlibc6\nlibnftables1\nnetbase\n<debconf-2.0>\nlibc6:i386\n";
        assert_eq!(needed(closure, &["nftables"]), ["libc6", "libnftables1", "nftables"]);
    }

    #[test]
    fn reads_apt_and_the_loader() {
        let line = "'http://m/nft_1_amd64.deb' nft_1_amd64.deb 70292 SHA256:96";
        assert_eq!(uri(line).as_deref(), Some("nft_1_amd64.deb SHA256:96"));
        let list = "\tlinux-vdso.so.1 (0x1)\n\tlibm.so.6 => /r/libm.so.6 (0x2)\n\t/lib64/ld-linux-x86-64.so.2 (0x3)\n";
        assert_eq!(listed(list), BTreeMap::from([("libm.so.6".to_string(), PathBuf::from("/r/libm.so.6"))]));
    }
}
