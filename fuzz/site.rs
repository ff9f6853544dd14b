//! The config of the helper that the targets ask: everything that it can do, both families, two machines.

use seedling_types::HelperConfig;
use std::sync::OnceLock;

const YAML: &str = "{clusterDomain: c.example.com, interface: eth0, address: 10.0.0.1, network: 10.0.0.0/24, secondAddress: 'fd00::1/64',
    ignitionDir: /i, releaseDir: /r, events: /e, readyFile: /f, pool: {from: 10.0.0.100, to: 10.0.0.110}, relays: [10.0.0.9],
    etcdSrv: true, forwarders: [10.0.0.8], boot: {imageDir: /b}, inventory: {hosts: [
    {name: w, role: worker, mac: '00:00:00:00:00:00', address: 10.0.0.2, secondAddress: 'fd00::2'},
    {name: m, role: master, mac: '00:00:00:00:00:01', address: 10.0.0.3, secondAddress: 'fd00::3'}]}}";

pub fn config() -> &'static HelperConfig {
    static CONFIG: OnceLock<HelperConfig> = OnceLock::new();
    CONFIG.get_or_init(|| serde_saphyr::from_str(YAML).expect("the config is one"))
}
