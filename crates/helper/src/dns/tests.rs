use super::*;
use crate::testing::config;
use hickory_proto::op::Query;
use hickory_proto::rr::{Name, RecordType};
use proptest::prelude::*;

fn zones() -> Zones {
    Zones::of(&config(), 1).unwrap()
}

fn query(name: &str, kind: RecordType) -> Message {
    let mut message = Message::query();
    message.metadata.id = 42;
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    message
}

fn ask(message: &Message) -> Message {
    Message::from_vec(&answer(&zones(), &message.to_vec().unwrap()).unwrap()).unwrap()
}

#[test]
fn names() {
    use RecordType::{A, AAAA, ANY, NS, PTR, SOA, TXT};
    use ResponseCode::{NXDomain, NoError, Refused};
    let helper = "192.168.100.1";
    let table: &[(&str, RecordType, ResponseCode, &[&str])] = &[
        ("api.ocp4.example.com.", A, NoError, &[helper]),
        ("API.Ocp4.EXAMPLE.com.", A, NoError, &[helper]),
        ("api-int.ocp4.example.com.", A, NoError, &[helper]),
        ("helper.ocp4.example.com.", A, NoError, &[helper]),
        ("bootstrap.ocp4.example.com.", A, NoError, &["192.168.100.10"]),
        ("worker-0.ocp4.example.com.", A, NoError, &["192.168.100.21"]),
        // The wildcard, one and more labels deep, by its own name, and for types it does not have.
        ("console.apps.ocp4.example.com.", A, NoError, &[helper]),
        ("a.b.C.apps.ocp4.example.com.", A, NoError, &[helper]),
        ("*.apps.ocp4.example.com.", A, NoError, &[helper]),
        ("console.apps.ocp4.example.com.", AAAA, NoError, &[]),
        // An empty non-terminal, and names with other types only.
        ("apps.ocp4.example.com.", A, NoError, &[]),
        ("api.ocp4.example.com.", AAAA, NoError, &[]),
        ("master-0.ocp4.example.com.", TXT, NoError, &[]),
        ("ocp4.example.com.", A, NoError, &[]),
        ("ocp4.example.com.", NS, NoError, &["helper.ocp4.example.com."]),
        ("master-0.ocp4.example.com.", ANY, NoError, &["192.168.100.11"]),
        // No wildcard reaches these.
        ("master-9.ocp4.example.com.", A, NXDomain, &[]),
        ("x.master-0.ocp4.example.com.", A, NXDomain, &[]),
        ("xapps.ocp4.example.com.", AAAA, NXDomain, &[]),
        ("11.100.168.192.in-addr.arpa.", PTR, NoError, &["master-0.ocp4.example.com."]),
        (
            "1.100.168.192.in-addr.arpa.",
            PTR,
            NoError,
            &["api.ocp4.example.com.", "api-int.ocp4.example.com."],
        ),
        ("99.100.168.192.in-addr.arpa.", PTR, NXDomain, &[]),
        ("11.100.168.192.in-addr.arpa.", A, NoError, &[]),
        (
            "100.168.192.in-addr.arpa.",
            SOA,
            NoError,
            &["helper.ocp4.example.com. 100.168.192.in-addr.arpa. 1 3600 600 86400 5"],
        ),
        ("1.0.0.127.in-addr.arpa.", PTR, Refused, &[]),
        ("example.com.", A, Refused, &[]),
        ("notocp4.example.com.", A, Refused, &[]),
        ("kubernetes.io.", A, Refused, &[]),
        (".", NS, Refused, &[]),
    ];
    for (name, kind, code, records) in table {
        let reply = ask(&query(name, *kind));
        let what = format!("{name} {kind}");
        assert_eq!(reply.metadata.id, 42, "{what}");
        assert_eq!(reply.metadata.response_code, *code, "{what}");
        assert_eq!(reply.metadata.authoritative, *code != Refused, "{what}");
        let got: Vec<_> = reply.answers.iter().map(|r| r.data.to_string()).collect();
        assert_eq!(got, *records, "{what}");
        // A negative answer is worth caching only with the zone's SOA.
        let soas = reply.authorities.iter().filter(|r| r.record_type() == SOA).count();
        assert_eq!(soas, usize::from(*code != Refused && records.is_empty()), "{what}");
    }
}

#[test]
fn answers_keep_the_spelling_of_the_question() {
    let reply = ask(&query("aPi.oCp4.example.com.", RecordType::A));
    assert_eq!(reply.answers[0].name.to_ascii(), "aPi.oCp4.example.com.");
    assert_eq!(reply.queries[0].name.to_ascii(), "aPi.oCp4.example.com.");
}

