//! bootkube
