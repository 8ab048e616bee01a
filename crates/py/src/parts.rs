//! One large run on several processors: a thread for each of its parts.
//!
//! Scope: the threads and their synchronisation. Out of scope: the parts and the data that they exchange
//! (`crates/sim/src/parts.rs`).

use dragstrip_scenario::Scenario;
use dragstrip_sim::{Crossings, Part, Parts, Recording, SetupError, unite};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Turns between two looks at who waits for the run: some tens of milliseconds.
const TURNS_UNREPORTED: u64 = 16;

/// Barrier of all threads. A part works for a fraction of a millisecond between two meetings, so threads spin for a
/// while.
struct Meeting {
    parties: usize,
    arrived: AtomicUsize,
    turn: AtomicUsize,
    /// True once a thread has panicked: it never arrives.
    broken: AtomicBool,
}

/// Looks before a waiting thread lets others have the processor.
const LOOKS: u32 = 2_000;

impl Meeting {
    /// Waits until all have come; whether they did.
    fn wait(&self) -> bool {
        let turn = self.turn.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.parties {
            self.arrived.store(0, Ordering::Release);
            self.turn.store(turn + 1, Ordering::Release);
            return true;
        }
        let mut looks = 0;
        while self.turn.load(Ordering::Acquire) == turn {
            if self.broken.load(Ordering::Acquire) {
                return false;
            }
            looks += 1;
            if looks < LOOKS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        true
    }
}

/// Marks the barrier as broken when a thread panics, so that no other waits for it.
struct Broken<'a>(&'a Meeting);

impl Drop for Broken<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Release);
        }
    }
}

/// Packets in flight to each part from each part, for turns of even and of odd number: while one is read, the other is
/// written.
type Mail = [Vec<Vec<Mutex<Crossings>>>; 2];

/// Most parts: each of them holds the whole network, so that more cost memory for little.
const PARTS_MAX: usize = 4;

/// Runs `scenario` to its end or until `progress` returns false, in parts if that pays and records no captures.
///
/// # Errors
/// As `dragstrip_sim::run`.
pub fn run(
    scenario: &Scenario,
    cores: usize,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Recording, SetupError> {
    let divided = match scenario.record.captures {
        true => None,
        false => Parts::of(scenario, cores.min(PARTS_MAX))?,
    };
    match divided {
        Some(divided) => Ok(at_once(scenario, divided, progress)),
        None => dragstrip_sim::run(scenario, progress),
    }
}

/// All parts at the same time, the first of them on this thread.
fn at_once(
    scenario: &Scenario,
    divided: Parts,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Recording {
    let Parts { mut parts, turns } = divided;
    let count = parts.len();
    let meeting = Meeting {
        parties: count,
        arrived: AtomicUsize::new(0),
        turn: AtomicUsize::new(0),
        broken: AtomicBool::new(false),
    };
    let boxes = || (0..count).map(|_| (0..count).map(|_| Mutex::default()).collect()).collect();
    let mail: Mail = [boxes(), boxes()];
    let last_turn = AtomicU64::new(u64::MAX);
    let work = |number: usize, part: &mut Part, progress: &mut dyn FnMut(u64) -> bool| {
        let _broken = Broken(&meeting);
        for turn in 0.. {
            let until = turns.until_ns(turn);
            let last = until == turns.end_ns();
            part.advance(until);
            let outgoing = &mail[(turn % 2) as usize];
            part.take(|to, hand_over| hand_over(&mut locked(&outgoing[to][number])));
            if number == 0 && !last && turn % TURNS_UNREPORTED == 0 && !progress(until) {
                // The stop is tagged with this turn: a thread still in the previous one must not apply it.
                last_turn.store(turn, Ordering::Release);
            }
            if !meeting.wait() {
                return;
            }
            for crossings in &outgoing[number] {
                part.give(&mut locked(crossings));
            }
            if last || turn >= last_turn.load(Ordering::Acquire) {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        let mut numbered = parts.iter_mut().enumerate();
        let first = numbered.next();
        let threads: Vec<_> = numbered
            .map(|(number, part)| {
                let work = &work;
                scope.spawn(move || work(number, part, &mut |_| true))
            })
            .collect();
        let local_result = first.map(|(number, part)| {
            panic::catch_unwind(AssertUnwindSafe(|| work(number, part, progress)))
        });
        let panicked = threads.into_iter().filter_map(|thread| thread.join().err()).next();
        if let Some(payload) = local_result.and_then(Result::err).or(panicked) {
            panic::resume_unwind(payload);
        }
    });
    unite(scenario, parts)
}

fn locked(crossings: &Mutex<Crossings>) -> std::sync::MutexGuard<'_, Crossings> {
    crossings.lock().unwrap_or_else(PoisonError::into_inner)
}
