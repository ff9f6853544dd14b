//! Any bytes before a connection: read as a PROXY header or not, and what a balancer writes names its client.
#![no_main]

use libfuzzer_sys::fuzz_target;
use seedling_types::proxy_protocol::{HEAD, MAX_REST, client, header, rest_length};
use std::net::{IpAddr, SocketAddr};

fuzz_target!(|heard: (Vec<u8>, [u8; 16], [u8; 4], u16)| {
    let (bytes, v6, v4, port) = heard;
    if let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() {
        let length = rest_length(head);
        assert!(length.is_none_or(|length| length <= MAX_REST));
        // Whether or not all of it arrived.
        let _ = client(head, &rest[..length.unwrap_or(0).min(rest.len())]);
    }
    let ends: [IpAddr; 2] = [v6.into(), v4.into()];
    for (from, to) in ends.into_iter().flat_map(|from| ends.map(|to| (from, to))) {
        let written = header(SocketAddr::new(from, port), SocketAddr::new(to, port));
        let (head, rest) = written.split_first_chunk::<HEAD>().expect("a whole header");
        assert_eq!(rest_length(head), Some(rest.len()));
        assert_eq!(client(head, rest), Some(from.to_canonical()));
    }
});
