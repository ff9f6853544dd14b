//! Archive → the cache, as if it had been built here. All of the file is checked first; each part is unpacked beside its place and
//! then renamed. A run that was killed has changed nothing, or one part as a whole; the next one does it again.

use super::{INDEX, Index, NODE_IMAGE, Part};
use crate::build::sweep;
use crate::error::{At, ReleaseError, Result};
use crate::info;
use crate::tree::sha256;
use flate2::bufread::GzDecoder;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::statvfs::statvfs;
use seedling_types::ReleaseInfo;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Folder name until its content is whole.
const LOADING: &str = ".seedling-loading-";
const SUMS: &str = "SHA256SUMS";
/// The index is some hundred bytes.
const INDEX_MAX: u64 = 1 << 20;
const AGAIN: &str = "it was cut off or changed on its way: fetch it again, and compare it with SHA256SUMS";

pub struct Places {
    /// Lock, and with it one load or build at a time.
    pub cache: PathBuf,
    pub release: PathBuf,
    /// Named after what it is made of.
    pub node_image: PathBuf,
}

/// Where a part lies in the file.
struct Found {
    part: Part,
    at: u64,
}

pub fn load(
    archive: &Path,
    version: &str,
    places: &Places,
    say: &(dyn Fn(&str) + Sync),
) -> Result<ReleaseInfo> {
    let id = places.node_image.file_name().unwrap_or_default().to_string_lossy();
    compare_with_sums(archive, say)?;
    let (index, positions) = read_index(archive)?;
    index.check(version, &id)?;
    let found = locate(archive, index, &positions)?;
    say("checking the archive");
    found.iter().try_for_each(|found| check(archive, found))?;

    fs::create_dir_all(&places.cache).at(&places.cache)?;
    let lock = places.cache.join("release.lock");
    let held = File::create(&lock).at(&lock)?;
    held.lock().at(&lock)?;
    let place = |part: &Part| if part.name == NODE_IMAGE { &places.node_image } else { &places.release };
    // Labs that run have the image below their disks: it is never replaced, and its name says that it is the same.
    let wanted: Vec<_> =
        found.iter().filter(|f| f.part.name != NODE_IMAGE || !places.node_image.exists()).collect();
    for found in &wanted {
        let parent = parent(place(&found.part));
        fs::create_dir_all(parent).at(parent)?;
        sweep(parent, LOADING)?;
        has_room(parent, found.part.unpacked)?;
    }
    say("unpacking");
    std::thread::scope(|scope| {
        let work: Vec<_> = wanted
            .iter()
            .map(|found| scope.spawn(move || take_in(archive, found, place(&found.part))))
            .collect();
        let panicked = |_| ReleaseError::invalid("unpacking ended early", "this is a bug");
        work.into_iter().try_for_each(|thread| thread.join().map_err(panicked)?)
    })?;
    info::load(&places.release)
}

/// A list of sums beside the file knows better than the file itself.
fn compare_with_sums(archive: &Path, say: &dyn Fn(&str)) -> Result<()> {
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    let sums = fs::read_to_string(parent(archive).join(SUMS)).unwrap_or_default();
    let line = sums.lines().filter_map(|line| line.split_once("  ")).find(|(_, file)| *file == name);
    let Some((sum, _)) = line else { return Ok(()) };
    say(&format!("comparing {name} with {SUMS}"));
    if sha256(File::open(archive).at(archive)?).at(archive)? == sum {
        return Ok(());
    }
    Err(damaged(archive, &format!("its sha256 is not the one in {SUMS}")))
}

/// Where every file of the archive lies, and its size, by name.
type Positions = BTreeMap<PathBuf, (u64, u64)>;

