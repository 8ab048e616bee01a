//! Assignment of the calendar's event sources.

use crate::calendar::Source;

/// Numbering of the calendar's sources. Lanes come first: at equal times packets arrive before
/// timers go off.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Lanes shared by the stages that lead to one node: 0 .. this.
    pub shared_lanes: usize,
    /// Watchdog number of each stage that needs one.
    watchdogs: Vec<Option<u32>>,
    /// Stage of each watchdog.
    pub(super) watched_stages: Vec<usize>,
    pub(super) channels: Source,
    pub(super) tick: Source,
    pub(super) own_lanes: Source,
    pub(super) processors: Source,
    pub(super) cards: Source,
    pub(super) endpoints: Source,
    pub(super) flows: Source,
    pub(super) probes: Source,
    pub(super) quic: Source,
    /// Changes of links: after everything else that happens at an instant. There only if there are any.
    pub(super) changes: Source,
    end: Source,
}

impl Layout {
    #[expect(clippy::too_many_arguments, reason = "called once, by build, with the counts it has")]
    pub fn new(
        nodes: usize,
        evented: &[bool],
        channels: usize,
        processors: usize,
        cards: usize,
        endpoints: usize,
        flows: usize,
        probes: usize,
        quic: usize,
        changing: bool,
    ) -> Self {
        let mut watchdogs = Vec::new();
        let mut watched_stages = Vec::new();
        for (stage, &evented) in evented.iter().enumerate() {
            watchdogs.push(evented.then_some(watched_stages.len() as u32));
            if evented {
                watched_stages.push(stage);
            }
        }
        let first_channel = (nodes + watched_stages.len()) as Source;
        let tick = first_channel + channels as Source;
        let own_lanes = tick + 1;
        // A processor has a lane too, for what it sends.
        let first_processor = own_lanes + (evented.len() + processors) as Source;
        let first_card = first_processor + processors as Source;
        let first_endpoint = first_card + cards as Source;
        let first_flow = first_endpoint + endpoints as Source;
        let first_probe = first_flow + flows as Source;
        let first_quic = first_probe + probes as Source;
        let changes = first_quic + quic as Source;
        Self {
            shared_lanes: nodes,
            watchdogs,
            watched_stages,
            channels: first_channel,
            tick,
            own_lanes,
            processors: first_processor,
            cards: first_card,
            endpoints: first_endpoint,
            flows: first_flow,
            probes: first_probe,
            quic: first_quic,
            changes,
            end: changes + Source::from(changing),
        }
    }

    /// Number of sources: up to the tick, lanes of single stages, and the rest.
    pub fn source_counts(&self) -> [usize; 3] {
        let Self { own_lanes, endpoints, end, .. } = *self;
        [own_lanes, endpoints - own_lanes, end - endpoints].map(|count| count as usize)
    }

    pub fn own_lane_source(&self, stage: usize) -> Source {
        self.own_lanes + stage as Source
    }

    pub fn processor_source(&self) -> Source {
        self.processors
    }

    pub fn card_source(&self) -> Source {
        self.cards
    }

    pub fn channel_source(&self, channel: usize) -> Source {
        self.channels + channel as Source
    }

    pub fn watchdog_source(&self, stage: usize) -> Source {
        let number = self.watchdogs[stage].unwrap_or(0);
        self.shared_lanes as Source + number
    }
}
