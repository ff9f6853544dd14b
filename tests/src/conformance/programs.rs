//! The suite's programs, built as the payload's are: from pinned modules, once, cached by what decides them.

use anyhow::{Context, Result, ensure};
use seedling_e2e::run;
use seedling_release::{GO, Group, Progress, Toolchain, build_group, module_dir, pinned_version};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

const KUBERNETES: &str = "k8s.io/kubernetes";
const SUITE: &str = "k8s.io/kubernetes/test/e2e";

/// Versions of these are those of the payload, so most of their packages are compiled already.
const TOOLS: Group = Group {
    dir: "conformance",
    module: KUBERNETES,
    programs: &[
        ("ginkgo", "github.com/onsi/ginkgo/v2/ginkgo"),
        ("agnhost", "k8s.io/kubernetes/test/images/agnhost"),
        ("nonewprivs", "k8s.io/kubernetes/test/images/nonewprivs"),
    ],
    stamps: &[],
    c_tags: None,
};
/// The suite wants an old one: that it still works is what is tested.
const SAMPLE: Group = Group {
    dir: "sample-apiserver",
    module: "k8s.io/sample-apiserver",
    programs: &[("sample-apiserver", "k8s.io/sample-apiserver")],
    stamps: &[],
    c_tags: None,
};

pub struct Programs {
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
    pub fn build(source: &Path, cache: &Path, kubernetes: &str) -> Result<Self> {
        let version = pinned_version(source, TOOLS.dir, KUBERNETES)?;
        ensure!(
            version == kubernetes,
            "release/conformance pins {version}, the payload is {kubernetes}: pin the same"
        );
        let progress = Progress::start();
        fs::create_dir_all(cache.join("go"))?;
        let go = Toolchain::find(cache, &progress)?;
        let dir = source.join(TOOLS.dir);
        Ok(Self {
            suite: suite(&go, &dir, &built(source, cache)?, &version, &progress)?,
            tools: build_group(&go, source, cache, &TOOLS, &progress)?,
            sample: build_group(&go, source, cache, &SAMPLE, &progress)?,
            sources: module_dir(&go, &dir, KUBERNETES, &progress)?,
            version,
        })
    }
}

/// Where e2e.test is, or will be: in a folder named by all that decides it. ginkgo knows it by its own name.
pub fn built(source: &Path, cache: &Path) -> Result<PathBuf> {
    let mut hash = Sha256::new();
    hash.update(GO);
    for name in ["go.mod", "go.sum"] {
        let path = source.join(TOOLS.dir).join(name);
        hash.update(fs::read(&path).with_context(|| path.display().to_string())?);
    }
    let key: String = hash.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect();
    Ok(cache.join("conformance").join(format!("suite-{key}/e2e.test")))
}

/// A test binary: `go build` makes none.
fn suite(go: &Toolchain, dir: &Path, to: &Path, version: &str, progress: &Progress) -> Result<PathBuf> {
    if to.exists() {
        return Ok(to.into());
    }
    progress.step(format!("conformance {version}: building e2e.test"));
    let done = to.parent().context("no folder")?;
    let unfinished = done.with_extension("unfinished");
    fs::create_dir_all(&unfinished)?;
    let stamp = format!("-s -w -X k8s.io/component-base/version.gitVersion={version}");
    let mut command = go.command(dir);
    command.args(["test", "-c", "-vet=off", "-trimpath", "-buildvcs=false", "-ldflags", &stamp, "-o"]);
    run(command.arg(unfinished.join("e2e.test")).arg(SUITE))?;
    remove_others(done, "suite-")?;
    fs::rename(&unfinished, done)?;
    progress.step(format!("conformance {version}: e2e.test built"));
    Ok(to.into())
}

/// Earlier ones beside it, of which a new one takes the place.
pub fn remove_others(of: &Path, prefix: &str) -> Result<()> {
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
        let of = |dir: &str| pinned_version(&source, dir, KUBERNETES).unwrap();
        assert_eq!(of("conformance"), of("kubernetes"));
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
