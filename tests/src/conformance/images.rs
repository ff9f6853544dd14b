//! The suite's images under their own names, from a Debian root, the suite's own programs and files, and the payload's. Which of them
//! are stand-ins, and why that is good enough, is said in docs/conformance.md.

use super::programs::{Programs, remove_others, short};
use anyhow::{Context, Result, ensure};
use seedling_e2e::run;
use seedling_release::{Blob, Layout, Source, Start, Tree};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const REGISTRY: &str = "registry.k8s.io";
const SUITE: &str = "bookworm";
/// What tests call in agnhost, in the image for names, and in nginx.
const PACKAGES: &str = "bash,bind9-dnsutils,busybox-static,ca-certificates,curl,hostname,iperf,iproute2,netcat-openbsd,nginx,procps";
/// Of no use in an image.
const LEFT_OUT: &[&str] = &[
    "boot",
    "debootstrap",
    "dev",
    "proc",
    "sys",
    "usr/share/doc",
    "usr/share/locale",
    "usr/share/man",
    "var/cache/apt",
    "var/cache/debconf",
    "var/lib/apt/lists",
    "var/lib/dpkg",
    "var/log",
];
/// A test looks at the groups that an image gives a user.
const USERS: &str = "user-defined-in-image:x:1000:1000::/home:/bin/sh\n";
const GROUPS: &str = "user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n";

/// As tests name them, without the registry.
pub(crate) const NAMES: &[&str] = &[
    "e2e-test-images/agnhost:2.55",
    "e2e-test-images/agnhost:2.63.0",
    "e2e-test-images/busybox:1.37.0-1",
    "e2e-test-images/glibc-dns-testing:2.0.0",
    "e2e-test-images/kitten:1.8",
    "e2e-test-images/nautilus:1.8",
    "e2e-test-images/nginx:1.15-4",
    "e2e-test-images/nginx:1.27-0",
    "e2e-test-images/nonewprivs:1.4",
    "e2e-test-images/sample-apiserver:1.29.2",
    "etcd:3.6.8-0",
    "pause:3.10.2",
];

struct Made<'a> {
    layout: &'a Layout,
    images: BTreeMap<String, Blob>,
}

impl Made<'_> {
    fn layer(&self, fill: impl FnOnce(&mut Tree) -> Result<()>) -> Result<Blob> {
        let mut tree = Tree::default();
        fill(&mut tree)?;
        Ok(self.layout.put_layer(&tree)?)
    }

    fn image(&mut self, name: &str, layers: &[&Blob], entrypoint: &[&str], command: &[&str]) -> Result<()> {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        let start = Start { entrypoint: words(entrypoint), command: words(command), labels: BTreeMap::new() };
        let layers: Vec<_> = layers.iter().map(|l| (*l).clone()).collect();
        self.images.insert(name.into(), self.layout.put_image(&layers, &start)?);
        Ok(())
    }
}

/// The layout with all of them; made once for the same programs. Of two images the layers are the payload's, in `release`.
pub(crate) fn ensure(cache: &Path, programs: &Programs, release: &Path) -> Result<PathBuf> {
    let root = debian(cache)?;
    let info = seedling_release::load(release)?;
    let payload = |component: &str| -> Result<Vec<Blob>> {
        let spec = info.image(component)?;
        let digest = spec.rsplit_once('@').map(|(_, digest)| digest).context("no pull spec by digest")?;
        // Its config comes first.
        Ok(Layout::open(&release.join("oci"))?.parts(digest)?.split_off(1))
    };
    let (pause, etcd) = (payload("pause")?, payload("etcd")?);
    let parts = [&root, &programs.tools, &programs.sample];
    let parts = parts.map(|p| p.display().to_string()).join(" ");
    let key = Sha256::new_with_prefix(format!("{parts} {pause:?} {etcd:?} {}", include_str!("images.rs")));
    let done = cache.join("conformance").join(format!("images-{}", short(key)));
    if done.exists() {
        return Ok(done);
    }
    eprintln!("making {} test images", NAMES.len());
    let unfinished = done.with_extension("unfinished");
    remove(&unfinished)?;
    let layout = Layout::open(&unfinished)?;
    let mut made = Made { layout: &layout, images: BTreeMap::new() };
    make(&mut made, &root, programs)?;
    made.image("pause:3.10.2", &pause.iter().collect::<Vec<_>>(), &["/usr/bin/pause"], &[])?;
    let link = made.layer(|tree| {
        tree.link("usr/local/bin/etcd", "../../bin/etcd");
        Ok(())
    })?;
    let layers: Vec<_> = etcd.iter().chain([&link]).collect();
    made.image("etcd:3.6.8-0", &layers, &[], &["/usr/local/bin/etcd"])?;
    ensure!(made.images.keys().eq(NAMES), "the table of names and what is made differ");
    layout.write_index(&made.images, |name, _| format!("{REGISTRY}/{name}"))?;
    remove_others(&done, "images-")?;
    fs::rename(&unfinished, &done)?;
    Ok(done)
}

