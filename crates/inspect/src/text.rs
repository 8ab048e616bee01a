//! Texts and units of the document: ends, counts, seconds.

use crate::table::Key;
use dragstrip_capture::read::Address;
use std::net::{IpAddr, Ipv6Addr};

/// A count with its noun phrase; `None` for 0.
pub(crate) fn count_phrase(count: u64, noun: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} {noun}"))
}

/// Seconds of nanoseconds.
pub(crate) fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

/// `10.0.0.1:5001`.
pub(crate) fn end_text(key: &Key, index: usize) -> String {
    match address(&key.addresses[index]) {
        IpAddr::V4(address) => format!("{address}:{}", key.ports[index]),
        IpAddr::V6(address) => format!("[{address}]:{}", key.ports[index]),
    }
}

fn address(bytes: &Address) -> IpAddr {
    let whole = Ipv6Addr::from(*bytes);
    whole.to_ipv4_mapped().map_or(IpAddr::V6(whole), IpAddr::V4)
}
