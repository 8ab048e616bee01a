//! The simulator's endpoint as a stack.

use crate::line::EcnBytes;
use crate::play::{Info, Outcome, Packet, Read, Stack, play};
use crate::script::{Opening, Script};
use crate::{Action, SynOptions};
use dragstrip_cc::{Algorithm, Options};
use dragstrip_tcp::{Ecn, Endpoint, Flags, Outbox, Role, SackBlock, Segment, Settings, Timestamps};
use dragstrip_units::{Instant, Stream};

/// Plays a script on a fresh endpoint; an error names a setting that the simulator does not have.
pub fn play_on_simulator(script: &Script) -> Result<Outcome, String> {
    let settings = settings(script)?;
    let rules = &settings.profile.congestion;
    let cc = Algorithm::new(&script.cc, &Options::new(), rules, Stream::named(1, "conformance"))
        .map_err(|_| format!("cc {}: no such congestion control", script.cc))?;
    let client = matches!(script.opening, Opening::Client(_))
        || script.lines.iter().any(|line| line.action == Action::Connect);
    let role = if client { Role::Client } else { Role::Server };
    let mut simulated = Simulated {
        endpoint: Endpoint::new(role, &settings.shared(), cc),
        wire: Wire::default(),
        now: Instant::ZERO,
        written: 0,
        mss: script.segment_bytes(),
    };
    if role == Role::Server {
        simulated.endpoint.open(Instant::ZERO, &mut simulated.wire);
    }
    Ok(play(script, &mut simulated))
}

fn settings(script: &Script) -> Result<Settings, String> {
    let mut settings = Settings { mtu_bytes: script.mtu_bytes, gso: true, ..Settings::linux_6() };
    for (name, value) in &script.sysctls {
        set(&mut settings, name, value)
            .ok_or_else(|| format!("sysctl {name} {value}: the simulator has no such setting"))?;
    }
    Ok(settings)
}

fn set(settings: &mut Settings, name: &str, value: &str) -> Option<()> {
    let words: Option<Vec<u64>> = value.split(' ').map(|word| word.parse().ok()).collect();
    let words = words?;
    let (first, on) = (*words.first()?, words[0] != 0);
    match name.strip_prefix("net.ipv4.").unwrap_or(name).strip_prefix("tcp_")? {
        "sack" => settings.sack = on,
        "dsack" => settings.dsack = on,
        "timestamps" => settings.timestamps = on,
        "window_scaling" => settings.window_scaling = on,
        "ecn" => {
            settings.ecn_request = matches!(first, 1 | 4);
            settings.ecn_accept = on;
            settings.accurate_ecn_request = first == 3;
            settings.accurate_ecn_accept = first >= 3;
        }
        "ecn_fallback" => settings.ecn_fallback = on,
        "reordering" => settings.reordering = first as u32,
        "recovery" => {
            settings.rack = first & 1 != 0;
            settings.rack_static_window = first & 2 != 0;
            settings.rack_no_dupthresh = first & 4 != 0;
        }
        "early_retrans" => settings.tail_loss_probe = first >= 3,
        "frto" => settings.frto = on,
        "slow_start_after_idle" => settings.slow_start_after_idle = on,
        "moderate_rcvbuf" => settings.moderate_rcvbuf = on,
        "comp_sack_nr" => settings.comp_sack_nr = first as u32,
        // The kernel takes no 0 for these either.
        "min_tso_segs" if on => settings.min_tso_segs = first as u32,
        "rmem" if !words.contains(&0) => settings.rmem = words.try_into().ok()?,
        "wmem" if !words.contains(&0) => settings.wmem = words.try_into().ok()?,
        _ => return None,
    }
    Some(())
}

#[derive(Debug, Default)]
struct Wire(Vec<Departure>);

/// A segment that left the endpoint.
#[derive(Debug)]
struct Departure {
    at: Instant,
    segment: Segment,
    ecn: Ecn,
}

