//! An asset: all there is to say of it, in one value. Its file makes the value, the graph lists it.

use super::engine::Parents;
use crate::given::Given;
use crate::store::Files;
use crate::{Message, Options, Result};

/// Upstream's name for it.
pub(crate) type Id = &'static str;

type Load = dyn Fn(&Given, Option<&Files>) -> Result<Option<Found>>;
type Check = dyn Fn(&Files, &Options) -> Result<()>;
type Make = dyn Fn(&Parents, &mut Vec<Message>) -> Result<Files>;

pub(crate) struct Asset {
    pub id: Id,
    /// As people read it.
    pub name: String,
    /// What it is made of: nothing else can be read while it is made.
    pub needs: Vec<Id>,
    pub load: Box<Load>,
    pub check: Box<Check>,
    pub make: Box<Make>,
}

impl Asset {
    pub(crate) fn new(
        id: Id,
        name: &str,
        needs: &[Id],
        make: impl Fn(&Parents, &mut Vec<Message>) -> Result<Files> + 'static,
    ) -> Self {
        let (load, check): (Box<Load>, Box<Check>) = (Box::new(|_, _| Ok(None)), Box::new(|_, _| Ok(())));
        Self { id, name: name.into(), needs: needs.to_vec(), load, check, make: Box::new(make) }
    }
    /// It may be in the asset directory; `load` also gets what an earlier run made of it.
    pub(crate) fn loaded(
        self,
        load: impl Fn(&Given, Option<&Files>) -> Result<Option<Found>> + 'static,
    ) -> Self {
        Self { load: Box::new(load), ..self }
    }
    /// What was loaded or came from an earlier run may no longer be usable.
    pub(crate) fn checked(self, check: impl Fn(&Files, &Options) -> Result<()> + 'static) -> Self {
        Self { check: Box::new(check), ..self }
    }
}

/// An asset that lies in the asset directory.
#[derive(Default)]
pub(crate) struct Found {
    pub files: Files,
    /// To be removed when the asset has gone into another one.
    pub consumed: Vec<String>,
    /// Asked for by name: taken even if it is out of date.
    pub insisted: bool,
}

impl Found {
    pub(crate) fn all_of(files: Files) -> Self {
        Self { consumed: files.keys().cloned().collect(), files, insisted: false }
    }
}
