//! Programs of the built release.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub(crate) fn cache() -> PathBuf {
    std::env::var_os("SEEDLING_CACHE").unwrap_or_else(|| "/var/cache/seedling".into()).into()
}

/// The newest build of a program in the cache.
pub(crate) fn program(name: &str) -> PathBuf {
    let groups = std::fs::read_dir(cache().join("go")).expect("run `seedling release build` first");
    let found = groups.map(|g| g.unwrap().path().join(name)).filter(|p| p.exists());
    found.max_by_key(|p| p.metadata().unwrap().modified().unwrap()).expect(name)
}

pub(crate) fn spawn(dir: &Path, name: &str, arguments: &[String]) -> Child {
    let log = std::fs::File::create(dir.join(format!("{name}.log"))).unwrap();
    let mut command = Command::new(program(name));
    command.args(arguments).current_dir(dir).stdout(Stdio::null()).stderr(log).spawn().unwrap()
}