impl Outbox for Wire {
    fn send(&mut self, segment: &Segment, ecn: Ecn, now: Instant) -> Option<Instant> {
        self.0.push(Departure { at: now, segment: *segment, ecn });
        Some(now)
    }
}

struct Simulated {
    endpoint: Endpoint,
    wire: Wire,
    now: Instant,
    written: u64,
    mss: i64,
}

impl Stack for Simulated {
    fn now_ns(&self) -> i64 {
        self.now.as_nanos() as i64
    }

    fn until(&mut self, at_ns: i64, or_departure: bool) -> Result<(), String> {
        let end = Instant::from_nanos(at_ns.max(0) as u64).max(self.now);
        let before = self.wire.0.len();
        while self.endpoint.deadline() <= end {
            self.now = self.endpoint.deadline().max(self.now);
            self.endpoint.on_deadline(self.now, &mut self.wire);
            if or_departure && self.wire.0.len() > before {
                return Ok(());
            }
        }
        self.now = end;
        Ok(())
    }

    fn connect(&mut self) -> Result<(), String> {
        self.endpoint.open(self.now, &mut self.wire);
        Ok(())
    }

    fn write(&mut self, bytes: Option<u64>) -> Result<(), String> {
        match bytes {
            None => self.endpoint.write_endless(self.now, &mut self.wire),
            Some(bytes) => {
                self.written += bytes;
                self.endpoint.write_until(self.written, self.now, &mut self.wire);
            }
        }
        Ok(())
    }

    fn write_by(&mut self, bytes: u64) -> Result<(), String> {
        self.endpoint.write_by(bytes);
        Ok(())
    }

    fn read(&mut self, amount: Read) -> Result<(), String> {
        let bytes = match amount {
            Read::On => {
                self.endpoint.read_at_once(self.now, &mut self.wire);
                return Ok(());
            }
            Read::Off => 0,
            Read::Some(bytes) => bytes,
        };
        self.endpoint.read(bytes, self.now, &mut self.wire);
        Ok(())
    }

    fn shutdown(&mut self) -> Result<(), String> {
        Err("the simulator's connections end with a reset, never with a FIN".to_owned())
    }

    fn too_big(&mut self, _seq: i64, _mtu: u32) -> Result<(), String> {
        Err("the simulator has no path MTU discovery".to_owned())
    }

    fn inject(&mut self, packet: &Packet) -> Result<(), String> {
        if packet.fin {
            return Err("the simulator's connections end with a reset, never with a FIN".to_owned());
        }
        if packet.rst {
            if packet.seq != self.endpoint.bytes_in_order() as i64 {
                return Err(
                    "the simulator's endpoint takes a reset only at the next byte".to_owned()
                );
            }
            self.endpoint.reset();
            return Ok(());
        }
        let ecn = codepoint(packet);
        self.endpoint.on_segment(&segment(packet), ecn, self.now, &mut self.wire);
        Ok(())
    }

    fn departures(&mut self) -> Result<Vec<Packet>, String> {
        Ok(self.wire.0.drain(..).map(|departure| packet(&departure)).collect())
    }

    fn info(&mut self) -> Result<Info, String> {
        let snapshot = self.endpoint.snapshot();
        let segments = |bytes: u64| bytes as i64 / self.mss;
        let micros = |ns: Option<u64>| ns.map_or(0, |ns| ns as i64 / 1_000);
        let state = match snapshot.state {
            special @ ("disorder" | "cwr" | "recovery" | "loss") => special,
            _ => "open",
        };
        Ok(Info {
            state: state.to_owned(),
            cwnd: segments(snapshot.cwnd_bytes),
            ssthresh: snapshot.ssthresh_bytes.map(segments),
            flight: segments(snapshot.bytes_in_flight),
            retrans: snapshot.retransmits as i64,
            srtt_us: micros(snapshot.srtt_ns),
            min_rtt_us: micros(snapshot.min_rtt_ns),
            acked: snapshot.bytes_acked as i64,
            reordering: snapshot.reordering.into(),
            lost: snapshot.segments_lost.into(),
            notsent: snapshot.bytes_unsent as i64,
            busy_us: None,
            rwnd_limited_us: None,
            sndbuf_limited_us: None,
        })
    }
}

