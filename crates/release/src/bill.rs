//! The bill of materials as data: which Go programs are built from which pinned module, and what each image holds.
//! Versions are in the go.mod files under `release/`, nowhere else.

/// Programs built from one go.mod, because their dependency graphs agree.
pub(crate) struct Group {
    /// Folder under `release/`.
    pub dir: &'static str,
    /// Module whose version is the group's version.
    pub module: &'static str,
    /// Name of the program, and the package it is built from.
    pub programs: &'static [(&'static str, &'static str)],
    /// Variables stamped by the linker; `${version}`, `${major}` and `${minor}` are filled in.
    pub stamps: &'static [&'static str],
    /// Build tags of programs with C in them; those are linked with all their libraries.
    pub c_tags: Option<&'static str>,
    /// How long it usually takes on two cores, after the groups before it: for people who wait.
    pub seconds: u32,
}

#[rustfmt::skip]
pub(crate) const GROUPS: &[Group] = &[
    Group { dir: "kubernetes", module: "k8s.io/kubernetes", c_tags: None, seconds: 400, programs: &[
        ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
        ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
        ("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"),
        ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
        ("kubeadm", "k8s.io/kubernetes/cmd/kubeadm"),
        ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
        ("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
    ], stamps: &[
        "k8s.io/component-base/version.gitVersion=${version}",
        "k8s.io/component-base/version.gitMajor=${major}",
        "k8s.io/component-base/version.gitMinor=${minor}",
        "k8s.io/component-base/version.gitTreeState=clean",
        "k8s.io/component-base/version.gitCommit=",
        "k8s.io/client-go/pkg/version.gitVersion=${version}",
        "k8s.io/client-go/pkg/version.gitMajor=${major}",
        "k8s.io/client-go/pkg/version.gitMinor=${minor}",
        "k8s.io/client-go/pkg/version.gitTreeState=clean",
        "k8s.io/client-go/pkg/version.gitCommit=",
    ] },
    Group { dir: "etcd", module: "go.etcd.io/etcd/server/v3", c_tags: None, seconds: 50, programs: &[
        ("etcd", "go.etcd.io/etcd/server/v3"),
        ("etcdctl", "go.etcd.io/etcd/etcdctl/v3"),
        ("etcdutl", "go.etcd.io/etcd/etcdutl/v3"),
    ], stamps: &[] },
    Group { dir: "containerd", module: "github.com/containerd/containerd/v2", c_tags: None, seconds: 70, programs: &[
        ("containerd", "github.com/containerd/containerd/v2/cmd/containerd"),
        ("containerd-shim-runc-v2", "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"),
        ("ctr", "github.com/containerd/containerd/v2/cmd/ctr"),
    ], stamps: &["github.com/containerd/containerd/v2/version.Version=${version}"] },
    Group { dir: "cri-tools", module: "sigs.k8s.io/cri-tools", c_tags: None, seconds: 20, programs: &[
        ("crictl", "sigs.k8s.io/cri-tools/cmd/crictl"),
    ], stamps: &["sigs.k8s.io/cri-tools/pkg/version.Version=${version}"] },
    Group { dir: "cni-plugins", module: "github.com/containernetworking/plugins", c_tags: None, seconds: 10, programs: &[
        ("bridge", "github.com/containernetworking/plugins/plugins/main/bridge"),
        ("host-local", "github.com/containernetworking/plugins/plugins/ipam/host-local"),
        ("loopback", "github.com/containernetworking/plugins/plugins/main/loopback"),
        ("portmap", "github.com/containernetworking/plugins/plugins/meta/portmap"),
    ], stamps: &["github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion=${version}"] },
    Group { dir: "flannel", module: "github.com/flannel-io/flannel", c_tags: None, seconds: 20, programs: &[("flanneld", ".")],
        stamps: &["github.com/flannel-io/flannel/pkg/version.Version=${version}"] },
    Group { dir: "coredns", module: "github.com/coredns/coredns", c_tags: None, seconds: 30, programs: &[("coredns", ".")], stamps: &[] },
    Group { dir: "runc", module: "github.com/opencontainers/runc", c_tags: Some("seccomp urfave_cli_no_docs netgo osusergo"), seconds: 20,
        programs: &[("runc", "github.com/opencontainers/runc")], stamps: &[] },
];

/// What an image gets from Debian.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    None,
    /// busybox and its links: a shell for init containers and test workloads.
    Shell,
    /// busybox, nft, iptables and conntrack with their libraries.
    Packets,
}

