//! Walks the graph: what is on the disk, what an earlier run made, what has to be made again.
//!
//! An asset is dirty if one of those it is made of was changed by the user. Then it is made again, and what lies on the disk in
//! its place is discarded. Otherwise the disk wins over the state, and the state over making.

use super::asset::{Asset, Found, Id};
use crate::config::InstallConfig;
use crate::given::{Given, Run};
use crate::store::Files;
use crate::{CreateError, Level, Message, Result, install_config, nodes};
use seedling_types::Inventory;
use std::collections::{BTreeMap, BTreeSet};

/// Member of the state file that lists assets by name.
const STALE: &str = "stale";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    ToBeMade,
    Made,
    Disk,
    State,
}

struct Entry {
    files: Files,
    source: Source,
    dirty: bool,
    consumed: Vec<String>,
    /// Files of the user's own that lie among discarded ones.
    left_over: Files,
}

/// What an asset is made of: those that it declares and how the run was asked for, nothing else.
pub(crate) struct Parents<'a> {
    asset: &'a Asset,
    entries: &'a BTreeMap<Id, Entry>,
    given: &'a Given<'a>,
}

impl<'a> Parents<'a> {
    pub(crate) fn files(&self, id: Id) -> Result<&'a Files> {
        self.declared(id)?;
        files(self.entries, id)
    }
    pub(crate) fn file(&self, id: Id, path: &str) -> Result<&'a str> {
        self.files(id)?.get(path).map(String::as_str).ok_or(CreateError::Missing(id))
    }
    /// The install-config, as read.
    pub(crate) fn config(&self) -> Result<&'a InstallConfig> {
        self.declared(install_config::ID).map(|()| &self.given.config)
    }
    /// hosts.yaml, as read.
    pub(crate) fn inventory(&self) -> Result<Option<&'a Inventory>> {
        self.declared(nodes::INVENTORY).map(|()| self.given.inventory.as_ref())
    }
    pub(crate) fn run(&self) -> &'a Run<'a> {
        &self.given.run
    }
    fn declared(&self, need: Id) -> Result<()> {
        let asset = self.asset.id;
        let declared = asset == need || self.asset.needs.contains(&need);
        if declared { Ok(()) } else { Err(CreateError::Undeclared { asset, need }) }
    }
}

fn files(entries: &BTreeMap<Id, Entry>, id: Id) -> Result<&Files> {
    let entry = entries.get(id).filter(|entry| entry.source != Source::ToBeMade);
    entry.map(|entry| &entry.files).ok_or(CreateError::Missing(id))
}

pub(crate) struct Engine<'a> {
    given: &'a Given<'a>,
    assets: BTreeMap<Id, Asset>,
    state: BTreeMap<Id, Files>,
    /// Made of something that has changed since, and not made again yet.
    stale: BTreeSet<Id>,
    entries: BTreeMap<Id, Entry>,
    pub messages: Vec<Message>,
}

impl<'a> Engine<'a> {
    pub(crate) fn new(assets: Vec<Asset>, given: &'a Given<'a>, mut state: BTreeMap<String, Files>) -> Self {
        let assets: BTreeMap<Id, Asset> = assets.into_iter().map(|asset| (asset.id, asset)).collect();
        let stale = state.remove(STALE).unwrap_or_default();
        let stale = assets.keys().copied().filter(|id| stale.contains_key(*id)).collect();
        let state = assets.keys().filter_map(|id| Some((*id, state.remove(&format!("*{id}"))?))).collect();
        Self { given, assets, state, stale, entries: BTreeMap::new(), messages: vec![] }
    }

    pub(crate) fn fetch_target(&mut self, id: Id) -> Result<()> {
        let name = self.assets[id].name.clone();
        let done = self.load(id, 0).and_then(|()| self.fetch(id));
        done.map_err(|e| e.within(&format!("failed to fetch {name}")))
    }

    pub(crate) fn files(&self, id: Id) -> Result<&Files> {
        files(&self.entries, id)
    }

    /// For the state file: what an earlier run made and this one did not look at stays, and is stale if it is made of
    /// something that this run changed.
    pub(crate) fn state(&self) -> BTreeMap<String, Files> {
        let key = |id: &Id| format!("*{id}");
        let old = self.state.iter().map(|(id, files)| (key(id), files.clone()));
        let fetched = self.entries.iter().filter(|(_, entry)| entry.source != Source::ToBeMade);
        let mut state: BTreeMap<_, _> =
            old.chain(fetched.map(|(id, entry)| (key(id), entry.files.clone()))).collect();
        let stale =
            self.state.keys().filter(|id| self.is_stale(id)).map(|id| (id.to_string(), String::new()));
        state.insert(STALE.into(), stale.collect());
        state
    }

