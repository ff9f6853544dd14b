//! `seedling helper keep`: the parent of a lab's helper. It does nothing but start it again when it dies or falls silent, with the
//! listening sockets that both were given, so that whoever connects meanwhile waits and is not refused. On a real machine systemd does this.

use crate::supervise::pause;
use crate::{HelperError, heart, load};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
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
        let failed = |source| HelperError::Write { path: program.into(), source };
        let (mut child, beats) = start(program, config, after.as_deref()).map_err(failed)?;
        let (end, silent) = tokio::select! {
            end = child.wait() => (end.map_err(failed)?, None),
            silent = heart::silence(&beats) => {
                // One that is stopped hears no other signal.
                let _ = child.start_kill();
                (child.wait().await.map_err(failed)?, Some(silent))
            }
            _ = term.recv() => {
                if let Some(pid) = child.id().and_then(|pid| pid.try_into().ok()) {
                    let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
                }
                let _ = child.wait().await;
                return Ok(());
            }
        };
        let reason = silent.unwrap_or_else(|| last_words(end));
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

/// And the pipe on which its heart beats.
fn start(program: &Path, config: &Path, after: Option<&str>) -> std::io::Result<(Child, pipe::Receiver)> {
    let (beats, heart) = std::io::pipe()?;
    let mut command = Command::new(program);
    command.args(["helper", "run", "--config"]).arg(config);
    if let Some(reason) = after {
        command.arg("--after").arg(reason);
    }
    let child = command.arg("--beat").stdin(Stdio::from(heart)).spawn()?;
    Ok((child, pipe::Receiver::from_owned_fd(beats.into())?))
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

    /// What a program in the helper's place is told at each of its first starts; it does `then` each time, and stays at the last.
    async fn told(starts: usize, then: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (program, config, said) = (at("program"), at("helper.yaml"), at("said"));
        let mut yaml = crate::testing::config();
        yaml.ready_file = at("ready");
        std::fs::write(&config, serde_json::to_vec(&yaml).unwrap()).unwrap();
        let script = format!(
            "#!/bin/sh\necho \"$5 $6\" >> {0}; touch {1}; printf . >&0\n[ $(wc -l < {0}) -ge {starts} ] || {then}\nexec sleep 1\n",
            said.display(),
            at("ready").display()
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let keeper = tokio::spawn(async move { keep(&program, &config).await });
        let lines = || std::fs::read_to_string(&said).unwrap_or_default();
        let all = async {
            while lines().lines().count() < starts {
                sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), all).await.unwrap();
        keeper.abort();
        lines()
    }

    #[tokio::test]
    async fn a_killed_helper_is_started_again_and_told_why() {
        let said = told(3, "kill -9 $$").await;
        assert_eq!(said, "--beat \n--after killed by signal 9\n--after killed by signal 9\n");
    }

    /// As by SIGSTOP from outside.
    #[tokio::test]
    async fn a_stopped_helper_is_noticed_and_started_again() {
        assert_eq!(told(2, "kill -STOP $$").await, "--beat \n--after was silent for 10 s\n");
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
