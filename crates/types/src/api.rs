//! What API servers and the load balancer before them agree on.

use std::time::Duration;

/// How long an API server that was told to end still serves, while its `/readyz` says so and the load balancer sends new
/// connections elsewhere (checks come at least every 500 ms).
pub const SHUTDOWN_DELAY: Duration = Duration::from_secs(2);
