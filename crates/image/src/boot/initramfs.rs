//! The initramfs: busybox, `node/initramfs/init`, what it shares with preinit, and the modules that find the root file system.

use super::cpio::{Archive, Entry};
use super::modules;
use crate::recipe::{INIT, text_of};
use crate::run::{Result, at};
use flate2::{Compression, GzBuilder};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Programs and scripts of the root file system that are needed before it is there.
const SHARED: &[(&str, u32)] =
    &[("usr/local/lib/seedling/boot.sh", 0o644), ("usr/local/sbin/udhcpc-script", 0o755)];

/// `root` has busybox and the modules of kernel `version`, with depmod's lists.
pub(crate) fn make(root: &Path, version: &str) -> Result<Vec<u8>> {
    let archive = archive(root, version)?;
    // Without a time and a name: the same files give the same bytes.
    let mut gz = GzBuilder::new().mtime(0).write(Vec::new(), Compression::new(6));
    let packed = gz.write_all(&archive).and_then(|()| gz.finish());
    at(root, packed)
}

fn archive(root: &Path, version: &str) -> Result<Vec<u8>> {
    let (mut archive, mut known) = (Archive::default(), BTreeSet::new());
    let read = |path: &Path| at(path, fs::read(path));
    for folder in ["bin", "dev", "etc", "proc", "run", "sys", "sysroot", "usr/bin", "usr/lib", "usr/sbin"] {
        archive.add_folders(&mut known, folder);
    }
    // The kernel opens it for init before anything is mounted.
    archive.add("dev/console", Entry::Device(5, 1));
    archive.add("lib", Entry::Link("usr/lib".into()));
    archive.add("sbin", Entry::Link("bin".into())); // where the kernel looks for modprobe
    archive.add("bin/sh", Entry::Link("busybox".into()));
    let busybox = read(&root.join("usr/bin/busybox"))?;
    archive.add("bin/busybox", Entry::File { mode: 0o755, contents: busybox });
    archive.add("init", Entry::File { mode: 0o755, contents: INIT.into() });
    for (path, mode) in SHARED {
        archive.add_folders(&mut known, path.rsplit_once('/').map_or("", |(folder, _)| folder));
        archive.add(path, Entry::File { mode: *mode, contents: text_of(path).into() });
    }
    let here = format!("usr/lib/modules/{version}");
    let list = |name: &str| {
        let path = root.join(&here).join(name);
        at(&path, fs::read_to_string(&path))
    };
    archive.add_folders(&mut known, &here);
    let dep = list("modules.dep")?;
    let taken = modules::first(&modules::parse(&dep));
    let lists = [
        ("modules.alias", modules::aliases_of(&list("modules.alias")?, &taken)),
        ("modules.builtin", list("modules.builtin")?),
        ("modules.dep", modules::rows_of(&dep, &taken)),
    ];
    for (name, text) in lists {
        archive.add(&format!("{here}/{name}"), Entry::File { mode: 0o644, contents: text.into() });
    }
    for path in taken {
        let path = format!("{here}/{path}");
        archive.add_folders(&mut known, path.rsplit_once('/').map_or("", |(folder, _)| folder));
        archive.add(&path, Entry::File { mode: 0o644, contents: read(&root.join(&path))? });
    }
    Ok(archive.finish())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_same_root_gives_the_same_bytes() {
        let root = tempfile::tempdir().unwrap();
        let modules = root.path().join("usr/lib/modules/6.1");
        fs::create_dir_all(modules.join("kernel/fs/ext4")).unwrap();
        fs::create_dir_all(root.path().join("usr/bin")).unwrap();
        fs::write(root.path().join("usr/bin/busybox"), "busybox").unwrap();
        fs::write(modules.join("modules.dep"), "kernel/fs/ext4/ext4.ko:\nkernel/sound/x.ko:\n").unwrap();
        fs::write(modules.join("modules.alias"), "alias fs-ext4 ext4\n").unwrap();
        fs::write(modules.join("modules.builtin"), "").unwrap();
        fs::write(modules.join("kernel/fs/ext4/ext4.ko"), "ext4").unwrap();
        let once = make(root.path(), "6.1").unwrap();
        fs::write(modules.join("kernel/fs/ext4/ext4.ko"), "ext4").unwrap(); // another time
        assert_eq!(make(root.path(), "6.1").unwrap(), once);
        let text = archive(root.path(), "6.1").unwrap();
        let has = |word: &str| text.windows(word.len()).any(|part| part == word.as_bytes());
        assert!(has("kernel/fs/ext4/ext4.ko") && has("udhcpc-script") && !has("sound"));
        fs::remove_file(root.path().join("usr/bin/busybox")).unwrap();
        assert!(make(root.path(), "6.1").unwrap_err().to_string().contains("busybox"));
    }
}
