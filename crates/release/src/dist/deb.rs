//! A Debian package: an `ar` archive of two compressed tars. dpkg-deb would do it too, from a folder with the right owners and times.

use crate::error::{At, Result};
use crate::oci::write_atomically;
use crate::tree::{Source, Tree};
use flate2::{Compression, GzBuilder};
use std::path::Path;

pub struct Package {
    /// All fields but Version and Installed-Size.
    control: String,
    /// `postinst` and the like.
    pub scripts: Vec<(String, String)>,
    files: Tree,
}

impl Package {
    pub fn new(control: String) -> Self {
        Self { control, scripts: Vec::new(), files: Tree::default() }
    }
    pub fn text(&mut self, path: &str, contents: impl Into<Vec<u8>>) {
        self.files.file(path, 0o644, Source::Bytes(contents.into()));
    }
    /// As Debian wants its documents.
    pub fn compressed(&mut self, path: &str, contents: &[u8]) -> Result<()> {
        self.text(&format!("{path}.gz"), gzip(Compression::best(), contents)?);
        Ok(())
    }
    pub fn program(&mut self, path: &str, from: &Path) {
        self.files.file(path, 0o755, Source::immutable(from.into()));
    }
}

/// `time` is in seconds since 1970, for every file in it.
pub fn write_deb(package: &Package, version: &str, time: u64, out: &Path) -> Result<()> {
    let mut control = Tree::default();
    let size = package.files.size()?.div_ceil(1024);
    let fields = format!("{}\nVersion: {version}\nInstalled-Size: {size}\n", package.control.trim_end());
    control.file("control", 0o644, Source::Bytes(fields.into()));
    for (name, script) in &package.scripts {
        control.file(name, 0o755, Source::Bytes(script.clone().into()));
    }
    let mut ar = b"!<arch>\n".to_vec();
    // dpkg reads them in this order.
    member(&mut ar, "debian-binary", time, b"2.0\n");
    member(&mut ar, "control.tar.gz", time, &tar_gz(&control, time)?);
    member(&mut ar, "data.tar.gz", time, &tar_gz(&package.files, time)?);
    write_atomically(out, &ar)
}

fn tar_gz(tree: &Tree, time: u64) -> Result<Vec<u8>> {
    let mut tar = Vec::new();
    tree.write_tar_of(time, &mut tar)?;
    gzip(Compression::default(), &tar)
}

/// Without name and time.
fn gzip(level: Compression, bytes: &[u8]) -> Result<Vec<u8>> {
    let mut gz = GzBuilder::new().write(Vec::new(), level);
    std::io::Write::write_all(&mut gz, bytes).and_then(|()| gz.finish()).at("package")
}

fn member(ar: &mut Vec<u8>, name: &str, time: u64, contents: &[u8]) {
    let (owner, group, mode, size) = (0, 0, "100644", contents.len());
    ar.extend(format!("{name:<16}{time:<12}{owner:<6}{group:<6}{mode:<8}{size:<10}`\n").bytes());
    ar.extend(contents);
    // Members start at even places.
    ar.extend((size % 2 == 1).then_some(b'\n'));
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::process::Command;

    fn sample() -> Package {
        let control = "Package: x\nArchitecture: amd64\nMaintainer: X <x@example.com>\nDescription: a test\n";
        let mut package = Package::new(control.into());
        package.scripts.push(("postinst".into(), "#!/bin/sh\n".into()));
        package.text("usr/share/x/odd", "odd");
        package.compressed("usr/share/doc/x/changelog", b"first\n").unwrap();
        package
    }

    /// dpkg itself is asked: `make unit` runs on Debian.
    #[test]
    fn dpkg_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let [one, two] = ["one.deb", "two.deb"].map(|name| dir.path().join(name));
        write_deb(&sample(), "1.2", 1_700_000_000, &one).unwrap();
        write_deb(&sample(), "1.2", 1_700_000_000, &two).unwrap();
        assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&two).unwrap());
        let ask = |args: &[&str]| {
            let out = Command::new("dpkg-deb").args(args).arg(&one).env("TZ", "UTC").output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            String::from_utf8_lossy(&out.stdout).into_owned()
        };
        assert_eq!(ask(&["--showformat=${Package} ${Version} ${Installed-Size}", "--show"]), "x 1.2 1");
        assert!(ask(&["--info"]).contains("postinst"));
        let listed = ask(&["--contents"]);
        assert!(
            listed.contains("-rw-r--r-- 0/0               3 2023-11-14 22:13 usr/share/x/odd"),
            "{listed}"
        );
        assert!(listed.contains("changelog.gz"), "{listed}");
    }
}
