//! Which machine may have a config from the machine-config server: a token a node, of which the cluster knows only a digest.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// In the machine's own pointer config and in the asset directory's state, nowhere else; never printed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeToken(String);

impl NodeToken {
    pub fn new(random: [u8; 32]) -> Self {
        Self(hex(&random))
    }
    pub fn digest(&self) -> String {
        digest(&self.0)
    }
    /// For the `Authorization` header of a pointer config.
    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl fmt::Debug for NodeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeToken(…)")
    }
}

/// A token has 256 random bits: nothing slower, and no salt, is needed.
pub fn digest(token: &str) -> String {
    digest_of(token.as_bytes())
}

/// sha256 in hexadecimal digits.
pub fn digest_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // a String takes everything
        text
    })
}

/// In Secret openshift-machine-config-operator/node-tokens one key a node, beside [`POLICY_KEY`]; on the bootstrap node one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Admission {
    /// The server answers every client, as upstream's does.
    #[serde(default)]
    pub open: bool,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: BTreeMap<String, Issued>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Issued {
    /// Of the token.
    pub sha256: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
}

/// Once the node's first client certificate is on its way, the token is of no more use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    /// RFC 3339, UTC.
    pub at: String,
    /// sha256 of the public key the certificate is for: the same key may ask again, no other.
    pub key: String,
}

/// No host name has a dot, so no node's entry is called this.
pub const POLICY_KEY: &str = "policy.json";

#[derive(Serialize, Deserialize)]
struct Policy {
    open: bool,
}

impl Admission {
    /// The Secret's entries.
    pub fn entries(&self) -> Result<BTreeMap<String, String>, serde_json::Error> {
        let policy = (POLICY_KEY.to_string(), serde_json::to_string(&Policy { open: self.open })?);
        let node = |(name, issued): (&String, &Issued)| Ok((name.clone(), serde_json::to_string(issued)?));
        self.nodes.iter().map(node).chain([Ok(policy)]).collect()
    }

    /// Without a policy nobody knows whether the server is open: then there is no admission at all.
    pub fn from_entries(mut entries: BTreeMap<String, String>) -> Result<Self, String> {
        let policy = entries.remove(POLICY_KEY).ok_or_else(|| format!("{POLICY_KEY} is not there"))?;
        let Policy { open } = serde_json::from_str(&policy).map_err(|e| format!("{POLICY_KEY}: {e}"))?;
        let node = |(name, text): (String, String)| match serde_json::from_str(&text) {
            Ok(issued) => Ok((name, issued)),
            Err(e) => Err(format!("{name}: {e}")),
        };
        Ok(Self { open, nodes: entries.into_iter().map(node).collect::<Result<_, _>>()? })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_digest_and_never_shown() {
        let token = NodeToken::new([7; 32]);
        assert_eq!(token.bearer().strip_prefix("Bearer ").map(digest), Some(token.digest()));
        assert_eq!(token.bearer().len(), "Bearer ".len() + 64);
        assert!(!format!("{token:?}").contains("07"));
    }

    #[test]
    fn entries_and_back() {
        let spent = Some(Spent { at: "2026-11-16T00:00:00Z".into(), key: "k".into() });
        let issued = |spent| Issued { sha256: "d".into(), spent };
        let nodes = [("master-0".into(), issued(spent)), ("master-1".into(), issued(None))];
        let admission = Admission { open: false, nodes: nodes.into() };
        let entries = admission.entries().unwrap();
        assert_eq!(entries["master-1"], r#"{"sha256":"d"}"#);
        assert_eq!(Admission::from_entries(entries.clone()), Ok(admission));
        let without_policy = entries.into_iter().filter(|(name, _)| name != POLICY_KEY).collect();
        assert!(Admission::from_entries(without_policy).unwrap_err().contains("is not there"));
    }
}
