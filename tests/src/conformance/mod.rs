//! The real Kubernetes conformance suite on a lab.
//!
//! In: the payload in the cache, and the suite's own sources, pinned in `release/conformance`. Out: a verdict for each test that was
//! asked for, and a report. The program that runs it is `bin/conformance`.

pub mod images;
pub mod lab;
pub mod programs;
pub mod report;
pub mod suite;

pub use programs::Programs;
