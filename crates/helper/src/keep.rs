//! `seedling helper keep`: the parent of a lab's helper. It does nothing but start it again when it dies, with the listening sockets
//! that both were given, so that whoever connects meanwhile waits and is not refused. On a real machine systemd does this.

use crate::supervise::pause;
use crate::{HelperError, load};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

/// Until SIGTERM, which it hands on. A helper that cannot even start for the first time ends it too: somebody waits for that.
pub async fn keep(program: &Path, config: &Path) -> Result<(), HelperError> {
    let ready = load(config)?.ready_file;
    let mut term = signal(SignalKind::terminate()).map_err(HelperError::Signal)?;
    let mut paused = None;
    let mut after: Option<String> = None;
    loop {
        let began = Instant::now();
        let mut command = Command::new(program);
        command.args(["helper", "run", "--config"]).arg(config).stdin(Stdio::null());
        if let Some(reason) = &after {
            command.arg("--after").arg(reason);
        }
        let failed = |source| HelperError::Write { path: program.into(), source };
        let mut child = command.spawn().map_err(failed)?;
        let end = tokio::select! {
            end = child.wait() => end.map_err(failed)?,
            _ = term.recv() => {
                if let Some(pid) = child.id().and_then(|pid| pid.try_into().ok()) {
                    let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
                }
                let _ = child.wait().await;
                return Ok(());
            }
        };
        let reason = last_words(end);
        if after.is_none() && !ready.exists() && !end.success() {
            return Err(HelperError::Ended(reason));
        }
        let wait = pause(paused, began.elapsed());
        paused = Some(wait);
        tracing::error!(reason, "the helper ended; it is started again after {wait:?}");
        after = Some(reason);
        tokio::select! {
            () = sleep(wait) => {}
            _ = term.recv() => return Ok(()),
        }
    }
}

fn last_words(end: ExitStatus) -> String {
    match (end.signal(), end.code()) {
        (Some(signal), _) => format!("killed by signal {signal}"),
        (_, Some(code)) => format!("ended with {code}"),
        _ => "ended".into(),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    /// A program in the helper's place that is killed twice.
    #[tokio::test]
    async fn a_killed_helper_is_started_again_and_told_why() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (program, config, said) = (at("program"), at("helper.yaml"), at("said"));
        let mut yaml = crate::testing::config();
        yaml.ready_file = at("ready");
        std::fs::write(&config, serde_json::to_vec(&yaml).unwrap()).unwrap();
        let script = format!(
            "#!/bin/sh\necho \"$5 $6\" >> {0}; touch {1}\n[ $(wc -l < {0}) -gt 2 ] || kill -9 $$\nexec sleep 1\n",
            said.display(),
            at("ready").display()
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let keeper = tokio::spawn(async move { keep(&program, &config).await });
        let lines = || std::fs::read_to_string(&said).unwrap_or_default();
        let three = async {
            while lines().lines().count() < 3 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), three).await.unwrap();
        keeper.abort();
        assert_eq!(lines(), " \n--after killed by signal 9\n--after killed by signal 9\n");
    }

    #[tokio::test]
    async fn one_that_never_starts_is_not_tried_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("helper.yaml");
        let mut yaml = crate::testing::config();
        yaml.ready_file = folder.path().join("ready");
        std::fs::write(&config, serde_json::to_vec(&yaml).unwrap()).unwrap();
        let end = keep(Path::new("/bin/false"), &config).await;
        assert_eq!(end.unwrap_err().to_string(), "the helper ended with 1");
    }
}
