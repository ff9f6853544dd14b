//! Bundles, secrets, upstream's lines, rules and messages.
#![expect(clippy::unwrap_used, reason = "tests")]

mod bundles;
mod messages;
mod recorded;
mod rules;
mod secrets;
