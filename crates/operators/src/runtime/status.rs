//! The only writer of an operator's ClusterOperator.

use seedling_api::config::RelatedObject;
use seedling_cluster::operator_status::{Cond, Report, report, report_refusals, said_available};
use seedling_cluster::{Cache, ClusterError};

pub struct Status {
    pub cache: Cache,
    name: &'static str,
    version: String,
    related: Vec<RelatedObject>,
    /// What was told last.
    available: Option<bool>,
}

impl Status {
    /// Of the ClusterOperator `name`. It has reached `version`, the payload's, once it is available; `related` is what it looks after.
    pub fn new(cache: Cache, name: &'static str, version: &str, related: Vec<RelatedObject>) -> Self {
        Self { cache, name, version: version.into(), related, available: None }
    }

    /// Whether it is available by what was told last, here or by whoever led before.
    pub async fn was_available(&mut self) -> Result<bool, ClusterError> {
        let available = match self.available {
            Some(available) => available,
            None => said_available(&self.cache, self.name).await?,
        };
        self.available = Some(available);
        Ok(available)
    }

    /// Writes it if it is news. What the API server refuses this process is told as Degraded.
    pub async fn tell(
        &mut self,
        available: Cond,
        progressing: Cond,
        degraded: Cond,
    ) -> Result<(), ClusterError> {
        self.available = Some(available.status);
        let (version, related) = (self.version.clone(), self.related.clone());
        let told = Report { name: self.name.into(), available, progressing, degraded, version, related };
        report(&self.cache, &told).await
    }

    /// For whoever comes no further, and so to nothing else to tell. That it cannot be written either is only logged.
    pub async fn tell_refusals(&self) {
        if let Err(e) = report_refusals(&self.cache, self.name).await {
            tracing::warn!("{}: {e}", self.name);
        }
    }
}
