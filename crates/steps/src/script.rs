//! A script that runs on a machine, near or far: it may take long, as long as it prints something.

use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// What a script printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Printed {
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Printed {
    pub fn last_complaint(&self) -> Option<&str> {
        self.stderr.lines().rev().map(str::trim).find(|line| !line.is_empty())
    }
}

/// `shell` reads the script from its standard input. An error if it cannot be started, or prints nothing at all for `patience`; a script
/// that ends badly has printed what it knows.
pub async fn run_script(mut shell: Command, script: &str, patience: Duration) -> Result<Printed, String> {
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let program = shell.as_std().get_program().display().to_string();
    let mut child = shell.spawn().map_err(|e| format!("{program}: {e}"))?;
    let (sender, mut printed) = mpsc::channel::<(bool, Vec<u8>)>(8);
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // It may end without reading all of it; what it says then counts.
            let _ = stdin.write_all(script.as_bytes()).await;
        }
    };
    let collect = async {
        let mut whole = Printed::default();
        loop {
            match timeout(patience, printed.recv()).await {
                Ok(Some((false, bytes))) => whole.stdout.extend(bytes),
                Ok(Some((true, bytes))) => whole.stderr += &String::from_utf8_lossy(&bytes),
                Ok(None) => return Ok(whole),
                Err(_) => return Err(silent(&whole, patience)),
            }
        }
    };
    let read = async {
        tokio::join!(forward(stdout, sender.clone(), false), forward(stderr, sender, true), write);
    };
    // Whoever is silent is not waited for: with this future its process is dropped, and so killed.
    tokio::pin!(read, collect);
    tokio::select! {
        whole = &mut collect => whole,
        () = &mut read => collect.await,
    }
}

async fn forward(from: Option<impl AsyncRead + Unpin>, to: mpsc::Sender<(bool, Vec<u8>)>, complaint: bool) {
    let Some(mut from) = from else { return };
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if to.send((complaint, buffer[..read].to_vec())).await.is_err() {
            return;
        }
    }
}

fn silent(whole: &Printed, patience: Duration) -> String {
    let after = whole.last_complaint().map(|line| format!("; the last was: {line}")).unwrap_or_default();
    format!("nothing was printed for {} s{after}", patience.as_secs())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    async fn run(script: &str, patience: Duration) -> Result<Printed, String> {
        run_script(Command::new("sh"), script, patience).await
    }

    #[tokio::test]
    async fn a_slow_script_is_heard_to_its_end_as_long_as_it_prints() {
        let slow = "for i in 1 2 3 4 5 6; do echo at $i >&2; sleep 0.2; done; echo done";
        let printed = run(slow, Duration::from_millis(1000)).await.unwrap();
        assert_eq!(printed.stdout, b"done\n");
        assert_eq!(printed.last_complaint(), Some("at 6"));
    }

    #[tokio::test]
    async fn a_silent_one_is_given_up_and_killed() {
        let why = run("echo $$ is at the journals >&2; exec sleep 600", Duration::from_millis(300))
            .await
            .unwrap_err();
        let (before, said) = why.split_once("; the last was: ").unwrap();
        assert_eq!(before, "nothing was printed for 0 s");
        let pid = said.split_whitespace().next().unwrap();
        let gone = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z ")
        };
        let begun = std::time::Instant::now();
        while !gone() {
            assert!(begun.elapsed() < Duration::from_secs(10), "it still runs");
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn what_it_never_reads_and_large_output_stop_nobody() {
        let long = format!("head -c 3000000 /dev/zero; exit 3\n{}", "# never read\n".repeat(100_000));
        let printed = run(&long, Duration::from_secs(10)).await.unwrap();
        assert_eq!(printed.stdout.len(), 3_000_000);
        let why = run_script(Command::new("/no/such/shell"), "", Duration::from_secs(1)).await.unwrap_err();
        assert!(why.starts_with("/no/such/shell: "), "{why}");
    }
}
