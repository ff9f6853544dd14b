//! How faults are injected: one word, on a socket beside the disk. What is wrong lasts as long as the connection, so that nothing of it is left by
//! somebody who was killed.

use super::disk::Disk;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// In the machine's directory.
const SOCKET: &str = "etcd.trouble";
/// etcd writes at least as often as a cluster's leases are renewed.
const SYNCED_WITHIN: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Every sync fails.
    FailSyncs,
    /// The power goes while etcd's log is being synced; the disk is gone with the answer.
    TearLog,
}

impl Trouble {
    const ALL: [Trouble; 2] = [Trouble::FailSyncs, Trouble::TearLog];

    pub fn as_str(self) -> &'static str {
        match self {
            Trouble::FailSyncs => "fail-syncs",
            Trouble::TearLog => "tear-log",
        }
    }

    /// A whole line, and nothing else.
    fn parse(line: &[u8]) -> Option<Self> {
        let word = line.strip_suffix(b"\n")?;
        Self::ALL.into_iter().find(|trouble| trouble.as_str().as_bytes() == word)
    }
}

/// A line of no more bytes than any trouble has.
fn read_line(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let longest = Trouble::ALL.iter().map(|trouble| trouble.as_str().len() + 1).max().unwrap_or_default();
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < longest && line.last() != Some(&b'\n') && from.read(&mut byte)? == 1 {
        line.push(byte[0]);
    }
    Ok(line)
}

/// A socket's name has room for a hundred bytes, and a machine's directory may need more.
fn socket(machine: &std::fs::File) -> PathBuf {
    format!("/proc/self/fd/{}/{SOCKET}", machine.as_raw_fd()).into()
}

pub(super) fn listen(machine: &Path) -> io::Result<UnixListener> {
    let _ = std::fs::remove_file(machine.join(SOCKET));
    UnixListener::bind(socket(&std::fs::File::open(machine)?))
}

pub(super) fn connect(machine: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(socket(&std::fs::File::open(machine)?))
}

/// One after the other. Returns when the disk lost its power.
pub(super) fn obey(listener: &UnixListener, disk: &Disk) -> io::Result<()> {
    loop {
        let (mut caller, _) = listener.accept()?;
        match serve(&mut caller, disk) {
            Ok(Power::Lost) => return Ok(()),
            Ok(Power::On) => {}
            Err(error) => tracing::warn!(%error, "a caller is gone"),
        }
    }
}

#[derive(PartialEq, Eq)]
enum Power {
    On,
    Lost,
}

fn serve(caller: &mut UnixStream, disk: &Disk) -> io::Result<Power> {
    match Trouble::parse(&read_line(caller)?) {
        None => writeln!(caller, "error: no such trouble")?,
        Some(Trouble::FailSyncs) => {
            disk.fail_syncs();
            let over = writeln!(caller, "syncs fail").and_then(|()| io::copy(caller, &mut io::sink()));
            disk.work();
            over?;
        }
        Some(Trouble::TearLog) => match disk.tear_log(SYNCED_WITHIN)? {
            None => writeln!(caller, "error: etcd wrote nothing to its log in {SYNCED_WITHIN:?}")?,
            Some(log) => {
                let _ = writeln!(caller, "{} is torn", log.display());
                return Ok(Power::Lost);
            }
        },
    }
    Ok(Power::On)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_trouble_is_known_by_its_line() {
        for trouble in Trouble::ALL {
            let line = format!("{}\n", trouble.as_str());
            let mut more = io::Cursor::new(format!("{line}and more\n"));
            assert_eq!(read_line(&mut more).unwrap(), line.as_bytes());
            assert_eq!(Trouble::parse(line.as_bytes()), Some(trouble));
            assert_eq!(Trouble::parse(trouble.as_str().as_bytes()), None, "cut off");
        }
    }

    proptest! {
        #[test]
        fn nothing_else_is_trouble_and_no_line_is_without_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let line = read_line(&mut io::Cursor::new(&bytes)).unwrap();
            prop_assert!(line.len() <= 11 && bytes.starts_with(&line));
            let known = Trouble::ALL.iter().any(|t| line == format!("{}\n", t.as_str()).as_bytes());
            prop_assert_eq!(Trouble::parse(&line).is_some(), known);
        }
    }
}
