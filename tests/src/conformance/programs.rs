//! The suite's programs, built as the payload's are: from pinned modules, once, cached by what decides them.

use anyhow::{Context, Result, ensure};
use seedling_e2e::run;
use seedling_release::{GO, Progress, Toolchain, module_dir};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

const KUBERNETES: &str = "k8s.io/kubernetes";
/// The payload's flags: packages that it has compiled with them are not compiled again.
const FLAGS: [&str; 3] = ["-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false"];

/// Programs of one go.mod.
struct Part {
    /// Folder under `release/`.
    dir: &'static str,
    /// A test binary: `go build` makes none.
    test: bool,
    packages: &'static [&'static str],
}

const SUITE: Part = Part { dir: "conformance", test: true, packages: &["k8s.io/kubernetes/test/e2e"] };
const TOOLS: Part = Part {
    dir: "conformance",
    test: false,
    packages: &[
        "github.com/onsi/ginkgo/v2/ginkgo",
        "k8s.io/kubernetes/test/images/agnhost",
        "k8s.io/kubernetes/test/images/nonewprivs",
    ],
};
/// The suite wants an old one: that it still works is what is tested.
const SAMPLE: Part = Part { dir: "sample-apiserver", test: false, packages: &["k8s.io/sample-apiserver"] };

pub(crate) struct Programs {
    /// `v1.36.4`
    pub version: String,
    pub suite: PathBuf,
    /// Folders with ginkgo, agnhost and nonewprivs, and with the sample API server.
    pub tools: PathBuf,
    pub sample: PathBuf,
    /// The sources of Kubernetes: files that its test images hold.
    pub sources: PathBuf,
}

impl Programs {
    /// Builds what is missing. `kubernetes` is the payload's version, and the suite must be of the same.
    pub(crate) fn build(source: &Path, cache: &Path, kubernetes: &str) -> Result<Self> {
        let version = pinned(source, SUITE.dir)?;
        ensure!(
            version == kubernetes,
            "release/conformance pins {version}, the payload is {kubernetes}: pin the same"
        );
        let progress = Progress::start();
        fs::create_dir_all(cache.join("go"))?;
        let go = Toolchain::find(cache, &progress)?;
        let stamp = format!("-s -w -X k8s.io/component-base/version.gitVersion={version}");
        let made = |part: &Part| part.make(&go, source, cache, &stamp);
        Ok(Self {
            suite: made(&SUITE)?.join("e2e.test"),
            tools: made(&TOOLS)?,
            sample: made(&SAMPLE)?,
            sources: module_dir(&go, &source.join(SUITE.dir), KUBERNETES, &progress)?,
            version,
        })
    }
}

impl Part {
    /// A folder named by all that decides what is in it.
    fn place(&self, source: &Path, cache: &Path) -> Result<PathBuf> {
        let mut hash = Sha256::new();
        hash.update(format!("{GO} {FLAGS:?} {:?}", self.packages));
        for name in ["go.mod", "go.sum"] {
            let path = source.join(self.dir).join(name);
            hash.update(fs::read(&path).with_context(|| path.display().to_string())?);
        }
        Ok(cache.join("conformance").join(format!("{}-{}", self.name(), short(hash))))
    }

    fn name(&self) -> &str {
        if self.test { "suite" } else { self.dir }
    }

    fn make(&self, go: &Toolchain, source: &Path, cache: &Path, stamp: &str) -> Result<PathBuf> {
        let done = self.place(source, cache)?;
        if done.exists() {
            return Ok(done);
        }
        eprintln!("building {}", self.packages.join(", "));
        let unfinished = done.with_extension("unfinished");
        fs::create_dir_all(&unfinished)?;
        let mut command = go.command(&source.join(self.dir));
        match self.test {
            // ginkgo knows a test binary by the end of its name.
            true => command.args(["test", "-c", "-vet=off", "-o"]).arg(unfinished.join("e2e.test")),
            false => command.args(["build", "-o"]).arg(&unfinished),
        };
        run(command.args(FLAGS).args(["-ldflags", stamp]).args(self.packages))?;
        remove_others(&done, &format!("{}-", self.name()))?;
        fs::rename(&unfinished, &done)?;
        Ok(done)
    }
}

fn pinned(source: &Path, dir: &str) -> Result<String> {
    let path = source.join(dir).join("go.mod");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let line = text.lines().find_map(|l| l.trim_start_matches("require ").trim().strip_prefix(KUBERNETES));
    let version = line.and_then(|rest| rest.split_whitespace().next()).context("Kubernetes is not pinned")?;
    Ok(version.into())
}

/// Enough of a digest for the name of a folder.
pub(crate) fn short(hash: Sha256) -> String {
    hash.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect()
}

/// Earlier ones beside it, of which a new one takes the place.
pub(crate) fn remove_others(of: &Path, prefix: &str) -> Result<()> {
    let unfinished = of.with_extension("unfinished");
    for other in of.parent().map(fs::read_dir).transpose()?.into_iter().flatten().filter_map(Result::ok) {
        let path = other.path();
        if other.file_name().to_string_lossy().starts_with(prefix) && path != of && path != unfinished {
            fs::remove_dir_all(&path).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_suite_is_of_the_payloads_version() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../release");
        assert_eq!(pinned(&source, "conformance").unwrap(), pinned(&source, "kubernetes").unwrap());
        let modules = |dir: &str| {
            let text = fs::read_to_string(source.join(dir).join("go.mod")).unwrap();
            let lines = text.lines().filter(|l| l.starts_with('\t') && l.contains(" v"));
            lines.map(|l| l.trim().trim_end_matches(" // indirect").to_string()).collect::<Vec<_>>()
        };
        let name = |line: &str| line.split(' ').next().unwrap_or_default().to_string();
        let payload = modules("kubernetes");
        for line in modules("conformance") {
            let same = payload.iter().find(|p| name(p) == name(&line)).is_none_or(|p| *p == line);
            assert!(same, "{line}: another version would compile half of Kubernetes again");
        }
    }
}
