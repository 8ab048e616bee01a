//! The algorithm that a program is.

use super::code::{REGISTERS, Stuck};
use super::words::{Hook, Word};
use super::{Position, Program};
use crate::{
    About, Ack, CaState, CongestionControl, Event, Needs, Options, RateSample, Response, Signal,
    View, Window,
};
use dragstrip_units::{Instant, suggest};
use std::fmt;
use std::sync::Arc;

/// The row of every program that grows a window.
const ABOUT: About = About {
    name: "program",
    file: file!(),
    models: "none: a text of the scenario",
    module: None,
    signal: Signal::Nothing,
    settles: false,
    parameters: &[],
    variables: &[],
    needs: Needs::NOTHING,
};

/// The row of every program with `on control`.
const ABOUT_CONTROL: About = About { needs: Needs { pacing: true, ..Needs::NOTHING }, ..ABOUT };

const SECOND_US: f64 = 1e6;

/// A program has come to something that is no number to go on with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// Position in its text.
    pub at: Position,
    /// Result: NaN, an infinity, or a negative number for a word.
    pub gave: f64,
    /// Time of the fault.
    pub now: Instant,
    /// Number of times `on ack` or `on control` had begun.
    pub acks: u64,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at: _, gave, now, acks } = self;
        let seconds = now.as_nanos() as f64 / 1e9;
        let gave = if gave.is_infinite() { "infinity".to_owned() } else { gave.to_string() };
        write!(f, "{gave} at {seconds:.6} s, in ACK {acks}")
    }
}

/// A program at work in one connection.
#[derive(Clone, Debug)]
pub struct Programmed {
    program: Arc<Program>,
    registers: Box<[f64; REGISTERS]>,
    /// Part of the window beyond whole packets, and the window then: if the endpoint has changed it, nothing.
    fraction: f64,
    whole: u32,
    rtt_us: u32,
    /// Packets per second, by the last sample that was valid.
    delivery_rate: f64,
    /// The round ends when this byte is acknowledged.
    round_end: u64,
    /// Something has been sent.
    sent: bool,
    acks: u64,
    fault: Option<Fault>,
}

/// Inputs of a hook beyond view and window.
#[derive(Clone, Copy, Debug, Default)]
struct HookInputs {
    acked: u32,
    lost: u32,
    app_limited: bool,
}

impl Programmed {
    /// The program with these parameters.
    ///
    /// # Errors
    /// A parameter that it does not have, or that is no finite number: its name, and what would be right.
    pub fn new(program: &Arc<Program>, options: &Options) -> Result<Self, (String, String)> {
        let mut registers = program.code.registers.clone();
        for (name, value) in options {
            let Some(setting) = program.settings.iter().find(|setting| setting.name == *name)
            else {
                let names: Vec<&str> = program.settings.iter().map(|it| it.name.as_str()).collect();
                let expected = if names.is_empty() {
                    "no parameters: the program has no param".to_owned()
                } else {
                    suggest(name, names.iter().copied(), &format!("one of {}", names.join(", ")))
                };
                return Err((name.clone(), expected));
            };
            if !value.is_finite() {
                return Err((name.clone(), "a number".to_owned()));
            }
            registers[usize::from(setting.register)] = *value;
        }
        Ok(Self {
            program: Arc::clone(program),
            registers,
            fraction: 0.0,
            whole: 0,
            rtt_us: 0,
            delivery_rate: 0.0,
            round_end: 0,
            sent: false,
            acks: 0,
            fault: None,
        })
    }

    /// Returns the fault that has stopped it. It then leaves everything as it is.
    #[must_use]
    pub const fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    pub(crate) fn about(&self) -> &'static About {
        if self.program.controls { &ABOUT_CONTROL } else { &ABOUT }
    }

    /// Asks the program, if it has the hook.
    #[inline]
    fn call(&mut self, hook: Hook, view: &View, window: &mut Window, inputs: HookInputs) {
        let code = self.program.code.hook(hook);
        if code.ops.is_empty() || self.fault.is_some() {
            return;
        }
        if window.cwnd != self.whole {
            self.fraction = 0.0;
        }
        for &(word, register) in &code.loads {
            self.registers[usize::from(register)] = self.read(word, view, window, inputs);
        }
        if let Err(Stuck { op, gave }) = code.run(&mut self.registers) {
            let at = code.at.get(op).copied().unwrap_or_default();
            self.fault = Some(Fault { at, gave, now: view.now, acks: self.acks });
            return;
        }
        for &(word, register) in &code.stores {
            let value = self.registers[usize::from(register)];
            if value != self.read(word, view, window, inputs) {
                write(word, value, view, window, &mut self.fraction);
            }
        }
        self.whole = window.cwnd;
    }

    fn read(&self, word: Word, view: &View, window: &Window, inputs: HookInputs) -> f64 {
        let truth = |truth: bool| f64::from(u8::from(truth));
        let seconds = |us: u32| f64::from(us) / SECOND_US;
        let srtt = f64::from(view.srtt_us_x8) / (8.0 * SECOND_US);
        match word {
            Word::Cwnd => f64::from(window.cwnd) + self.fraction,
            Word::Ssthresh => f64::from(window.ssthresh),
            Word::Count => f64::from(window.cwnd_cnt),
            Word::Pacing if window.pacing_rate == u64::MAX => 0.0,
            Word::Pacing => window.pacing_rate as f64 / f64::from(view.mss),
            Word::Acked => f64::from(inputs.acked),
            Word::Limited => truth(view.cwnd_limited(window)),
            Word::SlowStart => truth(window.in_slow_start()),
            Word::Recovering => truth(view.state > CaState::Disorder),
            Word::Now => view.now.as_nanos() as f64 / 1e9,
            Word::Rtt if self.rtt_us == 0 => srtt,
            Word::Rtt => seconds(self.rtt_us),
            Word::Srtt => srtt,
            Word::MinRtt if view.min_rtt_us == u32::MAX => srtt,
            Word::MinRtt => seconds(view.min_rtt_us),
            Word::InFlight => f64::from(view.in_flight()),
            Word::Delivered => view.delivered as f64,
            Word::Marked => view.delivered_ce as f64,
            Word::Mss => f64::from(view.mss),
            Word::DeliveryRate => self.delivery_rate,
            Word::AppLimited => truth(inputs.app_limited),
            Word::Lost => f64::from(inputs.lost),
        }
    }

    /// True when this ACK ends the round; the next one begins.
    #[inline]
    fn round_ended(&mut self, view: &View) -> bool {
        let ended = view.snd_una > self.round_end;
        if ended {
            self.round_end = view.snd_nxt;
        }
        ended
    }

    /// Runs the hook of an ACK.
    #[inline]
    fn ack(&mut self, hook: Hook, view: &View, window: &mut Window, inputs: HookInputs) {
        self.acks += 1;
        self.call(hook, view, window, inputs);
        if self.round_ended(view) {
            self.call(Hook::Round, view, window, inputs);
        }
    }
}

