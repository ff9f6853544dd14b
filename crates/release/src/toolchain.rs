//! The Go toolchain, pinned. Any Go ≥ 1.21 fetches the pinned one by itself; an older Go (Debian's 1.19) can download it as
//! a module, whose copy gets its run bits back.

use crate::build::UNFINISHED;
use crate::error::{At, Result, output};
use crate::progress::Progress;
use crate::retry::retrying;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The `toolchain` lines of the go.mod files say the same.
pub const GO: &str = "go1.26.8";
const HINT: &str =
    "install Go (Debian: apt-get install golang-go); any version from 1.19 on fetches the pinned one";

pub struct Toolchain {
    go: PathBuf,
}

impl Toolchain {
    pub fn find(cache: &Path, progress: &Progress) -> Result<Self> {
        let cached = cache.join("go").join(GO);
        if cached.join("bin/go").exists() {
            return Ok(Self { go: cached.join("bin/go") });
        }
        // Outside of any module: a go.mod that asks for more than an old Go knows would stop it.
        let found = output(Command::new("go").args(["env", "GOVERSION"]).current_dir("/"), HINT)?;
        if switches(found.trim()) {
            return Ok(Self { go: "go".into() });
        }
        progress.step(format!("go: fetching {GO} with {}", found.trim()));
        fetch(&cached, progress)?;
        Ok(Self { go: cached.join("bin/go") })
    }

    /// `go` in a folder, with everything that decides the output set, and the machine's own proxy setting untouched.
    pub fn command(&self, dir: &Path) -> Command {
        let mut command = Command::new(&self.go);
        command
            .current_dir(dir)
            .env("GOTOOLCHAIN", GO)
            .env("CGO_ENABLED", "0")
            .env("GOFLAGS", "-mod=readonly");
        command.env("GOOS", "linux").env("GOARCH", "amd64").env("GOAMD64", "v1").env("GOWORK", "off");
        command.env_remove("GOROOT").env_remove("GOEXPERIMENT");
        // The compiler collects its garbage only when there is much of it: a quarter less processor time, and the same bytes.
        command.env("GOGC", "off").env("GOMEMLIMIT", "1GiB");
        command
    }
}

/// Whether this Go knows GOTOOLCHAIN.
fn switches(version: &str) -> bool {
    let mut numbers = version.trim_start_matches("go").split('.').map_while(|n| n.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (1, 21)
}

fn fetch(into: &Path, progress: &Progress) -> Result<()> {
    let module = format!("golang.org/toolchain@v0.0.1-{GO}.linux-amd64");
    let json = retrying(progress, GO, || {
        let mut go = Command::new("go");
        output(
            go.args(["mod", "download", "-json", &module]).current_dir("/").env("GOFLAGS", "-mod=mod"),
            HINT,
        )
    })?;
    let downloaded: serde_json::Value = serde_json::from_str(&json).at(&module)?;
    let from = PathBuf::from(downloaded["Dir"].as_str().unwrap_or_default());
    let parent = into.parent().unwrap_or(Path::new("/"));
    let temporary = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(parent).at(parent)?;
    let copy = temporary.path().join(GO);
    output(Command::new("cp").arg("-r").arg(&from).arg(&copy), "is the disk full?")?;
    output(Command::new("chmod").args(["-R", "u+w"]).arg(&copy), "")?;
    for dir in ["bin", "pkg/tool/linux_amd64"].map(|d| copy.join(d)).iter().filter(|d| d.exists()) {
        for file in fs::read_dir(dir).at(dir)? {
            let path = file.at(dir)?.path();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).at(&path)?;
        }
    }
    fs::rename(&copy, into).at(into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_versions_do_not_switch() {
        let cases = [
            ("go1.19.8", false),
            ("go1.20", false),
            ("go1.21.0", true),
            ("go1.26.8", true),
            ("go2.0", true),
            ("", false),
        ];
        for (version, expected) in cases {
            assert_eq!(switches(version), expected, "{version}");
        }
    }
}