pub(crate) struct Image {
    pub name: &'static str,
    /// Program and its path in the image; the first is the entry point.
    pub programs: &'static [(&'static str, &'static str)],
    pub system: System,
    /// Group that gives the version; None: Seedling's own.
    pub group: Option<&'static str>,
}

const fn image(
    name: &'static str,
    group: Option<&'static str>,
    system: System,
    programs: &'static [(&'static str, &'static str)],
) -> Image {
    Image { name, programs, system, group }
}

/// All images but the release image, which is the seedling image with the manifests on top.
#[rustfmt::skip] // A row is a line.
pub(crate) const IMAGES: &[Image] = &[
    // etcdutl makes a cluster's data of a snapshot: see node/etcd/restore.
    image("etcd", Some("etcd"), System::None, &[("etcd", "usr/bin/etcd"), ("etcdctl", "usr/bin/etcdctl"), ("etcdutl", "usr/bin/etcdutl")]),
    image("kube-apiserver", Some("kubernetes"), System::None, &[("kube-apiserver", "usr/bin/kube-apiserver")]),
    image("kube-controller-manager", Some("kubernetes"), System::None, &[("kube-controller-manager", "usr/bin/kube-controller-manager")]),
    image("kube-scheduler", Some("kubernetes"), System::None, &[("kube-scheduler", "usr/bin/kube-scheduler")]),
    image("kube-proxy", Some("kubernetes"), System::Packets, &[("kube-proxy", "usr/bin/kube-proxy")]),
    image("flannel", Some("flannel"), System::Packets, &[
        ("flanneld", "usr/bin/flanneld"), ("bridge", "opt/cni/bin/bridge"), ("host-local", "opt/cni/bin/host-local"),
        ("loopback", "opt/cni/bin/loopback"), ("portmap", "opt/cni/bin/portmap"),
    ]),
    image("coredns", Some("coredns"), System::None, &[("coredns", "usr/bin/coredns")]),
    image("pause", None, System::None, &[("pause", "usr/bin/pause")]),
    image("seedling", None, System::None, &[("seedling", "usr/bin/seedling")]),
    image("tools", None, System::Shell, &[]),
];

/// Node software that Ignition fetches.
#[rustfmt::skip]
pub(crate) const NODE_BINARIES: &[&str] = &[
    "containerd", "containerd-shim-runc-v2", "crictl", "ctr", "etcdctl", "kubectl", "kubelet", "runc", "seedling",
];
/// In `bin/` for measuring against it; no node of ours fetches it.
pub(crate) const BENCHMARK_BINARIES: &[&str] = &["kubeadm"];

/// CRDs come as data from this module, pinned in this folder; its file `crds` names them.
pub(crate) const CRD_DIR: &str = "openshift-api";
pub(crate) const CRD_MODULE: &str = "github.com/openshift/api";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_a_source() {
        let built = |name: &str| GROUPS.iter().any(|g| g.programs.iter().any(|(p, _)| *p == name));
        let own = ["pause", "seedling"];
        let in_images = IMAGES.iter().flat_map(|i| i.programs.iter().map(|(p, _)| p));
        for name in in_images.chain(NODE_BINARIES).chain(BENCHMARK_BINARIES) {
            assert!(built(name) || own.contains(name), "{name}");
        }
    }
}