#[test]
fn odd_queries() {
    let code = |message: &Message| ask(message).metadata.response_code;
    let good = query("api.ocp4.example.com.", RecordType::A);

    let mut update = good.clone();
    update.metadata.op_code = OpCode::Update;
    assert_eq!(code(&update), ResponseCode::NotImp);

    let mut two = good.clone();
    two.add_query(good.queries[0].clone());
    assert_eq!(code(&two), ResponseCode::FormErr);

    let mut chaos = good.clone();
    chaos.queries[0].query_class = DNSClass::CH;
    assert_eq!(code(&chaos), ResponseCode::Refused);

    let mut edns = good.clone();
    edns.edns = Some(Edns::new());
    assert_eq!(ask(&edns).edns.unwrap().max_payload(), 1232);
    edns.edns.as_mut().unwrap().set_version(1);
    // 16 has two names: BADVERS here, BADSIG in signatures.
    assert_eq!(u16::from(code(&edns)), u16::from(ResponseCode::BADVERS));

    let mut reply = good.clone();
    reply.metadata.message_type = MessageType::Response;
    assert_eq!(answer(&zones(), &reply.to_vec().unwrap()), None);

    let mut cut = good.to_vec().unwrap();
    cut.truncate(20);
    let refused = Message::from_vec(&answer(&zones(), &cut).unwrap()).unwrap();
    assert_eq!((refused.metadata.id, refused.metadata.response_code), (42, ResponseCode::FormErr));
    assert_eq!(answer(&zones(), &cut[..11]), None);
}

#[test]
fn reverse_zone_is_cut_at_octets() {
    let mut wide = config();
    wide.network = "192.168.96.0/20".parse().unwrap();
    let zones = Zones::of(&wide, 1).unwrap();
    let name = |text| Name::from_ascii(text).unwrap();
    assert!(matches!(
        zones.lookup(&name("11.100.168.192.in-addr.arpa."), RecordType::PTR),
        Found::Records(_)
    ));
    assert!(matches!(zones.lookup(&name("1.1.168.192.in-addr.arpa."), RecordType::PTR), Found::NoName(_)));
    assert!(matches!(zones.lookup(&name("1.1.169.192.in-addr.arpa."), RecordType::PTR), Found::Outside));
}

#[test]
fn others_are_asked_only_for_other_names() {
    let judge_of = |name: &str, change: fn(&mut Message)| {
        let mut message = query(name, RecordType::A);
        message.metadata.recursion_desired = true;
        change(&mut message);
        judge(&zones(), &message.to_vec().unwrap(), true)
    };
    let code = |verdict| match verdict {
        Verdict::Reply(bytes) => {
            let reply = Message::from_vec(&bytes).unwrap();
            assert!(reply.metadata.recursion_available);
            Some(reply.metadata.response_code)
        }
        _ => None,
    };
    assert_eq!(judge_of("www.example.com.", |_| {}), Verdict::Forward);
    assert_eq!(judge_of("1.0.0.127.in-addr.arpa.", |_| {}), Verdict::Forward);
    assert_eq!(
        code(judge_of("www.example.com.", |m| m.metadata.recursion_desired = false)),
        Some(ResponseCode::Refused)
    );
    assert_eq!(code(judge_of("master-9.ocp4.example.com.", |_| {})), Some(ResponseCode::NXDomain));
    assert_eq!(code(judge_of("api.ocp4.example.com.", |_| {})), Some(ResponseCode::NoError));
    let question = query("www.example.com.", RecordType::A).to_vec().unwrap();
    let answer = failed(&question).unwrap();
    assert!(belongs(&question, &answer) && !belongs(&question, &question));
    assert!(!belongs(&query("www.example.org.", RecordType::A).to_vec().unwrap(), &answer));
}

#[test]
fn etcd_members_and_machines_elsewhere_have_names() {
    let mut config = config();
    config.etcd_srv = true;
    config.inventory.hosts[4].address = [10, 7, 0, 5].into();
    let zones = Zones::of(&config, 7).unwrap();
    let find = |name: &str, kind| match zones.lookup(&Name::from_ascii(name).unwrap(), kind) {
        Found::Records(found) => found.iter().map(|data| data.to_string()).collect::<Vec<_>>(),
        _ => Vec::new(),
    };
    assert_eq!(find("etcd-2.ocp4.example.com.", RecordType::A), ["192.168.100.13"]);
    let members = find("_etcd-server-ssl._tcp.ocp4.example.com.", RecordType::SRV);
    assert_eq!((members.len(), members[0].as_str()), (3, "0 10 2380 etcd-0.ocp4.example.com."));
    assert_eq!(find("5.0.7.10.in-addr.arpa.", RecordType::PTR), ["worker-0.ocp4.example.com."]);
    assert!(find("0.7.10.in-addr.arpa.", RecordType::SOA)[0].contains(" 7 3600 "));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        answer(&zones(), &bytes);
    }

    #[test]
    fn damaged_queries_never_panic(at in 0usize..38, noise in prop::collection::vec(any::<u8>(), 1..32)) {
        let mut bytes = query("a.apps.ocp4.example.com.", RecordType::A).to_vec().unwrap();
        bytes.resize(80, 0);
        bytes[at..at + noise.len()].copy_from_slice(&noise);
        answer(&zones(), &bytes);
    }

    /// Any name in the zone gets an answer, and what is not listed is never found outside `apps`.
    #[test]
    fn any_name_in_the_zone(labels in prop::collection::vec("[a-z0-9]([a-z0-9-]{0,9}[a-z0-9])?", 1..6)) {
        let name = format!("{}.ocp4.example.com.", labels.join("."));
        let reply = ask(&query(&name, RecordType::A));
        let known = ["api", "api-int", "helper", "bootstrap", "master-0", "master-1", "master-2", "worker-0"];
        let last = labels.last().unwrap().as_str();
        let found = if labels.len() == 1 { known.contains(&last) } else { last == "apps" };
        prop_assert_eq!(!reply.answers.is_empty(), found);
    }
}
