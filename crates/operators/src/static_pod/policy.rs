//! ConfigMap openshift-config/certificates: how long certificates live. It need not be there.

use crate::Result;
use seedling_api::{ConfigMap, Files};
use seedling_cluster::Cache;
use seedling_pki::Policy;
use seedling_types::names::{CERTIFICATES_CONFIGMAP, NS_CONFIG};

/// One with mistakes counts as none; they are the reason for which the operators say that they are degraded.
pub(crate) async fn read(cache: &Cache) -> Result<(Policy, Vec<String>)> {
    let map = cache.get::<ConfigMap>(Some(NS_CONFIG), CERTIFICATES_CONFIGMAP).await?;
    let data = map.map(|map| map.files()).unwrap_or_default();
    Ok(match Policy::parse(&data) {
        Ok(policy) => (policy, vec![]),
        Err(wrong) => (Policy::default(), wrong),
    })
}
