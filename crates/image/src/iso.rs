//! An ISO that boots on BIOS and on UEFI, from a CD or a stick: the boot image, GRUB, and an Ignition config or none.

use crate::boot::{INITRAMFS, KERNEL, ROOT, TIME};
use crate::furnish::put;
use crate::recipe::MEDIUM_CFG;
use crate::run::{Progress, Result, at, finish, remove_tree};
use crate::{Contents, arguments_cfg};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tokio::process::Command;

/// The initramfs finds the medium by it: `seedling.medium=` in node/grub/medium.cfg.
const LABEL: &str = "SEEDLING";

/// Writes `out`, whole or not at all.
pub(crate) async fn make(
    image: &Path,
    contents: &Contents,
    out: &Path,
    progress: Progress<'_>,
) -> Result<()> {
    let (making, tree) = (out.with_extension("making"), out.with_extension("tree"));
    remove_tree(&making)?;
    remove_tree(&tree)?;
    at(&tree, fs::create_dir_all(&tree))?;
    for name in [KERNEL, INITRAMFS, ROOT] {
        crate::link(&image.join(name), &tree.join(name))?;
    }
    put(&tree.join("boot/grub/grub.cfg"), MEDIUM_CFG.as_bytes(), 0o644)?;
    put(&tree.join("boot/grub/arguments.cfg"), arguments_cfg(&contents.arguments).as_bytes(), 0o644)?;
    if let Some(config) = &contents.ignition {
        put(&tree.join("ignition/config.ign"), config, 0o600)?;
    }
    progress("ISO: GRUB and files");
    let mut command = Command::new("grub-mkrescue");
    command.arg("-o").arg(&making).arg(&tree).args(["--", "-volid", LABEL]).env("SOURCE_DATE_EPOCH", TIME);
    finish(command).await?;
    // It may carry secrets.
    at(&making, fs::set_permissions(&making, fs::Permissions::from_mode(0o600)))?;
    remove_tree(&tree)?;
    at(out, fs::rename(&making, out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_menu_names_the_label() {
        assert_eq!(MEDIUM_CFG.matches(&format!("seedling.medium={LABEL} ")).count(), 2);
    }
}
