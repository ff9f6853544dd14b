//! `platform.baremetal`: machines with management controllers. Seedling writes what it says into the manifests and the
//! configuration; it does not switch machines on.

use super::model::{Empty, empty};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Baremetal {
    #[serde(rename = "additionalNTPServers", skip_serializing_if = "empty")] pub additional_ntp_servers: Vec<String>,
    #[serde(rename = "apiVIP", skip_serializing_if = "empty")] pub api_vip: String,
    #[serde(rename = "apiVIPs", skip_serializing_if = "empty")] pub api_vips: Vec<String>,
    #[serde(rename = "bgpVIPConfig", skip_serializing_if = "empty")] pub bgp_vip_config: Option<Value>,
    #[serde(rename = "bmcVerifyCA", skip_serializing_if = "empty")] pub bmc_verify_ca: String,
    #[serde(rename = "bootstrapExternalStaticDNS", skip_serializing_if = "empty")] pub bootstrap_external_static_dns: String,
    #[serde(skip_serializing_if = "empty")] pub bootstrap_external_static_gateway: String,
    #[serde(rename = "bootstrapExternalStaticIP", skip_serializing_if = "empty")] pub bootstrap_external_static_ip: String,
    #[serde(rename = "bootstrapOSImage", skip_serializing_if = "empty")] pub bootstrap_os_image: String,
    #[serde(rename = "bootstrapProvisioningIP", skip_serializing_if = "empty")] pub bootstrap_provisioning_ip: String,
    #[serde(rename = "clusterOSImage", skip_serializing_if = "empty")] pub cluster_os_image: String,
    #[serde(rename = "clusterProvisioningIP", skip_serializing_if = "empty")] pub cluster_provisioning_ip: String,
    #[serde(skip_serializing_if = "empty")] pub default_machine_platform: Option<Empty>,
    #[serde(skip_serializing_if = "empty")] pub dns_records_type: String,
    #[serde(skip_serializing_if = "empty")] pub external_bridge: String,
    #[serde(rename = "externalMACAddress", skip_serializing_if = "empty")] pub external_mac_address: String,
    pub hosts: Option<Vec<Host>>,
    #[serde(rename = "ingressVIP", skip_serializing_if = "empty")] pub ingress_vip: String,
    #[serde(rename = "ingressVIPs", skip_serializing_if = "empty")] pub ingress_vips: Vec<String>,
    #[serde(rename = "libvirtURI", skip_serializing_if = "empty")] pub libvirt_uri: String,
    #[serde(skip_serializing_if = "empty")] pub load_balancer: Option<LoadBalancer>,
    #[serde(skip_serializing_if = "empty")] pub provisioning_bridge: String,
    #[serde(rename = "provisioningDHCPExternal", skip_serializing_if = "empty")] pub provisioning_dhcp_external: bool,
    #[serde(rename = "provisioningDHCPRange", skip_serializing_if = "empty")] pub provisioning_dhcp_range: String,
    #[serde(rename = "provisioningHostIP", skip_serializing_if = "empty")] pub provisioning_host_ip: String,
    #[serde(rename = "provisioningMACAddress", skip_serializing_if = "empty")] pub provisioning_mac_address: String,
    #[serde(skip_serializing_if = "empty")] pub provisioning_network: String,
    #[serde(rename = "provisioningNetworkCIDR", skip_serializing_if = "empty")] pub provisioning_network_cidr: Option<IpNet>,
    #[serde(skip_serializing_if = "empty")] pub provisioning_network_gateway: String,
    pub provisioning_network_interface: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Host {
    pub bmc: Bmc,
    #[serde(rename = "bootMACAddress")] pub boot_mac_address: String,
    #[serde(skip_serializing_if = "empty")] pub boot_mode: String,
    pub hardware_profile: String,
    #[serde(skip_serializing_if = "empty")] pub name: String,
    /// NMState, as given.
    #[serde(skip_serializing_if = "empty")] pub network_config: Option<Value>,
    pub role: String,
    #[serde(skip_serializing_if = "empty")] pub root_device_hints: Option<RootDeviceHints>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Bmc {
    pub address: String,
    pub disable_certificate_verification: bool,
    pub password: String,
    pub username: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RootDeviceHints {
    #[serde(skip_serializing_if = "empty")] pub device_name: String,
    #[serde(skip_serializing_if = "empty")] pub hctl: String,
    #[serde(skip_serializing_if = "empty")] pub min_size_gigabytes: i64,
    #[serde(skip_serializing_if = "empty")] pub model: String,
    #[serde(skip_serializing_if = "empty")] pub rotational: Option<bool>,
    #[serde(skip_serializing_if = "empty")] pub serial_number: String,
    #[serde(skip_serializing_if = "empty")] pub vendor: String,
    #[serde(skip_serializing_if = "empty")] pub wwn: String,
    #[serde(skip_serializing_if = "empty")] pub wwn_vendor_extension: String,
    #[serde(skip_serializing_if = "empty")] pub wwn_with_extension: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct LoadBalancer {
    #[serde(rename = "type", skip_serializing_if = "empty")] pub kind: String,
}