fn make(made: &mut Made, root: &Path, programs: &Programs) -> Result<()> {
    let sources = programs.sources.join("test/images");
    let file = |path: &str| Source::immutable(sources.join(path));
    let debian = made.layer(|tree| Ok(tree.add_folder(root, LEFT_OUT)?))?;

    let agnhost = made.layer(|tree| {
        tree.file("agnhost", 0o755, Source::immutable(programs.tools.join("agnhost")));
        tree.link("agnhost-2", "agnhost");
        tree.dir("uploads", 0o755);
        for name in ["localhost.crt", "localhost.key"] {
            tree.file(name, 0o644, file(&format!("agnhost/porter/{name}")));
        }
        for (path, more) in [("etc/passwd", USERS), ("etc/group", GROUPS)] {
            tree.file(path, 0o644, Source::Bytes((fs::read_to_string(root.join(path))? + more).into()));
        }
        Ok(())
    })?;
    let entry = ["/agnhost"];
    made.image("e2e-test-images/agnhost:2.63.0", &[&debian, &agnhost], &entry, &["pause"])?;
    // The same program; tests only ask whether a change of the image is noticed.
    let older = made.layer(|tree| {
        tree.file("etc/agnhost-version", 0o644, Source::Bytes("2.55\n".into()));
        Ok(())
    })?;
    made.image("e2e-test-images/agnhost:2.55", &[&debian, &agnhost, &older], &entry, &["pause"])?;
    for name in ["nautilus", "kitten"] {
        let pictures = made.layer(|tree| {
            for part in [format!("{name}.jpg"), "data.json".into()] {
                tree.file(&part, 0o644, file(&format!("{name}/html/{part}")));
            }
            if name == "kitten" {
                // Its test looks for the name of upstream's base image.
                let text = "NAME=\"Alpine Linux\"\nPRETTY_NAME=\"a stand-in for Alpine Linux\"\nID=debian\n";
                tree.file("etc/os-release", 0o644, Source::Bytes(text.into()));
            }
            Ok(())
        })?;
        let name = format!("e2e-test-images/{name}:1.8");
        made.image(&name, &[&debian, &agnhost, &pictures], &entry, &["test-webserver"])?;
    }

    made.image("e2e-test-images/glibc-dns-testing:2.0.0", &[&debian], &[], &["bash"])?;
    for tag in ["1.15-4", "1.27-0"] {
        let command = ["nginx", "-g", "daemon off;"];
        made.image(&format!("e2e-test-images/nginx:{tag}"), &[&debian], &[], &command)?;
    }
    let busybox = made.layer(|tree| busybox(tree, root))?;
    made.image("e2e-test-images/busybox:1.37.0-1", &[&busybox], &[], &["sh"])?;

    let mut program = |name: &str, from: PathBuf, to: &str, mode: u32, start: (&[&str], &[&str])| {
        let mut tree = Tree::base();
        tree.file(to, mode, Source::immutable(from));
        let layer = made.layout.put_layer(&tree)?;
        made.image(name, &[&layer], start.0, start.1)
    };
    let nnp = programs.tools.join("nonewprivs");
    program("e2e-test-images/nonewprivs:1.4", nnp, "usr/local/bin/nnp", 0o4755, (&[], &["nnp"]))?;
    let sample = programs.sample.join("sample-apiserver");
    let name = "e2e-test-images/sample-apiserver:1.29.2";
    program(name, sample, "sample-apiserver", 0o755, (&["/sample-apiserver"], &[]))
}

/// Tests compare what busybox's shell says, word by word, so it is the shell. But Debian's drops variables whose names have a dash, which
/// upstream's keeps, and tests look for them with `env`: that is called from bash, which keeps them too.
const SHELL: &str = "#!/bin/bash\n[ \"$*\" = '-c env' ] && exec env\nexec -a \"$0\" /bin/busybox \"$@\"\n";

/// Debian's busybox.
fn busybox(tree: &mut Tree, root: &Path) -> Result<()> {
    *tree = Tree::base();
    let program = root.join("usr/bin/busybox");
    for applet in run(Command::new(&program).arg("--list"))?.lines() {
        tree.link(&format!("bin/{applet}"), "busybox");
    }
    tree.file("bin/busybox", 0o755, Source::immutable(program));
    let libraries = "lib/x86_64-linux-gnu";
    let own = |path: &str| -> Result<Source> {
        Ok(Source::immutable(root.join(path).canonicalize().with_context(|| path.to_string())?))
    };
    for name in ["libc.so.6", "libtinfo.so.6"] {
        tree.file(&format!("{libraries}/{name}"), 0o755, own(&format!("usr/{libraries}/{name}"))?);
    }
    let loader = "lib64/ld-linux-x86-64.so.2";
    tree.file(loader, 0o755, own(&format!("usr/{libraries}/ld-linux-x86-64.so.2"))?);
    tree.file("bin/bash", 0o755, own("usr/bin/bash")?);
    tree.file("bin/sh", 0o755, Source::Bytes(SHELL.into()));
    Ok(())
}

/// By debootstrap, as the node image: with their maintainer scripts run, the packages work.
fn debian(cache: &Path) -> Result<PathBuf> {
    let folder = cache.join("conformance");
    let key = Sha256::new_with_prefix(format!("{SUITE} {PACKAGES}"));
    let done = folder.join(format!("debian-{}", short(key)));
    if done.exists() {
        return Ok(done);
    }
    eprintln!("making the test images' Debian root by debootstrap (a minute or two, once)");
    let debs = cache.join("node-image/debs");
    fs::create_dir_all(&debs)?;
    fs::create_dir_all(&folder)?;
    let unfinished = done.with_extension("unfinished");
    remove(&unfinished)?;
    let mut debootstrap = Command::new("debootstrap");
    debootstrap.args(["--variant=minbase", &format!("--include={PACKAGES}")]);
    debootstrap.arg(format!("--cache-dir={}", debs.display())).arg(SUITE).arg(&unfinished);
    run(&mut debootstrap)?;
    fs::rename(&unfinished, &done)?;
    Ok(done)
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(e).with_context(|| path.display().to_string())
        }
        _ => Ok(()),
    }
}
