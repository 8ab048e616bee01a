//! The user's own machine: the rights to make network namespaces on it, root's or those of a user namespace
//! (user_namespaces(7)), and the features of its kernel. The machine itself is not changed.

use crate::fault::{Fault, refusal};
use crate::kernel::{Kernel, Lines};
use crate::{network, sys};
use dragstrip_qdisc::KINDS;
use std::fs;

/// The discipline that is none, which no kernel has to know.
const NONE: &str = "noqueue";

/// Its kernel, found out by putting each discipline on an interface of a namespace that is thrown away.
pub fn kernel() -> Result<Kernel, Fault> {
    let kinds: Vec<&str> =
        KINDS.iter().map(|kind| kind.name).filter(|kind| *kind != NONE).collect();
    Ok(Kernel {
        tick_hz: sys::tick_hz(),
        lacks: network::unknown_kinds(&kinds)?,
        release: Some(network::kernel_release()),
        lines: Lines::Media,
    })
}

/// Settings that can take them away, and the value that does.
const FORBIDDING: [(&str, &str); 3] = [
    ("kernel.apparmor_restrict_unprivileged_userns", "1"),
    ("kernel.unprivileged_userns_clone", "0"),
    ("user.max_user_namespaces", "0"),
];

/// Origin of a process's rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// The rights that it was started with.
    Own,
    /// The rights of a user namespace, in which it is root.
    UserNamespace,
}

impl Rights {
    /// In words, for provenance.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::UserNamespace => "user namespace",
        }
    }

    /// Moves this process, which must have one thread, to where it may make namespaces and change them. From then on it
    /// ends with the process `parent`, which started it.
    pub fn take(parent: Option<i32>) -> Result<Self, Fault> {
        Self::take_after(parent, || Ok(())).map(|(rights, ())| rights)
    }

    /// Like [`Rights::take`], after `at_home`, which has the rights already and is still in this machine's own network: a
    /// process of a user namespace that leaves it cannot return.
    pub fn take_after<T>(
        parent: Option<i32>,
        at_home: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<(Self, T), Fault> {
        let home = network::own_namespace()?;
        let (rights, value) = if sys::unshare_network().is_ok() {
            sys::enter(&home)?;
            (Self::Own, at_home()?)
        } else {
            let (user, group) = sys::user();
            if sys::unshare_user().is_err() || !mapped(user, group) {
                return forbidden();
            }
            let value = at_home()?;
            if sys::unshare_network().is_err() {
                return forbidden();
            }
            (Self::UserNamespace, value)
        };
        // A new user namespace clears it (prctl(2)), so that it comes last.
        if let Some(parent) = parent {
            sys::die_with_parent(parent)?;
        }
        if !network::may_build()? { forbidden() } else { Ok((rights, value)) }
    }
}

/// Root inside is the user outside. An unprivileged process may not keep its groups' rights (user_namespaces(7)).
fn mapped(user: u32, group: u32) -> bool {
    fs::write("/proc/self/setgroups", "deny").is_ok()
        && fs::write("/proc/self/uid_map", format!("0 {user} 1")).is_ok()
        && fs::write("/proc/self/gid_map", format!("0 {group} 1")).is_ok()
}

fn forbidden<T>() -> Result<T, Fault> {
    let value = |name: &str| fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/")));
    let cause = FORBIDDING
        .iter()
        .find(|(name, forbids)| value(name).is_ok_and(|text| text.trim() == *forbids));
    let hint = cause.map_or_else(String::new, |(name, forbids)| {
        format!("; here {name}={forbids} takes them away (docs/how-to/netns.md)")
    });
    let expected = format!("root, or user namespaces with network namespaces in them{hint}");
    refusal("rights", sys::user().0.to_string(), expected)
}
