//! `create`: fetch what a target wants, write it, and take away what went into it. One change, all or nothing.

use crate::given::Given;
use crate::graph::{self, engine::Engine};
use crate::store::{Change, Disk, Folder, Store};
use crate::{
    CreateError, Message, Options, Outcome, Result, Target, bootstrap, certificates, nodes,
    refresh as renewal, shape, state,
};
use std::path::Path;
use time::format_description::well_known::Rfc3339;

pub fn create(target: Target, dir: &Path, options: &Options) -> Result<Outcome> {
    create_on(&Folder::new(dir), target, dir, options)
}

/// The same on a disk of the caller's: a test's may fail.
pub fn create_on(disk: &dyn Disk, target: Target, dir: &Path, options: &Options) -> Result<Outcome> {
    let store = Store::open(dir, disk)?;
    let done = fetch_and_write(&store, target, dir, options);
    let lines: Vec<_> = match &done {
        Ok(outcome) => outcome.messages.iter().map(|m| (m.level.as_str(), m.text.clone())).collect(),
        Err(error) => error.lines(),
    };
    let time = options.now.format(&Rfc3339).unwrap_or_default();
    let line = |(level, text): &(&str, String)| format!("time={time:?} level={level} msg={text:?}\n");
    let logged = store.log(&lines.iter().map(line).collect::<String>());
    // What went wrong is more important than that it could not be logged.
    done.and_then(|outcome| logged.map(|()| outcome))
}

/// Platforms whose machines somebody else switches on have no such target. Unlike upstream's, this one eats nothing.
pub fn refuse_cluster(dir: &Path, options: &Options) -> Result<Outcome> {
    let name = "Cluster Infrastructure Variables";
    let refused = CreateError::Infrastructure(platform(dir, options)?.into());
    Err(refused
        .within(&format!("failed to generate asset {name:?}"))
        .within(&format!("failed to fetch {name}")))
}

/// `none` or `baremetal`, as the install-config says that is there or went into an earlier run.
pub fn platform(dir: &Path, options: &Options) -> Result<&'static str> {
    let disk = Folder::new(dir);
    let store = Store::open(dir, &disk)?;
    let given = Given::read(&store, Target::InstallConfig, options, &state::read(&store)?)?;
    Ok(if shape::baremetal(&given.config).is_some() { "baremetal" } else { "none" })
}

/// The certificates of an asset directory renewed, and with them what carries them.
pub fn refresh(dir: &Path, options: &Options) -> Result<Outcome> {
    let disk = Folder::new(dir);
    let old = state::read(&Store::open(dir, &disk)?)?;
    let in_place = old.contains_key(&format!("*{}", bootstrap::IN_PLACE));
    let target = if in_place { Target::SingleNodeIgnitionConfig } else { Target::IgnitionConfigs };
    if !in_place && !old.contains_key(&format!("*{}", bootstrap::BOOTSTRAP)) {
        return Err(CreateError::NothingToRefresh(dir.to_path_buf()));
    }
    create_on(&disk, target, dir, &Options { refresh: true, ..options.clone() })
}

/// Carries out what a killed run had decided; without one, nothing happens.
pub fn recover(dir: &Path) -> Result<()> {
    Store::open(dir, &Folder::new(dir)).map(drop)
}

fn fetch_and_write(store: &Store, target: Target, dir: &Path, options: &Options) -> Result<Outcome> {
    let mut old = state::read(store)?;
    if options.refresh {
        renewal::renew(&mut old, options.now)?;
    }
    let given = Given::read(store, target, options, &old)?;
    let mut engine = Engine::new(graph::assets(), &given, old);
    engine.messages.extend(given.warnings());
    let wanted = graph::wanted(target);
    wanted.iter().try_for_each(|id| engine.fetch_target(id))?;

    let mut change = Change::default();
    let mut consumed: Vec<_> = engine.outdated(&wanted);
    let mut messages = engine.messages.clone();
    for (name, paths) in engine.consumed(&wanted) {
        messages.push(Message::info(format!("Consuming {name} from target directory")));
        consumed.extend(paths);
    }
    consumed.into_iter().for_each(|path| change.remove(path));
    if wanted.contains(&nodes::NODE_POINTERS) {
        // Of machines that are gone, or of an earlier run that was not open.
        store.nodes()?.iter().for_each(|path| change.remove(path));
    }
    change.write(state::FILE, &state::to_json(&engine.state())?);
    for id in wanted.iter().filter(|id| **id != certificates::KEY_PARAMETERS) {
        engine.files(id)?.iter().for_each(|(path, contents)| change.write(path, contents));
    }
    store.commit(&change)?;
    let dir = dir.display();
    let places = match target {
        Target::InstallConfig => format!("{dir}"),
        Target::Manifests => format!("{dir}, {dir}/manifests and {dir}/openshift"),
        Target::IgnitionConfigs | Target::SingleNodeIgnitionConfig => format!("{dir} and {dir}/auth"),
    };
    messages.push(Message::info(format!("{} created in: {places}", target.title().replace(' ', "-"))));
    Ok(Outcome { messages })
}
