//! The command line, and the quantities of the dumbbell that follow from it.

/// Largest TCP payload of a 1500-byte IP packet with timestamps: 1500 - 20 (IP) - 20 (TCP) - 12.
pub const MSS_BYTES: u64 = 1448;
/// A full segment as an IP packet.
pub const IP_PACKET_BYTES: u64 = 1500;

/// Senders' layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A host per sender, one receiver.
    Hub,
    /// All flows between two hosts.
    Lump,
}

/// What a run records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recording {
    /// One row per flow at the end.
    None,
    /// `samples`, `received` and `queues` every 100 ms.
    Interval,
    /// A scenario's default: the same and every RTT sample.
    Default,
    /// `samples` has a row for every ACK; every RTT sample too.
    EveryAck,
}

/// How the floor holds its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Five events per packet, one pending per non-empty link.
    Lazy,
    /// FIFO departures computed on arrival: two events per packet.
    Fused,
}

/// The command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Number of flows.
    pub flows: u64,
    /// Congestion control.
    pub cc: String,
    /// Bottleneck rate, Mbit/s.
    pub mbps: u64,
    /// Base round-trip time, ms.
    pub rtt_ms: u64,
    /// Simulated time, s.
    pub seconds: u64,
    /// Senders' layout.
    pub layout: Layout,
    /// What each flow has to send; endless when absent.
    pub bytes: Option<u64>,
    /// What is recorded.
    pub recording: Recording,
    /// Floor variant.
    pub variant: Variant,
    /// Runs in this process.
    pub repeat: u64,
    /// Print the scenario and stop.
    pub scenario_only: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            flows: 1,
            cc: "cubic".to_owned(),
            mbps: 100,
            rtt_ms: 20,
            seconds: 60,
            layout: Layout::Hub,
            bytes: None,
            recording: Recording::None,
            variant: Variant::Lazy,
            repeat: 1,
            scenario_only: false,
        }
    }
}

impl Options {
    /// Reads `--name value` pairs.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        while let Some(name) = arguments.next() {
            if name == "--scenario" {
                options.scenario_only = true;
                continue;
            }
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
            options.set(&name, &value)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "--flows" => self.flows = positive(name, value)?,
            "--cc" => value.clone_into(&mut self.cc),
            "--mbps" => self.mbps = positive(name, value)?,
            "--rtt-ms" => self.rtt_ms = positive(name, value)?,
            "--seconds" => self.seconds = positive(name, value)?,
            "--bytes" => self.bytes = Some(positive(name, value)?),
            "--repeat" => self.repeat = positive(name, value)?,
            "--layout" => {
                self.layout = match value {
                    "hub" => Layout::Hub,
                    "lump" => Layout::Lump,
                    other => return Err(format!("--layout: hub or lump, not {other:?}")),
                }
            }
            "--record" => {
                self.recording = match value {
                    "none" => Recording::None,
                    "100ms" => Recording::Interval,
                    "default" => Recording::Default,
                    "every-ack" => Recording::EveryAck,
                    other => {
                        return Err(format!(
                            "--record: none, 100ms, default or every-ack, not {other:?}"
                        ));
                    }
                }
            }
            "--variant" => {
                self.variant = match value {
                    "lazy" => Variant::Lazy,
                    "fused" => Variant::Fused,
                    other => return Err(format!("--variant: lazy or fused, not {other:?}")),
                }
            }
            other => return Err(format!("unknown option {other:?}")),
        }
        Ok(())
    }

    /// Bottleneck rate in bit/s.
    pub const fn rate_bps(&self) -> u64 {
        self.mbps * 1_000_000
    }

    /// One-way delay of the access link and of the bottleneck: a quarter of the base RTT each.
    pub const fn hop_delay_ns(&self) -> u64 {
        self.rtt_ms * 1_000_000 / 4
    }

    /// One bandwidth-delay product in 1500-byte packets, rounded down; at least one.
    pub const fn queue_packets(&self) -> u64 {
        let packets = self.mbps * 1000 * self.rtt_ms / 8 / IP_PACKET_BYTES;
        if packets == 0 { 1 } else { packets }
    }

    /// Start of a flow: the starts are spread over one RTT.
    pub const fn start_ns(&self, flow: u64) -> u64 {
        self.rtt_ms * 1_000_000 * flow / self.flows
    }

    /// Simulated time.
    pub const fn duration_ns(&self) -> u64 {
        self.seconds * 1_000_000_000
    }
}

fn positive(name: &str, value: &str) -> Result<u64, String> {
    match value.parse::<u64>() {
        Ok(number) if number > 0 => Ok(number),
        Ok(_) | Err(_) => Err(format!("{name}: a whole number above 0, not {value:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Layout, Options};

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn the_queue_is_one_bandwidth_delay_product() {
        // 100 Mbit/s x 20 ms = 250 000 bytes; 1 Gbit/s x 50 ms = 6 250 000 bytes.
        assert_eq!(parse("--mbps 100 --rtt-ms 20").unwrap().queue_packets(), 166);
        assert_eq!(parse("--mbps 1000 --rtt-ms 50").unwrap().queue_packets(), 4166);
    }

    #[test]
    fn options_are_read_and_mistakes_are_named() {
        let options = parse("--flows 10 --layout lump --scenario").unwrap();
        assert_eq!((options.flows, options.layout), (10, Layout::Lump));
        assert!(options.scenario_only);
        assert!(parse("--flows 0").unwrap_err().contains("--flows"));
        assert!(parse("--flows").unwrap_err().contains("needs a value"));
        assert!(parse("--rtt 20").unwrap_err().contains("--rtt"));
    }
}
