//! Small formats inside an install-config: DNS names, SSH keys, pull secrets.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
     start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

pub fn subdomain(name: &str) -> Result<(), &'static str> {
    let ends = |label: &str| {
        let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        edge(label.as_bytes().first()) && edge(label.as_bytes().last())
    };
    let inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name.len() > 253 {
        Err("must be no more than 253 characters")
    } else if !name.split('.').all(|label| ends(label) && label.bytes().all(inside)) {
        Err(SUBDOMAIN)
    } else {
        Ok(())
    }
}

/// `[options] type base64 [comment]`, where the type is repeated inside the encoded key.
pub fn is_ssh_key(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.windows(2).any(|pair| {
        let Ok(blob) = STANDARD.decode(pair[1]) else { return false };
        let Some((length, rest)) = blob.split_first_chunk::<4>() else { return false };
        rest.get(..u32::from_be_bytes(*length) as usize) == Some(pair[0].as_bytes())
    })
}

pub fn pull_secret(secret: &str) -> Result<(), String> {
    let parsed: Value =
        serde_json::from_str(secret).map_err(|e| match secret.chars().nth(e.column().saturating_sub(1)) {
            None => "unexpected end of JSON input".to_string(),
            Some(c) if e.to_string().starts_with("trailing") => {
                format!("invalid character '{c}' after top-level value")
            }
            Some(c) => format!("invalid character '{c}' looking for beginning of value"),
        })?;
    let Some(object) = parsed.as_object() else {
        let kind = if parsed.is_array() { "array" } else { "value" };
        return Err(format!("json: cannot unmarshal {kind} into Go value of type validate.imagePullSecret"));
    };
    let auths = object.get("auths").and_then(Value::as_object).filter(|auths| !auths.is_empty());
    for (host, entry) in auths.ok_or("auths required")? {
        if !["auth", "credsStore"]
            .iter()
            .any(|key| entry.get(key).and_then(Value::as_str).is_some_and(|v| !v.is_empty()))
        {
            return Err(format!("{host:?} requires either auth or credsStore"));
        }
    }
    Ok(())
}
