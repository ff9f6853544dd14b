//! Plain lines on stderr, one a step, each with the time since the start.

use std::time::Instant;

pub struct Progress(Instant);

impl Progress {
    pub fn start() -> Self {
        Self(Instant::now())
    }
    pub fn step(&self, what: impl AsRef<str>) {
        eprintln!("{:7.1}s  {}", self.0.elapsed().as_secs_f64(), what.as_ref());
    }
}
