//! URLs as Go's `url.ParseRequestURI` reads them, with its errors.

use super::go;

pub(super) struct Url {
    pub scheme: String,
    pub host: String,
}

pub(super) fn parse(text: &str) -> Result<Url, String> {
    parts(text).map_err(|why| format!("parse {}: {why}", go::quote(text)))
}

fn parts(text: &str) -> Result<Url, String> {
    if text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Err("net/url: invalid control character in URL".into());
    }
    if text.is_empty() {
        return Err("empty url".into());
    }
    let (scheme, rest) = scheme(text)?;
    let url = |host: String| Url { scheme: scheme.to_lowercase(), host };
    let rest = rest.split('?').next().unwrap_or_default();
    if text == "*" || !rest.starts_with('/') && !scheme.is_empty() {
        return Ok(url(String::new()));
    }
    if !rest.starts_with('/') {
        return Err("invalid URI for request".into());
    }
    let (host, path) = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        Some(authority) => {
            let end = authority.find('/').unwrap_or(authority.len());
            (host_of(&authority[..end])?, &authority[end..])
        }
        None => (String::new(), rest),
    };
    escapes(path, false)?;
    Ok(url(host))
}

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (i, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if i > 0 => {}
            ':' if i == 0 => return Err("missing protocol scheme".into()),
            ':' => return Ok((&text[..i], &text[i + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

/// The name or address, without user, brackets and port.
fn host_of(authority: &str) -> Result<String, String> {
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let (name, port) = if host.starts_with('[') {
        let end = host.rfind(']').ok_or("missing ']' in host")?;
        (&host[..=end], &host[end + 1..])
    } else {
        host.split_at(host.find(':').unwrap_or(host.len()))
    };
    let digits = port.strip_prefix(':').is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()));
    if !port.is_empty() && !digits {
        return Err(format!("invalid port {} after host", go::quote(port)));
    }
    escapes(name, true)?;
    if let Some(user) = user {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
        if !user.bytes().all(allowed) {
            return Err("net/url: invalid userinfo".into());
        }
        escapes(user, false)?;
    }
    Ok(name.trim_start_matches('[').trim_end_matches(']').to_string())
}

/// Every `%` starts an escape; a host has none but of bytes beyond ASCII, and no characters that would need one.
fn escapes(text: &str, host: bool) -> Result<(), String> {
    let bytes = text.as_bytes();
    let mut i = 0;
    while let Some(byte) = bytes.get(i) {
        if *byte == b'%' {
            let escape = bytes.get(i..i + 3).filter(|e| e[1..].iter().all(u8::is_ascii_hexdigit));
            if escape.is_none_or(|e| host && e[1] < b'8' && e != b"%25") {
                let shown = String::from_utf8_lossy(&bytes[i..bytes.len().min(i + 3)]).into_owned();
                return Err(format!("invalid URL escape {}", go::quote(&shown)));
            }
            i += 3;
            continue;
        }
        let allowed =
            byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(byte) || *byte >= 0x80;
        if host && !allowed {
            return Err(format!(
                "invalid character {} in host name",
                go::quote(&char::from(*byte).to_string())
            ));
        }
        i += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Go 1.26 answered.
    #[test]
    fn as_go_reads_them() {
        let cases = [
            ("not a url", Err("invalid URI for request")),
            ("proxy.example.com:3128", Ok(("proxy.example.com", ""))),
            ("http://a b", Err("invalid character \" \" in host name")),
            ("http://[::1", Err("missing ']' in host")),
            ("http://a:b", Err("invalid port \":b\" after host")),
            ("http://x:80:90", Err("invalid port \":80:90\" after host")),
            ("://x", Err("missing protocol scheme")),
            ("/x", Ok(("", ""))),
            ("*", Ok(("", ""))),
            ("", Err("empty url")),
            ("http://%zz", Err("invalid URL escape \"%zz\"")),
            ("http://x/%2", Err("invalid URL escape \"%2\"")),
            ("http://[fe80::1%en0]/", Err("invalid URL escape \"%en\"")),
            ("1http://x", Err("invalid URI for request")),
            ("proxy", Err("invalid URI for request")),
            ("ht tp://x", Err("invalid URI for request")),
            ("http://user:pa ss@x", Err("net/url: invalid userinfo")),
            ("http://x\u{1}", Err("net/url: invalid control character in URL")),
            ("http:x", Ok(("http", ""))),
            ("http:/x", Ok(("http", ""))),
            ("HTTP://x", Ok(("http", "x"))),
            ("http://a_b", Ok(("http", "a_b"))),
            ("http://<x>", Ok(("http", "<x>"))),
            ("http://a:99999", Ok(("http", "a"))),
            ("http://[::1]:80", Ok(("http", "::1"))),
            ("http://user@:80", Ok(("http", ""))),
        ];
        for (text, want) in cases {
            let got = parts(text);
            let got =
                got.as_ref().map(|url| (url.scheme.as_str(), url.host.as_str())).map_err(String::as_str);
            assert_eq!(got, want, "{text:?}");
        }
        assert_eq!(parse("a b").err().as_deref(), Some("parse \"a b\": invalid URI for request"));
    }
}
