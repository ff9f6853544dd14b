//! One description of a thing: a stage, component, certificate, port, file, condition, command or step of the texts Seedling follows.
//!
//! Each is written next to the code it describes, as a [`Text`] or from the table the program itself works with. `seedling explain`,
//! step mode and the reference part of the book are made from it.

mod catalog;
mod page;

pub use catalog::{Catalog, Found, on_node};

use serde::Serialize;
use std::fmt;

/// The words of one thing, where they are written down. What does not apply is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    pub what: &'static str,
    pub why: &'static str,
    pub reads: &'static [&'static str],
    pub writes: &'static [&'static str],
    /// What shows that it works; for people a command.
    pub check: &'static str,
    /// What usually goes wrong, and what to do then.
    pub fails: &'static [&'static str],
    /// OpenShift's equivalent.
    pub upstream: &'static str,
    /// Names of other descriptions.
    pub see: &'static [&'static str],
}

impl Text {
    pub const EMPTY: Self =
        Self { what: "", why: "", reads: &[], writes: &[], check: "", fails: &[], upstream: "", see: &[] };
}

/// A component, a condition: whatever is only a name and its words.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    pub name: &'static str,
    pub text: Text,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Stage,
    Component,
    Cert,
    Port,
    File,
    Condition,
    Command,
    Seed,
    #[serde(rename = "installconfig")]
    Field,
}

impl Kind {
    pub const ALL: [Kind; 9] = [
        Kind::Stage,
        Kind::Component,
        Kind::Cert,
        Kind::Port,
        Kind::File,
        Kind::Condition,
        Kind::Command,
        Kind::Seed,
        Kind::Field,
    ];

    /// The first part of a full name.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Stage => "stage",
            Kind::Component => "component",
            Kind::Cert => "cert",
            Kind::Port => "port",
            Kind::File => "file",
            Kind::Condition => "condition",
            Kind::Command => "command",
            Kind::Seed => "seed",
            Kind::Field => "installconfig",
        }
    }

    pub fn about(self) -> &'static str {
        match self {
            Kind::Stage => "what bootkube does on the bootstrap node, in order; stage.N is the N-th",
            Kind::Component => "programs, operators, services on nodes, servers of the helper",
            Kind::Cert => "key pairs and bundles of the trust table",
            Kind::Port => "ports of nodes and of the helper",
            Kind::File => "files and directories on nodes; any path a stage reads or writes can be asked",
            Kind::Condition => "what is waited for, by name",
            Kind::Command => "commands of this program, e.g. \"command.lab up\"",
            Kind::Seed => {
                "steps of the texts that Seedling follows: seed.003.N is stage N of bootkube.sh; 000, 001 and 002 are timelines"
            }
            Kind::Field => "fields of install-config.yaml, e.g. installconfig.networking",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What is printed, and what `-o json` is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Description {
    pub kind: Kind,
    pub name: String,
    /// Other names under which it is found.
    pub also: Vec<String>,
    pub what: String,
    pub why: String,
    /// What only this kind has: a port's protocol, a certificate's signer.
    pub facts: Vec<Fact>,
    pub reads: Vec<String>,
    pub writes: Vec<String>,
    pub check: String,
    pub fails: Vec<String>,
    pub upstream: String,
    pub see: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    pub name: &'static str,
    pub value: String,
}

impl Description {
    pub fn new(kind: Kind, name: impl Into<String>, text: &Text) -> Self {
        let list = |items: &[&str]| items.iter().map(ToString::to_string).collect();
        Self {
            kind,
            name: name.into(),
            also: vec![],
            what: text.what.into(),
            why: text.why.into(),
            facts: vec![],
            reads: list(text.reads),
            writes: list(text.writes),
            check: text.check.into(),
            fails: list(text.fails),
            upstream: text.upstream.into(),
            see: list(text.see),
        }
    }

    pub fn also(mut self, name: impl Into<String>) -> Self {
        self.also.push(name.into());
        self
    }

    /// Nothing, if there is nothing to say.
    pub fn fact(mut self, name: &'static str, value: impl Into<String>) -> Self {
        let value = value.into();
        if !value.is_empty() {
            self.facts.push(Fact { name, value });
        }
        self
    }

    /// `stage.etcd-bootstrap`, `file./etc/kubernetes`.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.kind, self.name)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.also).map(String::as_str)
    }
}