fn read_index(archive: &Path) -> Result<(Index, Positions)> {
    let file = File::open(archive).at(archive)?;
    // The library's own words quote what it stumbled over.
    let bad = |_: io::Error| damaged(archive, "it is not a payload archive, or not whole");
    let mut index = None;
    let mut positions = Positions::new();
    for entry in tar::Archive::new(file).entries_with_seek().map_err(bad)? {
        let entry = entry.map_err(bad)?;
        let name = entry.path().map_err(bad)?.into_owned();
        positions.insert(name.clone(), (entry.raw_file_position(), entry.size()));
        if name == Path::new(INDEX) {
            let mut json = String::new();
            entry.take(INDEX_MAX).read_to_string(&mut json).map_err(bad)?;
            let parsed = serde_json::from_str(&json);
            index = Some(parsed.map_err(|e| damaged(archive, &format!("its {INDEX} cannot be read: {e}")))?);
        }
    }
    let none = || damaged(archive, &format!("it is not a payload archive: there is no {INDEX} in it"));
    Ok((index.ok_or_else(none)?, positions))
}

fn locate(archive: &Path, index: Index, positions: &Positions) -> Result<Vec<Found>> {
    let found = index.parts.into_iter().map(|part| match positions.get(Path::new(&part.file())) {
        Some((at, size)) if *size == part.size => Ok(Found { at: *at, part }),
        _ => Err(damaged(archive, &format!("{} is not in it", part.file()))),
    });
    found.collect()
}

fn part_of(archive: &Path, found: &Found) -> Result<io::Take<File>> {
    let mut file = File::open(archive).at(archive)?;
    file.seek(SeekFrom::Start(found.at)).at(archive)?;
    Ok(file.take(found.part.size))
}

fn check(archive: &Path, found: &Found) -> Result<()> {
    match sha256(part_of(archive, found)?).at(archive)? == found.part.sha256 {
        true => Ok(()),
        false => Err(damaged(archive, &format!("{} is not what the index says", found.part.file()))),
    }
}

fn take_in(archive: &Path, found: &Found, place: &Path) -> Result<()> {
    let parent = parent(place);
    let temporary = tempfile::Builder::new().prefix(LOADING).tempdir_in(parent).at(parent)?;
    let new = temporary.path().join(&found.part.name);
    fs::create_dir(&new).at(&new)?;
    // Whatever the umask: it becomes the root directory of machines.
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).at(&new)?;
    unpack(archive, found, &new)?;
    // On the disk before it has its name: a power cut must not leave a release of empty files.
    nix::unistd::syncfs(File::open(&new).at(&new)?).map_err(io::Error::from).at(&new)?;
    let flags = if place.exists() { RenameFlags::RENAME_EXCHANGE } else { RenameFlags::empty() };
    // What was there before goes with the temporary folder.
    renameat2(AT_FDCWD, &new, AT_FDCWD, place, flags).map_err(io::Error::from).at(place)
}

fn unpack(archive: &Path, found: &Found, into: &Path) -> Result<()> {
    let packed = BufReader::with_capacity(1 << 20, part_of(archive, found)?);
    let mut tar = tar::Archive::new(GzDecoder::new(packed).take(found.part.unpacked));
    tar.set_preserve_permissions(true);
    tar.set_preserve_ownerships(true);
    let bad = |what: String| damaged(archive, &format!("{}: {what}", found.part.file()));
    for entry in tar.entries().map_err(|e| bad(e.to_string()))? {
        let mut entry = entry.map_err(|e| bad(e.to_string()))?;
        let name = entry.path().map_err(|e| bad(e.to_string()))?.display().to_string();
        let kind = entry.header().entry_type();
        if !(kind.is_file() || kind.is_dir() || kind.is_symlink()) {
            return Err(bad(format!("{name:?} is no file, directory or link")));
        }
        // Nothing is written through a link, nor above `into`.
        if !entry.unpack_in(into).at(into)? {
            return Err(bad(format!("{name:?} would lie outside of it")));
        }
    }
    Ok(())
}

fn has_room(dir: &Path, bytes: u64) -> Result<()> {
    let disk = statvfs(dir).map_err(io::Error::from).at(dir)?;
    let free = disk.blocks_available() * disk.fragment_size();
    if free > bytes {
        return Ok(());
    }
    let mb = |bytes: u64| bytes >> 20;
    Err(ReleaseError::invalid(
        format!("{} MB are free in {}, {} are needed", mb(free), dir.display(), mb(bytes)),
        "make room, or set SEEDLING_CACHE to another disk",
    ))
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn damaged(archive: &Path, what: &str) -> ReleaseError {
    ReleaseError::invalid(format!("{}: {what}", archive.display()), AGAIN)
}
