//! Output and its timing: window, pacing, burst size, TCP Small Queues, retransmissions.
//!
//! Kernel: `tcp_write_xmit`, `tcp_xmit_retransmit_queue`, `tcp_cwnd_validate`, `tcp_tso_should_defer`,
//! `tcp_small_queue_check` (tcp_output.c).

use super::Linux6;
use super::timers::Pending;
use crate::segment::Outbox;
use crate::sender::core::{Burst, Core, Io, Push, Stack};
use crate::sender::linux::{self, Sendable};
use dragstrip_cc::{CaState, PacingStatus};
use dragstrip_units::{Duration, Instant};
use std::collections::VecDeque;

/// The connection's share of the host's own queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Device {
    /// Departure time of each piece, and its bytes of memory.
    queue: VecDeque<(Instant, u64)>,
    bytes: u64,
}

impl Device {
    pub fn push(&mut self, leaves: Instant, bytes: u64) {
        self.queue.push_back((leaves, bytes));
        self.bytes += bytes;
    }

    /// Removes the pieces that have left by `now`.
    #[inline]
    fn drain(&mut self, now: Instant) {
        while let Some(&(leaves, bytes)) = self.queue.front() {
            if leaves > now {
                break;
            }
            self.bytes -= bytes;
            self.queue.pop_front();
        }
    }
}

impl Linux6 {
    /// `tcp_write_xmit`: sends new data as far as window, receiver, pacing and local queue allow. Returns true if
    /// anything was sent.
    #[inline(never)] // a stack stays out of the others' cache lines
    pub(super) fn write_xmit<O: Outbox>(
        &mut self,
        core: &mut Core,
        push: Push,
        io: &mut Io<'_, O>,
    ) -> bool {
        let prior_packets = core.view.packets_out;
        let max_segments = linux::max_burst(core);
        let mut cwnd_blocked = false;
        let mut checks_space = self.checks_space_when_sending(core);
        core.transmission.rwnd_limited = false;
        core.transmission.small_queue_limited = false;
        if prior_packets == 0 {
            self.linux.restart_after_idle(core);
        }
        loop {
            if core.unsent() == 0 || core.is_pacing_blocked() {
                break;
            }
            let Some(head) = linux::sendable(core, push, max_segments) else { break };
            let burst = if head.bytes <= u64::from(core.view.mss) || !core.buffer.bursts {
                let Some(burst) = linux::one_segment(core, head, push) else { break };
                burst
            } else {
                let burst = several(core, head, push, max_segments, &mut cwnd_blocked);
                let Some(burst) = burst else { break };
                burst
            };
            if self.is_local_queue_full(core, burst.bytes) {
                core.transmission.small_queue_limited = true;
                break;
            }
            core.send_burst(self, burst, io);
            if checks_space {
                // tcp_event_new_data_sent, since 5.18: while more of the window is still to be filled.
                self.check_space(core);
                checks_space = core.buffer.waits_for_less_unsent(core.view.snd_nxt);
            }
            if push != Push::Pending {
                break;
            }
        }
        debug_assert!(
            checks_space || !self.checks_space_when_sending(core) || !core.misses_space()
        );
        let segments_sent = core.view.packets_out - prior_packets;
        cwnd_blocked |= core.in_flight() >= core.window.cwnd;
        if segments_sent > 0 || cwnd_blocked {
            self.validate_cwnd(core, cwnd_blocked);
        }
        if segments_sent > 0 {
            self.episode.note_sent(segments_sent);
            let scheduled = push != Push::Probe && self.schedule_probe(core, false);
            if !scheduled && (prior_packets == 0 || self.pending == Pending::LossProbe) {
                self.rearm_rto(core);
            }
        } else if core.unsent() > 0 && core.view.packets_out == 0 && push == Push::Pending {
            self.wait_for_window(core);
        }
        segments_sent > 0
    }

    /// `tcp_rate_check_app_limited`: the application calls `sendmsg`, and until now less than a segment waited to be sent,
    /// nothing of ours was in the host's own queue, and the window was open.
    pub(super) fn check_app_limited(&mut self, core: &mut Core) {
        self.device.drain(core.view.now);
        if core.unsent() < u64::from(core.view.mss)
            && self.device.bytes == 0
            && core.in_flight() < core.window.cwnd
            && core.view.lost_out <= core.view.retrans_out
        {
            let mark = core.view.delivered + u64::from(core.in_flight());
            core.view.app_limited = mark.max(1);
        }
    }

    /// `tcp_cwnd_validate`.
    fn validate_cwnd(&mut self, core: &mut Core, blocked: bool) {
        if core.view.snd_una >= self.usage_round_ends
            || blocked
            || (!core.view.is_cwnd_limited && core.view.packets_out > core.view.max_packets_out)
        {
            core.view.is_cwnd_limited = blocked;
            core.view.max_packets_out = core.view.packets_out;
            self.usage_round_ends = core.view.snd_nxt;
        }
        let cwnd_limited = core.view.cwnd_limited(&core.window);
        self.linux.validate_cwnd(core, cwnd_limited);
    }

