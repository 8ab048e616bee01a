//! Totals of a stage: what every stage has, and beside it what is rare.

/// Totals of a stage.
#[derive(Clone, Debug, Default)]
pub(crate) struct StageCounters {
    pub enqueued: u64,
    /// Bytes that have left; of a computed stage those that were taken, the backlog included.
    pub bytes: u64,
    rare: Option<Box<RareCounters>>,
}

/// Totals that most stages have none of, made by the first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RareCounters {
    pub dropped: u64,
    pub marked: u64,
    pub copied: u64,
}

impl StageCounters {
    /// Totals of what is rare.
    pub fn rare(&self) -> RareCounters {
        self.rare.as_deref().copied().unwrap_or_default()
    }

    /// The same, to be counted on.
    #[cold]
    pub fn rare_mut(&mut self) -> &mut RareCounters {
        self.rare.get_or_insert_default()
    }
}
