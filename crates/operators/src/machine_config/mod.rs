//! machine_config
