//! machineconfiguration.openshift.io/v1. Specs are people's and the payload's own: they pass through as they are.

use crate::kind::kind;
use serde_json::Value;

kind! {
    MachineConfig = "MachineConfig" "machineconfigs" in "machineconfiguration.openshift.io": Value, Value
}
kind! {
    MachineConfigPool = "MachineConfigPool" "machineconfigpools" in "machineconfiguration.openshift.io": Value, Value
}
kind! {
    ControllerConfig = "ControllerConfig" "controllerconfigs" in "machineconfiguration.openshift.io": Value, Value
}
