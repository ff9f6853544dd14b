//! Replies that were given before: the same question gets the same reply, but for its number. Machines ask for the same few names all day.

use super::answer::{Verdict, judge};
use super::zone::Zones;
use std::collections::HashMap;
use std::sync::Arc;

/// Then it begins anew: whoever asks for names that nobody has must not fill the memory.
const MOST: usize = 4096;
/// Longer questions are rare.
const LONGEST: usize = 256;
/// The number of a question, which its reply repeats.
const NUMBER: usize = 2;

#[derive(Default)]
pub(super) struct Replies {
    zones: Option<Arc<Zones>>,
    /// By everything but the number; for clients for whom others may be asked, and for the rest.
    known: [HashMap<Vec<u8>, Vec<u8>>; 2],
}

impl Replies {
    pub(super) fn judge(&mut self, zones: &Arc<Zones>, packet: &[u8], forwards: bool) -> Verdict {
        if !self.zones.as_ref().is_some_and(|of| Arc::ptr_eq(of, zones)) {
            *self = Self { zones: Some(zones.clone()), ..Self::default() };
        }
        let known = &mut self.known[usize::from(forwards)];
        let Some((number, question)) = packet.split_at_checked(NUMBER) else { return Verdict::Ignore };
        if let Some(reply) = known.get(question) {
            let mut reply = reply.clone();
            reply[..NUMBER].copy_from_slice(number);
            return Verdict::Reply(reply);
        }
        let verdict = judge(zones, packet, forwards);
        if let Verdict::Reply(reply) = &verdict
            && packet.len() <= LONGEST
            && reply.len() > NUMBER
        {
            if known.len() >= MOST {
                known.clear();
            }
            known.insert(question.to_vec(), reply.clone());
        }
        verdict
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::testing::config;
    use hickory_proto::op::{Message, MessageType, OpCode, Query};
    use hickory_proto::rr::{Name, RecordType};

    fn question(number: u16, name: &str) -> Vec<u8> {
        let mut message = Message::new(number, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        message.add_query(Query::query(Name::from_ascii(name).unwrap(), RecordType::A));
        message.to_vec().unwrap()
    }

    #[test]
    fn a_known_reply_is_the_one_that_would_be_made() {
        let zones = Arc::new(Zones::of(&config(), 1).unwrap());
        let mut replies = Replies::default();
        let names =
            ["api.ocp4.example.com.", "API.ocp4.example.com.", "no.ocp4.example.com.", "example.org."];
        for number in [7, 8, 65535] {
            for (name, forwards) in names.iter().flat_map(|name| [(name, false), (name, true)]) {
                let packet = question(number, name);
                assert_eq!(
                    replies.judge(&zones, &packet, forwards),
                    judge(&zones, &packet, forwards),
                    "{name}"
                );
            }
        }
        assert_eq!(replies.known.iter().map(HashMap::len).collect::<Vec<_>>(), [4, 3]);
        for junk in [&[][..], &[1], &[1, 2], &[0; 11]] {
            assert_eq!(replies.judge(&zones, junk, false), judge(&zones, junk, false), "{junk:?}");
        }
    }

    #[test]
    fn new_zones_have_new_replies_and_a_flood_leaves_little() {
        let mut config = config();
        let before = Arc::new(Zones::of(&config, 1).unwrap());
        let mut replies = Replies::default();
        let packet = question(1, "worker-0.ocp4.example.com.");
        let first = replies.judge(&before, &packet, false);
        config.inventory.hosts.last_mut().unwrap().address = [192, 168, 100, 99].into();
        let after = Arc::new(Zones::of(&config, 2).unwrap());
        assert_ne!(replies.judge(&after, &packet, false), first);
        for n in 0..2 * MOST {
            replies.judge(&after, &question(1, &format!("n{n}.ocp4.example.com.")), false);
        }
        assert!(replies.known[0].len() <= MOST);
    }
}
