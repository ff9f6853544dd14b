//! Directories → archive. Names are sorted and times left out: what was built twice is the same file twice.

use super::{FORMAT, INDEX, Index, NODE_IMAGE, Part, RELEASE};
use crate::error::{At, ReleaseError, Result};
use crate::tree::{Hashing, Source, Tree};
use flate2::{Compression, GzBuilder};
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Known only to `release build`: what it made of which inputs.
const NOT_SHIPPED: &[&str] = &["made.json"];

/// `node_image` is a directory named after what it was made of.
pub fn pack(version: &str, release: &Path, node_image: &Path, out: &Path) -> Result<()> {
    let dir = out.parent().unwrap_or(Path::new("."));
    let work = tempfile::tempdir_in(dir).at(dir)?;
    let work = work.path();
    // Compressing is what takes the time.
    let (image, release) = std::thread::scope(|scope| {
        let image = scope.spawn(|| part(NODE_IMAGE, node_image, work));
        let release = part(RELEASE, release, work);
        (image.join(), release)
    });
    let panicked = |_| ReleaseError::invalid("packing the node image ended early", "this is a bug");
    let parts = vec![image.map_err(panicked)??, release?];
    let node_image = node_image.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut tree = Tree::default();
    for part in &parts {
        tree.file(&part.file(), 0o644, Source::immutable(work.join(part.file())));
    }
    let index = Index { format: FORMAT, version: version.into(), node_image, parts };
    // The first by name, and so the first in the file.
    tree.file(INDEX, 0o644, Source::Bytes(serde_json::to_vec_pretty(&index).at(out)?));
    let mut temporary = tempfile::NamedTempFile::new_in(dir).at(dir)?;
    tree.write_tar(BufWriter::with_capacity(1 << 20, &mut temporary))?;
    crate::oci::keep(temporary, out)
}

fn part(name: &str, dir: &Path, work: &Path) -> Result<Part> {
    let path = work.join(format!("{name}.tar.gz"));
    let file = BufWriter::with_capacity(1 << 20, File::create(&path).at(&path)?);
    let gz = GzBuilder::new().write(Hashing::new(file), Compression::default());
    let mut tar = tar::Builder::new(Hashing::new(gz));
    for name in walk(dir)? {
        append(&mut tar, &dir.join(&name), &name)?;
    }
    let (gz, _, unpacked) = tar.into_inner().and_then(Hashing::finish).at(&path)?;
    let (_, sha256, size) = gz.finish().and_then(Hashing::finish).at(&path)?;
    Ok(Part { name: name.into(), sha256, size, unpacked })
}

/// Everything below, sorted: a directory comes before what is in it.
fn walk(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let path = root.join(&folder);
        for entry in fs::read_dir(&path).at(&path)? {
            let entry = entry.at(&path)?;
            let name = folder.join(entry.file_name());
            if NOT_SHIPPED.iter().any(|not| name == Path::new(not)) {
                continue;
            }
            if entry.file_type().at(entry.path())?.is_dir() {
                folders.push(name.clone());
            }
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}

fn append(tar: &mut tar::Builder<impl Write>, path: &Path, name: &Path) -> Result<()> {
    let metadata = fs::symlink_metadata(path).at(path)?;
    let mut header = header(&metadata);
    let kind = metadata.file_type();
    if kind.is_symlink() {
        header.set_entry_type(tar::EntryType::Symlink);
        let target = fs::read_link(path).at(path)?;
        tar.append_link(&mut header, name, target).at(path)
    } else if kind.is_dir() {
        header.set_entry_type(tar::EntryType::Directory);
        tar.append_data(&mut header, name.join(""), io::empty()).at(path)
    } else if kind.is_file() {
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(metadata.len());
        tar.append_data(&mut header, name, File::open(path).at(path)?).at(path)
    } else {
        let what = if kind.is_char_device() || kind.is_block_device() { "a device" } else { "no file" };
        Err(ReleaseError::invalid(
            format!("{} is {what}", path.display()),
            "an archive has files, directories and links",
        ))
    }
}

fn header(metadata: &Metadata) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mtime(0);
    header.set_uid(metadata.uid().into());
    header.set_gid(metadata.gid().into());
    header.set_mode(metadata.mode() & 0o7777);
    header.set_size(0);
    header
}
