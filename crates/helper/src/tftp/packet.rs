//! TFTP's packets: bytes in, what a client asks or says out, and back. RFC 1350, with options by RFC 2347.

/// What a client sends to a server that only gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    Read(Request),
    /// Somebody wants to put a file here.
    Write,
    Ack(u16),
    /// The client gave up, and says why.
    Error(u16, String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub file: String,
    pub octet: bool,
    pub options: Options,
}

/// Wishes of the client, and then what it gets. An option that is not understood is not answered (RFC 2347).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// RFC 2348: bytes a block.
    pub block: Option<u16>,
    /// RFC 2349: the client wants to know the size.
    pub size: Option<u64>,
    /// RFC 2349: seconds until a packet is sent again.
    pub timeout: Option<u8>,
    /// RFC 7440: blocks until the client answers.
    pub window: Option<u16>,
}

impl Options {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    Undefined = 0,
    NotFound = 1,
    Refused = 2,
    Illegal = 4,
}

const READ: u16 = 1;
const WRITE: u16 = 2;
const DATA: u16 = 3;
const ACK: u16 = 4;
const ERROR: u16 = 5;
const OPTIONS: u16 = 6;

/// Longer names are nobody's.
const LONGEST_NAME: usize = 255;
const LEAST_BLOCK: u64 = 8;
const LARGEST_BLOCK: u64 = 65464;

/// None: no packet of TFTP, or one that nobody sends to a server.
pub fn parse(packet: &[u8]) -> Option<Heard> {
    let (kind, rest) = number(packet)?;
    match kind {
        READ => request(rest).map(Heard::Read),
        WRITE => Some(Heard::Write),
        ACK => number(rest).map(|(block, _)| Heard::Ack(block)),
        ERROR => {
            let (code, text) = number(rest)?;
            let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
            Some(Heard::Error(code, String::from_utf8_lossy(&text[..end]).into_owned()))
        }
        _ => None,
    }
}

fn request(rest: &[u8]) -> Option<Request> {
    // Every field ends with a zero; what stands behind the last one is filling.
    let mut fields = rest.split(|byte| *byte == 0);
    let last = fields.next_back()?;
    let fields: Vec<_> = fields.map(|field| std::str::from_utf8(field).ok()).collect::<Option<_>>()?;
    let (file, mode) = match fields.as_slice() {
        [file, mode, ..] if !file.is_empty() && file.len() <= LONGEST_NAME => (*file, *mode),
        _ => return None,
    };
    if last.len() > LONGEST_NAME {
        return None;
    }
    let mut options = Options::default();
    for pair in fields[2..].chunks_exact(2) {
        let (name, value) = (pair[0].to_ascii_lowercase(), pair[1].parse::<u64>().ok());
        let Some(value) = value else { continue };
        match name.as_str() {
            "blksize" if (LEAST_BLOCK..=LARGEST_BLOCK).contains(&value) => {
                options.block = value.try_into().ok()
            }
            "tsize" => options.size = Some(value),
            "timeout" if value > 0 => options.timeout = value.try_into().ok(),
            "windowsize" if value > 0 => options.window = value.try_into().ok(),
            _ => {}
        }
    }
    Some(Request { file: file.into(), octet: mode.eq_ignore_ascii_case("octet"), options })
}

fn number(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<2>()?;
    Some((u16::from_be_bytes(*number), rest))
}

pub fn data(block: u16, bytes: &[u8]) -> Vec<u8> {
    [&DATA.to_be_bytes()[..], &block.to_be_bytes(), bytes].concat()
}

pub fn options(granted: &Options) -> Vec<u8> {
    let said = [
        ("blksize", granted.block.map(u64::from)),
        ("tsize", granted.size),
        ("timeout", granted.timeout.map(u64::from)),
        ("windowsize", granted.window.map(u64::from)),
    ];
    let mut packet = OPTIONS.to_be_bytes().to_vec();
    for (name, value) in said.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        packet.extend(format!("{name}\0{value}\0").into_bytes());
    }
    packet
}

pub fn error(code: Code, text: &str) -> Vec<u8> {
    [&ERROR.to_be_bytes()[..], &(code as u16).to_be_bytes(), text.as_bytes(), &[0]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Option<Heard> {
        parse(&[&[0, 1], text.as_bytes()].concat())
    }

    fn asked(file: &str, octet: bool, options: Options) -> Option<Heard> {
        Some(Heard::Read(Request { file: file.into(), octet, options }))
    }

    #[test]
    fn requests() {
        let none = Options::default();
        let all = Options { block: Some(1432), size: Some(0), timeout: Some(3), window: Some(16) };
        let table = [
            ("undionly.kpxe\0octet\0", asked("undionly.kpxe", true, none)),
            ("a\0OcTeT\0", asked("a", true, none)),
            ("a\0netascii\0", asked("a", false, none)),
            (
                "a\0octet\0blksize\x001432\0TSIZE\x000\0timeout\x003\0windowsize\x0016\0",
                asked("a", true, all),
            ),
            // As some ROMs do: filled up with zeros, or with an option cut off.
            ("a\0octet\0tsize\x000\0\0\0\0", asked("a", true, Options { size: Some(0), ..none })),
            ("a\0octet\0blksize\0", asked("a", true, none)),
            // Out of range, or no number: as if it were not there.
            ("a\0octet\0blksize\x007\0", asked("a", true, none)),
            ("a\0octet\0blksize\x0065465\0", asked("a", true, none)),
            ("a\0octet\0blksize\0-1\0windowsize\x000\0timeout\x00256\0multicast\0\0", asked("a", true, none)),
            ("", None),
            ("a", None),
            ("a\0", None),
            ("a\0octet", None),
            ("\0octet\0", None),
        ];
        for (text, want) in table {
            assert_eq!(read(text), want, "{text:?}");
        }
        assert_eq!(read(&format!("{}\0octet\0", "a".repeat(256))), None);
        assert_eq!(parse(b"\0\x01\xff\xfe\0octet\0"), None);
    }

    #[test]
    fn the_rest_of_what_clients_say() {
        assert_eq!(parse(b"\0\x04\x01\x02"), Some(Heard::Ack(258)));
        assert_eq!(parse(b"\0\x02a\0octet\0"), Some(Heard::Write));
        assert_eq!(parse(b"\0\x05\0\x08enough\0"), Some(Heard::Error(8, "enough".into())));
        for noise in
            [&b""[..], b"\0", b"\0\x04\x01", b"\0\x05\0", b"\0\x03\0\x01data", b"\0\x06a\0b\0", b"\x01\x01"]
        {
            assert_eq!(parse(noise), None, "{noise:?}");
        }
    }

    #[test]
    fn answers() {
        let granted = Options { block: Some(1432), size: Some(70_000), ..Options::default() };
        assert_eq!(options(&granted), b"\0\x06blksize\x001432\0tsize\x0070000\0");
        assert_eq!(data(258, b"ab"), b"\0\x03\x01\x02ab");
        assert_eq!(error(Code::NotFound, "no such file"), b"\0\x05\0\x01no such file\0");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            parse(&bytes);
        }
    }
}
