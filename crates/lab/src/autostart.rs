//! A lab that comes back with the computer: a unit of systemd that starts it, and shuts it down in order. `lab down` removes it.

use crate::{Lab, LabError, Labs, Result, at, helper};
use seedling_steps::write_atomic;
use std::path::{Path, PathBuf};
use tokio::process::Command;

const UNITS: &str = "/etc/systemd/system";

pub async fn set(labs: &Labs, lab: &Lab, program: &Path, on: bool) -> Result<()> {
    if !Path::new("/run/systemd/system").exists() {
        return Err(LabError::NoSystemd);
    }
    if !on {
        return remove(lab.name()).await;
    }
    let path = file(lab.name());
    at(&path, write_atomic(&path, unit(lab.name(), program, labs), 0o644))?;
    systemctl(&["daemon-reload"]).await?;
    systemctl(&["enable", &name(lab.name())]).await
}

/// Nothing, where there is none.
pub(crate) async fn remove(lab: &str) -> Result<()> {
    let path = file(lab);
    if !path.exists() {
        return Ok(());
    }
    systemctl(&["disable", &name(lab)]).await?;
    helper::remove_if_there(&path)?;
    systemctl(&["daemon-reload"]).await
}

fn name(lab: &str) -> String {
    format!("seedling-lab-{lab}.service")
}

fn file(lab: &str) -> PathBuf {
    Path::new(UNITS).join(name(lab))
}

async fn systemctl(words: &[&str]) -> Result<()> {
    let path = Path::new("systemctl");
    let output = at(path, Command::new(path).args(words).output().await)?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_string();
    at(path, output.status.success().then_some(()).ok_or_else(|| std::io::Error::other(said)))
}

/// Pure. Machines live in control groups of their own, so nothing of them is systemd's to kill.
fn unit(lab: &str, program: &Path, labs: &Labs) -> String {
    let (program, state, cache) = (program.display(), labs.state.display(), labs.cache.display());
    format!(
        "[Unit]\n\
         Description=Seedling lab {lab}\n\
         Documentation=man:seedling-lab-start(1)\n\
         After=local-fs.target\n\n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         Environment=SEEDLING_STATE={state} SEEDLING_CACHE={cache}\n\
         ExecStart={program} lab start --name {lab}\n\
         ExecStop={program} lab stop --name {lab}\n\
         KillMode=none\n\
         TimeoutStartSec=infinity\n\
         TimeoutStopSec=10min\n\n\
         [Install]\n\
         WantedBy=multi-user.target\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_starts_and_stops_one_lab() {
        let labs = Labs { state: "/s".into(), cache: "/c".into() };
        let unit = unit("a", Path::new("/usr/bin/seedling"), &labs);
        assert!(unit.contains("ExecStart=/usr/bin/seedling lab start --name a\n"));
        assert!(unit.contains("ExecStop=/usr/bin/seedling lab stop --name a\n"));
        assert!(unit.contains("SEEDLING_STATE=/s SEEDLING_CACHE=/c\n"));
        assert_eq!(file("a"), Path::new("/etc/systemd/system/seedling-lab-a.service"));
    }
}
