//! The rules by which new data leaves, and by which a window that is not used decays.
//!
//! Kernel: `tcp_cwnd_test`, `tcp_snd_wnd_test`, `tcp_nagle_test`, `tcp_tso_autosize`, `tcp_cwnd_validate`,
//! `tcp_slow_start_after_idle_check`, `tcp_check_space` (tcp_output.c, tcp_input.c).

use super::Linux;
use crate::sender::core::{Burst, Core, Push};
use dragstrip_cc::{CaState, CongestionControl, Event};
use dragstrip_units::Instant;

/// Recent use of the window.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    /// Time at which the window was last known to be justified (`snd_cwnd_stamp`).
    justified_at: Instant,
    /// Most packets out since then (`snd_cwnd_used`).
    most_out: u32,
}

impl Default for Usage {
    fn default() -> Self {
        Self { justified_at: Instant::ZERO, most_out: 0 }
    }
}

/// The first unsent buffer, and how much of it may go.
#[derive(Clone, Copy, Debug)]
pub(in crate::sender) struct Sendable {
    /// Segments that the congestion window lets go.
    pub quota: u32,
    /// Bytes of the buffer, its end, and whether its last segment is pushed.
    pub bytes: u64,
    pub end: u64,
    pub pushed: bool,
    /// Bytes that the receiver has room for.
    pub room: u64,
}

/// Returns the data that congestion window and receiver release; `None`: nothing now.
#[inline]
pub(in crate::sender) fn sendable(
    core: &mut Core,
    push: Push,
    max_segments: u32,
) -> Option<Sendable> {
    let in_flight = core.in_flight();
    let quota = if in_flight < core.window.cwnd {
        // At least two bursts per window (tcp_cwnd_test).
        (core.window.cwnd - in_flight).min((core.window.cwnd >> 1).max(1))
    } else if push == Push::Probe {
        1
    } else {
        return None;
    };
    let (mut end, mut pushed) = core.buffer.head(core.view.snd_nxt)?;
    if core.settings.profile.fills_bursts {
        let most = u64::from(quota.min(max_segments)) * u64::from(core.view.mss);
        if end < core.view.snd_nxt + most {
            (end, pushed) = core.buffer.fill_head(core.view.snd_nxt + most)?;
        }
    }
    let bytes = end - core.view.snd_nxt;
    let room = core.room();
    if room < u64::from(core.view.mss).min(bytes) {
        core.transmission.rwnd_limited = true;
        return None;
    }
    Some(Sendable { quota, bytes, end, pushed, room })
}

/// True when Nagle lets data leave that is less than a segment: anything that is not merely pending leaves in any case
/// (`TCP_NAGLE_OFF` of `tcp_send_loss_probe`, `TCP_NAGLE_PUSH` of `tcp_push_one`).
#[inline]
pub(in crate::sender) fn may_be_short(core: &Core, push: Push) -> bool {
    push != Push::Pending || !core.waits_for_short()
}

/// One segment of it, unless it is short and Nagle holds it back.
#[inline]
pub(in crate::sender) fn one_segment(core: &Core, sendable: Sendable, push: Push) -> Option<Burst> {
    let mss = u64::from(core.view.mss);
    let bytes = sendable.bytes.min(mss);
    let may_send = bytes == mss || sendable.end < core.buffer.written || may_be_short(core, push);
    let pushed = sendable.pushed && bytes == sendable.bytes;
    may_send.then_some(Burst { segments: 1, bytes, pushed })
}

/// `tcp_tso_autosize`: about a millisecond of the pacing rate, more on short paths.
#[inline(always)] // of every burst
pub(in crate::sender) fn max_burst(core: &Core) -> u32 {
    if core.settings.gso { burst_by_rate(core) } else { 1 }
}