/// Sets a word: `value` is finite and not negative. Casts saturate.
fn write(word: Word, value: f64, view: &View, window: &mut Window, fraction: &mut f64) {
    match word {
        Word::Cwnd => {
            let whole = libm::floor(value);
            window.cwnd = (whole as u32).max(1).min(window.clamp);
            *fraction = if f64::from(window.cwnd) == whole { value - whole } else { 0.0 };
        }
        Word::Ssthresh => window.ssthresh = (value as u32).clamp(2, Window::INFINITE),
        Word::Count => window.cwnd_cnt = (value as u32).min(Window::INFINITE),
        Word::Pacing => window.pacing_rate = ((value * f64::from(view.mss)) as u64).max(1),
        // Only read: the parser sees to it.
        Word::Acked
        | Word::Limited
        | Word::SlowStart
        | Word::Recovering
        | Word::Now
        | Word::Rtt
        | Word::Srtt
        | Word::MinRtt
        | Word::InFlight
        | Word::Delivered
        | Word::Marked
        | Word::Mss
        | Word::DeliveryRate
        | Word::AppLimited
        | Word::Lost => {}
    }
}

impl CongestionControl for Programmed {
    fn init(&mut self, view: &View, window: &mut Window) {
        self.round_end = view.snd_nxt;
        self.call(Hook::Start, view, window, HookInputs::default());
    }

    fn ssthresh(&mut self, view: &View, window: &mut Window) -> u32 {
        self.call(Hook::Loss, view, window, HookInputs::default());
        window.ssthresh.max(2)
    }

    #[inline]
    fn cong_avoid(&mut self, view: &View, window: &mut Window, acked: u32) -> Response {
        self.ack(Hook::Ack, view, window, HookInputs { acked, ..HookInputs::default() });
        Response::None
    }

    fn set_state(&mut self, view: &View, window: &mut Window, new: CaState) {
        if new == CaState::Loss {
            self.call(Hook::Timeout, view, window, HookInputs::default());
        }
    }

    fn cwnd_event(&mut self, view: &View, window: &mut Window, event: Event) {
        match event {
            Event::TxStart => {
                if self.sent {
                    self.call(Hook::Idle, view, window, HookInputs::default());
                }
                self.sent = true;
            }
            Event::CwndRestart
            | Event::CompleteCwr
            | Event::Loss
            | Event::TlpRecovery
            | Event::EcnNoCe
            | Event::EcnIsCe => {}
        }
    }

    #[inline]
    fn acked(&mut self, _view: &View, _window: &mut Window, ack: &Ack) {
        if let Some(rtt_us) = ack.rtt_us {
            self.rtt_us = rtt_us;
        }
    }

    #[inline]
    fn has_cong_control(&self) -> bool {
        self.program.controls
    }

    fn cong_control(&mut self, view: &View, window: &mut Window, sample: &RateSample) -> Response {
        if let Some(delivered) = sample.delivered.filter(|_| sample.interval_us > 0) {
            self.delivery_rate = f64::from(delivered) * SECOND_US / sample.interval_us as f64;
        }
        let inputs = HookInputs {
            acked: sample.acked_sacked,
            lost: sample.losses,
            app_limited: sample.is_app_limited,
        };
        self.ack(Hook::Control, view, window, inputs);
        Response::None
    }

    /// As Reno's.
    fn min_cwnd(&self, window: &Window) -> u32 {
        window.ssthresh / 2
    }

    fn phase(&self, _view: &View, window: &Window) -> &'static str {
        match (self.program.controls, window.in_slow_start()) {
            (true, _) => "control",
            (false, true) => "slow_start",
            (false, false) => "congestion_avoidance",
        }
    }
}
