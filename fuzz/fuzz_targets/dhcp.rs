//! Any packet, for a helper with everything: it answers or not, and never with anything to boot for a machine that is not in the inventory.

#![no_main]

use libfuzzer_sys::fuzz_target;
use seedling_helper::dhcp::handle_with;
use seedling_helper::dhcp::pool::Leases;
use seedling_types::HelperConfig;
use std::sync::OnceLock;

const YAML: &str = "{clusterDomain: c.example.com, interface: eth0, address: 10.0.0.1, network: 10.0.0.0/24, ignitionDir: /i, releaseDir: /r,
    events: /e, readyFile: /f, pool: {from: 10.0.0.100, to: 10.0.0.110}, relays: [10.0.0.9], boot: {imageDir: /b},
    inventory: {hosts: [{name: w, role: worker, mac: '00:00:00:00:00:00', address: 10.0.0.2}]}}";

fuzz_target!(|packets: Vec<Vec<u8>>| {
    static CONFIG: OnceLock<HelperConfig> = OnceLock::new();
    let config = CONFIG.get_or_init(|| serde_saphyr::from_str(YAML).unwrap());
    let mut leases = Leases::default();
    for (now, packet) in (0..).zip(packets) {
        let decision = handle_with(config, &mut leases, &packet, now);
        if let Some((reply, _)) = decision.reply {
            // Bytes 28 to 33 are whose it is, 108 to 235 the file.
            assert!(reply[28..34] == [0; 6] || reply[108..236].iter().all(|byte| *byte == 0));
        }
        assert!(leases.given.len() <= 11);
    }
});