/// The shift that the scripts' peers announce; windows are in bytes here, without a shift.
const WINDOW_SCALE: u8 = 7;

fn segment(packet: &Packet) -> Segment {
    let flags = [
        (Flags::ACK, packet.has_ack),
        (Flags::PSH, packet.psh),
        (Flags::ECE, packet.ece),
        (Flags::CWR, packet.cwr),
        (Flags::AE, packet.ae),
    ];
    let flags = flags.into_iter().fold(Flags::default(), |all, (flag, set)| all.with_if(flag, set));
    let mut segment = Segment::new(packet.seq.max(0) as u64, packet.len as u16, flags);
    segment.ack = packet.ack.max(0) as u64;
    segment.window = packet.window_bytes;
    if let Some((val, ecr)) = packet.timestamps {
        segment.set_timestamps(Timestamps { val, ecr });
    }
    if let Some(SynOptions { mss, sack, timestamps: _, scaling }) = packet.options {
        segment.set_syn_options(dragstrip_tcp::SynOptions {
            mss: mss as u16,
            window_scale: scaling.then_some(WINDOW_SCALE),
            sack_permitted: sack,
        });
    } else {
        let relative = |edge: i64| (edge - packet.ack) as i32;
        let blocks = packet.sack.iter();
        let blocks =
            blocks.map(|&(start, end)| SackBlock { start: relative(start), end: relative(end) });
        segment.set_sack(&blocks.collect::<Vec<_>>());
    }
    if let Some(EcnBytes { ect1_first, counters }) = &packet.bytes {
        let mut filled = [0; 3];
        filled[..counters.len()].copy_from_slice(counters);
        segment.set_ecn_bytes(dragstrip_tcp::EcnBytes {
            ect1_first: *ect1_first,
            fields: counters.len() as u8,
            counters: filled,
        });
    }
    segment
}

fn codepoint(packet: &Packet) -> Ecn {
    match (packet.ce, packet.ect, packet.ect1) {
        (true, _, _) => Ecn::Ce,
        (false, _, true) => Ecn::Ect1,
        (false, true, false) => Ecn::Ect0,
        (false, false, false) => Ecn::NotEct,
    }
}

fn packet(Departure { at, segment, ecn }: &Departure) -> Packet {
    let has = |flag| segment.flags.has(flag);
    let ack = segment.ack as i64;
    let syn = has(Flags::SYN);
    let edges = segment.sack().map(|b| (ack + i64::from(b.start), ack + i64::from(b.end)));
    Packet {
        at_ns: at.as_nanos() as i64,
        seq: if syn { -1 } else { segment.seq as i64 },
        len: u32::from(segment.len),
        ack,
        syn,
        fin: has(Flags::FIN),
        rst: has(Flags::RST),
        has_ack: has(Flags::ACK),
        psh: has(Flags::PSH),
        ece: has(Flags::ECE),
        cwr: has(Flags::CWR),
        ae: has(Flags::AE),
        ect: ecn.is_capable(),
        ect1: *ecn == Ecn::Ect1,
        ce: *ecn == Ecn::Ce,
        bytes: segment.ecn_bytes().map(|bytes| EcnBytes {
            ect1_first: bytes.ect1_first,
            counters: bytes.counters[..usize::from(bytes.fields)].to_vec(),
        }),
        window_bytes: segment.window,
        sack: edges.collect(),
        timestamps: segment.timestamps().map(|stamps| (stamps.val, stamps.ecr)),
        options: None,
    }
}