    /// `tcp_small_queue_check`: no more than about a millisecond of data below TCP.
    #[inline]
    fn is_local_queue_full(&mut self, core: &mut Core, bytes: u64) -> bool {
        self.device.drain(core.view.now);
        if self.device.bytes == 0 {
            return false;
        }
        let profile = &core.settings.profile;
        let next = bytes + profile.skb_overhead;
        let paced = core.view.pacing_status != PacingStatus::None;
        let most = if paced && !profile.limits_paced_output {
            u64::MAX
        } else {
            core.settings.limit_output_bytes
        };
        let limit = (core.window.pacing_rate >> core.view.pacing_shift).max(2 * next).min(most);
        if self.device.bytes < limit || core.view.packets_out <= 1 {
            return false;
        }
        let (leaves, _) = self.device.queue[0];
        core.timer.wakeup = core.timer.wakeup.min(leaves);
        true
    }

    /// `tcp_xmit_retransmit_queue`.
    pub(super) fn retransmit<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        let head = core.board.head();
        let max_segments = linux::max_burst(core);
        let mut rearm = false;
        while let Some((number, segments)) = self.linux.next_lost(core, max_segments) {
            self.retransmit_burst(core, number, segments, io);
            self.episode.note_sent(segments);
            rearm |= number == head && self.pending != Pending::Reordering;
        }
        if rearm {
            self.set_timer(core, Pending::Retransmit, core.timer.rto_ticks);
        }
    }

    /// `tcp_retransmit_skb`.
    pub(super) fn retransmit_burst<O: Outbox>(
        &mut self,
        core: &mut Core,
        number: u64,
        segments: u32,
        io: &mut Io<'_, O>,
    ) {
        core.split_after(number + u64::from(segments) - 1);
        self.retransmit_skb(core, number, segments, io);
        core.mark_retransmitted(number, segments);
        self.linux.note_retransmission(core, number, segments);
    }

    fn retransmit_skb<O: Outbox>(
        &mut self,
        core: &mut Core,
        number: u64,
        segments: u32,
        io: &mut Io<'_, O>,
    ) {
        core.retransmit(self, number, segments, io);
        for number in number..number + u64::from(segments) {
            self.rack.note_retransmission(number, core.board.get(number).sent_us);
        }
    }

    /// The newest segment, as a tail loss probe: not counted as a retransmission in flight.
    pub(super) fn retransmit_tail<O: Outbox>(&mut self, core: &mut Core, io: &mut Io<'_, O>) {
        let tail = core.board.tail() - 1;
        if tail > core.board.head() {
            core.split_after(tail - 1);
        }
        self.retransmit_skb(core, tail, 1, io);
    }
}

/// Returns the next part of a buffer that holds more than a segment; `None`: nothing now.
#[inline(never)]
fn several(
    core: &Core,
    head: Sendable,
    push: Push,
    max_segments: u32,
    cwnd_blocked: &mut bool,
) -> Option<Burst> {
    let mss = u64::from(core.view.mss);
    if push == Push::Pending && should_defer(core, head.bytes, max_segments, cwnd_blocked) {
        return None;
    }
    let most = u64::from(head.quota.min(max_segments)) * mss;
    let may_be_short = linux::may_be_short(core, push);
    let bytes = split_point(core, head, most, may_be_short);
    let pushed = head.pushed && bytes == head.bytes;
    Some(Burst { segments: bytes.div_ceil(mss) as u32, bytes, pushed })
}

/// `tcp_mss_split_point`: how much of the first unsent buffer goes, of which at most `most` may. What is
/// less than a segment, at the end of the buffer or of the peer's window, goes along unless Nagle holds
/// it back.
fn split_point(core: &Core, head: Sendable, most: u64, may_be_short: bool) -> u64 {
    if most <= head.room && head.end < core.buffer.written {
        return most.min(head.bytes);
    }
    let needed = head.bytes.min(head.room);
    if most <= needed {
        return most;
    }
    if may_be_short { needed } else { needed - needed % u64::from(core.view.mss) }
}

/// `tcp_tso_should_defer`: wait a moment for the window to hold a larger burst.
fn should_defer(core: &Core, head_bytes: u64, max_segments: u32, cwnd_blocked: &mut bool) -> bool {
    if core.view.state >= CaState::Recovery {
        return false;
    }
    let millisecond = Duration::from_millis(1);
    if core.view.now.since(core.view.departure) > millisecond {
        return false;
    }
    let mss = u64::from(core.view.mss);
    let cwnd_room = u64::from(core.window.cwnd.saturating_sub(core.in_flight())) * mss;
    let window_room = core.room();
    let limit = cwnd_room.min(window_room);
    if limit >= u64::from(max_segments) * mss {
        return false;
    }
    let is_tail = core.unsent() <= head_bytes;
    if !is_tail && limit >= head_bytes {
        return false;
    }
    let peer_window = core.window_end - core.view.snd_una;
    let chunk = peer_window.min(u64::from(core.window.cwnd) * mss);
    if limit >= chunk / u64::from(core.settings.tso_win_divisor.max(1)) {
        return false;
    }
    let Some(front) = core.board.front() else { return false };
    let srtt_us = u64::from(core.view.srtt_us_x8 >> 3);
    let expected_us = front.sent_us + srtt_us;
    if expected_us > core.now_us() + (srtt_us >> 1).min(1_000) {
        return false;
    }
    if cwnd_room < window_room && cwnd_room <= head_bytes {
        *cwnd_blocked = true;
    }
    true
}
