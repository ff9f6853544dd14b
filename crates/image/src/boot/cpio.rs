//! The archive that a kernel takes as its first file system: cpio in the form "newc". Pure; the same entries give the same bytes, for
//! numbers and times are ours.

/// A file type and its bytes.
pub(crate) enum Entry {
    Directory,
    File {
        mode: u32,
        contents: Vec<u8>,
    },
    Link(String),
    /// Major and minor number of a character device.
    Device(u32, u32),
}

/// Collects entries in the order given; folders before what is in them.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    count: u32,
}

impl Archive {
    pub(crate) fn add(&mut self, path: &str, entry: Entry) {
        let (mode, device, contents) = match entry {
            Entry::Directory => (0o040755, (0, 0), Vec::new()),
            Entry::File { mode, contents } => (0o100000 | mode, (0, 0), contents),
            Entry::Link(to) => (0o120777, (0, 0), to.into_bytes()),
            Entry::Device(major, minor) => (0o020600, (major, minor), Vec::new()),
        };
        self.count += 1;
        self.record(self.count, mode, device, path, &contents);
    }

    /// A folder and all folders above it, unless they are there.
    pub(crate) fn add_folders(&mut self, known: &mut std::collections::BTreeSet<String>, path: &str) {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            if known.insert(path[..end].to_string()) {
                self.add(&path[..end], Entry::Directory);
            }
        }
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.record(0, 0, (0, 0), "TRAILER!!!", &[]);
        self.bytes
    }

    fn record(&mut self, number: u32, mode: u32, device: (u32, u32), path: &str, contents: &[u8]) {
        // inode, mode, uid, gid, links, time, size, device, what device it is, length of the name, checksum
        let links = if mode & 0o170000 == 0o040000 { 2 } else { 1 };
        let size = contents.len() as u32;
        let name = path.len() as u32 + 1;
        let fields = [number, mode, 0, 0, links, 0, size, 0, 0, device.0, device.1, name, 0];
        self.bytes.extend_from_slice(b"070701");
        self.bytes.extend(fields.iter().flat_map(|field| format!("{field:08x}").into_bytes()));
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(contents);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    fn archive() -> Vec<u8> {
        let (mut archive, mut known) = (Archive::default(), std::collections::BTreeSet::new());
        archive.add_folders(&mut known, "etc/deep");
        archive.add_folders(&mut known, "etc/deeper");
        archive.add("etc/deep/odd", Entry::File { mode: 0o755, contents: b"odd".to_vec() });
        archive.add("sbin", Entry::Link("etc".into()));
        archive.add("console", Entry::Device(5, 1));
        archive.finish()
    }

    /// busybox has its own cpio: another program reads what we wrote.
    #[test]
    fn others_can_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = Command::new("busybox")
            .args(["cpio", "-i", "-v", "-t"])
            .current_dir(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&archive()).unwrap();
        let said = child.wait_with_output().unwrap();
        assert!(said.status.success());
        let said = String::from_utf8_lossy(&said.stdout).to_string();
        let words = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
        let rows: Vec<_> = said.lines().map(words).collect();
        let modes: Vec<_> = rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(
            modes,
            ["drwxr-xr-x", "drwxr-xr-x", "drwxr-xr-x", "-rwxr-xr-x", "lrwxrwxrwx", "crw-------"]
        );
        let sizes: Vec<_> = rows.iter().map(|row| row[2].as_str()).collect();
        assert_eq!(sizes[..4], ["0", "0", "0", "3"], "{said}");
    }

    #[test]
    fn the_same_entries_give_the_same_bytes() {
        assert_eq!(archive(), archive());
        assert_eq!(archive().len() % 4, 0);
        assert!(archive().starts_with(b"070701"));
    }
}
