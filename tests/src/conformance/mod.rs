//! The real Kubernetes conformance suite on a lab.
//!
//! In: the payload in the cache, and the suite's own sources, pinned in `release/conformance`. Out: a verdict for each test that was
//! asked for, and a report. The program that runs it is `bin/conformance`.

pub(crate) mod images;
pub(crate) mod lab;
pub(crate) mod programs;
pub(crate) mod report;
pub(crate) mod suite;

pub(crate) use programs::Programs;