    fn is_stale(&self, id: Id) -> bool {
        let fetched = |id| self.entries.get(id).filter(|entry| entry.source != Source::ToBeMade);
        let changed = |need| fetched(need).is_some_and(|e| matches!(e.source, Source::Disk | Source::Made));
        let behind = |need: &Id| changed(*need) || self.is_stale(need);
        fetched(id).is_none() && (self.stale.contains(id) || self.assets[id].needs.iter().any(behind))
    }

    /// Every asset that lies on the disk and is no target: name and files.
    pub(crate) fn consumed(&self, targets: &[Id]) -> Vec<(&str, &[String])> {
        let gone = self.entries.iter().filter(|(id, entry)| {
            !targets.contains(id) && entry.source != Source::ToBeMade && !entry.consumed.is_empty()
        });
        gone.map(|(id, entry)| (self.assets[id].name.as_str(), entry.consumed.as_slice())).collect()
    }

    /// Files of a target that the user or an earlier run left, and that are not part of it any more.
    pub(crate) fn outdated(&self, targets: &[Id]) -> Vec<&String> {
        let targets = targets.iter().filter_map(|id| self.entries.get(id));
        targets.flat_map(|e| e.consumed.iter().filter(|path| !e.files.contains_key(*path))).collect()
    }

    fn load(&mut self, id: Id, depth: usize) -> Result<()> {
        if self.entries.contains_key(id) {
            return Ok(());
        }
        let mut dirty = self.stale.contains(id);
        for need in self.assets[id].needs.clone() {
            self.load(need, depth + 1)?;
            let entry = &self.entries[need];
            dirty |= entry.dirty || entry.source == Source::Disk;
        }
        let name = self.assets[id].name.clone();
        let inside = |e: CreateError| e.within(&format!("failed to load asset {name:?}"));
        let known = self.state.get(id);
        let found = (self.assets[id].load)(self.given, known).map_err(inside)?;
        let insisted = found.as_ref().is_some_and(|found| found.insisted);
        let is_there = found.is_some();
        let Found { files, consumed, .. } = found.unwrap_or_default();
        let entry = |files, source, left_over| Entry { files, source, dirty, consumed, left_over };
        let entry = if dirty && !insisted {
            let left_over =
                files.into_iter().filter(|(path, _)| !known.is_some_and(|k| k.contains_key(path)));
            let left_over: Files = left_over.collect();
            if is_there {
                let indent = "  ".repeat(depth);
                self.messages.push(Message {
                    level: Level::Warning,
                    text: format!(
                        "{indent}Discarding the {name} that was provided in the target directory because its dependencies are \
                         dirty and it needs to be regenerated"
                    ),
                });
            }
            entry(Files::new(), Source::ToBeMade, left_over)
        } else if is_there && known != Some(&files) {
            entry(files, Source::Disk, Files::new())
        } else if let Some(known) = known {
            entry(known.clone(), Source::State, Files::new())
        } else {
            entry(Files::new(), Source::ToBeMade, Files::new())
        };
        if entry.source != Source::ToBeMade {
            (self.assets[id].check)(&entry.files, self.given.run.options).map_err(inside)?;
        }
        self.entries.insert(id, entry);
        Ok(())
    }

    fn fetch(&mut self, id: Id) -> Result<()> {
        if self.entries[id].source != Source::ToBeMade {
            return Ok(());
        }
        let (name, needs) = (self.assets[id].name.clone(), self.assets[id].needs.clone());
        for need in needs {
            self.fetch(need).map_err(|e| e.within(&format!("failed to fetch dependency of {name:?}")))?;
        }
        let asset = &self.assets[id];
        let parents = Parents { asset, entries: &self.entries, given: self.given };
        let made = (asset.make)(&parents, &mut self.messages);
        let mut files = made.map_err(|e| e.within(&format!("failed to generate asset {name:?}")))?;
        if let Some(entry) = self.entries.get_mut(id) {
            for (path, contents) in std::mem::take(&mut entry.left_over) {
                files.entry(path).or_insert(contents);
            }
            (entry.files, entry.source) = (files, Source::Made);
        }
        Ok(())
    }
}
