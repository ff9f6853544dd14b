//! The live page: one self-contained, read-only page that shows a bring-up as it happens, or again.
//!
//! In: a lab's files, and what its API says when it answers. Out: a [`story::Story`], parts with times, over HTTP (`server`) or as one
//! file that replays without a server (`page::record`). `inputs` to `story` is pure; `read`, `cluster`, `live` and `server` are its edge.

mod change;
mod cluster;
mod describe;
pub mod gate;
mod history;
pub mod inputs;
mod live;
mod page;
mod read;
mod server;
pub mod story;

pub use live::{Live, read_once};
pub use page::record;
pub use server::serve;
