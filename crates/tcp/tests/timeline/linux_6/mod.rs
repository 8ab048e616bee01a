//! The sender of `linux_6`: window, losses, timers, when data leaves; and what Linux 4.15, 6.12 and 7 do otherwise.

mod growth;
mod kernel_4_15;
mod later_kernels;
mod pacing;
mod recovery;
mod timers;
mod undo;
