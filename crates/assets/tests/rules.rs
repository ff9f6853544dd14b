//! Every rule of an install-config in its variants: both families, each list, each platform. Complements the recorded answers.

use seedling_assets::config::problem::report;
use seedling_assets::config::{Context, InstallConfig};
use serde_json::{Value, json};

const INVALID: &str = "invalid \"install-config.yaml\" file: ";

fn base() -> Value {
    json!({
        "apiVersion": "v1", "baseDomain": "alchemy.com", "metadata": {"name": "ocp4"}, "platform": {"none": {}},
        "controlPlane": {"name": "master", "replicas": 3}, "compute": [{"name": "worker", "replicas": 0}],
        "networking": {
            "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}], "machineNetwork": [{"cidr": "10.0.0.0/16"}],
            "serviceNetwork": ["172.30.0.0/16"],
        },
        "pullSecret": "{\"auths\":{\"r.example.com\":{\"auth\":\"dTpw\"}}}",
    })
}

fn host(i: usize, role: &str) -> Value {
    json!({
        "name": format!("m{i}"), "role": role, "bootMACAddress": format!("52:54:00:00:00:0{i}"),
        "bmc": {"address": "ipmi://192.168.1.1", "username": "u", "password": "p"},
    })
}

fn metal() -> Value {
    let mut config = base();
    let hosts: Vec<_> = (0..3).map(|i| host(i, "master")).collect();
    config["platform"] =
        json!({"baremetal": {"apiVIPs": ["10.0.0.5"], "ingressVIPs": ["10.0.0.6"], "hosts": hosts}});
    config
}

/// Each place of the config set to a value, the last segment new if need be.
fn with(mut config: Value, edits: &[(&str, Value)]) -> Value {
    for (path, value) in edits {
        let mut at = &mut config;
        for step in path.split('.') {
            at = match step.parse::<usize>() {
                Ok(i) => &mut at[i],
                Err(_) => &mut at[step],
            };
        }
        *at = value.clone();
    }
    config
}

/// Upstream's line of a config: what follows `invalid …` or the whole of an earlier one; empty if it is taken.
fn told(config: &Value) -> String {
    match InstallConfig::parse(&config.to_string(), &Context::new("rhel-10")) {
        Ok(_) => String::new(),
        Err(problems) => {
            let lines = report(&problems);
            lines[0].strip_prefix(INVALID).unwrap_or(&lines[0]).to_string()
        }
    }
}

