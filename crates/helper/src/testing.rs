//! The config that the unit tests share.

use seedling_types::HelperConfig;

/// Bootstrap .10, three masters .11-.13, one worker .21; the helper is .1.
pub(crate) fn config() -> HelperConfig {
    let host = |name: &str, role: &str, last: u8| {
        format!(
            "{{name: {name}, role: {role}, mac: '52:54:00:00:00:{last:02}', address: 192.168.100.{last}}}"
        )
    };
    let hosts = [
        host("bootstrap", "bootstrap", 10),
        host("master-0", "master", 11),
        host("master-1", "master", 12),
        host("master-2", "master", 13),
        host("worker-0", "worker", 21),
    ];
    let yaml = format!(
        "{{clusterDomain: ocp4.example.com, interface: br0, address: 192.168.100.1, network: 192.168.100.0/24,
          inventory: {{hosts: [{}]}}, ignitionDir: /i, releaseDir: /r, events: /e, readyFile: /f}}",
        hosts.join(", ")
    );
    serde_saphyr::from_str(&yaml).unwrap()
}
