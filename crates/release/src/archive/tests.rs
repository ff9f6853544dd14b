use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const ID: &str = "0123456789abcdef";
const RELEASE_JSON: &str = r#"{"version":"1.0.0","kubernetesVersion":"v1","releaseImage":"r/release@sha256:0","images":{},"binaries":{},"components":{}}"#;

/// A release and a node image in small, packed.
fn packed(dir: &Path) -> PathBuf {
    let (release, image) = (dir.join("made/release"), dir.join("made").join(ID));
    for folder in [release.join("bin"), image.join("usr/bin"), image.join("var/empty")] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(release.join("release.json"), RELEASE_JSON).unwrap();
    fs::write(release.join("made.json"), "{}").unwrap();
    fs::write(release.join("bin/kubelet"), "program ".repeat(100)).unwrap();
    fs::write(image.join("usr/bin/su"), "su").unwrap();
    fs::set_permissions(image.join("usr/bin/su"), fs::Permissions::from_mode(0o4755)).unwrap();
    symlink("usr/bin", image.join("bin")).unwrap();
    symlink("/dev/null", image.join("masked")).unwrap();
    let out = dir.join("payload.tar");
    pack("1.0.0", &release, &image, &out).unwrap();
    out
}

fn places(dir: &Path) -> Places {
    Places { cache: dir.into(), release: dir.join("release"), node_image: dir.join("node-image").join(ID) }
}

fn load_into(archive: &Path, dir: &Path) -> Result<()> {
    load(archive, "1.0.0", &places(dir), &|_| {}).map(drop)
}

/// Path → mode and contents.
fn tree(dir: &Path) -> Loaded {
    let mut found = BTreeMap::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let contents = if metadata.is_symlink() {
                fs::read_link(&path).unwrap().display().to_string()
            } else if metadata.is_dir() {
                folders.push(path.clone());
                String::new()
            } else {
                String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
            };
            found.insert(path.strip_prefix(dir).unwrap().into(), (metadata.mode(), contents));
        }
    }
    found
}

#[test]
fn what_was_packed_is_loaded_and_twice_is_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let archive = packed(dir.path());
    let again = tempfile::tempdir().unwrap();
    assert_eq!(
        fs::read(&archive).unwrap(),
        fs::read(packed(again.path())).unwrap(),
        "packed twice, one file"
    );

    let cache = dir.path().join("cache");
    // What a killed run and an older release left.
    fs::create_dir_all(cache.join(".seedling-loading-x/release")).unwrap();
    fs::create_dir_all(cache.join("release/bin")).unwrap();
    fs::write(cache.join("release/bin/old"), "").unwrap();
    for _ in 0..2 {
        load_into(&archive, &cache).unwrap();
        let loaded = tree(&cache);
        let names: Vec<_> = loaded.keys().map(|p| p.display().to_string()).collect();
        let image = |path: &str| format!("node-image/{ID}{path}");
        let mut want = ["", "/bin", "/masked", "/usr", "/usr/bin", "/usr/bin/su", "/var", "/var/empty"]
            .map(image)
            .to_vec();
        want.insert(0, "node-image".into());
        want.extend(
            ["release", "release/bin", "release/bin/kubelet", "release/release.json", "release.lock"]
                .map(String::from),
        );
        assert_eq!(names, want);
        assert_eq!(loaded[Path::new(&image("/usr/bin/su"))].0 & 0o7777, 0o4755);
        assert_eq!(loaded[Path::new(&image("/masked"))].1, "/dev/null");
    }
}

#[test]
fn another_version_is_refused_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let archive = packed(dir.path());
    let cache = dir.path().join("cache");
    let refused = load(&archive, "2.0.0", &places(&cache), &|_| {}).unwrap_err().to_string();
    assert!(
        refused.contains("is of seedling 1.0.0") && refused.contains("from the same release"),
        "{refused}"
    );
    assert!(!cache.exists());
}

#[test]
fn sums_beside_it_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    let archive = packed(dir.path());
    crate::dist::write_sums(dir.path(), &["payload.tar".into()]).unwrap();
    load_into(&archive, &dir.path().join("cache")).unwrap();
    fs::write(dir.path().join("SHA256SUMS"), format!("{}  payload.tar\n", "0".repeat(64))).unwrap();
    let refused = load_into(&archive, &dir.path().join("other")).unwrap_err().to_string();
    assert!(refused.contains("not the one in SHA256SUMS") && refused.contains("fetch it again"), "{refused}");
}

