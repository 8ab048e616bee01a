//! Operations on a whole machine: running as its first process, its randomness, its modules, programs in its kernel.
//! Each change needs the engine's [`Grant`].

pub mod first;
mod grant;
pub mod guest;
mod load;
mod modules;

pub use first::become_root;
pub use grant::{Grant, Programs};
pub use load::{Held, Part, install};
pub use modules::{Loaded, loading, refuse_options};

use crate::fault::{Fault, refusal};
use crate::sys;
use dragstrip_scenario::Scenario;
use std::fs::OpenOptions;

/// Makes the machine's kernel what a run needs; `parts` and `raw` are the congestion controls that a request brings.
/// Those that may not stay are in the kernel until what is returned is dropped.
pub fn prepare(
    scenario: &Scenario,
    parts: &[Part],
    raw: &[u8],
    grant: Grant,
) -> Result<Option<Held>, Fault> {
    if grant.entropy {
        stir(scenario.seed)?;
    }
    let held_programs = match grant.programs {
        _ if parts.is_empty() => None,
        Some(stay) => load::install(parts, raw, stay)?,
        None => {
            let expected = "nothing: this engine puts no programs into the kernel";
            return refusal("load", "", expected);
        }
    };
    modules::check(scenario)?;
    if grant.modules {
        modules::configure(scenario)?;
    } else {
        modules::refuse_options(scenario)?;
    }
    Ok(held_programs)
}

/// The seed becomes part of the kernel's randomness: netem's random numbers, hashes, sequence numbers.
fn stir(seed: u64) -> Result<(), Fault> {
    let pool = OpenOptions::new().write(true).open("/dev/urandom")?;
    let mut data = [0; 32];
    data[..8].copy_from_slice(&seed.to_le_bytes());
    sys::stir(&pool, data)
}
