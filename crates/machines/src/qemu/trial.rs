//! Whether this machine's KVM can be used: some open and make a guest that never gets anywhere. A kernel is booted on it once, without
//! a disk, and the answer is remembered beside the boot image.

use super::hardware::Acceleration;
use super::installed;
use crate::run::{MachineError, Progress, Result, at};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

const KVM: &str = "/dev/kvm";
/// A kernel that runs is through in two or three seconds.
const TRIAL_WITHIN: Duration = Duration::from_secs(20);
/// The kernel finds no root, says so and reboots, which ends QEMU.
const TRIAL: [&str; 17] = [
    "-nodefaults",
    "-no-user-config",
    "-machine",
    "q35,graphics=off",
    "-display",
    "none",
    "-m",
    "512",
    "-no-reboot",
    "-serial",
    "stdio",
    "-append",
    "console=ttyS0 panic=-1",
    "-sandbox",
    "on",
    "-monitor",
    "none",
];
const THROUGH: &str = "Kernel panic";

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Answer {
    /// The host's kernel: another one may do better.
    host: String,
    acceleration: Acceleration,
}

/// In: the boot image's directory, which has a kernel. The first time this may take some seconds, and `progress` is told.
pub async fn acceleration(image: &Path, progress: Progress<'_>) -> Result<Acceleration> {
    if !Path::new(KVM).exists() {
        progress("no /dev/kvm: QEMU machines are emulated, which takes minutes where others take seconds");
        return Ok(Acceleration::Emulation);
    }
    let host = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string();
    let memory = memory(image);
    if let Some(answer) = remembered(&memory, &host) {
        return Ok(answer);
    }
    let answer = Answer { host, acceleration: tried(&image.join("vmlinuz")).await? };
    if answer.acceleration == Acceleration::Emulation {
        let seconds = TRIAL_WITHIN.as_secs();
        progress(&format!(
            "a kernel does not come up on this machine's KVM within {seconds} s: QEMU machines are emulated, which takes minutes \
             where others take seconds"
        ));
    }
    let json = serde_json::to_vec(&answer)?;
    let new = memory.with_extension("new");
    at(&new, fs::write(&new, json))?;
    at(&memory, fs::rename(&new, &memory))?;
    Ok(answer.acceleration)
}

/// Not in the image's own directory, whose files are served.
fn memory(image: &Path) -> PathBuf {
    image.with_file_name("kvm.json")
}

fn remembered(memory: &Path, host: &str) -> Option<Acceleration> {
    let answer: Answer = serde_json::from_slice(&fs::read(memory).ok()?).ok()?;
    (answer.host == host).then_some(answer.acceleration)
}

async fn tried(kernel: &Path) -> Result<Acceleration> {
    let program = installed()?;
    let spawn = |source| MachineError::Spawn { program: program.into(), source };
    let mut command = Command::new(program);
    command.args(Acceleration::Kvm.arguments()).args(TRIAL).arg("-kernel").arg(kernel);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let output = command.spawn().map_err(spawn)?.wait_with_output();
    let came_up = match tokio::time::timeout(TRIAL_WITHIN, output).await {
        Ok(output) => String::from_utf8_lossy(&output.map_err(spawn)?.stdout).contains(THROUGH),
        Err(_) => false,
    };
    Ok(if came_up { Acceleration::Kvm } else { Acceleration::Emulation })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_for_one_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let memory = memory(&dir.path().join("image"));
        assert_eq!(memory, dir.path().join("kvm.json"));
        assert_eq!(remembered(&memory, "6.1"), None);
        let answer = Answer { host: "6.1".into(), acceleration: Acceleration::Kvm };
        fs::write(&memory, serde_json::to_vec(&answer).unwrap()).unwrap();
        assert_eq!(remembered(&memory, "6.1"), Some(Acceleration::Kvm));
        assert_eq!(remembered(&memory, "6.2"), None);
    }
}
