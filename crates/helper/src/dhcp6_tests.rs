//! What clients get.

use super::*;
use crate::testing::config;

const MASTER: [u8; 6] = [0x52, 0x54, 0, 0, 0, 0x11];
const ITS: &str = "fd00::11";

fn dual() -> HelperConfig {
    let mut config = config();
    config.second_address = Some("fd00::1/64".parse().unwrap());
    let host = config.inventory.hosts.iter_mut().find(|h| h.mac == mac(MASTER)).unwrap();
    host.second_address = Some(ITS.parse().unwrap());
    config
}

fn link_local() -> IpAddr {
    "fe80::1234".parse().unwrap()
}

fn ask(kind: MessageType, duid: &[u8], server: Option<Vec<u8>>) -> Message {
    let mut message = Message::new_with_id(kind, [1, 2, 3]);
    message.opts_mut().insert(DhcpOption::ClientId(duid.to_vec()));
    let ia = IANA { id: 7, t1: 0, t2: 0, opts: Default::default() };
    message.opts_mut().insert(DhcpOption::IANA(ia));
    server.into_iter().for_each(|server| message.opts_mut().insert(DhcpOption::ServerId(server)));
    message
}

fn answer(message: &Message, from: IpAddr) -> (Vec<String>, Option<Message>) {
    let decision = handle(&dual(), &message.to_vec().unwrap(), from);
    let words = decision.events.iter().map(|event| match event {
        HelperEventKind::Dhcp { message, .. } => message.clone(),
        other => panic!("{other:?}"),
    });
    (words.collect(), decision.reply.map(|bytes| Message::from_bytes(&bytes).unwrap()))
}

fn given(reply: &Message) -> Vec<(String, u32)> {
    let Some(DhcpOption::IANA(ia)) = reply.opts().get(OptionCode::IANA) else { return vec![] };
    assert_eq!(ia.id, 7);
    let addresses = ia.opts.get_all(OptionCode::IAAddr).into_iter().flatten();
    let one = |option: &DhcpOption| match option {
        DhcpOption::IAAddr(address) => (address.addr.to_string(), address.valid_life),
        other => panic!("{other:?}"),
    };
    addresses.map(one).collect()
}

fn of_link() -> Vec<u8> {
    [&[0, 3, 0, 1][..], &MASTER].concat()
}

#[test]
fn a_known_machine_gets_its_address_for_good() {
    let here = duid_of("fd00::1".parse().unwrap());
    let (said, reply) = answer(&ask(MessageType::Solicit, &of_link(), None), link_local());
    let reply = reply.unwrap();
    assert_eq!(said, ["SOLICIT", "ADVERTISE"]);
    assert_eq!((reply.msg_type(), reply.xid()), (MessageType::Advertise, [1, 2, 3]));
    assert_eq!(given(&reply), [(ITS.to_string(), FOR_EVER)]);
    let dns = DhcpOption::DomainNameServers(vec!["fd00::1".parse().unwrap()]);
    assert_eq!(reply.opts().get(OptionCode::DomainNameServers), Some(&dns));

    let (said, reply) = answer(&ask(MessageType::Request, &of_link(), Some(here.clone())), link_local());
    assert_eq!((said, given(&reply.unwrap()).len()), (vec!["REQUEST".into(), "ACK".into()], 1));
    let (_, reply) = answer(&ask(MessageType::InformationRequest, &of_link(), None), link_local());
    assert_eq!(given(&reply.unwrap()), [], "it asked for no address");
}

#[test]
fn a_machine_is_known_by_its_duid_or_by_its_link_local_address() {
    let with_time = [&[0, 1, 0, 1, 9, 9, 9, 9][..], &MASTER].concat();
    let uuid = [&[0, 4][..], &[7; 16]].concat();
    let eui: IpAddr = "fe80::5054:ff:fe00:11".parse().unwrap();
    for (duid, from) in [(of_link(), link_local()), (with_time, link_local()), (uuid.clone(), eui)] {
        let (_, reply) = answer(&ask(MessageType::Solicit, &duid, None), from);
        assert_eq!(given(&reply.unwrap())[0].0, ITS);
    }
    let (said, reply) = answer(&ask(MessageType::Solicit, &uuid, None), link_local());
    assert_eq!((said.len(), reply), (0, None), "nobody knows who that is");
}

#[test]
fn strangers_and_those_who_chose_another_server_get_nothing() {
    let stranger = [0, 3, 0, 1, 0x52, 0x54, 0, 0, 0, 0x99];
    let (said, reply) = answer(&ask(MessageType::Solicit, &stranger, None), link_local());
    assert_eq!((said, reply), (vec!["SOLICIT".into(), "REFUSED".into()], None));
    let other = vec![0, 4, 1, 2];
    assert_eq!(answer(&ask(MessageType::Request, &of_link(), Some(other)), link_local()).1, None);
    assert_eq!(answer(&ask(MessageType::Request, &of_link(), None), link_local()).1, None);
}

#[test]
fn an_address_that_is_another_ones_ends() {
    let mut message = ask(MessageType::Rebind, &of_link(), None);
    let Some(DhcpOption::IANA(ia)) = message.opts_mut().get_mut(OptionCode::IANA) else { panic!("no IA") };
    let old = IAAddr {
        addr: "fd00::99".parse().unwrap(),
        preferred_life: 1,
        valid_life: 1,
        opts: Default::default(),
    };
    ia.opts.insert(DhcpOption::IAAddr(old));
    let (_, reply) = answer(&message, link_local());
    let mut given = given(&reply.unwrap());
    given.sort();
    assert_eq!(given, [(ITS.to_string(), FOR_EVER), ("fd00::99".to_string(), 0)]);
}

proptest::proptest! {
    #[test]
    fn anything_may_arrive(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
        handle(&dual(), &bytes, link_local());
    }
}
