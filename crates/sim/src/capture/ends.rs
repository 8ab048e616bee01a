//! Captures at both ends of every TCP flow, read while they are written: `record.captures`.
//!
//! The figures of SPP and tcpstat for them are recorded. The bytes are those of `--capture`; none of them is kept.

use super::wire::{FIRST_CLIENT_PORT, FIRST_PORT, PORTS, address_of};
use super::{Capture, CaptureSettings};
use crate::error::SetupError;
use crate::observer::{Observer, Sighting};
use dragstrip_capture::read::{Packet, Reader};
use dragstrip_capture::write::EPOCH_S;
use dragstrip_inspect::{End, Ends, Way};
use dragstrip_recording::{SppRow, TcpstatRow, Writer};
use dragstrip_scenario::{Scenario, Topology, Transport};
use dragstrip_units::Instant;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::rc::Rc;

/// All headers: the longest are 94 bytes.
const SNAPLEN: u32 = 96;
/// Second 0 of the run in its captures.
const EPOCH_US: i64 = EPOCH_S as i64 * 1_000_000;

/// Addresses and ports, from and to.
type Ports = (u32, u16, u32, u16);

/// A flow and its ends.
#[derive(Debug)]
struct Flow {
    number: u32,
    /// The addresses of sender and receiver.
    ends: [u32; 2],
    seen: Ends,
}

/// The flows that are captured.
#[derive(Debug, Default)]
struct Flows {
    flows: Vec<Flow>,
    by_ports: BTreeMap<Ports, (usize, Way)>,
}

impl Flows {
    /// A packet that the capture at the host with this address has shown.
    fn take(&mut self, host: u32, packet: &Packet) {
        let address =
            |bytes: &[u8; 16]| u32::from_be_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
        let (from, to) = (address(&packet.source), address(&packet.destination));
        let ports = (from, packet.source_port, to, packet.destination_port);
        let Some((place, way)) = self.by_ports.get(&ports) else { return };
        let Flow { ends, seen, .. } = &mut self.flows[*place];
        if host == ends[0] {
            seen.take(End::Sender, *way, packet);
        } else if host == ends[1] {
            seen.take(End::Receiver, *way, packet);
        }
    }
}

/// A capture that is read instead of stored.
struct CaptureReader {
    host: u32,
    reader: Reader,
    flows: Rc<RefCell<Flows>>,
}

impl Write for CaptureReader {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Self { host, reader, flows } = self;
        let mut flows = flows.borrow_mut();
        let read = reader.feed(bytes, &mut |packet| flows.take(*host, &packet));
        read.map(|()| bytes.len()).map_err(|fault| io::Error::other(fault.to_string()))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whoever else watches, and the captures at both ends.
pub(crate) struct BothEnds<O> {
    observer: O,
    capture: Option<Capture<CaptureReader>>,
    flows: Rc<RefCell<Flows>>,
}

impl<O> BothEnds<O> {
    /// Captures every TCP flow of the scenario.
    ///
    /// # Errors
    /// None for a scenario that validation has passed.
    pub fn new(scenario: &Scenario, observer: O) -> Result<Self, SetupError> {
        let topology = Topology::new(scenario);
        let address = |name: &str| address_of(&topology, name);
        let mut table = Flows::default();
        for (index, flow) in scenario.flows.iter().enumerate() {
            if !matches!(flow.transport, Transport::Tcp { .. }) {
                continue;
            }
            let (ends, port) =
                ([address(&flow.sender), address(&flow.receiver)], (index % PORTS) as u16);
            let (from, to) = (FIRST_CLIENT_PORT + port, FIRST_PORT + port);
            let place = table.flows.len();
            table.by_ports.insert((ends[0], from, ends[1], to), (place, Way::Out));
            table.by_ports.insert((ends[1], to, ends[0], from), (place, Way::Back));
            table.flows.push(Flow { number: index as u32, ends, seen: Ends::default() });
        }
        let flows = Rc::new(RefCell::new(table));
        let read = |name: &str| CaptureReader {
            host: address(name),
            reader: Reader::new(),
            flows: Rc::clone(&flows),
        };
        let points = scenario.captured_hosts().into_iter();
        let points = points.map(|name| (name.to_owned(), read(name))).collect();
        let settings =
            CaptureSettings { snaplen: SNAPLEN, datagram_snaplen: 0, program: "", comment: "" };
        let capture = Some(Capture::new(scenario, points, &settings)?);
        Ok(Self { observer, capture, flows })
    }

    /// Records the captures' results at the end of the run.
    pub fn finish(&mut self, end: Instant, tables: &mut Writer) {
        let finished = self.capture.take().map_or(Ok(()), |capture| capture.finish(end));
        debug_assert!(finished.is_ok(), "what is written here can be read");
        for Flow { number, seen, .. } in self.flows.take().flows {
            let (trips, seconds) = seen.finish();
            for trip in trips {
                tables.spp.push(SppRow {
                    time_ns: (trip.time_us - EPOCH_US) * 1_000,
                    flow: number,
                    rtt_ns: trip.rtt_us * 1_000,
                    processing_ns: trip.processing_us * 1_000,
                });
            }
            for (end_ns, bytes) in seconds {
                let time_ns = end_ns - EPOCH_US * 1_000;
                tables.tcpstat.push(TcpstatRow { time_ns, flow: number, ip_bytes: bytes as i64 });
            }
        }
    }
}

impl<O: Observer> Observer for BothEnds<O> {
    fn saw(&mut self, sighting: &Sighting<'_>) {
        if O::ON {
            self.observer.saw(sighting);
        }
        if let Some(capture) = &mut self.capture {
            capture.saw(sighting);
        }
    }
}
