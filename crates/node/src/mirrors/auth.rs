//! Who a registry takes us for: the pull secret's entry for a repository, and what a registry asks to be shown. Pure.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use std::collections::BTreeMap;

/// By registry, with or without a repository: the value of a basic `Authorization`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Credentials(BTreeMap<String, String>);

impl Credentials {
    /// Of docker's config.json.
    pub(super) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let config: Value = serde_json::from_str(text)?;
        let entries = config["auths"].as_object().into_iter().flatten().filter_map(|(name, entry)| {
            let of = |key: &str| entry[key].as_str().filter(|text| !text.is_empty());
            let joined = || Some(STANDARD.encode(format!("{}:{}", of("username")?, of("password")?)));
            let name = name.split_once("://").map_or(name.as_str(), |(_, rest)| rest);
            Some((name.trim_end_matches('/').to_string(), of("auth").map(String::from).or_else(joined)?))
        });
        Ok(Self(entries.collect()))
    }

    /// Of the longest name that the repository is below of.
    pub(super) fn of(&self, host: &str, repository: &str) -> Option<&str> {
        let mut name = format!("{host}/{repository}");
        loop {
            if let Some(found) = self.0.get(&name) {
                return Some(found);
            }
            name.truncate(name.rfind('/')?);
        }
    }
}

/// What a 401 asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    Basic,
    /// Where to get a token, and for which service.
    Bearer {
        realm: String,
        service: Option<String>,
    },
}

impl Challenge {
    pub(super) fn parse(header: &str) -> Option<Self> {
        let (scheme, parameters) = header.trim().split_once(' ')?;
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        let value = |name: &str| {
            let (_, rest) = parameters.split_once(&format!("{name}=\""))?;
            Some(rest.split_once('"')?.0.to_string())
        };
        let bearer = scheme.eq_ignore_ascii_case("bearer");
        bearer.then_some(Self::Bearer { realm: value("realm")?, service: value("service") })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_has_the_credentials() {
        let secret = r#"{"auths": {"https://quay.io/": {"auth": "all"}, "quay.io/a": {"auth": "a"},
            "m:5000": {"username": "u", "password": "p"}, "empty": {"email": "x"}}}"#;
        let credentials = Credentials::parse(secret).unwrap();
        for (host, repository, expected) in [
            ("quay.io", "a/b", Some("a")),
            ("quay.io", "ab", Some("all")),
            ("m:5000", "x", Some("dTpw")),
            ("m", "x", None),
            ("empty", "x", None),
        ] {
            assert_eq!(credentials.of(host, repository), expected, "{host}/{repository}");
        }
        assert!(Credentials::parse("no JSON").is_err());
    }

    #[test]
    fn registries_ask_for_a_password_or_a_token() {
        assert_eq!(Challenge::parse("Basic realm=\"r\""), Some(Challenge::Basic));
        let token = "Bearer realm=\"https://auth.example.com/token\",service=\"registry\",scope=\"x\"";
        let realm = "https://auth.example.com/token".to_string();
        assert_eq!(
            Challenge::parse(token),
            Some(Challenge::Bearer { realm, service: Some("registry".into()) })
        );
        assert_eq!(Challenge::parse("Negotiate"), None);
        assert_eq!(Challenge::parse("Bearer nothing"), None);
    }
}
