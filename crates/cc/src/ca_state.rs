//! The states of loss recovery, which are the endpoint's.

/// The loss-recovery state of the connection (`tcp_ca_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaState {
    /// Nothing unusual.
    #[default]
    Open,
    /// Duplicate ACKs or SACKs seen, no loss declared yet.
    Disorder,
    /// Window is being reduced after an ECN echo or a local drop.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}