/// Made by somebody who means harm: all sums are right.
fn hostile(dir: &Path, fill: impl Fn(&mut tar::Builder<Vec<u8>>)) -> PathBuf {
    let mut parts = Vec::new();
    let mut tree = crate::tree::Tree::default();
    for name in [NODE_IMAGE, RELEASE] {
        let mut tar = tar::Builder::new(Vec::new());
        fill(&mut tar);
        let tar = tar.into_inner().unwrap();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        std::io::Write::write_all(&mut gz, &tar).unwrap();
        let gz = gz.finish().unwrap();
        let sha256 = crate::tree::sha256(gz.as_slice()).unwrap();
        parts.push(Part { name: name.into(), sha256, size: gz.len() as u64, unpacked: tar.len() as u64 });
        tree.file(&format!("{name}.tar.gz"), 0o644, crate::tree::Source::Bytes(gz));
    }
    let index = Index { format: FORMAT, version: "1.0.0".into(), node_image: ID.into(), parts };
    tree.file(INDEX, 0o644, crate::tree::Source::Bytes(serde_json::to_vec(&index).unwrap()));
    let path = dir.join("hostile.tar");
    tree.write_tar(fs::File::create(&path).unwrap()).unwrap();
    path
}

fn entry(tar: &mut tar::Builder<Vec<u8>>, kind: tar::EntryType, name: &str, link: &str) {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(0);
    // As they are: the library would refuse to write some of them.
    header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_gnu_mut().unwrap().linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_cksum();
    tar.append(&header, std::io::empty()).unwrap();
}

#[test]
fn nothing_is_written_outside() {
    use tar::EntryType as Kind;
    let entries: [&[(Kind, &str, &str)]; 5] = [
        &[(Kind::Regular, "../outside", "")],
        &[(Kind::Regular, "a/../../outside", "")],
        &[(Kind::Symlink, "way", "../.."), (Kind::Regular, "way/outside", "")],
        &[(Kind::Char, "device", "")],
        &[(Kind::Link, "shadow", "/etc/shadow")],
    ];
    for entries in entries {
        let dir = tempfile::tempdir().unwrap();
        let archive = hostile(dir.path(), |tar| {
            entries.iter().for_each(|(kind, name, link)| entry(tar, *kind, name, link))
        });
        let cache = dir.path().join("deep/cache");
        load_into(&archive, &cache).unwrap_err();
        let left: Vec<_> =
            tree(dir.path()).into_keys().filter(|p| p.file_name().is_some_and(|n| n == "outside")).collect();
        assert_eq!(left, Vec::<PathBuf>::new(), "{entries:?}");
        assert!(
            !cache.join("release").exists() && !cache.join("node-image").join(ID).exists(),
            "{entries:?}"
        );
        assert_eq!(fs::read_dir(cache.join("node-image")).unwrap().count(), 0, "nothing is left lying about");
    }
}

type Loaded = BTreeMap<PathBuf, (u32, String)>;

/// An archive, and what it gives.
static WHOLE: LazyLock<(Vec<u8>, Loaded)> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let archive = packed(dir.path());
    let cache = dir.path().join("cache");
    load_into(&archive, &cache).unwrap();
    (fs::read(&archive).unwrap(), tree(&cache))
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Cut off anywhere, or one byte changed: refused, with what to do, and nothing is changed; or it was a byte that says nothing.
    #[test]
    fn damage_is_refused_or_harmless(at in any::<prop::sample::Index>(), change in prop_oneof![Just(0), 1u8..]) {
        let (whole, loaded) = &*WHOLE;
        let mut bytes = whole.clone();
        let at = at.index(bytes.len());
        if change == 0 { bytes.truncate(at) } else { bytes[at] ^= change }
        let dir = tempfile::tempdir().unwrap();
        let archive = dir.path().join("payload.tar");
        fs::write(&archive, &bytes).unwrap();
        let cache = dir.path().join("cache");
        match load_into(&archive, &cache) {
            Ok(()) => prop_assert_eq!(&tree(&cache), loaded),
            Err(refused) => {
                prop_assert!(refused.to_string().contains("hint: "), "{}", refused);
                prop_assert!(!cache.join("release").exists());
            }
        }
    }
}
