use super::*;
use crate::dhcp::handle;
use crate::testing::config;
use dhcproto::{Decodable, Encodable};
use proptest::prelude::*;
use seedling_types::HelperConfig;
use seedling_types::helper::AddressPool;
use std::net::SocketAddrV4;

const MASTER: [u8; 6] = [0x52, 0x54, 0, 0, 0, 0x11];
const STRANGER: [u8; 6] = [0x52, 0x54, 0, 0, 0, 0x99];
const MASTER_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 168, 100, 11);
const OTHER: Ipv4Addr = Ipv4Addr::new(192, 168, 100, 77);
const HELPER: Ipv4Addr = Ipv4Addr::new(192, 168, 100, 1);

fn message(kind: MessageType, mac: [u8; 6], options: &[DhcpOption]) -> Message {
    let mut message = Message::default();
    message.set_chaddr(&mac).set_xid(7);
    message.opts_mut().insert(DhcpOption::MessageType(kind));
    for option in options {
        message.opts_mut().insert(option.clone());
    }
    message
}

fn asking(address: Ipv4Addr) -> DhcpOption {
    DhcpOption::RequestedIpAddress(address)
}

#[test]
fn who_gets_what() {
    use MessageType::*;
    let mut renewing = message(Request, MASTER, &[]);
    renewing.set_ciaddr(MASTER_ADDRESS);
    let mut informing = message(Inform, MASTER, &[]);
    informing.set_ciaddr(MASTER_ADDRESS);
    let server = DhcpOption::ServerIdentifier;
    // What is heard, the reply's kind and address, and the logged words.
    type Row = (&'static str, Message, Option<(MessageType, Ipv4Addr)>, &'static [&'static str]);
    let none = Ipv4Addr::UNSPECIFIED;
    let table: Vec<Row> = vec![
        ("discover", message(Discover, MASTER, &[]), Some((Offer, MASTER_ADDRESS)), &["DISCOVER", "OFFER"]),
        (
            "discover with a wish",
            message(Discover, MASTER, &[asking(OTHER)]),
            Some((Offer, MASTER_ADDRESS)),
            &["DISCOVER", "OFFER"],
        ),
        ("stranger", message(Discover, STRANGER, &[]), None, &["DISCOVER", "REFUSED"]),
        (
            "select",
            message(Request, MASTER, &[asking(MASTER_ADDRESS), server(HELPER)]),
            Some((Ack, MASTER_ADDRESS)),
            &["REQUEST", "ACK"],
        ),
        (
            "reboot",
            message(Request, MASTER, &[asking(MASTER_ADDRESS)]),
            Some((Ack, MASTER_ADDRESS)),
            &["REQUEST", "ACK"],
        ),
        ("renew", renewing, Some((Ack, MASTER_ADDRESS)), &["REQUEST", "ACK"]),
        (
            "another address",
            message(Request, MASTER, &[asking(OTHER)]),
            Some((Nak, none)),
            &["REQUEST", "NAK"],
        ),
        ("no address", message(Request, MASTER, &[]), Some((Nak, none)), &["REQUEST", "NAK"]),
        (
            "stranger's request",
            message(Request, STRANGER, &[asking(MASTER_ADDRESS)]),
            Some((Nak, none)),
            &["REQUEST", "NAK"],
        ),
        ("another server's", message(Request, MASTER, &[asking(OTHER), server(OTHER)]), None, &["ELSEWHERE"]),
        ("a stranger's with another server", message(Request, STRANGER, &[server(OTHER)]), None, &[]),
        ("inform", informing, Some((Ack, none)), &["INFORM", "ACK"]),
        ("stranger's inform", message(Inform, STRANGER, &[]), None, &["INFORM", "REFUSED"]),
        ("release", message(Release, MASTER, &[]), None, &["RELEASE"]),
        ("decline", message(Decline, MASTER, &[asking(MASTER_ADDRESS)]), None, &["DECLINE"]),
        ("a server's word", message(Offer, MASTER, &[]), None, &[]),
    ];
    for (name, request, reply, words) in table {
        let decision = decide(&config(), &mut Leases::default(), &request, 0);
        let got = decision.reply.as_ref().map(|r| (r.opts().msg_type().unwrap(), r.yiaddr()));
        assert_eq!(got, reply, "{name}");
        let said: Vec<_> = decision
            .events
            .iter()
            .map(|e| match e {
                HelperEventKind::Dhcp { message, .. } => message.as_str(),
                other => panic!("{name}: {other:?}"),
            })
            .collect();
        assert_eq!(said, words, "{name}");
    }
}

#[test]
fn strangers_get_an_address_of_the_pool_and_nothing_to_boot() {
    use MessageType::*;
    let yaml = "{imageDir: /b}";
    let config = HelperConfig {
        pool: Some(AddressPool { from: [192, 168, 100, 70].into(), to: [192, 168, 100, 71].into() }),
        boot: Some(serde_saphyr::from_str(yaml).unwrap()),
        ..config()
    };
    let firmware = DhcpOption::ClassIdentifier(b"PXEClient".to_vec());
    let mut leases = Leases::default();
    let mut ask = |kind, mac, options: &[DhcpOption], now| {
        let decision = decide(&config, &mut leases, &message(kind, mac, options), now);
        assert!(decision.boots.is_none());
        let reply = decision.reply.inspect(|reply| assert!(reply.fname().is_none()));
        (reply.map(|r| (r.opts().msg_type().unwrap(), r.yiaddr().octets()[3])), decision.leases)
    };
    let (first, last) = (Ipv4Addr::new(192, 168, 100, 70), Ipv4Addr::new(192, 168, 100, 71));
    assert_eq!(ask(Discover, STRANGER, std::slice::from_ref(&firmware), 0), (Some((Offer, 70)), false));
    assert_eq!(ask(Request, STRANGER, &[asking(OTHER)], 1), (Some((Nak, 0)), false));
    assert_eq!(ask(Request, STRANGER, &[asking(first), firmware], 1), (Some((Ack, 70)), true));
    assert_eq!(ask(Request, STRANGER, &[asking(first)], 2), (Some((Ack, 70)), false), "nothing to write");
    let another = [2, 0, 0, 0, 0, 1];
    assert_eq!(ask(Request, another, &[asking(first)], 3), (Some((Nak, 0)), false), "it is taken");
    assert_eq!(ask(Request, another, &[asking(last)], 3), (Some((Ack, 71)), true));
    assert_eq!(ask(Discover, [2, 0, 0, 0, 0, 2], &[], 4), (None, false), "none is left");
    assert_eq!(ask(Decline, another, &[asking(last)], 5), (None, true));
    assert_eq!(ask(Discover, another, &[], 6), (None, false), "somebody else has it");
    assert_eq!(ask(Release, STRANGER, &[], 7), (None, true));
    assert_eq!(ask(Discover, another, &[], 8), (Some((Offer, 70)), false));
}

#[test]
fn lease_has_all_options_and_survives_the_wire() {
    let request = message(MessageType::Discover, MASTER, &[]).to_vec().unwrap();
    let (bytes, to) = handle(&config(), &request).reply.unwrap();
    assert_eq!(to, SocketAddrV4::new(Ipv4Addr::BROADCAST, 68));
    assert!(bytes.len() >= 300);
    let reply = Message::from_bytes(&bytes).unwrap();
    assert_eq!(reply.xid(), 7);
    assert_eq!(reply.chaddr(), MASTER);
    let domain = Name::from_ascii("ocp4.example.com.").unwrap();
    for option in [
        DhcpOption::SubnetMask([255, 255, 255, 0].into()),
        DhcpOption::BroadcastAddr([192, 168, 100, 255].into()),
        DhcpOption::Router(vec![HELPER]),
        DhcpOption::DomainNameServer(vec![HELPER]),
        DhcpOption::ServerIdentifier(HELPER),
        DhcpOption::Hostname("master-0".into()),
        DhcpOption::DomainName("ocp4.example.com".into()),
        DhcpOption::DomainSearch(vec![domain]),
        DhcpOption::AddressLeaseTime(14400),
        DhcpOption::Renewal(7200),
        DhcpOption::Rebinding(12600),
    ] {
        assert_eq!(reply.opts().get(OptionCode::from(&option)), Some(&option));
    }
}

#[test]
fn replies_go_where_the_client_hears_them() {
    let reply_to = |change: fn(&mut Message)| {
        let mut request = message(MessageType::Request, MASTER, &[asking(MASTER_ADDRESS)]);
        change(&mut request);
        let config = HelperConfig { relays: vec![[10, 0, 0, 1].into()], ..config() };
        handle(&config, &request.to_vec().unwrap()).reply.map(|(_, to)| to.to_string()).unwrap_or_default()
    };
    assert_eq!(reply_to(|_| {}), "255.255.255.255:68");
    assert_eq!(reply_to(|m| _ = m.set_ciaddr(MASTER_ADDRESS)), "192.168.100.11:68");
    assert_eq!(reply_to(|m| _ = m.set_giaddr([10, 0, 0, 1])), "10.0.0.1:67");
    assert_eq!(reply_to(|m| _ = m.set_giaddr([8, 8, 8, 8])), "", "a relay that nobody configured");
    let mut inform = message(MessageType::Inform, MASTER, &[]);
    inform.set_ciaddr([8, 8, 8, 8]);
    assert_eq!(handle(&config(), &inform.to_vec().unwrap()).reply, None, "somebody else's address");
}

#[test]
fn a_machine_boots_when_it_asks_for_an_address_and_not_when_it_keeps_one() {
    use MessageType::*;
    let boots =
        |request: &Message| decide(&config(), &mut Leases::default(), request, 0).boots.map(|h| h.name);
    let mut renewing = message(Request, MASTER, &[]);
    renewing.set_ciaddr(MASTER_ADDRESS);
    let table = [
        (message(Discover, MASTER, &[]), Some("master-0")),
        (message(Request, MASTER, &[asking(MASTER_ADDRESS)]), Some("master-0")),
        (renewing, None),
        (message(Discover, STRANGER, &[]), None),
        (message(Release, MASTER, &[]), None),
    ];
    for (request, want) in table {
        assert_eq!(boots(&request).as_deref(), want, "{request:?}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..1500)) {
        handle(&config(), &bytes);
    }

    /// A valid message with one stretch overwritten gets deeper than noise.
    #[test]
    fn damaged_messages_never_panic(at in 0usize..280, noise in prop::collection::vec(any::<u8>(), 1..64)) {
        let options = [asking(MASTER_ADDRESS), DhcpOption::ClientIdentifier(vec![1; 40])];
        let mut bytes = message(MessageType::Request, MASTER, &options).to_vec().unwrap();
        bytes.resize(400, 0);
        bytes[at..at + noise.len()].copy_from_slice(&noise);
        handle(&config(), &bytes);
    }
}
