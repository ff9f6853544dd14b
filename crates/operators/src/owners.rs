//! The key pairs that a running cluster keeps, as they are: when each ends, and from when on it is renewed.

use crate::Result;
use crate::static_pod::certificates::ISSUED;
use kube::Client;
use seedling_api::{Files, Meta, Secret};
use seedling_cluster::get;
use seedling_pki::trust::{self, Owned, Renewal};
use seedling_pki::{Life, Policy, life};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A Secret of the trust table as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub owned: Owned,
    /// Of the certificate in it that ends first.
    pub life: Life,
    /// How many certificates it has.
    pub certificates: usize,
    /// The next signer is being handed out.
    pub next: bool,
}

impl Kept {
    /// When its operator starts to renew it.
    pub fn renewed_from(&self, policy: &Policy) -> Option<OffsetDateTime> {
        match self.owned.renewal {
            Renewal::Leaf | Renewal::LongLeaf => Some(self.life.ends - policy.renew_before),
            Renewal::Signer => Some(self.life.ends - policy.renew_before * 2),
            Renewal::Never(_) => None,
        }
    }

    /// It was made since that moment, and nothing is under way.
    pub fn is_since(&self, moment: OffsetDateTime) -> bool {
        matches!(self.owned.renewal, Renewal::Never(_)) || (self.life.issued >= moment && !self.next)
    }
}

/// All that are there.
pub async fn list(client: &Client) -> Result<Vec<Kept>> {
    let mut found = Vec::new();
    for owned in trust::owned() {
        let secret = get::<Secret>(client, Some(owned.namespace), owned.secret).await?;
        found.extend(secret.and_then(|secret| kept(owned, &secret)));
    }
    Ok(found)
}

fn kept(owned: Owned, secret: &Secret) -> Option<Kept> {
    let files = secret.files();
    let certs = files.iter().filter(|(key, _)| key.ends_with(".crt") && *key != "next.crt");
    let lives: Vec<_> = certs.filter_map(|(_, text)| life(text).ok()).collect();
    let first = lives.iter().copied().min_by_key(|life| life.ends)?;
    let issued = secret
        .annotation(ISSUED)
        .and_then(|text| OffsetDateTime::parse(text, &Rfc3339).ok())
        .unwrap_or(first.issued);
    let next = files.contains_key("next.crt");
    Some(Kept { owned, life: Life { issued, ..first }, certificates: lives.len(), next })
}

#[cfg(test)]
#[path = "mounted_tests.rs"]
#[expect(clippy::unwrap_used, reason = "tests")]
mod mounted;
#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use seedling_api::secret;
    use seedling_pki::{CaSpec, KeyAlgorithm, new_ca};
    use seedling_types::names::NS_ETCD;
    use time::Duration;

    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH.saturating_add(Duration::days(20_000));

    fn ca(days: i64) -> String {
        let spec = CaSpec { cn: "a", ou: None, validity: Duration::days(days) };
        new_ca(&spec, KeyAlgorithm::default(), NOW).unwrap().cert
    }

    #[test]
    fn the_first_end_counts_and_a_signer_is_done_when_nothing_waits() {
        let (long, short) = (ca(900), ca(300));
        let of = |secret: &str| trust::owned().find(|o| o.secret == secret).unwrap();
        let mut all = secret(NS_ETCD, "x", "Opaque", [("a.crt", &*long), ("b.crt", &*short), ("b.key", "")]);
        let seen = kept(of("etcd-all-certs"), &all).unwrap();
        assert_eq!((seen.certificates, seen.life.ends), (2, NOW + Duration::days(300)));
        assert_eq!(seen.renewed_from(&Policy::default()), Some(NOW + Duration::days(240)));
        assert!(seen.is_since(NOW) && !seen.is_since(NOW + Duration::SECOND));
        let later = NOW + Duration::MINUTE;
        all.metadata.annotations = Some([(ISSUED.to_string(), later.format(&Rfc3339).unwrap())].into());
        assert!(kept(of("etcd-all-certs"), &all).unwrap().is_since(later));

        let signer = secret(NS_ETCD, "x", "Opaque", [("tls.crt", &*long), ("next.crt", &*short)]);
        let seen = kept(of("csr-signer"), &signer).unwrap();
        assert_eq!((seen.certificates, seen.next, seen.is_since(NOW)), (1, true, false));
        assert_eq!(seen.renewed_from(&Policy::default()), Some(NOW + Duration::days(780)));
    }
}
