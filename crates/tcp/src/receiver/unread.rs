//! Data that has arrived in order and that the application has not read: only where it does not read at once.
//!
//! Kernel: `sk_receive_queue`, `tcp_queue_rcv`, `tcp_recvmsg_locked`.

use std::collections::VecDeque;

/// The receive queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Unread {
    /// End of each buffer, and its memory, bytes.
    queue: VecDeque<(u64, u64)>,
    memory: u64,
    /// Next byte to be read (`copied_seq`).
    copied: u64,
}

impl Unread {
    /// The application stops reading at `rcv_nxt`.
    pub fn from(rcv_nxt: u64) -> Self {
        Self { copied: rcv_nxt, ..Self::default() }
    }

    /// Memory in use, bytes (`sk_rmem_alloc` without what is out of order).
    #[inline]
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Next byte to be read.
    pub fn copied(&self) -> u64 {
        self.copied
    }

    /// Data up to `end` are queued; what was out of order before comes as the segments that it was, of `segment` bytes.
    pub fn push(&mut self, end: u64, segment: u64, memory: impl Fn(u64) -> u64) {
        let mut from = self.queue.back().map_or(self.copied, |last| last.0);
        while from < end {
            let to = end.min(from + segment.max(1));
            let memory = memory(to - from);
            self.queue.push_back((to, memory));
            self.memory += memory;
            from = to;
        }
    }

    /// Copies at most `bytes` out of the first buffer, which is freed once all of it is read; how many.
    pub fn copy(&mut self, bytes: u64) -> u64 {
        let Some(&(end, memory)) = self.queue.front() else { return 0 };
        let copied_bytes = bytes.min(end - self.copied);
        self.copied += copied_bytes;
        if self.copied == end {
            self.queue.pop_front();
            self.memory -= memory;
        }
        copied_bytes
    }
}
