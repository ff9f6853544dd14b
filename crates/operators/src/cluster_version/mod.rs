//! cluster_version
