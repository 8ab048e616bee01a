//! Facts about the kernel that carries the packets.

use serde::Deserialize;
use serde_json::{Value, json};
use std::fs;

/// A kernel's ticks, and what it lacks of what a scenario may ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Ticks per second (`CONFIG_HZ`), which a host that names its own must agree to; not checked where they are not
    /// known.
    pub tick_hz: Option<u32>,
    /// Queue disciplines that it lacks.
    pub lacks: Vec<&'static str>,
    /// Its release (`uname -r`), where it is known.
    pub release: Option<String>,
    pub lines: Lines,
}

/// Links that the simulator's code carries for a kernel (forward/lines.rs).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lines {
    /// None: what no kernel has is refused.
    #[default]
    None,
    /// Those that no kernel has.
    Media,
    /// Also those that this kernel lacks something for.
    Lacking,
    /// All that have a queue, a rate, a delay or an impairment.
    All,
}

impl Kernel {
    /// Debian builds its kernels with 250 ticks per second and every discipline.
    pub const DEBIAN: Self =
        Self { tick_hz: Some(250), lacks: Vec::new(), release: None, lines: Lines::Media };

    /// Description of this machine's abilities, as JSON.
    pub fn describe(&self) -> Value {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let algorithms = read("/proc/sys/net/ipv4/tcp_available_congestion_control");
        json!({
            "kernel": read("/proc/sys/kernel/osrelease").trim(),
            "tick_hz": self.tick_hz,
            "lacks": self.lacks,
            "algorithms": algorithms.split_whitespace().collect::<Vec<_>>(),
        })
    }
}
