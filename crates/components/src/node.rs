//! What every node carries: software, containerd, kubelet.
