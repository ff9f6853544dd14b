//! The audit log: one JSON object a line, for every config that was asked for, on standard output (the pod's log) and in a file of
//! the node, since the bootstrap node's pods take their logs along when they go. A token is never part of it.

use crate::proxy::Caller;
use serde::Serialize;
use std::fs::{OpenOptions, rename};
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// What a client may say of itself is not to fill the log.
const LONGEST: usize = 200;
/// Nor is one who keeps asking to fill the disk: then the file becomes `audit.log.1`, and another one starts.
const LARGEST: u64 = 8 << 20;

/// Lines are written whole, one after the other.
#[derive(Default)]
pub struct Log(Mutex<Option<PathBuf>>);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    time: String,
    audit: &'static str,
    verdict: &'static str,
    reason: &'a str,
    address: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    load_balancer: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<&'a Request<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Request<'a> {
    pub method: &'a str,
    pub pool: &'a str,
    pub user_agent: &'a str,
    pub status: u16,
}

impl Log {
    pub fn to(file: Option<PathBuf>) -> Self {
        Self(Mutex::new(file))
    }

    pub fn config(
        &self,
        caller: &Caller,
        node: Option<&str>,
        request: &Request,
        verdict: &Result<&str, String>,
    ) {
        let short = Request { pool: cut(request.pool), user_agent: cut(request.user_agent), ..*request };
        self.write(&Line {
            time: now(),
            audit: "config",
            verdict: if verdict.is_ok() { "allowed" } else { "refused" },
            reason: match verdict {
                Ok(why) => why,
                Err(why) => cut(why),
            },
            address: caller.address(),
            load_balancer: caller.balancer(),
            node,
            request: Some(&short),
        });
    }

    /// The connection is closed: only a load balancer may name another client.
    pub fn not_a_balancer(&self, peer: IpAddr) {
        self.write(&Line {
            time: now(),
            audit: "connection",
            verdict: "refused",
            reason: "it claims to speak for another address, but is not in loadBalancers of the inventory",
            address: Some(peer.to_canonical()),
            load_balancer: None,
            node: None,
            request: None,
        });
    }

    fn write(&self, line: &Line) {
        let Ok(mut text) = serde_json::to_vec(line) else { return };
        text.push(b'\n');
        let file = self.0.lock().unwrap_or_else(|e| e.into_inner());
        // Without anybody to read it the server still serves.
        let _ = std::io::stdout().lock().write_all(&text);
        if let Some(file) = &*file
            && let Err(e) = append(file, &text)
        {
            tracing::warn!("{}: {e}", file.display());
        }
    }
}

fn append(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let open = || OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    let mut file = open()?;
    if file.metadata()?.len() > LARGEST {
        rename(path, path.with_extension("log.1"))?;
        file = open()?;
    }
    file.write_all(text)
}

fn now() -> String {
    format!("{:.3}", k8s_openapi::jiff::Timestamp::now())
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(LONGEST).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_makes_room_for_another() {
        let dir = tempfile::tempdir().unwrap();
        let (path, old) = (dir.path().join("audit.log"), dir.path().join("audit.log.1"));
        append(&path, b"first\n").unwrap();
        append(&path, b"second\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"first\nsecond\n");
        OpenOptions::new().write(true).open(&path).unwrap().set_len(LARGEST + 1).unwrap();
        append(&path, b"third\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"third\n");
        assert_eq!(std::fs::metadata(&old).unwrap().len(), LARGEST + 1);
    }

    #[test]
    fn what_a_client_says_is_cut() {
        assert_eq!(cut("Ignition/2.14.0"), "Ignition/2.14.0");
        assert_eq!(cut(&"ä".repeat(LONGEST + 1)), "ä".repeat(LONGEST));
    }
}
