//! Links that change during a run: what a change sets, and the links as they are from then on.

use crate::types::{ChangeSpec, LinkSpec, Scenario};
use dragstrip_qdisc::{Change, Configuration as _, NetemSpec, QdiscSpec};
use std::borrow::Cow;

impl ChangeSpec {
    /// Changes of the link's discipline.
    pub fn of_queue(&self, link: &LinkSpec) -> impl Iterator<Item = Change> {
        let rate = self.rate_bps.filter(|_| link.rate_bps.is_none()).map(Change::RateBps);
        let bytes = self.limit_bytes.map(Change::LimitBytes);
        [rate, bytes, self.limit_packets.map(Change::LimitPackets)].into_iter().flatten()
    }

    /// Nothing is set.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        let Self { at_ns: _, link: _, rate_bps, delay_ns, loss, limit_bytes, limit_packets, up } =
            self;
        rate_bps.is_none()
            && delay_ns.is_none()
            && loss.is_none()
            && limit_bytes.is_none()
            && limit_packets.is_none()
            && up.is_none()
    }

    /// The link from then on; what its discipline does not have stays out, for [`Scenario::validate`] refuses it.
    pub fn apply(&self, link: &mut LinkSpec) {
        for change in self.of_queue(link).collect::<Vec<_>>() {
            if let Some(changed) = link.qdisc.changed(change) {
                link.qdisc = changed;
            }
        }
        if let (Some(rate), Some(bps)) = (&mut link.rate_bps, self.rate_bps) {
            *rate = bps;
        }
        link.delay_ns = self.delay_ns.unwrap_or(link.delay_ns);
        if let Some(loss) = self.loss {
            let netem = link.netem.get_or_insert_with(nothing);
            if let Some(changed) = netem.changed(Change::Loss(loss)) {
                *netem = changed;
            }
        }
    }
}

/// A netem that does nothing, with room for everything.
fn nothing() -> Box<NetemSpec> {
    Box::new(NetemSpec { limit_packets: 1_000_000_000, ..NetemSpec::default() })
}

impl LinkSpec {
    /// True when the limit of its queue is a number of packets.
    #[must_use]
    pub fn counts_packets(&self) -> bool {
        has(&self.qdisc, Change::LimitPackets(1000)) || self.unchangeable().is_some()
    }

    /// The kind of its queue, or of the one inside its shaper, that the kernel cannot change; none: all can be.
    pub(crate) fn unchangeable(&self) -> Option<&'static str> {
        let classes = self.qdisc.classes();
        let mut rows = classes.iter().map(|class| class.child.row()).chain([self.qdisc.row()]);
        rows.find(|row| !row.changeable).map(|row| row.name)
    }
}

/// A period in which nothing of a link changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Period {
    /// Start time; it ends when the next period begins, or the run.
    pub from_ns: u64,
    /// The link meanwhile.
    pub link: LinkSpec,
    /// True when the link is up.
    pub up: bool,
}

impl Scenario {
    /// The changes of a link, in the order in which they happen.
    pub fn changes_of(&self, link: &str) -> Vec<&ChangeSpec> {
        let mut mine: Vec<&ChangeSpec> =
            self.changes.iter().filter(|change| change.link == link).collect();
        mine.sort_by_key(|change| change.at_ns);
        mine
    }

    /// A link through the run, one period after the other; those of no length are left out.
    #[must_use]
    pub fn periods(&self, link: &LinkSpec) -> Vec<Period> {
        let mut periods = vec![Period { from_ns: 0, link: link.clone(), up: true }];
        for change in self.changes_of(&link.name) {
            let Some(last) = periods.last() else { continue };
            let mut next = Period { from_ns: change.at_ns, ..last.clone() };
            change.apply(&mut next.link);
            next.up = change.up.unwrap_or(next.up);
            if last.from_ns == change.at_ns {
                periods.pop();
            }
            periods.push(next);
        }
        periods
    }

    /// The scenario with each link as it is when it is fastest.
    #[must_use]
    pub fn at_its_fastest(&self) -> Cow<'_, Self> {
        if self.changes.is_empty() {
            return Cow::Borrowed(self);
        }
        let rate = |link: &LinkSpec| self.link_facts(link).rate_bps.unwrap_or(u64::MAX);
        let fastest = |link| {
            let links = self.periods(link).into_iter().map(|period| period.link);
            links.max_by_key(rate).unwrap_or_else(|| link.clone())
        };
        Cow::Owned(Self { links: self.links.iter().map(fastest).collect(), ..self.clone() })
    }

    /// The netem after a link's line: its own, or one that its changes need. If the delay changes, netem implements
    /// it, as packets can overtake others there; likewise if it has slots, which open by packets' due times.
    #[must_use]
    pub fn netem_behind(&self, link: &LinkSpec) -> Option<Box<NetemSpec>> {
        let link_netem = || link.netem.clone();
        let delays = self.netem_delays(link);
        let changed = || {
            let loss = |change: &ChangeSpec| change.link == link.name && change.loss.is_some();
            delays || self.changes.iter().any(loss)
        };
        let mut netem = link_netem().or_else(|| changed().then(nothing))?;
        if delays {
            netem.delay_ns = netem.delay_ns.saturating_add(link.delay_ns);
        }
        Some(netem)
    }

    /// True when the netem after a link implements its delay.
    #[must_use]
    pub fn netem_delays(&self, link: &LinkSpec) -> bool {
        let changes = |change: &ChangeSpec| change.link == link.name && change.delay_ns.is_some();
        link.netem.as_ref().is_some_and(|netem| netem.has_slots())
            || self.changes.iter().any(changes)
    }

    /// Mean rate of a link over the part of the run from `from_ns` to `to_ns`; while it is down it carries nothing. None where it has no rate at
    /// some time.
    #[must_use]
    pub fn mean_rate_bps(&self, link: &LinkSpec, from_ns: u64, to_ns: u64) -> Option<f64> {
        let periods = self.periods(link);
        let ends = periods.iter().skip(1).map(|period| period.from_ns).chain([u64::MAX]);
        let mut bits = 0.0;
        for (period, end) in periods.iter().zip(ends) {
            let span = end.min(to_ns).saturating_sub(period.from_ns.max(from_ns));
            if span > 0 {
                let rate = self.link_facts(&period.link).rate_bps?;
                bits += if period.up { rate as f64 * span as f64 } else { 0.0 };
            }
        }
        (to_ns > from_ns).then(|| bits / (to_ns - from_ns) as f64)
    }
}

/// True when a discipline has the setting.
pub(crate) fn has(qdisc: &QdiscSpec, change: Change) -> bool {
    qdisc.changed(change).is_some()
}
