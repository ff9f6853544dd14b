//! Which file the kernel means by a number. Numbers are never used twice; names are relative to the disk's root.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub(super) const ROOT: u64 = 1;

struct Node {
    path: PathBuf,
    /// How often the kernel has looked it up; it says when it has forgotten.
    lookups: u64,
}

pub(super) struct Nodes {
    nodes: HashMap<u64, Node>,
    numbers: HashMap<PathBuf, u64>,
    next: u64,
}

impl Default for Nodes {
    fn default() -> Self {
        let root = Node { path: PathBuf::new(), lookups: 1 };
        Self { nodes: [(ROOT, root)].into(), numbers: [(PathBuf::new(), ROOT)].into(), next: ROOT + 1 }
    }
}

impl Nodes {
    pub(super) fn path(&self, number: u64) -> Option<&Path> {
        Some(&self.nodes.get(&number)?.path)
    }

    pub(super) fn child(&self, parent: u64, name: &OsStr) -> Option<PathBuf> {
        Some(self.path(parent)?.join(name))
    }

    /// The number under which the kernel knows a file.
    pub(super) fn told_of(&mut self, path: PathBuf) -> u64 {
        let number = *self.numbers.entry(path.clone()).or_insert(self.next);
        if number == self.next {
            self.next += 1;
        }
        self.nodes.entry(number).or_insert(Node { path, lookups: 0 }).lookups += 1;
        number
    }

    /// Whether nobody knows it any more.
    pub(super) fn forgotten(&mut self, number: u64, times: u64) -> bool {
        let Some(node) = self.nodes.get_mut(&number).filter(|_| number != ROOT) else { return false };
        node.lookups = node.lookups.saturating_sub(times);
        if node.lookups > 0 {
            return false;
        }
        if let Some(node) = self.nodes.remove(&number)
            && self.numbers.get(&node.path) == Some(&number)
        {
            self.numbers.remove(&node.path);
        }
        true
    }

    /// Its name is free; who has it open keeps it. Returns its number.
    pub(super) fn removed(&mut self, path: &Path) -> Option<u64> {
        self.numbers.remove(path)
    }

    /// A file or directory with all that is in it has another name. Returns the number of a file that had this name before.
    pub(super) fn renamed(&mut self, from: &Path, to: &Path) -> Option<u64> {
        let replaced = self.removed(to);
        let moved: Vec<_> = self.numbers.keys().filter(|path| path.starts_with(from)).cloned().collect();
        for old in moved {
            let rest = old.strip_prefix(from).unwrap_or(Path::new(""));
            let new = if rest.as_os_str().is_empty() { to.to_path_buf() } else { to.join(rest) };
            if let Some(number) = self.numbers.remove(&old) {
                if let Some(node) = self.nodes.get_mut(&number) {
                    node.path.clone_from(&new);
                }
                self.numbers.insert(new, number);
            }
        }
        replaced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_follows_its_file() {
        let mut nodes = Nodes::default();
        let member = nodes.told_of("member".into());
        let log = nodes.told_of("member/wal/0.tmp".into());
        assert_eq!(nodes.told_of("member".into()), member);
        assert_eq!(nodes.child(member, OsStr::new("snap")), Some("member/snap".into()));
        let old = nodes.told_of("member/wal/1.wal".into());
        assert_eq!(nodes.renamed(Path::new("member/wal/0.tmp"), Path::new("member/wal/1.wal")), Some(old));
        assert_eq!(nodes.path(log), Some(Path::new("member/wal/1.wal")));
        nodes.renamed(Path::new("member"), Path::new("member.aside"));
        assert_eq!(nodes.path(log), Some(Path::new("member.aside/wal/1.wal")));
        assert_ne!(nodes.told_of("member".into()), member, "another directory of the same name");
    }

    #[test]
    fn what_is_forgotten_takes_no_room() {
        let mut nodes = Nodes::default();
        let a = nodes.told_of("a".into());
        nodes.told_of("a".into());
        assert!(!nodes.forgotten(a, 1) && nodes.forgotten(a, 1) && !nodes.forgotten(a, 1));
        assert!(!nodes.forgotten(ROOT, 9) && nodes.path(ROOT).is_some());
        let b = nodes.told_of("a".into());
        assert_ne!(a, b);
        assert_eq!(nodes.removed(Path::new("a")), Some(b));
        let c = nodes.told_of("a".into());
        assert!(nodes.forgotten(b, 1), "removed while it was known");
        assert_eq!(nodes.told_of("a".into()), c, "the new file of that name is still known");
        assert_eq!(nodes.nodes.len(), 2);
    }
}
