//! `seedling release build`: programs, then images over them, then the manifests that name the images, then the index.

use crate::bill::{BENCHMARK_BINARIES, CRD_DIR, CRD_MODULE, GROUPS, IMAGES, NODE_BINARIES};
use crate::debian::Packages;
use crate::error::{At, ReleaseError, Result, output};
use crate::manifests::Payload;
use crate::oci::{Blob, Layout, Start, write_atomically};
use crate::progress::Progress;
use crate::toolchain::Toolchain;
use crate::tree::{Source, Tree, hex};
use crate::{gobuild, info, programs};
use seedling_types::ReleaseInfo;
use seedling_types::names::REGISTRY;
use seedling_types::release::Binary;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha512};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Options {
    /// The bill of materials: the repository's `release/`.
    pub source: PathBuf,
    pub out: PathBuf,
    /// Built programs and unpacked packages.
    pub cache: PathBuf,
    /// The binary that goes into the images and to the nodes.
    pub seedling: PathBuf,
}

/// What was made from what, so that an unchanged input is not read again. Losing it costs time, nothing else.
#[derive(Default, Serialize, Deserialize)]
struct Made {
    /// Key of a layer's tree → its blob.
    layers: BTreeMap<String, Blob>,
    /// File in `bin/` → identity of its source.
    binaries: BTreeMap<String, (String, Binary)>,
}

struct Build<'a> {
    options: &'a Options,
    progress: Progress,
    layout: Layout,
    before: Made,
    now: Made,
    rewritten: Vec<String>,
}

pub fn build(options: &Options) -> Result<ReleaseInfo> {
    let _held = hold(&options.source, &options.cache)?;
    fs::create_dir_all(&options.out).at(&options.out)?;
    let before = fs::read(options.out.join("made.json"))
        .ok()
        .and_then(|b| serde_json::from_slice(&b).ok())
        .unwrap_or_default();
    let layout = Layout::open(&options.out.join("oci"))?;
    let build = Build {
        options,
        progress: Progress::start(),
        layout,
        before,
        now: Made::default(),
        rewritten: Vec::new(),
    };
    build.make_release()
}

impl Build<'_> {
    fn make_release(mut self) -> Result<ReleaseInfo> {
        let Options { source, out, cache, .. } = self.options;
        let version = env!("CARGO_PKG_VERSION").to_string();
        let go = Toolchain::find(cache, &self.progress)?;
        let packages = Packages::fetch(source, cache, &self.progress)?;
        let programs = self.programs(&go)?;

        let mut images = BTreeMap::new();
        let mut components = BTreeMap::new();
        let mut seedling = None;
        for image in IMAGES {
            let mut tree = Tree::base();
            packages.add(image.system, &mut tree)?;
            for (program, path) in image.programs {
                tree.file(path, 0o755, find(&programs, program)?);
            }
            let layer = self.layer(image.name, &tree)?;
            let entrypoint = image.programs.first().map(|(_, path)| format!("/{path}"));
            let start =
                Start { entrypoint: vec![entrypoint.unwrap_or("/bin/sh".into())], ..Start::default() };
            images
                .insert(image.name.to_string(), self.layout.put_image(std::slice::from_ref(&layer), &start)?);
            let of = match image.group.and_then(|g| GROUPS.iter().find(|group| group.dir == g)) {
                Some(group) => gobuild::version(source, group.dir, group.module)?,
                None if image.name == "tools" => packages.version(),
                None => version.clone(),
            };
            components.insert(image.name.to_string(), of);
            if image.name == "seedling" {
                seedling = Some(layer);
            }
        }

        let specs: BTreeMap<_, _> =
            images.iter().map(|(name, blob)| (name.clone(), pull_spec(name, blob))).collect();
        let crds = gobuild::module_dir(&go, &source.join(CRD_DIR), CRD_MODULE, &self.progress)?;
        let list = source.join(CRD_DIR).join("crds");
        let payload = Payload { version: &version, images: &specs, components: &components };
        let tree = payload.tree(source, &crds, &fs::read_to_string(&list).at(&list)?)?;
        let manifests = self.layer("release manifests", &tree)?;
        let labels = BTreeMap::from([("io.openshift.release".to_string(), version.clone())]);
        let start = Start { entrypoint: vec!["/usr/bin/seedling".into()], labels, ..Start::default() };
        let layers: Vec<_> = seedling.into_iter().chain([manifests]).collect();
        let release = self.layout.put_image(&layers, &start)?;
        let release_image = pull_spec("release", &release);
        images.insert("release".into(), release);

        let mut binaries = BTreeMap::new();
        for name in NODE_BINARIES.iter().chain(BENCHMARK_BINARIES) {
            let binary = self.binary(name, &find(&programs, name)?)?;
            if NODE_BINARIES.contains(name) {
                binaries.insert(name.to_string(), binary);
            }
        }
        let kubernetes_version = components.get("kube-apiserver").cloned().unwrap_or_default();
        for group in GROUPS {
            components.entry(group.dir.into()).or_insert(gobuild::version(source, group.dir, group.module)?);
        }
        let made =
            ReleaseInfo { version, kubernetes_version, release_image, images: specs, binaries, components };

        self.layout.write_index(&images, pull_spec)?;
        info::save(out, &made)?;
        write_atomically(&out.join("made.json"), &serde_json::to_vec_pretty(&self.now).at(out)?)?;
        self.layout.remove_unused(&images)?;
        self.remove_unused_binaries()?;
        self.progress.step(match self.rewritten.as_slice() {
            [] => format!("release {}: nothing changed", made.version),
            names => format!("release {}: wrote {}", made.version, names.join(", ")),
        });
        Ok(made)
    }

    /// Every program by name.
    fn programs(&self, go: &Toolchain) -> Result<BTreeMap<String, Source>> {
        let Options { source, cache, seedling, .. } = self.options;
        programs::compile_missing(go, source, cache, &self.progress)?;
        let mut programs = BTreeMap::new();
        for group in GROUPS {
            let dir = gobuild::place(source, cache, group)?;
            for (name, _) in group.programs {
                programs.insert(name.to_string(), Source::immutable(dir.join(name)));
            }
        }
        programs.insert("pause".into(), Source::Bytes(pause(&source.join("pause/pause.c"))?));
        programs.insert("seedling".into(), Source::hashed(seedling)?);
        Ok(programs)
    }

    fn layer(&mut self, what: &str, tree: &Tree) -> Result<Blob> {
        let key = tree.key();
        let blob = match self.before.layers.get(&key).filter(|blob| self.layout.has(blob)) {
            Some(blob) => blob.clone(),
            None => {
                let blob = self.layout.put_layer(tree)?;
                self.progress.step(format!("{what}: {} MB", blob.size.div_ceil(1 << 20)));
                self.rewritten.push(what.into());
                blob
            }
        };
        self.now.layers.insert(key, blob.clone());
        Ok(blob)
    }

    /// Puts a program into `bin/`.
    fn binary(&mut self, name: &str, source: &Source) -> Result<Binary> {
        let path = self.options.out.join("bin").join(name);
        let there = fs::metadata(&path).map(|m| m.len()).ok();
        let known =
            self.before.binaries.get(name).filter(|(id, b)| *id == source.id() && there == Some(b.size));
        let binary = match known {
            Some((_, binary)) => binary.clone(),
            None => {
                self.rewritten.push(format!("bin/{name}"));
                place(source, &path)?
            }
        };
        self.now.binaries.insert(name.into(), (source.id(), binary.clone()));
        Ok(binary)
    }

    fn remove_unused_binaries(&self) -> Result<()> {
        let dir = self.options.out.join("bin");
        for entry in fs::read_dir(&dir).at(&dir)? {
            let entry = entry.at(&dir)?;
            if !self.now.binaries.contains_key(entry.file_name().to_string_lossy().as_ref()) {
                fs::remove_file(entry.path()).at(entry.path())?;
            }
        }
        Ok(())
    }
}

