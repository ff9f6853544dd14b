//! The only writer of an operator's ClusterOperator.

use seedling_api::config::RelatedObject;
use seedling_cluster::operator_status::{self, Cond, Report, said_available};
use seedling_cluster::{Cache, ClusterError};

pub struct Status {
    pub cache: Cache,
    name: &'static str,
    version: String,
    related: Vec<RelatedObject>,
    /// As reported last.
    available: Option<bool>,
}

impl Status {
    /// Of the ClusterOperator `name`. It has reached `version`, the payload's, once it is available; `related` is what it looks after.
    pub fn new(cache: Cache, name: &'static str, version: &str, related: Vec<RelatedObject>) -> Self {
        Self { cache, name, version: version.into(), related, available: None }
    }

    /// Whether it was available by the last report, from here or from the previous leader.
    pub async fn was_available(&mut self) -> Result<bool, ClusterError> {
        let available = match self.available {
            Some(available) => available,
            None => said_available(&self.cache, self.name).await?,
        };
        self.available = Some(available);
        Ok(available)
    }

    /// Writes it if it changed. What the API server refuses this process is reported as Degraded.
    pub async fn report(
        &mut self,
        available: Cond,
        progressing: Cond,
        degraded: Cond,
    ) -> Result<(), ClusterError> {
        self.available = Some(available.status);
        let (version, related) = (self.version.clone(), self.related.clone());
        let told = Report { name: self.name.into(), available, progressing, degraded, version, related };
        operator_status::report(&self.cache, &told).await
    }

    /// For an operator that is stuck and has nothing else to report. A failure to write this is only logged.
    pub async fn report_refusals(&self) {
        if let Err(e) = operator_status::report_refusals(&self.cache, self.name).await {
            tracing::warn!("{}: {e}", self.name);
        }
    }
}
