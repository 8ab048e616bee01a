//! Permissions that an engine gives the agent on a whole machine. In a virtual machine started for the run they are
//! unlimited; on the user's host there are none, and only the run's own namespaces are touched.

use crate::fault::{Fault, fault};

/// Lifetime of congestion controls that are loaded into the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Programs {
    /// Until the machine ends.
    ForGood,
    /// Until the run ends, however it ends.
    ForTheRun,
}

/// Permitted changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// The kernel's source of randomness is stirred with the seed.
    pub entropy: bool,
    /// Parameters of the kernel's modules, which it has once for all flows.
    pub modules: bool,
    /// Settings that the kernel has once and not in each network namespace.
    pub global_sysctls: bool,
    /// Congestion controls may be loaded into the kernel.
    pub programs: Option<Programs>,
}

impl Grant {
    /// A virtual machine that is thrown away.
    pub const MACHINE: Self = Self {
        entropy: true,
        modules: true,
        global_sysctls: true,
        programs: Some(Programs::ForGood),
    };

    /// True when nothing of the machine has to stay as it is.
    pub fn whole(self) -> bool {
        self == Self::MACHINE
    }

    /// Reads `entropy,modules,global-sysctls,programs`, or any of them.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let mut grant = Self::default();
        for word in text.split(',').filter(|word| !word.is_empty()) {
            match word {
                "entropy" => grant.entropy = true,
                "modules" => grant.modules = true,
                "global-sysctls" => grant.global_sysctls = true,
                "programs" => grant.programs = Some(Programs::ForTheRun),
                _ => {
                    let permissions = "entropy, modules, global-sysctls, programs";
                    return fault(format!("grant={text}: {word:?} is none of {permissions}"));
                }
            }
        }
        Ok(grant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_granted_that_is_not_named() {
        assert_eq!(Grant::parse("").unwrap(), Grant::default());
        let two = Grant::parse("modules,programs").unwrap();
        let programs = Some(Programs::ForTheRun);
        assert_eq!(two, Grant { modules: true, programs, ..Grant::default() });
        assert!(Grant::parse("everything").unwrap_err().to_string().contains("global-sysctls"));
    }
}
