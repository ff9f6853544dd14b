//! Secrets in text: found by their shape, and replaced. Pure.
//!
//! Private keys, tokens of every kind, password hashes, Secrets, and the same inside base64, gzip and data URLs. What only looks like a
//! secret is replaced as well: a log without a word still explains a failure, a log with a token gives a cluster away.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use flate2::read::GzDecoder;
use std::io::Read;
use std::ops::Range;

/// A secret's place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leak {
    pub at: Range<usize>,
    pub what: &'static str,
}

/// Of encodings inside encodings.
const DEPTH: u8 = 3;
/// Of what was packed into a word.
const UNPACKED: u64 = 4 << 20;

/// What follows these and a colon or an equals sign is nobody else's business. Lower case.
const KEYS: [&str; 24] = [
    "client-key-data",
    "token",
    "password",
    "passwd",
    "passphrase",
    "bearertoken",
    "bearer_token",
    "access_token",
    "id_token",
    "refresh_token",
    "identitytoken",
    "registrytoken",
    "passwordhash",
    "pullsecret",
    "client-secret",
    "clientsecret",
    "client_secret",
    "secretkey",
    "secret-key",
    "secret_key",
    "privatekey",
    "private-key",
    "private_key",
    "kubeadmin-password",
];
/// Crypt's and bcrypt's.
const HASHES: [&str; 7] = ["$2a$", "$2b$", "$2y$", "$5$", "$6$", "$y$", "$argon2"];
const BEGIN: &str = "-----BEGIN ";
const PRIVATE: &str = "PRIVATE KEY-----";

/// The file without secrets; none if all of it is one.
pub fn redacted(path: &str, content: Vec<u8>) -> Option<Vec<u8>> {
    if is_secret_file(path) {
        return None;
    }
    let text = match String::from_utf8(content) {
        Ok(text) => text,
        Err(other) => String::from_utf8_lossy(other.as_bytes()).into_owned(),
    };
    let is_manifest = [".yaml", ".yml", ".json"].iter().any(|end| path.ends_with(end));
    if is_manifest && holds_secret_object(&text) {
        return None;
    }
    let mut text = text;
    // What stood around a secret may look like one when it is gone.
    for _ in 0..4 {
        let found = leaks(&text);
        if found.is_empty() {
            return Some(text.into_bytes());
        }
        text = without(&text, &found);
    }
    leaks(&text).is_empty().then(|| text.into_bytes())
}

fn without(text: &str, found: &[Leak]) -> String {
    let (mut clean, mut from) = (String::with_capacity(text.len()), 0);
    for Leak { at, what } in found {
        if at.start < from {
            continue;
        }
        clean += text.get(from..at.start).unwrap_or_default();
        clean += &format!("[redacted: {what}]");
        from = at.end;
    }
    clean + text.get(from..).unwrap_or_default()
}

/// As upstream leaves out of rendered assets.
fn is_secret_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let part = |end: &str| name.ends_with(end);
    let named = name.contains("kubeconfig") || name.contains("secret") && !name.starts_with("secrets-names");
    path.starts_with("rendered-assets/") && named || part(".key") || part(".ign") || path.contains("/.kube/")
}

fn holds_secret_object(text: &str) -> bool {
    let yaml = || text.lines().any(|line| line.trim_start_matches(['-', ' ']).trim_end() == "kind: Secret");
    let json = || text.contains("\"kind\":\"Secret\"") || text.contains("\"kind\": \"Secret\"");
    yaml() || json()
}

/// Every secret in a text, in order.
pub fn leaks(text: &str) -> Vec<Leak> {
    let mut found = private_keys(text);
    found.extend(secret_lines(text));
    found.extend(data_urls(text, DEPTH));
    found.extend(words(text, DEPTH));
    found.sort_by_key(|leak| (leak.at.start, usize::MAX - leak.at.end));
    found
}

fn has_leak(text: &str, depth: u8) -> bool {
    !private_keys(text).is_empty()
        || holds_secret_object(text)
        || !data_urls(text, depth).is_empty()
        || !words(text, depth).is_empty()
}

/// From its first dash to its last; to the end if that is missing.
fn private_keys(text: &str) -> Vec<Leak> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(PRIVATE)).map(|at| from + at) {
        let head = text.get(..at).unwrap_or_default();
        let start = head.rfind(BEGIN).filter(|start| at - start < 64 && *start >= from);
        from = at + PRIVATE.len();
        let Some(start) = start else { continue };
        let rest = text.get(from..).unwrap_or_default();
        let end = rest.find(PRIVATE).map_or(text.len(), |end| from + end + PRIVATE.len());
        found.push(Leak { at: start..end, what: "private key" });
        from = end;
    }
    found
}

/// A log line that holds a whole Secret.
fn secret_lines(text: &str) -> Vec<Leak> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("\"Secret\"") {
        let start = text.get(..at).and_then(|head| head.rfind('\n')).map_or(0, |start| start + 1);
        let end = text.get(at..).and_then(|rest| rest.find('\n')).map_or(text.len(), |end| at + end);
        let line = text.get(start..end).unwrap_or_default();
        if holds_secret_object(line) && (line.contains("\"data\":") || line.contains("\"stringData\":")) {
            found.push(Leak { at: start..end, what: "Secret" });
        }
    }
    found
}

