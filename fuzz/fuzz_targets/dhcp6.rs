//! Any packet from any address: an answer is one to this question, and only a machine of the inventory gets one.
#![no_main]

#[path = "../site.rs"]
mod site;

use libfuzzer_sys::fuzz_target;
use seedling_helper::dhcp6::handle;
use std::net::IpAddr;

/// Type, then the number of the question.
const NUMBER: std::ops::Range<usize> = 1..4;

fuzz_target!(|heard: (Vec<u8>, [u8; 16])| {
    let (packet, from) = heard;
    let decision = handle(site::config(), &packet, IpAddr::from(from));
    if let Some(reply) = decision.reply {
        assert_eq!(reply[NUMBER], packet[NUMBER]);
        assert!(matches!(reply[0], 2 | 7), "neither ADVERTISE nor REPLY: {}", reply[0]);
        assert_eq!(decision.events.len(), 2);
    }
    if let Some(host) = decision.boots {
        assert!(site::config().inventory.hosts.contains(&host));
    }
});
