//! What a machine that boots over the network is told besides its address: which file to fetch, and from where. Pure, but for a
//! look at which loader the image has.

use crate::boot::efi_loader;
use dhcproto::v4::{DhcpOption, Message, OptionCode, UnknownOption};
use seedling_types::helper::BootConfig;
use seedling_types::{HelperConfig, Host, ports};
use std::net::SocketAddr;

const HTTP_CLIENT: &[u8] = b"HTTPClient";
const PXE_CLIENT: &[u8] = b"PXEClient";
/// iPXE's own options, and in them: do not wait for another server that knows the boot file.
const IPXE_OPTIONS: u8 = 175;
const NO_PXEDHCP: [u8; 3] = [176, 1, 1];
/// The header's field.
const LONGEST_FILE: usize = 128;

/// Who asks: firmware by its kind, or a boot loader that already runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    Bios,
    Efi,
    /// UEFI that fetches by HTTP itself.
    EfiHttp,
    Ipxe,
    /// Firmware for which there is no boot loader here, by its number in RFC 4578.
    Other(u16),
}

/// None: an operating system that only wants its address.
pub fn client(request: &Message) -> Option<Client> {
    if let Some(DhcpOption::UserClass(class)) = request.opts().get(OptionCode::UserClass)
        && class.windows(4).any(|part| part == b"iPXE")
    {
        return Some(Client::Ipxe);
    }
    let Some(DhcpOption::ClassIdentifier(class)) = request.opts().get(OptionCode::ClassIdentifier) else {
        return None;
    };
    if !class.starts_with(PXE_CLIENT) && !class.starts_with(HTTP_CLIENT) {
        return None;
    }
    let number = match request.opts().get(OptionCode::ClientSystemArchitecture) {
        Some(DhcpOption::ClientSystemArchitecture(number)) => u16::from(*number),
        // `PXEClient:Arch:00007:UNDI:003016`; what says nothing is old, and so has a BIOS.
        _ => {
            let text = String::from_utf8_lossy(class);
            let number = text.split(':').nth(2).and_then(|number| number.parse().ok());
            number.unwrap_or(if class.starts_with(HTTP_CLIENT) { 16 } else { 0 })
        }
    };
    Some(match number {
        0 => Client::Bios,
        7 | 9 => Client::Efi,
        16 => Client::EfiHttp,
        other => Client::Other(other),
    })
}

/// The file, as this client is to ask for it.
pub fn file(config: &HelperConfig, boot: &BootConfig, host: &Host, client: Client) -> Option<String> {
    let base = format!("http://{}/boot", SocketAddr::new(config.address, ports::HELPER_HTTP));
    match client {
        Client::Bios => Some(boot.bios_loader.clone()),
        Client::Efi => Some(efi_loader(boot).into()),
        Client::EfiHttp => Some(format!("{base}/{}", efi_loader(boot))),
        Client::Ipxe => Some(format!("{base}/ipxe/{}", host.mac)),
        Client::Other(_) => None,
    }
}

