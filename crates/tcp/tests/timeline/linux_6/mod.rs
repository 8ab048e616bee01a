//! The sender of `linux_6`: window, losses, timers, when data leaves; and what Linux 4.15 does otherwise.

mod growth;
mod kernel_4_15;
mod pacing;
mod recovery;
mod timers;
mod undo;