type Case<'a> = (&'a [(&'a str, Value)], &'a [&'a str]);

fn check(base: fn() -> Value, cases: &[Case]) {
    let mut wrong = Vec::new();
    for (edits, want) in cases {
        let want = if let [one] = want { one.to_string() } else { format!("[{}]", want.join(", ")) };
        let want = if want == "[]" { String::new() } else { want };
        let got = told(&with(base(), edits));
        if got != want {
            wrong.push(format!("{edits:?}\n  want {want}\n  got  {got}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn networks() {
    let explain = "please run 'openshift-install explain installconfig.networking.ovnKubernetesConfig";
    let join_v4 = format!(
        "networking.machineNetwork[0]: Invalid value: \"100.64.0.0/24\": must not overlap with OVNKubernetes default internal \
         subnet 100.64.0.0/16: {explain}.ipv4' for further documentation"
    );
    let join = "networking.ovnKubernetesConfig.ipv4.internalJoinSubnet";
    let join_cluster = format!(
        "{join}: Invalid value: \"10.128.0.0/18\": must not overlap with clusterNetwork 10.128.0.0/14"
    );
    let join_small = format!(
        "{join}: Invalid value: \"192.168.0.0/23\": ipv4InternalJoinSubnet is not large enough for the maximum number of nodes which \
         can be supported by ClusterNetwork"
    );
    let join_zero = format!("{join}: Invalid value: \"0.0.0.0/16\": address must be specified");
    let v6 = json!([{"cidr": "fd01::/48", "hostPrefix": 64}]);
    let v6_machines = json!([{"cidr": "fd00::/48"}]);
    check(
        base,
        &[
            (
                &[("networking.machineNetwork.0.cidr", json!("10.0.0.1/16"))],
                &[
                    "networking.machineNetwork[0]: Invalid value: \"10.0.0.1/16\": invalid network address. got 10.0.0.1/16, expecting 10.0.0.0/16",
                ],
            ),
            (
                &[("networking.clusterNetwork.0.cidr", json!("10.129.0.0/14"))],
                &[
                    "networking.clusterNetwork[0].cidr: Invalid value: \"10.129.0.0/14\": invalid network address. got 10.129.0.0/14, expecting 10.128.0.0/14",
                ],
            ),
            (
                &[("networking.machineNetwork.0.cidr", json!("fd00::1/48"))],
                &[
                    "networking.machineNetwork[0]: Invalid value: \"fd00::1/48\": invalid network address. got fd00::1/48, expecting fd00::/48",
                ],
            ),
            (
                &[("networking.machineNetwork.0.cidr", json!("::/64"))],
                &["networking.machineNetwork[0]: Invalid value: \"::/64\": address must be specified"],
            ),
            (
                &[("networking.serviceNetwork.0", json!("160.0.0.0/11"))],
                &[
                    "networking.serviceNetwork[0]: Invalid value: \"160.0.0.0/11\": subnet size for IPv4 service network must be /12 or greater (/16 is recommended)",
                ],
            ),
            (&[("networking.serviceNetwork.0", json!("160.0.0.0/12"))], &[]),
            (
                &[("networking.serviceNetwork.0", json!("fd02::/107"))],
                &[
                    "networking.serviceNetwork[0]: Invalid value: \"fd02::/107\": subnet size for IPv6 service network should be /112",
                ],
            ),
            (
                &[("networking.serviceNetwork.0", json!("10.0.128.0/17"))],
                &[
                    "networking.serviceNetwork[0]: Invalid value: \"10.0.128.0/17\": service network must not overlap with any of the machine networks",
                ],
            ),
            (&[("networking.machineNetwork.0.cidr", json!("100.64.0.0/24"))], &[&join_v4]),
            (
                &[("networking.machineNetwork.0.cidr", json!("fd97::/80"))],
                &[
                    "networking.machineNetwork[0]: Invalid value: \"fd97::/80\": must not overlap with OVNKubernetes default transit subnet fd97::/64",
                ],
            ),
            (
                &[("networking.serviceNetwork.0", json!("fd69::/112"))],
                &[
                    "networking.serviceNetwork[0]: Invalid value: \"fd69::/112\": must not overlap with OVNKubernetes default masquerade subnet fd69::/112",
                ],
            ),
            (
                &[
                    ("networking.machineNetwork.0.cidr", json!("100.64.0.0/24")),
                    ("networking.networkType", json!("Calico")),
                ],
                &[],
            ),
            (
                &[("networking.clusterNetwork", json!([{"cidr": "fd01::/48", "hostPrefix": 63}]))],
                &[
                    "networking.clusterNetwork[0].hostPrefix: Invalid value: 63: cluster network host subnetwork prefix must be 64 for IPv6 networks",
                ],
            ),
            (
                &[("networking.clusterNetwork", json!([{"cidr": "fd01::/48", "hostPrefix": 40}]))],
                &[
                    "networking.clusterNetwork[0].hostPrefix: Invalid value: 40: cluster network host subnetwork prefix must not be larger size than CIDR fd01::/48",
                ],
            ),
            (
                &[
                    ("networking.clusterNetwork", json!([{"cidr": "10.128.0.0/14"}])),
                    ("networking.networkType", json!("Calico")),
                ],
                &[],
            ),
            (
                &[("networking.networkType", json!("kuryr"))],
                &[
                    "networking.networkType: Invalid value: \"kuryr\": networkType Kuryr is not supported on OpenShift later than 4.14",
                ],
            ),
            (
                &[("networking.serviceNetwork", json!(["172.30.0.0/16", "172.31.0.0/16"]))],
                &[
                    "networking.serviceNetwork: Invalid value: \"172.30.0.0/16, 172.31.0.0/16\": only one service network can be specified",
                ],
            ),
            // Single-stack IPv6, and both orders of dual-stack.
            (
                &[
                    ("networking.serviceNetwork", json!(["fd02::/112"])),
                    ("networking.clusterNetwork", v6.clone()),
                    ("networking.machineNetwork", v6_machines.clone()),
                ],
                &[],
            ),
            (
                &[
                    ("networking.serviceNetwork", json!(["fd02::/112", "172.30.0.0/16"])),
                    (
                        "networking.clusterNetwork",
                        json!([v6[0], {"cidr": "10.128.0.0/14", "hostPrefix": 23}]),
                    ),
                    ("networking.machineNetwork", json!([v6_machines[0], {"cidr": "10.0.0.0/16"}])),
                ],
                &[],
            ),
            (
                &[
                    ("networking.serviceNetwork", json!(["fd02::/112", "172.30.0.0/16"])),
                    ("networking.clusterNetwork", v6),
                    ("networking.machineNetwork", v6_machines),
                ],
                &[
                    "networking.machineNetwork: Invalid value: \"fd00::/48\": dual-stack IPv4/IPv6 requires an IPv4 network in this list",
                    "networking.clusterNetwork: Invalid value: \"fd01::/48\": dual-stack IPv4/IPv6 requires an IPv4 network in this list",
                ],
            ),
            (
                &[("networking.networkType", json!("Calico")), ("networking.ovnKubernetesConfig", json!({}))],
                &[
                    "networking.networkType: Invalid value: \"Calico\": ovnKubernetesConfig may only be specified with the OVNKubernetes networkType",
                ],
            ),
            (&[(join, json!("10.128.0.0/18"))], &[&join_cluster]),
            (&[(join, json!("192.168.0.0/23"))], &[&join_small]),
            (&[(join, json!("0.0.0.0/16"))], &[&join_zero]),
            // The old names.
            (
                &[(
                    "networking",
                    json!({"clusterNetworks": [{"cidr": "10.128.0.0/14", "hostSubnetLength": 9}], "machineCIDR": "10.0.0.0/16", "serviceCIDR": "172.30.0.0/16", "type": "ovnkubernetes"}),
                )],
                &[],
            ),
            (
                &[(
                    "networking",
                    json!({"clusterNetworks": [{"cidr": "10.128.0.0/14", "hostSubnetLength": 20}]}),
                )],
                &[
                    "networking.clusterNetwork[0].hostPrefix: Invalid value: 12: cluster network host subnetwork prefix must not be larger size than CIDR 10.128.0.0/14",
                ],
            ),
        ],
    );
}

#[test]
fn names_and_secrets() {
    let long = "a".repeat(55);
    let too_long = format!("metadata.name: Invalid value: \"{long}\": must be no more than 54 characters");
    check(
        base,
        &[
            (&[("metadata.name", json!(long))], &[&too_long]),
            (&[("metadata.name", json!("a".repeat(54)))], &[]),
            (&[("metadata.name", json!("a.b"))], &[]),
            (&[("baseDomain", json!("alchemy.com."))], &[]),
            (&[("apiVersion", json!("v1beta4"))], &[]),
            (
                &[(
                    "additionalTrustBundle",
                    json!("-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"),
                )],
                &[
                    "additionalTrustBundle: Invalid value: \"-----BEGIN RSA PRIVATE KEY-----\\nAAAA\\n-----END RSA PRIVATE KEY-----\\n\": x509: malformed certificate",
                ],
            ),
            (&[("pullSecret", json!("{\"auths\":{\"r\":{\"credsStore\":\"x\"}}}"))], &[]),
            (&[("pullSecret", json!("null"))], &["pullSecret: Invalid value: (redacted): auths required"]),
            (&[("cpuPartitioningMode", json!("AllNodes"))], &[]),
            (&[("kind", json!("Anything"))], &[]),
        ],
    );
}

#[test]
fn publishing_and_services() {
    let internal = "publish: Invalid value: \"Internal\": Internal publish strategy is not supported on \"none\" platform";
    let mixed =
        "publish: Invalid value: \"Mixed\": mixed publish strategy is not supported on \"none\" platform";
    let element = "proxy.noProxy: Invalid value: \"a.com, b.com\"";
    let spaces = format!("{element}: noProxy must not have spaces");
    check(
        base,
        &[
            (
                &[("publish", json!("Internal")), ("operatorPublishingStrategy", json!({}))],
                &[
                    internal,
                    "operatorPublishingStrategy: Invalid value: \"Internal\": operator publishing strategy is only allowed with mixed publishing strategy installs",
                ],
            ),
            (
                &[("publish", json!("Mixed"))],
                &[
                    mixed,
                    "publish: Invalid value: \"Mixed\": please specify the operator publishing strategy for mixed publish strategy",
                ],
            ),
            (
                &[
                    ("publish", json!("Mixed")),
                    ("operatorPublishingStrategy", json!({"apiserver": "Internal", "ingress": "Internal"})),
                ],
                &[
                    mixed,
                    "publish: Invalid value: \"Internal\": cannot set both fields to internal in a mixed cluster, use publish internal instead",
                ],
            ),
            (
                &[("credentialsMode", json!("Manual"))],
                &[
                    "credentialsMode: Invalid value: \"Manual\": cannot be set when using the \"none\" platform",
                ],
            ),
            (&[("proxy", json!({"httpProxy": "http://p:1", "noProxy": "a.com, b.com"}))], &[&spaces]),
            (
                &[(
                    "proxy",
                    json!({"httpsProxy": "https://[fd01::1]:1", "noProxy": ".a.com,10.0.0.0/8,::1"}),
                )],
                &[],
            ),
            (
                &[("proxy", json!({"httpsProxy": "http://172.30.0.9"}))],
                &[
                    "proxy.httpsProxy: Invalid value: \"http://172.30.0.9\": proxy value is part of the service networks",
                ],
            ),
            (
                &[(
                    "imageDigestSources",
                    json!([{"source": "quay.io/a/b", "mirrors": ["r.example.com:5000"]}]),
                )],
                &[],
            ),
            (
                &[(
                    "imageDigestSources",
                    json!([{"source": "quay.io/a/b", "mirrors": ["r.example.com/a:b"]}]),
                )],
                &[
                    "imageDigestSources[0].mirrors[0]: Invalid value: \"r.example.com/a:b\": must be repository--not reference",
                ],
            ),
            (
                &[("featureSet", json!("Wibble"))],
                &[
                    "featureSet: Unsupported value: \"Wibble\": supported values: \"\", \"CustomNoUpgrade\", \"DevPreviewNoUpgrade\", \"OKD\", \"TechPreviewNoUpgrade\"",
                ],
            ),
            (
                &[("featureGates", json!(["A=true"]))],
                &[
                    "featureGates: Forbidden: featureGates can only be used with the CustomNoUpgrade feature set",
                ],
            ),
            (
                &[("capabilities", json!({"baselineCapabilitySet": "v4.99"}))],
                &[
                    "capabilities.baselineCapabilitySet: Unsupported value: \"v4.99\": supported values: \"None\", \"v4.11\", \"v4.12\", \"v4.13\", \"v4.14\", \"v4.15\", \"v4.16\", \"v4.17\", \"v4.18\", \"vCurrent\"",
                    "capabilities: Invalid value: {\"baselineCapabilitySet\":\"v4.99\"}: the Ingress capability is required",
                ],
            ),
            (
                &[("capabilities", json!({"baselineCapabilitySet": "v4.15"}))],
                &[
                    "capabilities: Invalid value: {\"baselineCapabilitySet\":\"v4.15\"}: the Ingress capability is required",
                ],
            ),
            (
                &[
                    ("featureSet", json!("TechPreviewNoUpgrade")),
                    ("pki.signerCertificates.key", json!({"algorithm": "RSA"})),
                ],
                &[
                    "pki.signerCertificates.key.rsa.keySize: Required value: keySize must be specified when algorithm is RSA",
                ],
            ),
            (
                &[
                    ("featureSet", json!("TechPreviewNoUpgrade")),
                    ("pki.signerCertificates.key", json!({"algorithm": "RSA", "rsa": {"keySize": 5120}})),
                ],
                &[],
            ),
        ],
    );
}

#[test]
fn pools() {
    let fencing = "controlPlane.fencing.credentials";
    let credential = |i: usize| json!({"hostName": format!("m{i}"), "address": format!("redfish+https://h/{i}"), "username": "u", "password": "p"});
    let none = format!(
        "{fencing}: Forbidden: there should be exactly two fencing credentials to support the two node cluster, instead 0 credentials were found"
    );
    let address = format!(
        "{fencing}[1].address: Invalid value: \"ipmi://h\": fencing only supports redfish-compatible BMC addresses"
    );
    let username = format!("{fencing}[1].username: Required value: missing Username");
    let policy = format!(
        "{fencing}[1].certificateVerification: Unsupported value: \"Maybe\": supported values: \"Enabled\", \"Disabled\""
    );
    let two = |second: Value| json!({"name": "master", "replicas": 2, "fencing": {"credentials": [credential(0), second]}});
    let mut second = credential(1);
    second["address"] = json!("ipmi://h");
    let mut anonymous = credential(1);
    anonymous["username"] = json!("");
    let mut maybe = credential(1);
    maybe["certificateVerification"] = json!("Maybe");
    let positive = "number of control plane replicas must be positive";
    let positive = format!("controlPlane.replicas: Invalid value: 0: {positive}");
    check(
        base,
        &[
            (&[("controlPlane.replicas", json!(0))], &[&positive]),
            (&[("controlPlane.replicas", json!(2))], &[&none]),
            (&[("controlPlane", two(credential(1)))], &[]),
            (&[("controlPlane", two(second))], &[&address]),
            (&[("controlPlane", two(anonymous))], &[&username]),
            (&[("controlPlane", two(maybe))], &[&policy]),
            (&[("controlPlane.replicas", json!(2)), ("arbiter", json!({"replicas": 1}))], &[]),
            (
                &[("controlPlane.replicas", json!(2)), ("arbiter", json!({}))],
                &["arbiter.replicas: Invalid value: 0: number of arbiter replicas must be positive"],
            ),
            (
                &[("arbiter", json!({"replicas": -1}))],
                &["arbiter.replicas: Invalid value: -1: number of replicas must not be negative"],
            ),
            (
                &[("compute.0.hyperthreading", json!("enabled"))],
                &[
                    "compute[0].hyperthreading: Unsupported value: \"enabled\": supported values: \"Disabled\", \"Enabled\"",
                ],
            ),
            (
                &[("controlPlane.architecture", json!("arm64"))],
                &[
                    "compute[0].architecture: Invalid value: \"amd64\": heteregeneous multi-arch is not supported; compute pool architecture must match control plane",
                ],
            ),
            (
                &[("controlPlane.architecture", json!("mips")), ("compute.0.architecture", json!("mips"))],
                &[
                    "controlPlane.architecture: Unsupported value: \"mips\": supported values: \"amd64\", \"arm64\", \"ppc64le\", \"s390x\"",
                    "compute[0].architecture: Unsupported value: \"mips\": supported values: \"amd64\", \"arm64\", \"ppc64le\", \"s390x\"",
                ],
            ),
            (
                &[("compute.0.platform", json!({"baremetal": {}}))],
                &[
                    "compute[0].platform.baremetal: Invalid value: {}: cannot specify \"baremetal\" for machine pool when cluster is using \"none\"",
                ],
            ),
            (
                &[("controlPlane.diskSetup", json!([{"type": "etcd", "etcd": {"platformDiskID": "a"}}]))],
                &[
                    "controlPlane.diskSetup: Forbidden: this field is protected by the MultiDiskSetup feature gate which must be enabled through either the TechPreviewNoUpgrade or CustomNoUpgrade feature set",
                ],
            ),
            (
                &[
                    ("featureSet", json!("TechPreviewNoUpgrade")),
                    ("compute.0.diskSetup", json!([{"type": "swap"}, {"type": "swap"}])),
                ],
                &[
                    "compute[0].diskSetup.swap: Invalid value: \"type: swap\\n\": swap configuration must be created",
                ],
            ),
        ],
    );
}

#[test]
fn bare_metal() {
    let vips = |field: &str, rest: &str| format!("platform.baremetal.{field}: {rest}");
    let outside = vips(
        "ingressVIPs",
        "Invalid value: \"10.1.0.6\": IP expected to be in one of the machine networks: 10.0.0.0/16",
    );
    let none = vips("apiVIPs", "Required value: must specify at least one VIP for the API");
    let set = vips("apiVIPs", "Required value: must specify VIP for API, when VIP for ingress is set");
    let same_family = vips(
        "apiVIPs",
        "Invalid value: [\"10.0.0.5\",\"10.0.0.7\"]: If two API VIPs are given, one must be an IPv4 address, the other an IPv6",
    );
    let family = "Invalid value: \"fd00::6\": VIP for the Ingress must be of the same IP family with machine network's primary IP Family \
                  for dual-stack IPv4/IPv6";
    let family = vips("ingressVIPs", family);
    let hosts = |rest: &str| format!("platform.baremetal.hosts{rest}");
    let missing = hosts(": Invalid value: null: bare metal hosts are missing");
    let too_few = hosts(
        ": Required value: not enough hosts found (0) to support all the configured ControlPlane replicas (3)",
    );
    let nameless = hosts("[1].name: Required value: missing Name");
    let no_mac = hosts("[0].bootMACAddress: Required value: missing BootMACAddress");
    let secure = hosts(
        "[0].bootMode: Invalid value: \"UEFISecureBoot\": driver ipmi does not support UEFI secure boot",
    );
    let device = hosts(
        "[0].rootDeviceHints.deviceName: Invalid value: \"sda\": Device Name of root device hint must be a /dev/ path",
    );
    let by_id = "Invalid value: \"/dev/disk/by-id/x\": Device Name of root device hint must be path in /dev/ or /dev/disk/by-path/";
    let by_id = hosts(&format!("[0].rootDeviceHints.deviceName: {by_id}"));
    let mtu = hosts(
        "[0].networkConfig.interfaces[0].mtu: Invalid value: \"9000\": mtu must be an integer (not quoted string)",
    );
    let list = hosts(
        "[0].networkConfig.interfaces[0].mtu: Invalid value: [1]: mtu must be an integer, got []interface {}",
    );
    let dual: &[(&str, Value)] = &[
        ("networking.serviceNetwork", json!(["172.30.0.0/16", "fd02::/112"])),
        (
            "networking.clusterNetwork",
            json!([{"cidr": "10.128.0.0/14", "hostPrefix": 23}, {"cidr": "fd01::/48", "hostPrefix": 64}]),
        ),
        ("networking.machineNetwork", json!([{"cidr": "10.0.0.0/16"}, {"cidr": "fd00::/48"}])),
        ("platform.baremetal.ingressVIPs", json!(["fd00::6"])),
    ];
    let balancer =
        "platform.baremetal.loadBalancer.type: Invalid value: \"Wild\": invalid load balancer type";
    let not_ip = "platform.baremetal.clusterProvisioningIP: Invalid value: \"x\": \"x\" is not a valid IP";
    let old = "failed to upconvert install config: platform.baremetal.provisioningHostIP: Invalid value: \"172.22.0.9\": provisioningHostIP is \
               deprecated; only clusterProvisioningIP needs to be specified";
    check(
        metal,
        &[
            (&[], &[]),
            (&[("platform.baremetal.ingressVIPs", json!(["10.1.0.6"]))], &[&outside]),
            (
                &[
                    ("platform.baremetal.ingressVIPs", json!(["10.1.0.6"])),
                    ("platform.baremetal.loadBalancer", json!({"type": "UserManaged"})),
                ],
                &[],
            ),
            (&[("platform.baremetal.apiVIPs", json!([]))], &[&none, &set]),
            (&[("platform.baremetal.apiVIPs", json!(["10.0.0.5", "10.0.0.7"]))], &[&same_family]),
            (dual, &[&family]),
            (&[("platform.baremetal.loadBalancer", json!({"type": "Wild"}))], &[balancer]),
            (&[("platform.baremetal.hosts", json!(null))], &[&missing, &too_few]),
            (&[("platform.baremetal.hosts", json!([]))], &[&too_few]),
            (&[("platform.baremetal.hosts.0.bootMACAddress", json!(""))], &[&no_mac]),
            (&[("platform.baremetal.hosts.0.bootMode", json!("UEFISecureBoot"))], &[&secure]),
            (&[("platform.baremetal.hosts.0.bootMode", json!("legacy"))], &[]),
            (&[("platform.baremetal.hosts.0.rootDeviceHints", json!({"deviceName": "sda"}))], &[&device]),
            (
                &[("platform.baremetal.hosts.0.rootDeviceHints", json!({"deviceName": "/dev/disk/by-id/x"}))],
                &[&by_id],
            ),
            (
                &[("platform.baremetal.hosts.0.networkConfig", json!({"interfaces": [{"mtu": "9000"}]}))],
                &[&mtu],
            ),
            (
                &[("platform.baremetal.hosts.0.networkConfig", json!({"interfaces": [{"mtu": [1]}]}))],
                &[&list],
            ),
            (&[("platform.baremetal.clusterProvisioningIP", json!("x"))], &[not_ip]),
            (
                &[
                    ("platform.baremetal.clusterProvisioningIP", json!("172.22.0.3")),
                    ("platform.baremetal.provisioningHostIP", json!("172.22.0.9")),
                ],
                &[old],
            ),
        ],
    );
    let got = told(&with(metal(), &[("platform.baremetal.hosts.1.name", json!(""))]));
    assert!(
        got.starts_with(&format!("[{nameless}, platform.baremetal.hosts[1].name: Invalid value: \"\": ")),
        "{got}"
    );
}

/// What the decoder stops at, at several depths.
#[test]
fn fields_and_kinds() {
    let of = "failed to unmarshal install-config.yaml: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal";
    let unknown = |name: &str| {
        format!(
            "failed to parse first occurrence of unknown field: failed to unmarshal install-config.yaml: error unmarshaling JSON: \
             while decoding JSON: json: unknown field {name:?}"
        )
    };
    let kinds = [
        (
            "compute",
            json!({}),
            "object into Go struct field InstallConfig.compute of type []types.MachinePool",
        ),
        ("platform", json!([]), "array into Go struct field InstallConfig.platform of type types.Platform"),
        (
            "controlPlane.replicas",
            json!(2.5),
            "number 2.5 into Go struct field MachinePool.controlPlane.replicas of type int64",
        ),
        ("fips", json!("maybe"), "string into Go struct field InstallConfig.fips of type bool"),
        (
            "networking.serviceNetwork",
            json!("x"),
            "string into Go struct field Networking.networking.serviceNetwork of type []ipnet.IPNet",
        ),
        (
            "networking.clusterNetworkMTU",
            json!(-1),
            "number -1 into Go struct field Networking.networking.clusterNetworkMTU of type uint32",
        ),
        (
            "compute.0.diskSetup",
            json!([{"etcd": {"platformDiskID": []}}]),
            "array into Go struct field DiskEtcd.compute.diskSetup.etcd.platformDiskID of type string",
        ),
    ];
    for (path, value, want) in kinds {
        assert_eq!(told(&with(base(), &[(path, value)])), format!("{of} {want}"), "{path}");
    }
    for (path, name) in [
        ("wibble", "wibble"),
        ("metadata.nmae", "nmae"),
        ("networking.machineNetwork.0.cdir", "cdir"),
        ("platform.wibble", "wibble"),
        ("controlPlane.platform.none", "none"),
    ] {
        assert_eq!(told(&with(base(), &[(path, json!("x"))])), unknown(name), "{path}");
    }
    let cidr = told(&with(base(), &[("networking.machineNetwork.0.cidr", json!("10.0.0.0"))]));
    assert!(
        cidr.ends_with("failed to Parse cidr string to net.IPNet: invalid CIDR address: 10.0.0.0"),
        "{cidr}"
    );
}
