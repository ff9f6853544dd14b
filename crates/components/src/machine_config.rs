//! MachineConfigs and pools.
