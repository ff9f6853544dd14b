//! Why a bring-up failed: the log bundle of `gather bootstrap`, without secrets, and the rules that find the cause in it.
//!
//! In: files of machines, by lab or by ssh. Out: `log-bundle-ID.tar.gz` in upstream's layout; upstream's lines about it, word for word;
//! and one cause with its evidence and the next step. Bundles come from others: they are read within limits, and never unpacked.

pub mod bundle;
mod cause;
pub mod collect;
mod facts;
mod message;
mod redact;
pub mod rules;
mod services;
pub mod upstream;

pub use bundle::{Bundle, BundleError};
pub use cause::{Cause, Evidence, Finding, Link};
pub use message::matches;
pub use redact::{Leak, leaks, redacted};
pub use rules::{RULES, Rule, diagnose};