/// `data:,` with percent signs; base64 ones are words.
fn data_urls(text: &str, depth: u8) -> Vec<Leak> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("data:").filter(|_| depth > 0) {
        let rest = text.get(at..).unwrap_or_default();
        let end = rest.find(['"', '\'', ' ', '\n', '\\', '<', '`']).unwrap_or(rest.len());
        let url = rest.get(..end).unwrap_or_default();
        if url.contains('%') && url.contains(',') && has_leak(&unescaped(url), depth - 1) {
            found.push(Leak { at: at..at + end, what: "data URL with a secret" });
        }
    }
    found
}

fn unescaped(url: &str) -> String {
    let mut bytes = Vec::with_capacity(url.len());
    let mut rest = url.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'.' | b'$')
}

fn words(text: &str, depth: u8) -> Vec<Leak> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut before: Range<usize> = 0..0;
    let mut at = 0;
    while at < bytes.len() {
        if !of_word(bytes[at]) {
            at += 1;
            continue;
        }
        let end =
            bytes[at..].iter().position(|byte| !of_word(*byte)).map_or(bytes.len(), |length| at + length);
        let word = text.get(at..end).unwrap_or_default();
        let key = text.get(before.clone()).unwrap_or_default();
        let between = text.get(before.end..at).unwrap_or_default();
        if word.len() >= 6 {
            if let Some(what) = is_secret(word, key, between, depth) {
                found.push(Leak { at: at..end, what });
            } else {
                found.extend(parts(word, at));
            }
        }
        (before, at) = (at..end, end);
    }
    found
}

fn is_secret(word: &str, key: &str, between: &str, depth: u8) -> Option<&'static str> {
    let assigned = between.len() <= 8
        && between.contains([':', '='])
        && between.chars().all(|c| matches!(c, ':' | '=' | '"' | '\'' | '\\' | ' '));
    let key = key.trim_start_matches('-');
    let is_key = || KEYS.iter().any(|known| known.eq_ignore_ascii_case(key));
    if assigned && key.len() >= 5 && is_key() {
        return Some("credential");
    }
    if assigned
        && key.eq_ignore_ascii_case("auth")
        && word.len() >= 8
        && decoded(word).is_some_and(|d| d.contains(&b':'))
    {
        return Some("registry credential");
    }
    let header = between.trim_matches(' ').is_empty()
        && ["bearer", "basic"].iter().any(|k| k.eq_ignore_ascii_case(key));
    if header && word.len() >= 16 {
        return Some("authorization");
    }
    if word.starts_with("eyJ") && word.len() > 40 && word.matches('.').count() == 2 {
        return Some("JSON web token");
    }
    if word.contains('$') && HASHES.iter().any(|hash| word.find(hash).is_some_and(|at| word.len() - at >= 30))
    {
        return Some("password hash");
    }
    (word.len() >= 32 && depth > 0 && packs_a_secret(word, depth)).then_some("encoded secret")
}

/// What may stand inside a path or a list.
fn parts(word: &str, at: usize) -> impl Iterator<Item = Leak> {
    let place = move |part: &str| {
        let start = at + (part.as_ptr() as usize - word.as_ptr() as usize);
        start..start + part.len()
    };
    word.split(['/', '+', '_', '$']).filter(|part| part.len() >= 23).filter_map(move |part| {
        let trimmed = part.trim_matches(['.', '-']);
        let what = if is_bootstrap_token(trimmed) {
            "bootstrap token"
        } else if is_kubeadmin_password(trimmed) {
            "password"
        } else {
            return None;
        };
        Some(Leak { at: place(trimmed), what })
    })
}

fn is_bootstrap_token(word: &str) -> bool {
    let of_token = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    word.split_once('.')
        .is_some_and(|(id, secret)| (id.len(), secret.len()) == (6, 16) && of_token(id) && of_token(secret))
}

fn is_kubeadmin_password(word: &str) -> bool {
    let groups: Vec<_> = word.split('-').collect();
    let group = |g: &&str| g.len() == 5 && g.bytes().all(|b| b.is_ascii_alphanumeric());
    groups.len() == 4
        && groups.iter().all(group)
        && word.bytes().any(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
}

fn decoded(word: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let alphabet = if word.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
    GeneralPurpose::new(alphabet, config).decode(word).ok()
}

/// Base64, perhaps of gzip, of a text that has one.
fn packs_a_secret(word: &str, depth: u8) -> bool {
    let Some(bytes) = decoded(word) else { return false };
    let bytes = match bytes.starts_with(&[0x1f, 0x8b]) {
        true => {
            let mut plain = Vec::new();
            let _ = GzDecoder::new(bytes.as_slice()).take(UNPACKED).read_to_end(&mut plain);
            plain
        }
        false => bytes,
    };
    let text = String::from_utf8_lossy(&bytes);
    // Digests and keys that are public have no text in them.
    let readable =
        text.bytes().take(64).filter(|b| (b' '..0x7f).contains(b) || b"\n\t\r".contains(b)).count();
    readable * 2 > text.len().min(64) && has_leak(&text, depth - 1)
}
