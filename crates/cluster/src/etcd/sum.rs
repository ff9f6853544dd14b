//! A sum over all keys of a member, to compare it with the others'.

use super::Etcd;
use crate::Result;

/// Of what a member has up to a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sum {
    /// What was before this revision is forgotten, and not in the sum: two sums compare only if both forgot the same.
    pub forgotten: i64,
    pub hash: u32,
}

impl Etcd {
    /// The member this is connected to reads all that it has.
    pub async fn sum(&mut self, revision: i64) -> Result<Sum> {
        let summed = self.client.hash_kv(revision).await.map_err(|e| self.failed(e))?;
        Ok(Sum { forgotten: summed.compact_version(), hash: summed.hash() })
    }
}
