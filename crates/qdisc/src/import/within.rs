//! One discipline within another, and what a size table adds.

use super::Wrong;
use super::resolve::{Tree, parsed, refuse};
use super::shapes::{sized, upper_limit};
use super::tree::{ClassOf, Id, Place, Standing};
use crate::disciplines::QdiscSpec;
use crate::disciplines::fifo::BfifoSpec;
use crate::disciplines::htb::HtbSpec;
use crate::disciplines::netem::{LossModel, NetemSpec};
use crate::tc::{time, wrong};
use dragstrip_units::format_percent;

impl Tree<'_> {
    /// The band of a prio that all packets go to: a filter's, or that of packets without a priority.
    pub(super) fn band(&mut self, prio: &Standing) -> Result<QdiscSpec, Wrong> {
        let _ = parsed(&prio.kind, prio.words.clone(), "")?;
        let filters = self.filters(prio)?;
        let map = prio.words.iter().position(|word| word.text == "priomap");
        let first = map.and_then(|at| prio.words.get(at + 1)?.text.parse::<u16>().ok());
        let usual = prio.handle.map(|major| Id { major, minor: first.unwrap_or(1) + 1 });
        let Some(target) = filters.first().map_or(usual, |filter| filter.class) else {
            return refuse(&prio.kind, "a filter that leads to a class");
        };
        self.notes.push(format!(
            "prio (line {}): all packets go to {target}, which nothing is ahead of",
            prio.kind.line
        ));
        self.unused(prio, target)?;
        match self.interface.at(Place::Class(target)) {
            Some(child) => self.discipline(child),
            None => Ok(self.pfifo()),
        }
    }

    /// Disciplines in classes that carry nothing must be right all the same.
    fn unused(&mut self, of: &Standing, target: Id) -> Result<(), Wrong> {
        for other in &self.interface.disciplines {
            if let Place::Class(id) = other.place
                && Some(id.major) == of.handle
                && id != target
            {
                let _ = Tree::of(self.interface, self.depth).discipline(other)?;
                let line = other.kind.line;
                self.notes.push(format!("class {id} (line {line}) carries nothing"));
            }
        }
        Ok(())
    }

    /// A token bucket with a discipline in it, or with a size table, as an htb class of its rate and bucket.
    pub(super) fn bucket(
        &mut self,
        tbf: &Standing,
        child: Option<&Standing>,
    ) -> Result<QdiscSpec, Wrong> {
        let QdiscSpec::Tbf(spec) = parsed(&tbf.kind, tbf.words.clone(), "")? else {
            return refuse(&tbf.kind, "tbf");
        };
        if spec.peakrate_bps.is_some() {
            return refuse(
                &tbf.kind,
                "no peakrate: with a discipline in it, or stab, it is not modelled",
            );
        }
        let leaf = match child {
            Some(child) => self.discipline(child)?,
            None => BfifoSpec { limit_bytes: spec.limit_bytes }.into(),
        };
        self.notes.push(format!(
            "tbf (line {}) is read as an htb class of its rate and bucket, in which {} queues",
            tbf.kind.line,
            leaf.kind()
        ));
        let (rate_bps, bucket) = (spec.rate_bps, spec.burst_bytes);
        let plain = HtbSpec::with_rate(rate_bps, leaf);
        let htb = HtbSpec { burst_bytes: bucket, cburst_bytes: bucket, ..plain };
        Ok(sized(htb, tbf.stab.as_ref())?.into())
    }

    /// Resolves a netem's child, which queues after it: its delay and loss are the path's.
    pub(super) fn behind(
        &mut self,
        netem: &Standing,
        child: &Standing,
    ) -> Result<QdiscSpec, Wrong> {
        let words = self.without_neutral(&netem.kind, &netem.words)?;
        let QdiscSpec::Netem(spec) = parsed(&netem.kind, words, "")? else {
            return refuse(&netem.kind, "netem");
        };
        let loss = match spec.loss {
            LossModel::None => Some(0.0),
            LossModel::Random { probability, correlation } => {
                (correlation == 0.0).then_some(probability)
            }
            LossModel::Gemodel { .. } | LossModel::Every { .. } => None,
        };
        let plain = NetemSpec {
            limit_packets: spec.limit_packets,
            delay_ns: spec.delay_ns,
            loss: spec.loss.clone(),
            ecn: false,
            ..NetemSpec::default()
        };
        let Some(loss) = loss.filter(|_| self.depth == 1 && *spec == plain) else {
            let expected = "\"delay TIME\" and \"loss SHARE\" alone, at the root: with a discipline in it nothing else is modelled";
            return refuse(&netem.kind, expected);
        };
        let inner = self.discipline(child)?;
        let limit = spec.limit_packets;
        if spec.delay_ns > 0 && !holds(limit, spec.delay_ns, &inner) {
            self.front.push(("rtt", "0ms".to_owned()));
            self.front.push((
                "netem",
                QdiscSpec::Netem(spec.clone()).print().trim_start_matches("netem ").to_owned(),
            ));
            self.notes.push(format!(
                "netem (line {}) stands in front of the queue and holds at most {limit} packets, which the delay may fill: \
                 it is the path's netem, behind the bottleneck",
                netem.kind.line
            ));
            return Ok(inner);
        }
        if spec.delay_ns > 0 {
            self.front.push(("rtt", time(spec.delay_ns)));
        }
        if loss > 0.0 {
            self.front.push(("loss", format_percent(loss)));
        }
        self.notes.push(format!(
            "netem (line {}) stands in front of the queue: its delay and loss are the path's",
            netem.kind.line
        ));
        Ok(inner)
    }

    /// An hfsc class at its upper limit, the least of its own and of those above it.
    pub(super) fn limited(&mut self, class: &ClassOf, leaf: QdiscSpec) -> Result<HtbSpec, Wrong> {
        self.lines.push(class.kind.line);
        let (mut rate_bps, mut at) = (None, Some(class));
        while let Some(one) = at {
            let own = upper_limit(&one.words)?;
            rate_bps = [rate_bps, own].into_iter().flatten().min();
            at = self.interface.classes.iter().find(|above| above.id == one.parent);
        }
        let Some(rate_bps) = rate_bps else {
            let expected = "an upper limit, such as \"ul rate 10mbit\": without one hfsc sends as fast as the line does";
            return Err(Wrong {
                line: class.kind.line,
                problem: wrong(format!("class {}", class.id), expected),
            });
        };
        self.notes.push(format!(
            "class {} (line {}) is read as an htb class of its upper limit: its other curves share between classes",
            class.id, class.kind.line
        ));
        Ok(HtbSpec::with_rate(rate_bps, leaf))
    }
}

/// Bytes of a full frame of Ethernet, as queues count them.
const FRAME: u64 = 1514;

/// True when a netem's limit is never reached: the delay and the queue after it hold fewer full frames at the shaper's
/// rate. netem drops what arrives while it holds `limit` packets (`netem_enqueue`, net/sched/sch_netem.c).
fn holds(limit_packets: u32, delay_ns: u64, inner: &QdiscSpec) -> bool {
    let Some(rate_bps) = inner.facts().rate_bps else { return false };
    let bits = u128::from(rate_bps) * u128::from(delay_ns) / 1_000_000_000;
    bits.div_ceil(u128::from(FRAME * 8)) < u128::from(limit_packets)
}
