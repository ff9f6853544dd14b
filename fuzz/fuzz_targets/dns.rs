//! Any packet as a question: a reply is one to this question and fits its frame, and what is carried to others comes back only as an
//! answer to what was asked.
#![no_main]

#[path = "../site.rs"]
mod site;

use libfuzzer_sys::fuzz_target;
use seedling_helper::dns::{Verdict, Zones, belongs, failed, judge};
use std::sync::OnceLock;

fuzz_target!(|heard: (Vec<u8>, Vec<u8>)| {
    static ZONES: OnceLock<Zones> = OnceLock::new();
    let zones = ZONES.get_or_init(|| Zones::of(site::config(), 1).expect("the zones of the config"));
    let (packet, other) = heard;
    for forwards in [false, true] {
        match judge(zones, &packet, forwards) {
            Verdict::Reply(reply) => check(&packet, &reply),
            Verdict::Forward => {
                assert!(forwards, "nobody may be asked");
                check(&packet, &failed(&packet).expect("a question can be answered with a failure"));
                assert!(!belongs(&packet, &packet), "a question is no answer");
            }
            Verdict::Ignore => {}
        }
    }
    if belongs(&packet, &other) {
        assert_eq!(packet[..2], other[..2]);
    }
});

fn check(question: &[u8], reply: &[u8]) {
    assert_eq!(reply[..2], question[..2], "the number of another question");
    assert!(reply[2] & 0x80 != 0, "no reply");
    assert!(question[2] & 0x80 == 0, "a reply to a reply: two servers would go on for ever");
    assert!(u16::try_from(reply.len()).is_ok(), "{} bytes", reply.len());
}
