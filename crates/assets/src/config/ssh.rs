//! Public keys in the format of `authorized_keys`, with the errors of Go's ssh package.

use base64::{Engine, engine::general_purpose::STANDARD};

/// The type of the first line that is a key. Other lines are passed over, as upstream does.
pub(super) fn first_key(text: &str) -> Result<String, String> {
    let mut last = None;
    for line in text.split('\n').map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match key_of_line(line) {
            Ok(kind) => return Ok(kind),
            Err(why) => last = why.or(last),
        }
    }
    Err(match last {
        Some(why) => format!("ssh: no key found; last parsing error for ignored line: {why}"),
        None => "ssh: no key found".into(),
    })
}

/// `type key comment`, or options in front of that.
fn key_of_line(line: &str) -> Result<String, Option<String>> {
    let (kind, rest) = line.split_once([' ', '\t']).ok_or(None)?;
    let first = match typed_key(kind, rest) {
        Ok(kind) => return Ok(kind),
        Err(why) => Some(why),
    };
    let (kind, rest) = without_options(line).and_then(|rest| rest.split_once([' ', '\t'])).ok_or(first)?;
    typed_key(kind, rest).map_err(Some)
}

/// Options end at the first blank outside quotes.
fn without_options(line: &str) -> Option<&str> {
    let (mut quoted, mut before) = (false, ' ');
    for (i, c) in line.char_indices() {
        if !quoted && (c == ' ' || c == '\t') {
            return Some(line[i..].trim_start_matches([' ', '\t'])).filter(|rest| !rest.is_empty());
        }
        if c == '"' && before != '\\' {
            quoted = !quoted;
        }
        before = c;
    }
    None
}

fn typed_key(kind: &str, rest: &str) -> Result<String, String> {
    let encoded = rest.trim().split([' ', '\t']).next().unwrap_or_default();
    let blob = STANDARD.decode(encoded).map_err(|_| {
        // Go counts what it could read in groups of four.
        format!("illegal base64 data at input byte {}", readable(encoded))
    })?;
    let (inner, fields) = string(&blob).ok_or("ssh: short read")?;
    let inner = String::from_utf8_lossy(inner).into_owned();
    whole(&inner, fields)?;
    if inner != kind {
        return Err(format!(
            "ssh: authorized keys key type mismatch: human-readable type {kind:?}, encoded type {inner:?}"
        ));
    }
    Ok(inner)
}

fn readable(encoded: &str) -> usize {
    let letters = |b: u8| b.is_ascii_alphanumeric() || b == b'+' || b == b'/';
    let good = encoded.bytes().take_while(|b| letters(*b)).count();
    if good < encoded.len() { good } else { good - good % 4 }
}

fn string(blob: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = blob.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

/// Enough fields for the kind of key.
fn whole(kind: &str, mut fields: &[u8]) -> Result<(), String> {
    let wanted = match kind {
        "ssh-ed25519" => 1,
        "ssh-rsa" | "sk-ssh-ed25519@openssh.com" => 2,
        "ssh-dss" => 4,
        kind if kind.starts_with("ecdsa-sha2-nistp") => 2,
        kind if kind.starts_with("sk-ecdsa-sha2-nistp256") => 3,
        kind if kind.contains("-cert-v01@openssh.com") => 1,
        other => return Err(format!("ssh: unknown key algorithm: {other}")),
    };
    if wanted > 1 && fields.is_empty() {
        return Err("ssh: parse error in message type 0".into());
    }
    for _ in 0..wanted {
        let (_, rest) = string(fields).ok_or("ssh: short read")?;
        fields = rest;
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIJD1L38PLq39QJkTAyV6NKX2AJyqiAQ9gfXq1yGBrzmh";

    #[test]
    fn keys_are_found() {
        for text in [
            format!("ssh-ed25519 {KEY}"),
            format!("# mine\n\nno-pty ssh-ed25519 {KEY} me@here\r\n"),
            format!("command=\"a b\" ssh-ed25519 {KEY}"),
            format!("foo\nssh-ed25519 {KEY}"),
        ] {
            assert_eq!(first_key(&text).as_deref(), Ok("ssh-ed25519"), "{text}");
        }
    }

    /// What Go's ssh package answered.
    #[test]
    fn what_is_no_key() {
        let cases = [
            ("", ""),
            ("#c", ""),
            ("x", ""),
            ("ssh-ed25519", ""),
            (KEY, ""),
            ("not a key", "illegal base64 data at input byte 0"),
            ("hello world", "illegal base64 data at input byte 4"),
            ("ssh-ed25519 !!!! a b", "illegal base64 data at input byte 0"),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n", "illegal base64 data at input byte 4"),
            ("ssh-ed25519 AAAA", "ssh: short read"),
            ("ssh-dss AAAA", "ssh: short read"),
            ("ssh-rsa AAAAB3NzaC1yc2E=", "ssh: parse error in message type 0"),
            ("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAQ==", "ssh: short read"),
        ];
        for (text, why) in cases {
            let more = if why.is_empty() {
                String::new()
            } else {
                format!("; last parsing error for ignored line: {why}")
            };
            assert_eq!(first_key(text), Err(format!("ssh: no key found{more}")), "{text}");
        }
        let mismatch = first_key(&format!("ssh-rsa {KEY}")).unwrap_err();
        assert!(
            mismatch.ends_with("human-readable type \"ssh-rsa\", encoded type \"ssh-ed25519\""),
            "{mismatch}"
        );
    }
}
