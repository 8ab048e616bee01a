//! What this process has used, as the kernel counts it.

/// Reads a file of /proc; empty where there is none (the figures are then 0).
#[expect(clippy::disallowed_methods, reason = "a program at the edge, measuring itself")]
fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Time on a CPU since the start of the process, user and kernel, in seconds (proc(5), schedstat).
/// Precise to the nanosecond, unlike the tick-based split into user and system time.
pub fn cpu_s() -> f64 {
    let text = read("/proc/self/schedstat");
    let ns: u64 = text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0);
    ns as f64 / 1e9
}

/// Most memory this process has had resident at once, in KiB (proc(5), VmHWM).
pub fn peak_rss_kib() -> u64 {
    read("/proc/self/status")
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|word| word.parse().ok())
        .unwrap_or(0)
}
