//! Settings of the machine below that a lab changes: remembered when the first lab comes, put back when the last one goes.
//!
//! The kubelet writes kernel.panic, kernel.panic_on_oops and vm.overcommit_memory, which no namespace holds; we raise
//! fs.inotify.max_user_instances, which all nodes share.

use crate::store::lock;
use crate::{LabError, Result, at, write_json};
use seedling_steps::if_there;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const REMEMBERED: [&str; 4] =
    ["kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory", "fs/inotify/max_user_instances"];
/// 128 by default, shared by all nodes; a kubelet that gets none polls every 20 s.
const INOTIFY: (&str, u64) = ("fs/inotify/max_user_instances", 8192);
const PROC_SYS: &str = "/proc/sys";
/// One for the machine, whatever SEEDLING_STATE says, and gone after a reboot, as the settings are.
const MEMORY: &str = "/run/seedling/sysctls.json";

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Memory {
    before: BTreeMap<String, String>,
    /// Their directories.
    labs: BTreeSet<PathBuf>,
}

pub(crate) async fn take_over(lab: &Path) -> Result<()> {
    let _lock = lock(&Path::new(MEMORY).with_extension("lock"), || {}).await?;
    take(Path::new(MEMORY), Path::new(PROC_SYS), lab)
}

pub(crate) async fn put_back(lab: &Path) -> Result<()> {
    let lock = lock(&Path::new(MEMORY).with_extension("lock"), || {}).await?;
    give_back(Path::new(MEMORY), Path::new(PROC_SYS), lab)?;
    lock.remove()?;
    if let Some(dir) = Path::new(MEMORY).parent() {
        let _ = fs::remove_dir(dir); // refused while a lab is remembered in it
    }
    Ok(())
}

fn take(memory_file: &Path, proc_sys: &Path, lab: &Path) -> Result<()> {
    let mut memory = load(memory_file)?;
    if memory.labs.is_empty() {
        for name in REMEMBERED {
            let path = proc_sys.join(name);
            memory.before.insert(name.into(), at(&path, fs::read_to_string(&path))?.trim().into());
        }
    }
    memory.labs.insert(lab.into());
    write_json(memory_file, &memory, 0o644)?; // before anything is changed
    let path = proc_sys.join(INOTIFY.0);
    let now: u64 = at(&path, fs::read_to_string(&path))?.trim().parse().unwrap_or_default();
    if now < INOTIFY.1 { at(&path, fs::write(&path, INOTIFY.1.to_string())) } else { Ok(()) }
}

fn give_back(memory_file: &Path, proc_sys: &Path, lab: &Path) -> Result<()> {
    let mut memory = load(memory_file)?;
    memory.labs.remove(lab);
    if !memory.labs.is_empty() {
        return write_json(memory_file, &memory, 0o644);
    }
    for (name, value) in &memory.before {
        let path = proc_sys.join(name);
        at(&path, fs::write(&path, value))?;
    }
    forget(memory_file)
}

/// The file, and what a process that was killed while it wrote one has left beside it.
fn forget(memory_file: &Path) -> Result<()> {
    let (Some(dir), Some(name)) = (memory_file.parent(), memory_file.file_name()) else { return Ok(()) };
    for entry in at(dir, fs::read_dir(dir))? {
        let path = at(dir, entry)?.path();
        let found = path.file_name().unwrap_or_default().to_string_lossy();
        if found.trim_start_matches('.').starts_with(&*name.to_string_lossy()) {
            at(&path, fs::remove_file(&path))?;
        }
    }
    Ok(())
}

fn load(path: &Path) -> Result<Memory> {
    let Some(json) = at(path, if_there(fs::read(path)))? else { return Ok(Memory::default()) };
    serde_json::from_slice(&json)
        .map_err(|e| LabError::Unreadable { path: path.into(), message: e.to_string() })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_last_lab_puts_everything_back() {
        let dir = tempfile::tempdir().unwrap();
        let (file, sys) = (dir.path().join("sysctls.json"), dir.path().join("sys"));
        let (a, b) = (Path::new("/s/labs/a"), Path::new("/s/labs/b"));
        for name in REMEMBERED {
            fs::create_dir_all(sys.join(name).parent().unwrap()).unwrap();
            fs::write(sys.join(name), "1\n").unwrap();
        }
        let read = |name: &str| fs::read_to_string(sys.join(name)).unwrap().trim().to_string();
        take(&file, &sys, a).unwrap();
        assert_eq!(read(INOTIFY.0), "8192");
        fs::write(sys.join("kernel/panic"), "10").unwrap(); // what a kubelet does
        fs::write(dir.path().join(".sysctls.json.tmp1"), "half").unwrap();
        take(&file, &sys, b).unwrap();
        take(&file, &sys, b).unwrap();
        give_back(&file, &sys, a).unwrap();
        assert_eq!((read("kernel/panic"), file.exists()), ("10".into(), true));
        give_back(&file, &sys, b).unwrap();
        give_back(&file, &sys, b).unwrap();
        assert_eq!((read("kernel/panic"), read(INOTIFY.0), file.exists()), ("1".into(), "1".into(), false));
        assert!(!dir.path().join(".sysctls.json.tmp1").exists());
    }
}
