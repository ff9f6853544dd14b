//! Images that nodes boot: the root file system of a lab's container machines, and for real machines kernel, initramfs and root file system
//! for the network, disk images and ISOs. All from one recipe, `node/` of the source tree, built into this binary.
//!
//! In: Debian's packages, by debootstrap; an Ignition config for what carries one. Out: files in the cache, or where they are wanted.
//! What comes next: `machines` boots containers from the node image; the helper serves the boot image to machines.

pub mod boot;
mod debian;
mod disk;
mod furnish;
mod iso;
mod needs;
pub mod node;
mod recipe;
mod run;

pub use run::{ImageError, Progress, Result, remove_tree};

use run::{at, unusable};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// What a boot image is given as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Kernel, initramfs, root file system and boot loaders for the network.
    Netboot,
    Raw,
    Qcow2,
    Iso,
}

/// What an image carries besides the system.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Its bytes, as Ignition will read them.
    pub ignition: Option<Vec<u8>>,
    /// For the kernel's command line.
    pub arguments: Vec<String>,
}

/// Screen and serial line: who looks at either sees the boot.
const CONSOLES: &[&str] = &["console=tty0", "console=ttyS0,115200"];

impl Contents {
    /// Reads and checks what people gave.
    pub fn new(ignition: Option<&Path>, arguments: &[String]) -> Result<Contents> {
        let config = ignition.map(|path| {
            let bytes = at(path, fs::read(path))?;
            check_config(&bytes).map_err(|why| unusable(path, why))?;
            Ok(bytes)
        });
        if let Some(odd) = arguments.iter().find(|argument| !is_plain(argument)) {
            let why = "letters, digits and _ . , : / = @ + - are taken on a kernel command line";
            return Err(unusable(Path::new(odd), why));
        }
        let own = CONSOLES.iter().map(|argument| argument.to_string());
        Ok(Contents {
            ignition: config.transpose()?,
            arguments: own.chain(arguments.iter().cloned()).collect(),
        })
    }
}

/// Makes the image, and the boot image before it unless it is there. Returns what it wrote: a file, or for [`Format::Netboot`] the folder.
pub async fn build(
    cache: &Path,
    format: Format,
    contents: &Contents,
    out: Option<&Path>,
    progress: Progress<'_>,
) -> Result<PathBuf> {
    // Before the minutes that the boot image takes.
    needs::check(&needs::of(format))?;
    let image = boot::ensure(cache, progress).await?;
    let (name, folder) = match (format, out) {
        (Format::Netboot, None) => return Ok(image),
        (Format::Netboot, Some(out)) => return copy_folder(&image, out),
        (Format::Raw, out) => ("seedling-node.raw", out),
        (Format::Qcow2, out) => ("seedling-node.qcow2", out),
        (Format::Iso, out) => ("seedling-node.iso", out),
    };
    let folder = folder.unwrap_or(Path::new("."));
    at(folder, fs::create_dir_all(folder))?;
    let out = folder.join(name);
    match format {
        Format::Iso => iso::make(&image, contents, &out, progress).await?,
        Format::Qcow2 => disk::qcow2(&image, contents, &out, progress).await?,
        _ => disk::raw(&image, contents, &out, progress).await?,
    }
    Ok(out)
}

fn copy_folder(from: &Path, to: &Path) -> Result<PathBuf> {
    at(to, fs::create_dir_all(to))?;
    for entry in at(from, fs::read_dir(from))? {
        let entry = at(from, entry)?;
        let (making, done) = (to.join(".making"), to.join(entry.file_name()));
        at(&making, fs::copy(entry.path(), &making))?;
        at(&done, fs::rename(&making, &done))?;
    }
    Ok(to.into())
}

/// By a hard link where that is possible: the files are large, and nobody changes them.
pub(crate) fn link(from: &Path, to: &Path) -> Result<()> {
    if fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    at(from, fs::copy(from, to)).map(drop)
}

/// For GRUB.
pub(crate) fn arguments_cfg(arguments: &[String]) -> String {
    format!("set arguments=\"{}\"\n", arguments.join(" "))
}

fn is_plain(argument: &str) -> bool {
    !argument.is_empty() && argument.chars().all(|c| c.is_ascii_alphanumeric() || "_.,:/=@+-".contains(c))
}

/// What can be said without Ignition, which is on the machine.
fn check_config(bytes: &[u8]) -> Result<(), String> {
    let hint = "`seedling create ignition-configs` makes them";
    let config: Value =
        serde_json::from_slice(bytes).map_err(|e| format!("not an Ignition config: {e}; {hint}"))?;
    match config["ignition"]["version"].as_str() {
        Some(version) if version.starts_with("3.") => Ok(()),
        Some(version) => Err(format!("Ignition spec {version}, and the machine's Ignition takes 3.0 to 3.3")),
        None => Err(format!("not an Ignition config: it has no ignition.version; {hint}")),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn bad_configs_are_refused() {
        for (text, complaint) in [
            ("{", "not an Ignition config: EOF while parsing"),
            ("{}", "it has no ignition.version; `seedling create"),
            (r#"{"ignition":{"version":"2.2.0"}}"#, "Ignition spec 2.2.0"),
            (r#"{"ignition":{"version":"3.2.0"}}"#, ""),
        ] {
            let said = check_config(text.as_bytes()).err().unwrap_or_default();
            assert!(said.contains(complaint) && said.is_empty() == complaint.is_empty(), "{text}: {said}");
        }
    }

    #[test]
    fn arguments_cannot_say_more_than_a_word() {
        let given = |argument: &str| Contents::new(None, &[argument.to_string()]);
        for good in
            ["ip=10.0.0.5::10.0.0.1:255.255.255.0:worker-0:eth0:none", "seedling.install_dev=/dev/sda"]
        {
            assert_eq!(given(good).unwrap().arguments.last().unwrap(), good);
        }
        for bad in ["", "a b", "x=\"", "$(reboot)", "a;b", "a\nb"] {
            assert!(given(bad).is_err(), "{bad:?}");
        }
        assert_eq!(arguments_cfg(&["a".into(), "b=c".into()]), "set arguments=\"a b=c\"\n");
    }

    #[test]
    fn a_config_that_is_not_there_is_named() {
        let error = Contents::new(Some(Path::new("/no/such.ign")), &[]).unwrap_err();
        assert!(error.to_string().starts_with("/no/such.ign: "), "{error}");
    }
}
