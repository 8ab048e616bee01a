//! The reference page of the stack profiles, from their rows.

use crate::output::MARK;
use dragstrip_scenario::{StackProfile, Sysctls};
use std::fmt::Write as _;

/// Payload of a full segment with timestamps at an MTU of 1500 bytes.
const MSS: u32 = 1448;

pub fn page() -> String {
    let mut text = format!(
        "{MARK}# Stack profiles\n\n\
         Which kernel's TCP a host has (`profile` in an experiment's hosts or a scenario's nodes).\n\
         [Its settings](sysctls.md) can be changed, `tick_hz` too. The initial window is that of\n\
         segments of {MSS} bytes; `gso` says whether a host can be given bursts for its interface to cut;\n\
         `history`, whether it begins with what earlier connections have left behind.\n\n\
         | profile | ticks per second | initial window | minimum RTO | congestion controls | `gso` | `history` |\n\
         |---|---|---|---|---|---|---|\n"
    );
    for profile in StackProfile::ALL {
        let row = profile.row();
        let settings = (row.settings)();
        let algorithms = row.algorithms.map_or_else(
            || "all".to_owned(),
            |names| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
        );
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} ms | {algorithms} | {} | {} |",
            profile.name(),
            settings.hz,
            (row.initial_window)(MSS),
            settings.rto_min.as_nanos() / 1_000_000,
            row.no_bursts.map_or_else(|| "`off`, `auto`".to_owned(), |why| format!("`off`: {why}")),
            match (settings.metrics_cache, row.tolerates_threshold) {
                (true, _) => "used",
                (false, true) => "may have a threshold, which it ignores",
                (false, false) => "none",
            },
        );
    }
    text.push_str(
        "\n## Settings\n\nDefaults that are not `linux-6`'s, and settings that the kernel does not have.\n\n\
         | profile | defaults | not there |\n|---|---|---|\n",
    );
    let first = Sysctls::linux_6().values();
    for profile in &StackProfile::ALL[1..] {
        let row = profile.row();
        let Some(lacks) = row.sysctls.lacks() else {
            let _ = writeln!(text, "| `{}` | [its own](sysctls.md#freebsd-9) | |", profile.name());
            continue;
        };
        let absent: Vec<&str> = lacks.iter().copied().flatten().copied().collect();
        let is_there = |name: &str| {
            name.strip_prefix("net.ipv4.").is_none_or(|plain| !absent.contains(&plain))
        };
        let values = Sysctls::of(&(row.settings)()).values();
        let changed = values
            .iter()
            .zip(&first)
            .filter(|((name, values), (_, first))| values != first && is_there(name));
        let changed: Vec<String> =
            changed.map(|((name, value), _)| format!("`{name}` {value}")).collect();
        let absent: Vec<String> = absent.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(
            text,
            "| `{}` | {} | {} |",
            profile.name(),
            changed.join("<br>"),
            absent.join(", ")
        );
    }
    text
}
