//! A disk for etcd that can go bad: a pass-through file system (FUSE) over its directory, served by a process of ours.
//!
//! The kernel has no device mapper where labs run, so that trouble is made one floor higher. The process stands outside the machine and
//! its mounts, and ends when the last of them is gone: with the machine. Faults are injected on a socket in the machine's directory.

mod control;
mod disk;
mod fs;
mod nodes;
mod unsynced;

use crate::run::{Result, at};
pub use control::Trouble;
use disk::Disk;
use fuser::{Config, Session, SessionACL};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// A machine with a file of this name gets such a disk when it boots.
pub const MARK: &str = "etcd.bad";
/// What it is started as, before the machine's directory.
pub const ARGUMENTS: [&str; 2] = ["lab", "bad-disk"];
/// Longer than the disk waits for etcd to write.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
const THREADS: usize = 4;

/// In a shell with a mount namespace of its own, `dir` and `program` given: mounts the disk there and starts who serves it, back in the
/// namespace of the process that started the shell: the mount ends with the machine's last process, and with it the server.
pub const MOUNT: &str = r#"if [ -e "$dir/etcd.bad" ]; then
  [ -c /dev/fuse ] || { echo "there is no /dev/fuse: modprobe fuse" >&2; exit 1; }
  exec 3<>/dev/fuse
  mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions seedling "$dir/etcd"
  nsenter "--mount=/proc/$PPID/ns/mnt" "--root=/proc/$PPID/root" \
    setsid "$program" lab bad-disk "$dir" <&3 3>&- >>"$dir/bad-disk.log" 2>&1 &
  exec 3>&-
fi
"#;

/// Serves what is mounted by the descriptor on stdin, until it is mounted nowhere or lost its power.
pub fn serve(machine: &Path) -> io::Result<()> {
    let fuse = io::stdin().as_fd().try_clone_to_owned()?;
    let disk = Arc::new(Disk::new(&machine.join(crate::Disk::Etcd.directory())));
    let listener = control::listen(machine)?;
    let mut config = Config::default();
    config.acl = SessionACL::All;
    config.n_threads = Some(THREADS);
    let session = Session::from_fd(fs::Served(disk.clone()), fuse, SessionACL::All, config)?;
    let (ended, end) = mpsc::channel();
    let lost = ended.clone();
    std::thread::spawn(move || ended.send(session.run()));
    std::thread::spawn(move || lost.send(control::obey(&listener, &disk)));
    end.recv().map_err(io::Error::other)?
}

/// Trouble that lasts until it is dropped.
pub struct Held {
    _connection: BufReader<UnixStream>,
    pub answer: String,
}

/// Returns when it has begun; for a torn log, when it is over and the disk is gone.
pub async fn trouble(machine: &Path, trouble: Trouble) -> Result<Held> {
    let asked = tokio::time::timeout(ANSWERS_WITHIN, ask(machine, trouble)).await;
    at(machine, asked.unwrap_or_else(|late| Err(late.into())))
}

async fn ask(machine: &Path, trouble: Trouble) -> io::Result<Held> {
    let connection = control::connect(machine)?;
    connection.set_nonblocking(true)?;
    let mut connection = BufReader::new(UnixStream::from_std(connection)?);
    connection.write_all(format!("{}\n", trouble.as_str()).as_bytes()).await?;
    let mut answer = String::new();
    connection.read_line(&mut answer).await?;
    let answer = answer.trim_end().to_string();
    if answer.is_empty() || answer.starts_with("error") {
        return Err(io::Error::other(format!("{}: {answer:?}", trouble.as_str())));
    }
    if trouble == Trouble::TearLog {
        // It ends when nobody serves the disk any more.
        connection.read_to_end(&mut Vec::new()).await?;
    }
    Ok(Held { _connection: connection, answer })
}
