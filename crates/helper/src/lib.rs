//! helper
