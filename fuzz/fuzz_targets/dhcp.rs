//! Any packets: the helper answers or not, never with anything to boot for a machine that is not in the inventory, and its pool never
//! grows.
#![no_main]

#[path = "../site.rs"]
mod site;

use libfuzzer_sys::fuzz_target;
use seedling_helper::dhcp::handle_with;
use seedling_helper::dhcp::pool::Leases;

/// Where a packet has the machine's address, and where the file to boot.
const MAC: std::ops::Range<usize> = 28..34;
const FILE: std::ops::Range<usize> = 108..236;

/// A machine's question up to its options: nobody guesses 240 bytes and the cookie at their end.
fn question(machine: u8, options: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 236];
    packet[..3].copy_from_slice(&[1, 1, 6]);
    packet[MAC.end - 1] = machine;
    packet.extend([0x63, 0x82, 0x53, 0x63]);
    packet.extend(options);
    packet
}

fuzz_target!(|packets: Vec<(Option<u8>, Vec<u8>)>| {
    let mut leases = Leases::default();
    for (now, (machine, bytes)) in (0..).zip(packets) {
        let packet = machine.map_or(bytes.clone(), |machine| question(machine, &bytes));
        let decision = handle_with(site::config(), &mut leases, &packet, now);
        if let Some((reply, _)) = decision.reply {
            let known = matches!(reply[MAC], [0, 0, 0, 0, 0, 0 | 1]);
            assert!(known || reply[FILE].iter().all(|byte| *byte == 0));
        }
        assert!(leases.given.len() <= 11);
    }
});
