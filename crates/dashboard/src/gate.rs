//! Who may see the page: on loopback everybody on this machine, elsewhere whoever has the token; and only by an address, so that no
//! foreign site can have its name point here (DNS rebinding).

use aws_lc_rs::constant_time::verify_slices_are_equal;
use std::net::{IpAddr, SocketAddr};

pub const COOKIE: &str = "seedling-dashboard";

/// Of 32 random bytes; only needed where others can connect.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// None on loopback.
    pub fn for_address(listen: SocketAddr) -> Result<Option<Self>, aws_lc_rs::error::Unspecified> {
        if listen.ip().is_loopback() {
            return Ok(None);
        }
        Ok(Some(Self(random()?)))
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// Takes as long whatever is wrong with it.
    pub fn is(&self, said: &str) -> bool {
        verify_slices_are_equal(self.0.as_bytes(), said.as_bytes()).is_ok()
    }

    /// Among the cookies of a request.
    pub fn is_in(&self, cookies: &str) -> bool {
        let values =
            cookies.split(';').filter_map(|cookie| cookie.trim().strip_prefix(COOKIE)?.strip_prefix('='));
        values.into_iter().any(|value| self.is(value))
    }
}

/// 64 hexadecimal digits.
pub fn random() -> Result<String, aws_lc_rs::error::Unspecified> {
    let mut bytes = [0u8; 32];
    aws_lc_rs::rand::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The `Host` header names an address, or this machine itself: nobody's DNS had a say in it.
pub fn is_address(host: &str) -> bool {
    let without_port = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() && !name.ends_with(':') => name,
        _ => host,
    };
    let bare = without_port.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(without_port);
    bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_are_hosts() {
        for (host, good) in [
            ("127.0.0.1", true),
            ("127.0.0.1:8080", true),
            ("localhost:1", true),
            ("[::1]:8080", true),
            ("[::1]", true),
            ("192.168.1.5:9000", true),
            ("evil.example:8080", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example:80", false),
            ("", false),
            (":80", false),
            ("127.0.0.1:99999", false),
            ("[::1", false),
        ] {
            assert_eq!(is_address(host), good, "{host:?}");
        }
    }

    #[test]
    fn a_token_is_asked_for_where_others_can_connect() {
        let token = |listen: &str| Token::for_address(listen.parse().unwrap()).unwrap();
        assert!(token("127.0.0.1:0").is_none() && token("[::1]:0").is_none());
        let (a, b) = (token("0.0.0.0:0").unwrap(), token("192.168.1.5:80").unwrap());
        assert!(a.text().len() == 64 && a.text() != b.text());
        assert!(a.is(a.text()) && !a.is(b.text()) && !a.is("") && !a.is(&a.text()[1..]));
        let with = |value: &str| format!("theme=dark; {COOKIE}={value}; x=y");
        assert!(a.is_in(&with(a.text())) && !a.is_in(&with(b.text())) && !a.is_in("") && !a.is_in(a.text()));
    }
}
