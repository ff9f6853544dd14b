//! Damaged, hostile and huge archives are refused or read in part; a bundle with a secret is never kept.

use proptest::prelude::*;
use seedling_diagnose::bundle::FILE_LIMIT;
use seedling_diagnose::{Bundle, diagnose, upstream};
use std::os::unix::fs::PermissionsExt;

fn bundle(files: &[(&str, &str)]) -> Bundle {
    let mut bundle = Bundle::default();
    files.iter().for_each(|(path, text)| bundle.insert(*path, text.as_bytes().to_vec()));
    bundle
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tar.gz");
    bundle(files).write(&path, "log-bundle-1", &[]).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn what_is_written_is_read_and_only_the_owner_may() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log-bundle-1.tar.gz");
    let files = [("gather.log", "x\n"), ("bootstrap/journals/kubelet.log", "y\n")];
    bundle(&files).write(&path, "log-bundle-1", &[]).unwrap();
    assert_eq!(Bundle::open(&path).unwrap(), bundle(&files));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_archive_with_a_secret_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log-bundle-1.tar.gz");
    let known = ["0011223344556677".to_string()];
    for text in ["-----BEGIN PRIVATE KEY-----\nabc", "node: 0011223344556677"] {
        let error = bundle(&[("a/b.log", text)]).write(&path, "log-bundle-1", &known).unwrap_err();
        assert!(error.to_string().contains("a/b.log"), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

#[test]
fn no_path_leads_out_and_links_are_no_files() {
    let mut tar = tar::Builder::new(Vec::new());
    let mut add = |name: &str, kind: tar::EntryType| {
        let mut header = tar::Header::new_gnu();
        let old = header.as_old_mut();
        old.name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_size(if kind.is_file() { 1 } else { 0 });
        header.set_cksum();
        tar.append(&header, if kind.is_file() { b"x".as_slice() } else { b"" }).unwrap();
    };
    add("r/../../etc/passwd", tar::EntryType::Regular);
    add("/etc/shadow", tar::EntryType::Regular);
    add("r/link", tar::EntryType::Symlink);
    add("r/good", tar::EntryType::Regular);
    let bytes = tar.into_inner().unwrap();
    let read = Bundle::read_tar(bytes.as_slice(), true).unwrap();
    assert_eq!(read.iter().map(|(path, _)| path).collect::<Vec<_>>(), ["good"]);
}

#[test]
fn of_a_long_file_both_ends_are_kept() {
    let mut long = vec![b'a'; FILE_LIMIT];
    long.extend(vec![b'z'; FILE_LIMIT]);
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(long.len() as u64);
    tar.append_data(&mut header, "r/long", long.as_slice()).unwrap();
    let read = Bundle::read_tar(tar.into_inner().unwrap().as_slice(), true).unwrap();
    let mut inserted = Bundle::default();
    inserted.insert("long", long);
    assert_eq!(read, inserted);
    let kept = read.get("long").unwrap();
    assert!(kept.len() < FILE_LIMIT + 100 && kept.starts_with(b"aa") && kept.ends_with(b"zz"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Cut off, or with bytes changed: an error or a bundle, never a panic; and every rule can read what came of it.
    #[test]
    fn damaged_archives_do_no_harm(cut in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), with in any::<u8>()) {
        let whole = archive(&[("bootstrap/services/bootkube.json", "[{\"phase\":\"service start\"}]"), ("a", "b")]);
        let mut changed = whole.clone();
        changed[at.index(whole.len())] = with;
        for bytes in [&whole[..cut.index(whole.len())], &changed] {
            if let Ok(bundle) = Bundle::read(bytes) {
                let _ = (upstream::analyze(&bundle), diagnose(&bundle));
            }
        }
    }

    #[test]
    fn records_of_any_shape_are_read(json in "[\\[\\]{}\", :a-z0-9]{0,80}") {
        let bundle = bundle(&[("bootstrap/services/bootkube.json", &json), ("machines.json", &json), ("helper/events.jsonl", &json)]);
        let _ = (upstream::analyze(&bundle), diagnose(&bundle));
    }
}
