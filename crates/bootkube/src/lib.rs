//! bootkube: grows the temporary control plane on the bootstrap node and hands it over.
//!
//! In: what bootstrap.ign wrote under `/opt/openshift`. Out: static pods, objects in the API, lines in the
//! node's journal, and in the end a cluster that no longer needs this machine.

mod alone;
mod apply;
mod conditions;
mod context;
mod error;
mod identity;
mod leader;
mod plan;
mod progress;
mod quorum;
mod release_image;
mod render;
mod resume;
mod runner;
pub mod seeds;
mod settings;
mod stages;
pub mod step;
mod verify;

pub use alone::start_etcd;
pub use conditions::CONDITIONS;
pub use context::Context;
pub use error::{Error, Result};
pub use identity::Refused;
pub use plan::{Outcome, PLAN, PlannedStage};
pub use progress::report_progress;
pub use quorum::{NotAccepted, accept_loss};
pub use release_image::fetch_release_manifests;
pub use render::{Rendered, Tree, render, tree};
pub use runner::{Extent, lock, run_extent, run_plan, run_stages};
pub use verify::{Verdict, verify};
