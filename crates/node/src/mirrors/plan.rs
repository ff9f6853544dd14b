//! Where an image of a registry with mirrors is to be asked for. Pure.

use seedling_components::node::MirrorsFile;
use seedling_components::outside::MirrorSource;

/// What containerd asks for: `/v2/NAME/KIND/REFERENCE?ns=REGISTRY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub registry: String,
    pub repository: String,
    /// `manifests`, `blobs` or `referrers`.
    pub kind: String,
    pub reference: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// With its scheme.
    pub server: String,
    pub host: String,
    pub repository: String,
    /// Not a mirror: who pulls has credentials of their own for it.
    pub is_source: bool,
}

impl Wanted {
    pub(super) fn parse(path: &str, query: &str) -> Option<Self> {
        let (rest, reference) = path.strip_prefix("/v2/")?.rsplit_once('/')?;
        let (repository, kind) = rest.rsplit_once('/')?;
        let registry = query.split('&').find_map(|pair| pair.strip_prefix("ns="))?.replace("%3A", ":");
        let known = ["manifests", "blobs", "referrers"].contains(&kind);
        let harmless = |c: char| c.is_ascii_alphanumeric() || "._-:/".contains(c);
        let sane = [&registry, repository, reference].iter().all(|text| text.chars().all(harmless));
        let climbs = repository.split('/').any(|part| part.is_empty() || part == "." || part == "..");
        (known && sane && !climbs && !registry.contains('/')).then(|| Self {
            registry: registry.clone(),
            repository: repository.into(),
            kind: kind.into(),
            reference: reference.into(),
        })
    }

    fn by_digest(&self) -> bool {
        self.reference.contains(':')
    }
}

impl Place {
    pub(super) fn url(&self, wanted: &Wanted) -> String {
        format!("{}/v2/{}/{}/{}", self.server, self.repository, wanted.kind, wanted.reference)
    }
}

/// In this order. Mirrors are for digests only: what a tag means is only the source's to say. An error is the reason why there is none.
pub(super) fn places(file: &MirrorsFile, wanted: &Wanted) -> Result<Vec<Place>, String> {
    let name = format!("{}/{}", wanted.registry, wanted.repository);
    let found = file.sources.iter().filter(|source| below(&name, &source.source).is_some());
    let mut places = Vec::new();
    let mut contacts_source = true;
    if let Some(source) = found.max_by_key(|source| source.source.len()) {
        contacts_source = !source.never_contact_source;
        if wanted.by_digest() {
            places.extend(mirrored(source, &name));
        } else if !contacts_source {
            return Err(format!(
                "{name}:{} is named by a tag, {} has mirrors, which are for digests only, and its policy is NeverContactSource: \
                 name the image by digest",
                wanted.reference, source.source
            ));
        }
    }
    if contacts_source {
        let server = file.places.get(&wanted.registry).cloned();
        places.push(Place {
            server: server.unwrap_or_else(|| https(&wanted.registry)),
            host: wanted.registry.clone(),
            repository: wanted.repository.clone(),
            is_source: true,
        });
    }
    Ok(places)
}

fn mirrored(source: &MirrorSource, name: &str) -> Vec<Place> {
    let rest = below(name, &source.source).unwrap_or_default();
    let place = |mirror: &String| {
        let whole = format!("{mirror}{rest}");
        let (host, repository) = whole.split_once('/')?;
        Some(Place {
            server: https(host),
            host: host.into(),
            repository: repository.into(),
            is_source: false,
        })
    };
    source.mirrors.iter().filter_map(place).collect()
}

/// What of a name is below a source: nothing, or a path that begins with a slash.
fn below<'a>(name: &'a str, source: &str) -> Option<&'a str> {
    name.strip_prefix(source).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Docker's hub is elsewhere than it says.
fn https(host: &str) -> String {
    format!("https://{}", if host == "docker.io" { "registry-1.docker.io" } else { host })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:00";

    fn file() -> MirrorsFile {
        let source = |source: &str, mirrors: &[&str], never_contact_source| MirrorSource {
            source: source.into(),
            mirrors: mirrors.iter().map(ToString::to_string).collect(),
            never_contact_source,
        };
        MirrorsFile {
            key: String::new(),
            sources: vec![
                source("quay.io/a", &["m:5000/x/a", "n/a"], false),
                source("quay.io/a/secret", &["m:5000/s"], true),
                source("whole.example.com", &["m:5000/whole"], false),
            ],
            places: [("whole.example.com".to_string(), "http://helper:5000".to_string())].into(),
        }
    }

    fn urls(path: &str, registry: &str) -> Result<Vec<String>, String> {
        let wanted = Wanted::parse(path, &format!("ns={registry}")).unwrap();
        Ok(places(&file(), &wanted)?.iter().map(|place| place.url(&wanted)).collect())
    }

    #[test]
    fn the_longest_source_decides() {
        let both = urls(&format!("/v2/a/b/c/manifests/{DIGEST}"), "quay.io").unwrap();
        let expected = [
            "https://m:5000/v2/x/a/b/c/manifests/sha256:00",
            "https://n/v2/a/b/c/manifests/sha256:00",
            "https://quay.io/v2/a/b/c/manifests/sha256:00",
        ];
        assert_eq!(both, expected);
        assert_eq!(
            urls(&format!("/v2/a/secret/blobs/{DIGEST}"), "quay.io").unwrap(),
            ["https://m:5000/v2/s/blobs/sha256:00"]
        );
        // A name that only begins alike is another one.
        assert_eq!(
            urls(&format!("/v2/ab/manifests/{DIGEST}"), "quay.io").unwrap(),
            ["https://quay.io/v2/ab/manifests/sha256:00"]
        );
        let whole = urls(&format!("/v2/z/manifests/{DIGEST}"), "whole.example.com").unwrap();
        assert_eq!(
            whole,
            ["https://m:5000/v2/whole/z/manifests/sha256:00", "http://helper:5000/v2/z/manifests/sha256:00"]
        );
    }

    #[test]
    fn a_tag_is_the_sources() {
        assert_eq!(
            urls("/v2/a/b/manifests/latest", "quay.io").unwrap(),
            ["https://quay.io/v2/a/b/manifests/latest"]
        );
        let refused = urls("/v2/a/secret/manifests/latest", "quay.io").unwrap_err();
        assert!(refused.contains("name the image by digest"), "{refused}");
    }

    #[test]
    fn only_what_containerd_asks_is_understood() {
        let parsed = Wanted::parse("/v2/a/b/manifests/v1", "x=y&ns=r%3A5000").unwrap();
        assert_eq!((parsed.registry.as_str(), parsed.repository.as_str()), ("r:5000", "a/b"));
        for (path, query) in [
            ("/v2/", "ns=quay.io"),
            ("/v2/a/manifests/x", ""),
            ("/v2/a/tags/list", "ns=quay.io"),
            ("/v2/a/../b/manifests/x", "ns=quay.io"),
            ("/v2/a/manifests/x", "ns=quay.io/evil"),
            ("/v2/a/manifests/x", "ns=user@quay.io"),
        ] {
            assert_eq!(Wanted::parse(path, query), None, "{path}?{query}");
        }
    }
}
