//! Pings from our own socket, timed by the kernel's stamps.

use crate::fault::Fault;
use crate::sys;
use dragstrip_recording::{ProbeRow, Probes};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

const ECHO: u8 = 8;
const HEADER: usize = 8;

/// A socket that pings one target.
pub struct Pinger {
    pub socket: OwnedFd,
    target: Ipv4Addr,
    identity: u16,
    size: usize,
    sequence: u16,
    /// Send time of each request, and its row in the table of probes.
    sent: Vec<(i64, usize)>,
}

impl Pinger {
    /// Opens the socket; the thread is in the asking host's namespace. `size` is ICMP header and payload.
    pub fn open(identity: u16, target: Ipv4Addr, size: usize) -> Result<Self, Fault> {
        let socket = sys::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP)?;
        sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32, "SO_TIMESTAMPNS")?;
        let size = size.max(HEADER);
        Ok(Self { socket, target, identity, size, sequence: 0, sent: Vec::new() })
    }

    /// Sends a request, recorded in `row`.
    pub fn send(&mut self, row: usize) {
        let mut packet = vec![0; self.size];
        packet[0] = ECHO;
        packet[4..6].copy_from_slice(&self.identity.to_be_bytes());
        packet[6..8].copy_from_slice(&self.sequence.to_be_bytes());
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
        self.sequence = self.sequence.wrapping_add(1);
        self.sent.push((sys::now(), row));
        let _ = sys::send_to(&self.socket, &packet, self.target, 0); // unanswered, it counts as lost
    }

    /// Reads what has come: (row, round-trip time).
    pub fn answers(&mut self) -> Vec<(usize, i64)> {
        let mut buffer = [0; 128];
        let mut answers = Vec::new();
        while let Some(reply) = sys::receive_stamped(&self.socket, &mut buffer) {
            let answer = buffer.get(20..reply.bytes.min(buffer.len())).unwrap_or_default();
            let [0, _, _, _, i0, i1, s0, s1, ..] = answer else { continue };
            if u16::from_be_bytes([*i0, *i1]) != self.identity {
                continue;
            }
            let sequence = u16::from_be_bytes([*s0, *s1]);
            // The last request with this number: a run may have more than 65,536 of them.
            let last = self.sent.len().checked_sub(1);
            let behind = last.map(|last| usize::from((last as u16).wrapping_sub(sequence)));
            if let Some((sent, row)) =
                behind.and_then(|behind| last?.checked_sub(behind)).map(|index| self.sent[index])
            {
                answers.push((row, reply.time_ns - sent));
            }
        }
        answers
    }

    /// Writes the answers that have come into the table.
    pub fn record(&mut self, table: &mut Probes) {
        for (row, rtt_ns) in self.answers() {
            table.rtt_ns.set(row, Some(rtt_ns));
            table.lost.set(row, false);
        }
    }
}

/// A row for a request, lost until it is answered.
pub fn row(table: &mut Probes, time_ns: i64, label: &str, target: &str) -> usize {
    let (probe, target) = (table.probe.word(label), table.target.word(target));
    table.push(ProbeRow { time_ns, probe, target, rtt_ns: None, lost: true })
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| {
        u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or_default()]))
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::checksum;

    #[test]
    fn the_example_of_rfc_1071() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }
}
