//! One thin file a command: parse, call, print.

pub(crate) mod analyze;
mod ask;
mod bare_metal;
pub(crate) mod certs;
mod certs_live;
mod certs_recover;
pub(crate) mod chaos;
pub(crate) mod completion;
pub(crate) mod create;
pub(crate) mod csr;
pub(crate) mod dashboard;
pub(crate) mod destroy;
pub(crate) mod dist;
pub(crate) mod docs;
mod elsewhere;
pub(crate) mod etcd;
pub(crate) mod explain;
pub(crate) mod gather;
pub(crate) mod graph;
mod hardware;
pub(crate) mod helper;
mod helper_check;
mod helper_site;
mod helper_status;
pub(crate) mod image;
pub(crate) mod init;
pub(crate) mod journal;
pub(crate) mod kubectl;
pub(crate) mod lab;
mod lab_change;
mod log;
mod membership;
pub(crate) mod node;
mod node_change;
pub(crate) mod node_reissue;
pub(crate) mod operator;
mod power;
pub(crate) mod preflight;
pub(crate) mod probe;
pub(crate) mod release;
mod screen;
pub(crate) mod stage;
pub(crate) mod status;
pub(crate) mod step;
pub(crate) mod timeline;
pub(crate) mod up;
pub(crate) mod verify;
pub(crate) mod version;
pub(crate) mod wait_for;
mod wait_node;

/// As the parser ends, where it cannot know by itself.
const WRONG_USAGE: u8 = 2;

impl lab::Output {
    /// For programs as JSON, else for people.
    fn print(&self, value: &serde_json::Value, table: impl FnOnce()) {
        match self.output {
            lab::Format::Json => println!("{value:#}"),
            lab::Format::Table => table(),
        }
    }
}
