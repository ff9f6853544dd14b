//! Debian's part of an image, by debootstrap: the packages of a recipe, unpacked and configured, made once for the same list; and the
//! kernel, which is only unpacked.

use crate::recipe::{KERNEL, Kind, SUITE};
use crate::run::{ImageError, Progress, Result, at, finish, remove_tree, run, unusable};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

/// Of Debian's package debian-archive-keyring.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Left by debootstrap, of no use to a node. Keys of the ssh server would be the same on every machine.
#[rustfmt::skip]
const LITTER: &[&str] = &[
    "var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale",
    "var/log/bootstrap.log", "debootstrap",
    "etc/ssh/ssh_host_rsa_key", "etc/ssh/ssh_host_rsa_key.pub", "etc/ssh/ssh_host_ecdsa_key", "etc/ssh/ssh_host_ecdsa_key.pub",
    "etc/ssh/ssh_host_ed25519_key", "etc/ssh/ssh_host_ed25519_key.pub",
];

/// Held while images are made: one process at a time.
pub(crate) struct Workshop {
    lock: File,
    /// Packages stay in `debs/`, Debian's parts in `debian-<hash>/`.
    images: PathBuf,
}

impl Workshop {
    pub(crate) async fn enter(cache: &Path, progress: Progress<'_>) -> Result<Workshop> {
        let images = cache.join("node-image");
        at(&images, fs::create_dir_all(&images))?;
        let lock = lock(&images.join(".lock"), progress).await?;
        Ok(Workshop { lock, images })
    }

    /// The holder of the lock owns this name: what is left there is from a run that was killed.
    pub(crate) fn bench(&self) -> Result<PathBuf> {
        let building = self.images.join(".building");
        remove_tree(&building)?;
        Ok(building)
    }

    /// Debian's part of the image, copied to `root` by hard links: what is replaced there gets a file of its own.
    pub(crate) async fn unpack(&self, kind: Kind, root: &Path, progress: Progress<'_>) -> Result<()> {
        let debian = self.images.join(format!("debian-{}", kind.debian_hash()));
        if !debian.exists() {
            let making = self.images.join(".debian");
            remove_tree(&making)?;
            self.debootstrap(kind, &making, progress).await?;
            at(&debian, fs::rename(&making, &debian))?;
        }
        run("cp", ["-al".as_ref(), debian.as_os_str(), root.as_os_str()]).await.map(drop)
    }

    /// Packages stay in `debs/`: a run that was cut short downloads only what is missing. debootstrap holds the lock with us (as
    /// its stdin, which it never reads): should we be killed, nobody builds in the same place while it goes on.
    async fn debootstrap(&self, kind: Kind, target: &Path, progress: Progress<'_>) -> Result<()> {
        let debs = self.debs()?;
        progress(&format!("making the node image: Debian {SUITE} by debootstrap (a minute or two, once)"));
        let mut child = Command::new("debootstrap")
            .args(debootstrap_arguments(&kind.packages(), &debs, target))
            .stdin(at(target, self.lock.try_clone())?)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| ImageError::Spawn { program: "debootstrap".into(), source })?;
        let mut last = String::new();
        let mut phase = "";
        if let Some(stdout) = child.stdout.take() {
            let mut output = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = output.next_line().await {
                tracing::debug!(line, "debootstrap");
                let now = phase_of(&line);
                if !now.is_empty() && now != phase {
                    phase = now;
                    progress(&format!("node image: {phase} packages"));
                }
                last = line;
            }
        }
        match at(target, child.wait_with_output().await)? {
            done if done.status.success() => {
                LITTER.iter().try_for_each(|path| remove_tree(&target.join(path)))
            }
            failed => Err(ImageError::Failed {
                command: format!("debootstrap {SUITE} {}", target.display()),
                status: failed.status,
                complaint: format!("{last}\n{}", String::from_utf8_lossy(&failed.stderr).trim()),
            }),
        }
    }

    /// The files of Debian's kernel package, below `to`. debootstrap finds, fetches and checks it as any other.
    pub(crate) async fn kernel(&self, bench: &Path, to: &Path, progress: Progress<'_>) -> Result<()> {
        progress("boot image: fetching the kernel");
        let (debs, target) = (self.debs()?, bench.join("kernel-packages"));
        let mut command = Command::new("debootstrap");
        command.arg("--download-only").args(debootstrap_arguments(&[KERNEL], &debs, &target));
        command.stdin(at(&target, self.lock.try_clone())?);
        finish(command).await?;
        let archives = target.join("var/cache/apt/archives");
        let names = at(&archives, fs::read_dir(&archives))?.filter_map(|entry| Some(entry.ok()?.path()));
        let Some(package) = names.into_iter().find(|path| is_kernel(path)) else {
            return Err(unusable(&archives, "debootstrap brought no kernel"));
        };
        run("dpkg-deb", ["-x".as_ref(), package.as_os_str(), to.as_os_str()]).await.map(drop)
    }

    fn debs(&self) -> Result<PathBuf> {
        let debs = self.images.join("debs");
        at(&debs, fs::create_dir_all(&debs))?;
        Ok(debs)
    }
}

/// `linux-image-6.1.0-50-amd64_6.1.176-1_amd64.deb`, not `linux-image-amd64_…`, which only names it.
fn is_kernel(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_prefix("linux-image-").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

async fn lock(path: &Path, progress: Progress<'_>) -> Result<File> {
    let file = at(path, OpenOptions::new().create(true).truncate(false).write(true).open(path))?;
    if file.try_lock().is_ok() {
        return Ok(file);
    }
    progress("waiting for another process that makes the node image");
    let path = path.to_path_buf();
    let locked = tokio::task::spawn_blocking(move || file.lock().map(|()| file)).await;
    at(&path, locked.map_err(std::io::Error::other).and_then(|r| r))
}

/// Without a forced check debootstrap takes packages that nobody signed for where the keyring is missing.
fn debootstrap_arguments(packages: &[&str], debs: &Path, target: &Path) -> Vec<OsString> {
    vec![
        "--variant=minbase".into(),
        "--force-check-gpg".into(),
        format!("--keyring={KEYRING}").into(),
        format!("--include={}", packages.join(",")).into(),
        format!("--cache-dir={}", debs.display()).into(),
        SUITE.into(),
        target.into(),
    ]
}

fn phase_of(line: &str) -> &'static str {
    let word = line.trim_start_matches("I: ").split(' ').next().unwrap_or_default();
    match word {
        "Retrieving" => "downloading",
        "Extracting" | "Unpacking" => "unpacking",
        "Configuring" => "configuring",
        _ => "",
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn packages_that_nobody_signed_for_are_refused() {
        let arguments = debootstrap_arguments(&["a", "b"], Path::new("/debs"), Path::new("/target"));
        for wanted in
            ["--force-check-gpg", "--keyring=/usr/share/keyrings/debian-archive-keyring.gpg", "--include=a,b"]
        {
            assert!(arguments.iter().any(|a| a == wanted), "{wanted}");
        }
        assert_eq!(arguments.last().unwrap(), "/target");
        let setup = include_str!("../../../scripts/setup.sh");
        assert!(setup.contains(" debian-archive-keyring "), "setup.sh brings no keyring");
    }

    #[test]
    fn the_kernel_is_told_from_its_name() {
        for (name, kernel) in [
            ("linux-image-6.1.0-50-amd64_6.1.176-1_amd64.deb", true),
            ("linux-image-amd64_6.1.176-1_amd64.deb", false),
            ("linux-base_4.12.1_all.deb", false),
        ] {
            assert_eq!(is_kernel(Path::new(name)), kernel, "{name}");
        }
    }
}