/// Makes sure that this is the source tree, and that nobody else builds into the cache. Removes what an interrupted build has left there.
pub(crate) fn hold(source: &Path, cache: &Path) -> Result<fs::File> {
    if !source.join("kubernetes/go.mod").exists() {
        let what = format!("{} is not a bill of materials", source.display());
        return Err(ReleaseError::invalid(
            what,
            "run in the repository, or give --source DIR (the repository's release/ folder)",
        ));
    }
    let lock = cache.join("release.lock");
    for dir in ["go", "debian"].map(|name| cache.join(name)) {
        fs::create_dir_all(&dir).at(&dir)?;
    }
    let held = fs::File::create(&lock).at(&lock)?;
    held.lock().at(&lock)?;
    for dir in ["go", "debian"] {
        sweep(&cache.join(dir), UNFINISHED)?;
    }
    Ok(held)
}

/// Prefix of folders that become something only when they are renamed.
pub(crate) const UNFINISHED: &str = ".unfinished-";

/// Removes what an interrupted run left; the caller holds the lock.
pub(crate) fn sweep(dir: &Path, prefix: &str) -> Result<()> {
    for entry in fs::read_dir(dir).at(dir)? {
        let entry = entry.at(dir)?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            fs::remove_dir_all(entry.path()).at(entry.path())?;
        }
    }
    Ok(())
}

fn find(programs: &BTreeMap<String, Source>, name: &str) -> Result<Source> {
    let missing = || {
        ReleaseError::invalid(
            format!("no program {name}"),
            "the bill of materials names it, nothing builds it",
        )
    };
    programs.get(name).cloned().ok_or_else(missing)
}

fn pull_spec(name: &str, blob: &Blob) -> String {
    format!("{REGISTRY}/seedling/{name}@{}", blob.digest)
}

/// Small enough to be compiled each time.
fn pause(source: &Path) -> Result<Vec<u8>> {
    let dir = tempfile::tempdir().at("pause")?;
    let out = dir.path().join("pause");
    let mut cc = Command::new("cc");
    cc.args([
        "-Os",
        "-static",
        "-nostdlib",
        "-fno-stack-protector",
        "-fno-asynchronous-unwind-tables",
        "-fcf-protection=none",
    ]);
    cc.args(["-Wl,--build-id=none", "-s", "-o"]).arg(&out).arg(source);
    output(&mut cc, "install a C compiler (Debian: apt-get install gcc)")?;
    fs::read(&out).at(&out)
}

/// Copies under a temporary name and renames: the helper may be serving the old file.
fn place(source: &Source, path: &Path) -> Result<Binary> {
    use std::os::unix::fs::PermissionsExt;
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir).at(dir)?;
    let (mut content, size) = source.open()?;
    let mut bytes = Vec::with_capacity(size as usize);
    content.read_to_end(&mut bytes).at(path)?;
    write_atomically(path, &bytes)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).at(path)?;
    Ok(Binary { sha512: hex(&Sha512::digest(&bytes)), size: bytes.len() as u64 })
}
