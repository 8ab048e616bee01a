//! A congestion control's own variables as reported by the kernel (`TCP_CC_INFO`; union tcp_cc_info,
//! linux/inet_diag.h), under the names that the simulator's algorithms have for it.

use crate::fault::Fault;
use crate::netlink::word;
use crate::sys;
use dragstrip_recording::{CcState, CcStateRow};
use std::os::fd::OwnedFd;

const TCP_CC_INFO: libc::c_int = 26;
/// A gain of 1 (BBR_UNIT).
const BBR_UNIT: f64 = 256.0;
/// An RTT that is not known yet (tcp_vegas.c, tcp_bbr.c).
const UNKNOWN: [u32; 2] = [0x7fff_ffff, u32::MAX];

/// Writes rows for the variables of `algorithm` that the kernel reports; none of an algorithm without `get_info`.
pub fn record(
    table: &mut CcState,
    fd: &OwnedFd,
    algorithm: &str,
    time_ns: i64,
    flow: u32,
) -> Result<(), Fault> {
    let mut bytes = [0; 64];
    let length = sys::get_option(fd, libc::IPPROTO_TCP, TCP_CC_INFO, &mut bytes)?;
    for (name, value) in variables(algorithm, &bytes[..length.min(64)]) {
        let name = table.name.word(name);
        table.push(CcStateRow { time_ns, flow, name, value });
    }
    Ok(())
}

fn variables(algorithm: &str, info: &[u8]) -> Vec<(&'static str, f64)> {
    let number = |index: usize| word(info, 4 * index);
    let rtt_ns = |index| {
        let defined_us = number(index).filter(|us| !UNKNOWN.contains(us));
        defined_us.map(|us| f64::from(us) * 1e3)
    };
    let variables = match algorithm {
        // struct tcp_bbr_info: bandwidth in bytes/s in two halves, min_rtt in µs, gains.
        "bbr" => vec![
            (
                "bandwidth",
                number(0)
                    .zip(number(1))
                    .map(|(low, high)| (u64::from(low) | u64::from(high) << 32) as f64 * 8.0),
            ),
            ("min_rtt", rtt_ns(2)),
            ("pacing_gain", number(3).map(|gain| f64::from(gain) / BBR_UNIT)),
            ("cwnd_gain", number(4).map(|gain| f64::from(gain) / BBR_UNIT)),
        ],
        // struct tcpvegas_info: enabled, samples of this round, least RTT of all and of this round in µs.
        "vegas" => vec![("base_rtt", rtt_ns(2)), ("round_rtt", rtt_ns(3))],
        _ => vec![],
    };
    variables.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::variables;

    fn info(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn bbr_tells_bandwidth_and_gains() {
        let variables = variables("bbr", &info(&[1_250_000, 1, 40_000, 739, 512]));
        let bandwidth = ((1_u64 << 32) + 1_250_000) as f64 * 8.0;
        let gains = [("pacing_gain", 739.0 / 256.0), ("cwnd_gain", 2.0)];
        assert_eq!(variables[..2], [("bandwidth", bandwidth), ("min_rtt", 40e6)]);
        assert_eq!(variables[2..], gains);
    }

    #[test]
    fn unknown_values_are_left_out() {
        assert_eq!(
            variables("vegas", &info(&[1, 0, 40_500, 0x7fff_ffff])),
            [("base_rtt", 40_500_000.0)]
        );
        assert!(variables("bbr", &[]).is_empty());
        assert!(variables("cubic", &info(&[1, 2, 3, 4, 5])).is_empty());
    }
}
