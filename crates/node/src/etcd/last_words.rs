//! What etcd said before it ended the last time: whether it could not read its own data.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// The end of a log: a trace of all its threads is shorter.
const END: u64 = 256 << 10;

/// What etcd and its database say when a page or a record is not what was written. `also`: elsewhere after it, where the line alone could
/// mean something else.
struct Damage {
    says: &'static str,
    also: &'static str,
}

#[rustfmt::skip]
const DAMAGES: [Damage; 10] = [
    Damage { says: "panic: assertion failed: ", also: "go.etcd.io/bbolt" },
    Damage { says: "panic: page ", also: "go.etcd.io/bbolt" },
    Damage { says: "panic: invalid ", also: "go.etcd.io/bbolt" },
    Damage { says: "panic: runtime error: ", also: "go.etcd.io/bbolt" },
    Damage { says: "unexpected fault address ", also: "go.etcd.io/bbolt" },
    Damage { says: r#""msg":"failed to open database""#, also: "" },
    Damage { says: r#""msg":"failed to unmarshal mvccpb.KeyValue""#, also: "" },
    Damage { says: "walpb: crc mismatch", also: "" },
    Damage { says: "snap: crc mismatch", also: "" },
    Damage { says: "Was the raft log corrupted, truncated, or lost?", also: "" },
];

/// Why etcd could not read its data, if that is how it ended. `log`: of one run.
fn damage(log: &str) -> Option<&str> {
    let said = |damage: &Damage| log.rfind(damage.says).filter(|at| log[*at..].contains(damage.also));
    let at = DAMAGES.iter().filter_map(said).max()?;
    let line = log[..at].rfind('\n').map_or(0, |end| end + 1);
    log[line..].lines().next().map(message)
}

/// The runtime puts time, stream and a flag before each line.
fn message(line: &str) -> &str {
    line.splitn(4, ' ').nth(3).filter(|_| line.starts_with("20")).unwrap_or(line)
}

/// Of the run before this one. `dir`: where the runtime keeps the logs of this container, `N.log` for its N-th start.
pub(super) fn of_last_run(dir: &Path) -> io::Result<Option<String>> {
    let Some(log) = log_before(dir)? else { return Ok(None) };
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END)))?;
    let mut end = Vec::new();
    file.take(END).read_to_end(&mut end)?;
    Ok(damage(&String::from_utf8_lossy(&end)).map(|line| line.chars().take(300).collect()))
}

/// The newest is this run's.
fn log_before(dir: &Path) -> io::Result<Option<PathBuf>> {
    let numbers = match fs::read_dir(dir) {
        Ok(entries) => {
            entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_suffix(".log")?.parse().ok())
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    Ok(numbers.iter().rev().nth(1).map(|number| dir.join(format!("{number}.log"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "2026-11-17T18:24:28.263612511Z stderr F ";

    /// As etcd 3.6.16 printed them on databases and logs that were damaged on purpose.
    #[test]
    fn data_that_cannot_be_read_is_told_from_other_ends() {
        let damaged = [
            "panic: assertion failed: Page expected to be: 147, but self identifies as 0\n\ngoroutine 123 [running]:\ngo.etcd.io/bbolt/internal/common.Assert(...)",
            "unexpected fault address 0x7f6cb9a93000\nfatal error: fault\n[signal SIGBUS: bus error code=0x2 addr=0x7f6cb9a93000 pc=0xa3fcaa]\ngo.etcd.io/bbolt/internal/common.(*Page).FastCheck(0x7f6cb9a93000, 0x93)",
            "{\"level\":\"panic\",\"caller\":\"backend/backend.go:205\",\"msg\":\"failed to open database\",\"path\":\"d/member/snap/db\",\"error\":\"invalid database\"}\npanic: failed to open database",
            "{\"level\":\"fatal\",\"caller\":\"etcdmain/etcd.go:183\",\"msg\":\"discovery failed\",\"error\":\"walpb: crc mismatch: expected: f09f9e5c computed: 5493d879: in file '0.wal' at position: 39496\"}",
        ];
        for text in damaged {
            assert!(damage(text).is_some(), "{text}");
            let as_kept: String = text.lines().map(|line| format!("{TIME}{line}\n")).collect();
            assert_eq!(damage(&as_kept), damage(text));
        }
        let others = [
            "",
            "{\"level\":\"fatal\",\"msg\":\"discovery failed\",\"error\":\"listen tcp 0.0.0.0:2380: bind: address already in use\"}",
            "{\"level\":\"fatal\",\"msg\":\"failed to sync to disk\",\"error\":\"input/output error\"}",
            "panic: runtime error: invalid memory address or nil pointer dereference\ngoroutine 1 [running]:\ngo.etcd.io/etcd/server/v3/embed.StartEtcd",
            "{\"level\":\"info\",\"msg\":\"the member has been permanently removed from the cluster\"}",
        ];
        for text in others {
            assert_eq!(damage(text), None, "{text}");
        }
    }

    #[test]
    fn the_run_before_this_one_is_asked() {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let seen = || of_last_run(dir.path()).unwrap_or_else(|e| panic!("{e}"));
        let put = |name: &str, text: &str| {
            std::fs::write(dir.path().join(name), text).unwrap_or_else(|e| panic!("{e}"))
        };
        assert_eq!(of_last_run(&dir.path().join("not-there")).ok(), Some(None));
        put("9.log", "walpb: crc mismatch");
        assert_eq!(seen(), None, "this run's own");
        put("10.log", "");
        assert_eq!(seen().as_deref(), Some("walpb: crc mismatch"));
        put("11.log", "");
        assert_eq!(seen(), None, "of the run after that");
    }
}
