//! An operator's process: waits until it leads, works as long as it leads, and releases the lease on SIGTERM.

use super::Context;
use crate::{OperatorError, Result};
use futures::future::LocalBoxFuture;
use kube::Client;
use seedling_cluster::lease::{self, Leadership};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

/// A namespace or a role that the lease needs may be on its way.
const RETRY: Duration = Duration::from_millis(250);

pub type Run = fn(Context) -> LocalBoxFuture<'static, Result<()>>;

/// One row of the table of operators.
pub struct Operator {
    /// `seedling operator NAME`.
    pub name: &'static str,
    /// Namespace and name.
    pub lease: (&'static str, &'static str),
    pub run: Run,
}

impl Operator {
    pub async fn lead_and_run(&self, client: Client) -> Result<()> {
        let mut stop = signal(SignalKind::terminate())?;
        let mut leading = tokio::select! {
            leading = self.lead(&client) => leading,
            _ = stop.recv() => return Ok(()),
        };
        let context = Context { fence: Some(leading.fence()), ..Context::from(client) };
        let ended = tokio::select! {
            ended = (self.run)(context.clone()) => ended,
            // There is nothing to give up any more, and the next leader may begin at any moment.
            why = leading.lost() => return Err(OperatorError::LostLease(why)),
            ended = log_metrics_when_asked(&context) => ended,
            _ = stop.recv() => Ok(()),
        };
        leading.release().await;
        ended
    }

    async fn lead(&self, client: &Client) -> Leadership {
        let (namespace, lock) = self.lease;
        let identity = std::env::var("POD_NAME").unwrap_or_else(|_| format!("{lock}-{}", random()));
        let mut last = String::new();
        loop {
            match lease::lead(client.clone(), namespace, lock, &identity).await {
                Ok(leading) => return leading,
                Err(e) => {
                    if last != e.to_string() {
                        tracing::info!("cannot acquire the lease yet: {e}");
                        last = e.to_string();
                    }
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// `kill -USR1` asks.
async fn log_metrics_when_asked(context: &Context) -> Result<()> {
    let mut asked = signal(SignalKind::user_defined1())?;
    while asked.recv().await.is_some() {
        tracing::info!("metrics\n{}", context.metrics.text(Instant::now()));
    }
    std::future::pending().await
}

/// A process number would be the same in every container.
fn random() -> String {
    use std::hash::{BuildHasher, RandomState};
    format!("{:016x}", RandomState::new().hash_one(0))
}