/// Into the answer, both as options and in the header's fields, since old ROMs read nothing but those.
pub fn tell(config: &HelperConfig, host: &Host, request: &Message, answer: &mut Message) {
    let Some(boot) = config.boot_of(&host.name) else { return };
    let Some(client) = client(request) else { return };
    let Some(file) = file(config, boot, host, client) else { return };
    if file.len() <= LONGEST_FILE {
        answer.set_fname_str(&file);
    }
    let options = answer.opts_mut();
    options.insert(DhcpOption::TFTPServerName(config.address.to_string().into_bytes()));
    options.insert(DhcpOption::BootfileName(file.into_bytes()));
    match client {
        // Without it UEFI takes the answer for one that is not about HTTP. `PXEClient` is not said back to those that say it: they
        // would then look for a boot server of Intel's kind on port 4011.
        Client::EfiHttp => drop(options.insert(DhcpOption::ClassIdentifier(HTTP_CLIENT.to_vec()))),
        Client::Ipxe => {
            let only = UnknownOption::new(OptionCode::Unknown(IPXE_OPTIONS), NO_PXEDHCP.to_vec());
            options.insert(DhcpOption::Unknown(only));
        }
        _ => {}
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::dhcp::handle;
    use crate::testing::config;
    use dhcproto::v4::MessageType;
    use dhcproto::{Decodable, Encodable};
    use proptest::prelude::*;

    const WORKER: [u8; 6] = [0x52, 0x54, 0, 0, 0, 0x21];

    fn booting() -> HelperConfig {
        let mut config = config();
        config.boot = Some(serde_saphyr::from_str("{imageDir: /b}").unwrap());
        config
    }

    fn ask(class: &str, arch: Option<u16>, user: &str, mac: [u8; 6]) -> Vec<u8> {
        let mut message = Message::default();
        message.set_chaddr(&mac).set_xid(7);
        message.opts_mut().insert(DhcpOption::MessageType(MessageType::Discover));
        for (text, option) in
            [(class, DhcpOption::ClassIdentifier(class.into())), (user, DhcpOption::UserClass(user.into()))]
        {
            if !text.is_empty() {
                message.opts_mut().insert(option);
            }
        }
        if let Some(arch) = arch {
            message.opts_mut().insert(DhcpOption::ClientSystemArchitecture(arch.into()));
        }
        message.to_vec().unwrap()
    }

    #[test]
    fn the_file_is_chosen_by_who_asks() {
        let pxe = "PXEClient:Arch:00000:UNDI:002001";
        let (bios, efi) = (Some("undionly.kpxe"), Some("ipxe.efi"));
        let (http, script) = (
            Some("http://192.168.100.1:8080/boot/ipxe.efi"),
            Some("http://192.168.100.1:8080/boot/ipxe/52:54:00:00:00:21"),
        );
        let table = [
            ("", None, "", None),
            ("udhcp 1.35.0", None, "", None),
            ("anaconda-Linux", Some(7), "", None),
            (pxe, Some(0), "", bios),
            (pxe, None, "", bios),
            ("PXEClient", None, "", bios),
            ("PXEClient:Arch:00007:UNDI:003016", None, "", efi),
            (pxe, Some(7), "", efi),
            (pxe, Some(9), "", efi),
            (pxe, Some(6), "", None),
            (pxe, Some(11), "", None),
            ("HTTPClient:Arch:00016:UNDI:003001", Some(16), "", http),
            ("HTTPClient", None, "", http),
            ("HTTPClient:Arch:00015:UNDI:003001", Some(15), "", None),
            (pxe, Some(0), "iPXE", script),
            (pxe, Some(7), "iPXE", script),
            // As RFC 3004 wants it, with its length before.
            (pxe, Some(7), "\u{4}iPXE", script),
        ];
        for (class, arch, user, want) in table {
            let (bytes, _) = handle(&booting(), &ask(class, arch, user, WORKER)).reply.unwrap();
            let reply = Message::from_bytes(&bytes).unwrap();
            let what = format!("{class} {arch:?} {user}");
            let header = reply.fname_str().map(Result::unwrap).map(|file| file.trim_end_matches('\0'));
            assert_eq!(header, want, "{what}");
            let option = reply.opts().get(OptionCode::BootfileName).cloned();
            assert_eq!(option, want.map(|file| DhcpOption::BootfileName(file.into())), "{what}");
            let server = reply.opts().get(OptionCode::TFTPServerName).is_some();
            assert_eq!((server, reply.siaddr()), (want.is_some(), booting().v4().unwrap().address), "{what}");
            let class = reply.opts().get(OptionCode::ClassIdentifier).is_some();
            assert_eq!(class, want == http, "{what}");
            assert_eq!(reply.opts().get(OptionCode::Unknown(175)).is_some(), want == script, "{what}");
        }
    }

    #[test]
    fn only_machines_that_take_part_are_told() {
        let firmware = |mac| ask("PXEClient", Some(0), "", mac);
        let file = |config: &HelperConfig, mac| {
            let reply = handle(config, &firmware(mac)).reply?;
            Some(Message::from_bytes(&reply.0).unwrap().fname().is_some())
        };
        let mut some = booting();
        some.boot.as_mut().unwrap().hosts = Some(vec!["worker-0".into()]);
        let master = [0x52, 0x54, 0, 0, 0, 0x11];
        assert_eq!(file(&some, WORKER), Some(true));
        assert_eq!(file(&some, master), Some(false), "an address, and nothing to boot");
        assert_eq!(file(&booting(), master), Some(true));
        assert_eq!(file(&config(), WORKER), Some(false), "no network boot at all");
        assert_eq!(file(&booting(), [0x52, 0x54, 0, 0, 0, 0x99]), None, "unknown");
    }

    proptest! {
        #[test]
        fn arbitrary_classes_never_panic(class in prop::collection::vec(any::<u8>(), 0..300), user in prop::collection::vec(any::<u8>(), 0..300), arch in any::<u16>()) {
            let mut bytes = ask("PXEClient", Some(arch), "x", WORKER);
            handle(&booting(), &bytes);
            bytes.truncate(240);
            for (code, data) in [(53u8, &[1u8][..]), (60, &class[..class.len().min(255)]), (77, &user[..user.len().min(255)])] {
                bytes.extend([code, data.len() as u8]);
                bytes.extend(data);
            }
            bytes.push(255);
            prop_assert!(handle(&booting(), &bytes).reply.is_some());
        }
    }
}
