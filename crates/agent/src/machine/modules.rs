//! Kernel modules and their parameters.

use crate::fault::{Fault, refusal};
use crate::sys;
use dragstrip_scenario::{Scenario, Transport};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

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

/// Prefixes of modules that the kernel loads by itself when a run requests disciplines and interfaces.
const ON_DEMAND: [&str; 2] = ["sch_", "veth"];
/// Namespaces that have gone are taken apart a moment later.
const UNLOAD_WITHIN: Duration = Duration::from_secs(5);

/// The modules of the machine, to be restored afterwards.
pub struct Loaded(BTreeSet<String>);

impl Loaded {
    /// As they are now.
    pub fn now() -> Self {
        let text = fs::read_to_string("/proc/modules").unwrap_or_default();
        Self(text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
    }

    /// Unloads modules that were loaded automatically since. Only root may; otherwise they stay, as after use of
    /// tc(8).
    pub fn restore(&self) {
        let until = Instant::now() + UNLOAD_WITHIN;
        loop {
            let Self(now) = Self::now();
            let ours = |name: &&String| ON_DEMAND.iter().any(|start| name.starts_with(start));
            let new: Vec<&String> = now.difference(&self.0).filter(ours).collect();
            let stay = new.into_iter().filter(|name| !sys::unload_module(name)).count();
            if stay == 0 || sys::user().0 != 0 || Instant::now() > until {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// A refusal if a flow's congestion control is not in this kernel.
pub fn check(scenario: &Scenario) -> Result<(), Fault> {
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    for (flow, receiver) in scenario.flows.iter().flat_map(|flow| [(flow, false), (flow, true)]) {
        let Some(cc) = flow.transport.cc(receiver) else { continue };
        if !available.split_whitespace().any(|name| name == sys::in_kernel(cc)) {
            let algorithms = available.split_whitespace().collect::<Vec<_>>().join(" ");
            let expected = format!("one that this kernel has loaded: {algorithms}{}", loading(cc));
            return refusal(format!("flow {}: cc", flow.label), cc, expected);
        }
    }
    Ok(())
}

/// Advice for loading an algorithm that the kernel has as a module.
pub fn loading(cc: &str) -> String {
    format!(
        "; as root, `modprobe tcp_{}` loads it if the kernel was built with it",
        sys::in_kernel(cc)
    )
}

/// Sets the parameters of congestion controls, which the kernel has once for all flows.
pub fn configure(scenario: &Scenario) -> Result<(), Fault> {
    for (label, cc, name, value) in options(scenario) {
        let file = format!("/sys/module/tcp_{}/parameters/{name}", sys::in_kernel(cc));
        if let Err(error) = fs::write(&file, format!("{value}")) {
            let field = format!("flow {label}: {cc}: {name}");
            let expected = if Path::new(&file).exists() {
                format!("a value that this kernel takes ({error})")
            } else {
                "a parameter that this kernel has: the engine sim has it".to_owned()
            };
            return refusal(field, value.to_string(), expected);
        }
    }
    Ok(())
}

/// A refusal if a flow sets any, where the machine's modules are to stay as they are.
pub fn refuse_options(scenario: &Scenario) -> Result<(), Fault> {
    match options(scenario).next() {
        None => Ok(()),
        Some((label, cc, name, value)) => {
            let expected = "no options: this engine leaves the kernel's modules as they are";
            refusal(format!("flow {label}: {cc}: {name}"), value.to_string(), expected)
        }
    }
}

/// Flow, congestion control, option and value.
fn options(scenario: &Scenario) -> impl Iterator<Item = (&str, &str, &str, f64)> {
    scenario.flows.iter().flat_map(|flow| {
        let set = match &flow.transport {
            Transport::Tcp { cc, cc_options, .. } => Some((cc, cc_options)),
            Transport::Quic { .. } | Transport::Udp => None,
        };
        set.into_iter().flat_map(move |(cc, all)| {
            all.iter()
                .map(move |(name, value)| (flow.label.as_str(), cc.as_str(), name.as_str(), *value))
        })
    })
}
