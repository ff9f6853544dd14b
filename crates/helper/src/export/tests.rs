use super::*;
use crate::testing::config;
use seedling_types::helper::{AddressPool, BootConfig};

/// Everything that can be said.
fn whole() -> HelperConfig {
    let boot: BootConfig =
        serde_saphyr::from_str("{imageDir: /srv/boot, installDevice: /dev/sda, hosts: [worker-0]}").unwrap();
    HelperConfig {
        boot: Some(boot),
        ingress: true,
        etcd_srv: true,
        forwarders: vec![[10, 0, 0, 53].into()],
        ntp_servers: vec![[10, 0, 0, 123].into()],
        router: Some([192, 168, 100, 254].into()),
        pool: Some(AddressPool { from: [192, 168, 100, 200].into(), to: [192, 168, 100, 219].into() }),
        ..config()
    }
}

/// `SEEDLING_BLESS=1` writes them anew.
#[test]
fn exports_are_the_golden_ones() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/export/golden");
    for program in Program::ALL {
        let files = export(program, &whole()).unwrap();
        assert!(!files.is_empty());
        for made in files {
            let path = folder.join(program.as_str()).join(&made.name);
            if std::env::var_os("SEEDLING_BLESS").is_some() {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, &made.content).unwrap();
            }
            let golden = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(golden == made.content, "{} is not as {}:\n{}", made.name, path.display(), made.content);
        }
    }
}

#[test]
fn what_is_not_configured_is_not_exported() {
    let plain = config();
    let text =
        |program| export(program, &plain).unwrap().into_iter().map(|file| file.content).collect::<String>();
    assert!(!text(Program::Haproxy).contains(":443"));
    assert!(!text(Program::Dnsmasq).contains("tftp") && !text(Program::Dnsmasq).contains("server="));
    assert!(!text(Program::Dhcpd).contains("filename"));
    for (program, only_known) in [
        (Program::Dnsmasq, "dhcp-ignore=tag:!known"),
        (Program::Dhcpd, "deny unknown-clients;"),
        (Program::Kea, "\"reservations\""),
    ] {
        let said = text(program);
        assert!(said.contains(only_known) && !said.contains("pool") && !said.contains("    range"), "{said}");
    }
    assert!(text(Program::Bind).contains("recursion no;"));
    for program in [Program::Pxelinux, Program::Matchbox] {
        let error = export(program, &plain).unwrap_err().to_string();
        assert!(error.contains("no section `boot:`"), "{error}");
    }
}