#[inline(always)] // of every burst
fn burst_by_rate(core: &Core) -> u32 {
    let mut bytes = core.window.pacing_rate >> core.view.pacing_shift;
    let halvings = core.view.min_rtt_us >> core.settings.tso_rtt_log;
    if halvings < 32 {
        bytes = bytes.saturating_add(u64::from(core.view.gso_max_bytes >> halvings));
    }
    let bytes = bytes.min(u64::from(core.view.gso_max_bytes)) as u32;
    if core.has_cong_control
        && let Some(own) = core.cc.tso_segs()
    {
        return own.min(core.view.gso_max_bytes / core.view.mss).max(1);
    }
    // tcp_tso_segs: the algorithm's own, if it has one.
    let cc_min_segments = core.cc.min_tso_segs(&core.view, &core.window);
    let floor = cc_min_segments.unwrap_or(core.settings.min_tso_segs);
    (bytes / core.view.mss).max(floor)
}

impl Linux {
    /// The window is as it should be.
    #[inline]
    pub fn note_window_justified(&mut self, core: &Core) {
        self.usage.justified_at = core.view.now;
    }

    /// The end of `tcp_cwnd_validate`: whether the window was `used` by the last transmissions.
    #[inline]
    pub fn validate_cwnd(&mut self, core: &mut Core, used: bool) {
        if used {
            self.usage.most_out = 0;
            self.usage.justified_at = core.view.now;
        } else {
            self.note_unused(core);
        }
    }

    fn note_unused(&mut self, core: &mut Core) {
        self.usage.most_out = self.usage.most_out.max(core.view.packets_out);
        let idle = core.view.to_jiffies_floor(core.view.now.since(self.usage.justified_at));
        if core.settings.slow_start_after_idle
            && idle >= core.timer.rto_ticks
            && !core.has_cong_control
        {
            self.application_limited(core);
        }
    }

    /// `tcp_cwnd_application_limited` (RFC 2861): a window not used for an RTO shrinks halfway to what was used.
    fn application_limited(&mut self, core: &mut Core) {
        if core.view.state == CaState::Open && !core.buffer.blocked {
            let used_cwnd = self.usage.most_out.max(core.settings.initial_cwnd);
            if used_cwnd < core.window.cwnd {
                core.window.ssthresh = core.window.current_ssthresh(core.view.state);
                core.window.cwnd = (core.window.cwnd + used_cwnd) >> 1;
            }
            self.usage.most_out = 0;
        }
        self.usage.justified_at = core.view.now;
    }

    /// `tcp_slow_start_after_idle_check`: the window halves for every RTO of silence.
    pub fn restart_after_idle(&mut self, core: &mut Core) {
        if !core.settings.slow_start_after_idle
            || core.has_cong_control
            || core.transmission.data_segments == 0
            || core.unsent() == 0
        {
            return;
        }
        let mut idle = core.tick() - core.settings.ticks.at(core.view.last_data_sent);
        if idle <= core.timer.rto_ticks {
            return;
        }
        core.cc.cwnd_event(&core.view, &mut core.window, Event::CwndRestart);
        core.window.ssthresh = core.window.current_ssthresh(core.view.state);
        let floor = core.settings.initial_cwnd.min(core.window.cwnd);
        let mut cwnd = core.window.cwnd;
        while idle > core.timer.rto_ticks && cwnd > floor {
            idle -= core.timer.rto_ticks;
            cwnd >>= 1;
        }
        core.window.cwnd = cwnd.max(floor);
        self.usage = Usage { justified_at: core.view.now, most_out: 0 };
    }

    /// `tcp_check_space`: memory was freed, or something was sent. A buffer that could not fill the window, of which `used`
    /// packets are, grows (`tcp_should_expand_sndbuf`: only a window that is not full asks for more data), and a writer that
    /// waits for room is woken if there is enough.
    #[inline]
    pub fn check_space(&mut self, core: &mut Core, used: u32) {
        if used < core.window.cwnd {
            core.buffer.expand(core.window.cwnd, self.reordering);
            self.usage.justified_at = core.view.now;
        }
        core.poll_writer();
    }
}
