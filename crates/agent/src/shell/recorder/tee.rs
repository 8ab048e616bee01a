//! Copies of the packets that enter and leave a path, from the forwarder to the recorder: heads one behind the other in
//! buffers, handed over a hundred times a second, so that the forwarder neither waits nor writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

/// Age at which a buffer is handed over, and its size.
pub const AGE_NS: u64 = 10_000_000;
const BUFFER_BYTES: usize = 64 << 10;
/// Bytes that wait for the recorder at most; packets beyond are counted as missing.
const WAITING_BYTES_MAX: usize = 64 << 20;
/// Time, host and direction, length, bytes kept.
const HEAD: usize = 8 + 1 + 4 + 4;
/// Bytes of IPv6's header and TCP's longest.
pub const HEADERS_BYTES: usize = 40 + 60;

/// The forwarder's message to the recorder.
#[derive(Debug)]
pub enum Message {
    /// The path's time begins at this instant of the monotonic clock.
    Begin(u64),
    Packets(Vec<u8>),
    /// Counters of the path now.
    Path(PathState),
    /// The path's time has ended.
    End(Ending),
}

/// The end of a path's time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ending {
    pub at_ns: u64,
    /// Packets that were not copied: the recorder was behind.
    pub missing: u64,
}

/// Counters of a path, down and up.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathState {
    pub ways: [WayState; 2],
}

/// Counters of a direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct WayState {
    pub bytes_out: u64,
    pub drops: u64,
    pub marks: u64,
    pub backlog_bytes: u64,
}

/// A packet at one of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// Nanoseconds of the path's time.
    pub at_ns: u64,
    /// 0: the server's, 1: the client's.
    pub host: usize,
    /// The host sends it.
    pub outgoing: bool,
    /// Length of the IP packet.
    pub length: u32,
    /// Its first bytes.
    pub bytes: &'a [u8],
}

/// The forwarder's side.
#[derive(Debug)]
pub struct Tee {
    to: Sender<Message>,
    /// Bytes of each packet that are copied.
    snaplen: usize,
    buffer: Vec<u8>,
    handed_over_ns: u64,
    waiting: Arc<AtomicUsize>,
    missing: u64,
}

impl Tee {
    /// `waiting` counts the bytes that the recorder has not taken yet.
    pub const fn new(to: Sender<Message>, snaplen: usize, waiting: Arc<AtomicUsize>) -> Self {
        Self { to, snaplen, buffer: Vec::new(), handed_over_ns: 0, waiting, missing: 0 }
    }

    /// A message beside the packets.
    pub fn tell(&mut self, message: Message) {
        let _ = self.to.send(message); // a recorder that has failed says so at its end
    }

    /// A packet enters or leaves the path.
    pub fn copy(&mut self, head: Head<'_>) {
        if self.waiting.load(Ordering::Relaxed) > WAITING_BYTES_MAX {
            self.missing += 1;
            return;
        }
        let Head { at_ns, host, outgoing, length, bytes } = head;
        let kept = &bytes[..bytes.len().min(self.snaplen)];
        self.buffer.extend_from_slice(&at_ns.to_ne_bytes());
        self.buffer.push(host as u8 | u8::from(outgoing) << 1);
        self.buffer.extend_from_slice(&length.to_ne_bytes());
        self.buffer.extend_from_slice(&(kept.len() as u32).to_ne_bytes());
        self.buffer.extend_from_slice(kept);
        if self.buffer.len() > BUFFER_BYTES || at_ns > self.handed_over_ns + AGE_NS {
            self.hand_over(at_ns);
        }
    }

    /// Hands over what there is at this instant.
    pub fn hand_over(&mut self, now_ns: u64) {
        self.handed_over_ns = now_ns;
        if !self.buffer.is_empty() {
            self.waiting.fetch_add(self.buffer.len(), Ordering::Relaxed);
            let next = Vec::with_capacity(self.buffer.len());
            let packets = std::mem::replace(&mut self.buffer, next);
            self.tell(Message::Packets(packets));
        }
    }

    /// Ends the recorder's work.
    pub fn end(mut self, at_ns: u64) {
        self.hand_over(at_ns);
        let missing = self.missing;
        self.tell(Message::End(Ending { at_ns, missing }));
    }
}

/// Gives each packet of a buffer to `each`.
pub fn read(buffer: &[u8], mut each: impl FnMut(Head<'_>)) {
    let mut rest = buffer;
    while let Some((head, tail)) = rest.split_at_checked(HEAD) {
        let number =
            |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let at_ns = u64::from(number(0)) | u64::from(number(4)) << 32;
        let Some((bytes, after)) = tail.split_at_checked(number(13) as usize) else { return };
        let (host, outgoing) = (usize::from(head[8] & 1), head[8] & 2 != 0);
        each(Head { at_ns, host, outgoing, length: number(9), bytes });
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn head(at_ns: u64, bytes: &[u8]) -> Head<'_> {
        Head { at_ns, host: 1, outgoing: true, length: bytes.len() as u32, bytes }
    }

    #[test]
    fn packets_come_over_in_order_and_cut() {
        let (to, from) = channel();
        let mut tee = Tee::new(to, 3, Arc::default());
        tee.copy(head(5, b"abcdef"));
        tee.copy(head(1 << 40, b"x"));
        let Ok(Message::Packets(buffer)) = from.try_recv() else { panic!("packets") };
        let mut seen = Vec::new();
        read(&buffer, |head| seen.push((head.at_ns, head.length, head.bytes.to_vec())));
        assert_eq!(seen, [(5, 6, b"abc".to_vec()), (1 << 40, 1, b"x".to_vec())]);
        assert!(from.try_recv().is_err());
    }

    #[test]
    fn a_recorder_that_is_behind_misses_packets_and_the_forwarder_does_not_wait() {
        let (to, from) = channel();
        let waiting = Arc::new(AtomicUsize::new(WAITING_BYTES_MAX + 1));
        let mut tee = Tee::new(to, 100, waiting.clone());
        tee.copy(head(5, b"a"));
        waiting.store(0, Ordering::Relaxed);
        tee.copy(head(6, b"a"));
        tee.end(7);
        assert!(matches!(from.try_recv(), Ok(Message::Packets(_))));
        let Ok(Message::End(ending)) = from.try_recv() else { panic!("the end") };
        assert_eq!((ending.at_ns, ending.missing), (7, 1));
    }
}
