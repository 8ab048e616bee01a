//! Kernel modules and their parameters.

use crate::fault::{Fault, refusal};
use crate::sys;
use dragstrip_scenario::{Scenario, Transport};
use std::fs;
use std::path::Path;

/// Loads every module listed in `folder/order`: a file name per line, and the module's parameters.
pub fn load_all(folder: &Path) -> Result<(), Fault> {
    let order = fs::read_to_string(folder.join("order"))?;
    for line in order.lines().filter(|line| !line.is_empty()) {
        let (name, parameters) = line.split_once(' ').unwrap_or((line, ""));
        let file = fs::File::open(folder.join(name))
            .map_err(|error| Fault::Failed(format!("{name}: {error}")))?;
        sys::load_module(&file, parameters).map_err(|fault| fault.at(name))?;
    }
    Ok(())
}

/// Sets the parameters of congestion controls, which the kernel has once for all flows.
pub fn configure(scenario: &Scenario) -> Result<(), Fault> {
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    for flow in &scenario.flows {
        let Transport::Tcp { cc, cc_options } = &flow.transport else { continue };
        if !available.split_whitespace().any(|name| name == cc) {
            let known = format!("one that this kernel has: {}", available.trim());
            return refusal(format!("flow {}: cc", flow.label), cc, known);
        }
        for (name, value) in cc_options {
            let file = format!("/sys/module/tcp_{cc}/parameters/{name}");
            if let Err(error) = fs::write(&file, format!("{value}")) {
                let field = format!("flow {}: {cc}: {name}", flow.label);
                let expected = format!("a parameter that this kernel takes ({error})");
                return refusal(field, value.to_string(), expected);
            }
        }
    }
    Ok(())
}
