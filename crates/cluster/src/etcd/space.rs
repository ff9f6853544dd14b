//! How full a member's database is, and what makes room in it.

use super::Etcd;
use crate::Result;
use etcd_client::{AlarmAction, AlarmOptions, AlarmType, CompactionOptions, StatusResponse};
use std::collections::BTreeSet;

/// Of one member, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// The database's file. What is deleted leaves room in it; only defragmenting makes it smaller.
    pub file: u64,
    /// What is in the file.
    pub used: u64,
    /// A file of this size is full: then no member takes writes any more.
    pub quota: u64,
}

impl Space {
    pub(super) fn of(status: &StatusResponse) -> Self {
        let [file, used, quota] = [status.db_size(), status.raft_used_db_size(), status.db_size_quota()]
            .map(|bytes| u64::try_from(bytes).unwrap_or_default());
        Self { file, used, quota }
    }

    /// Of the file, what defragmenting would give back.
    pub fn unused_percent(&self) -> u64 {
        (self.file.saturating_sub(self.used) * 100).checked_div(self.file).unwrap_or_default()
    }

    /// Of the quota, what defragmenting cannot give back.
    pub fn used_percent(&self) -> u64 {
        (self.used * 100).checked_div(self.quota).unwrap_or_default()
    }
}

impl Etcd {
    /// Members that have said they are full. Nobody takes that back by himself, not even when there is room again.
    pub async fn full_members(&mut self) -> Result<BTreeSet<u64>> {
        let listed = self.client.alarm(AlarmAction::Get, AlarmType::Nospace, None).await;
        let listed = listed.map_err(|e| self.failed(e))?;
        let full = listed.alarms().iter().filter(|alarm| alarm.alarm() == AlarmType::Nospace);
        Ok(full.map(|alarm| alarm.member_id()).collect())
    }

    /// It is full no more: when nobody is, writes are taken again.
    pub async fn is_no_longer_full(&mut self, id: u64) -> Result<()> {
        let mut member = AlarmOptions::new();
        member.with_member(id);
        let told = self.client.alarm(AlarmAction::Deactivate, AlarmType::Nospace, Some(member)).await;
        told.map(drop).map_err(|e| self.failed(e))
    }

    /// Every member forgets what the keys were before this revision.
    pub async fn forget_before(&mut self, revision: i64) -> Result<()> {
        let at_once = CompactionOptions::new().with_physical();
        match self.client.compact(revision, Some(at_once)).await {
            // API servers do the same every few minutes.
            Err(etcd_client::Error::GRpcStatus(status))
                if status.message().contains("has been compacted") =>
            {
                Ok(())
            }
            compacted => compacted.map(drop).map_err(|e| self.failed(e)),
        }
    }

    /// The member this is connected to writes its database anew, without what is unused. It answers nobody meanwhile.
    pub async fn defragment(&mut self) -> Result<()> {
        self.client.defragment().await.map(drop).map_err(|e| self.failed(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_in_per_cent() {
        let space = Space { file: 400, used: 100, quota: 800 };
        assert_eq!((space.unused_percent(), space.used_percent()), (75, 12));
        let older = Space { quota: 0, ..space };
        assert_eq!(older.used_percent(), 0, "etcd before 3.6 does not tell its quota");
        assert_eq!(Space::default().unused_percent(), 0);
    }
}
