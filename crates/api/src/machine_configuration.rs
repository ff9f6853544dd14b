//! machineconfiguration.openshift.io/v1. Specs are people's and the payload's own: they pass through as they are.

use crate::kind::kinds;
use serde_json::Value;

kinds! {
    MachineConfig = "MachineConfig" "machineconfigs" in "machineconfiguration.openshift.io" cluster: Value, Value;
    MachineConfigPool = "MachineConfigPool" "machineconfigpools" in "machineconfiguration.openshift.io" cluster: Value, Value;
    ControllerConfig = "ControllerConfig" "controllerconfigs" in "machineconfiguration.openshift.io" cluster: Value, Value;
}
