//! Parts shared by FreeBSD's algorithms: windows in bytes, byte counting, RTT measurement in ticks.

mod ertt;
mod growth;
mod window;

pub(crate) use ertt::Ertt;
pub(crate) use growth::{ByteCounting, half};
pub(crate) use window::ByteWindow;
