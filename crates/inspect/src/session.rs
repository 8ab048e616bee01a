//! Captures together: their packets merged in time, every flow followed in each of them.

use crate::connection::{Connection, Taken};
use crate::first_packet::Lone;
use crate::pair::Pair;
use crate::recording;
use crate::result::{self, Inspected};
use crate::rows::Rows;
use crate::series::{FlowSeries, Series};
use crate::state::{File, Flow, Followed};
use crate::table::{Key, Table};
use dragstrip_capture::read::{Fault, Packet};
use dragstrip_recording::Recording;

/// Connections of more than one packet that are followed; each takes a few kilobytes.
const FOLLOWED_MAX: usize = 250_000;
/// Files at most: each is a vantage point.
pub const FILES_MAX: usize = 64;

/// Captures that are inspected together.
pub struct Session {
    files: Vec<File>,
    flows: Table<Flow>,
    followed: usize,
    passed: u64,
    rows: Option<Rows>,
    series: Option<Series>,
    labelled: bool,
}

impl Session {
    /// Creates a session for a number of files; `rows`: for a recording too.
    #[must_use]
    pub fn new(files: usize, rows: bool) -> Self {
        Self {
            files: (0..files).map(|_| File::default()).collect(),
            flows: Table::default(),
            followed: 0,
            passed: 0,
            rows: rows.then(Rows::default),
            series: None,
            labelled: false,
        }
    }

    /// Adds Wireshark's and tcptrace's labels, and every event of them.
    #[must_use]
    pub fn labelled(mut self) -> Self {
        self.labelled = true;
        self
    }

    /// With every segment of the flows ([`Session::finish`]).
    #[must_use]
    pub fn every_segment(mut self) -> Self {
        self.series = Some(Series::default());
        self
    }

    /// The file of which more has to be read; none when all are at their end.
    #[must_use]
    pub fn hungry(&self) -> Option<usize> {
        let open = self.files.iter().enumerate().filter(|(_, file)| !file.ended);
        open.min_by_key(|(index, file)| (!file.order.starved(), *index)).map(|(index, _)| index)
    }

    /// The next bytes of a file.
    ///
    /// # Errors
    /// The file cannot be read, and nothing came before the fault. After packets it is kept for the result, and the file is at its end.
    pub fn feed(&mut self, file: usize, piece: &[u8]) -> Result<(), Fault> {
        let fed = self.files[file].feed(piece);
        let settled = self.settle(file, fed);
        self.pump();
        settled
    }

    /// A file is at its end.
    ///
    /// # Errors
    /// The file is not a capture.
    pub fn end(&mut self, file: usize) -> Result<(), Fault> {
        let ended = self.files[file].reader.end();
        self.close(file);
        let settled = self.settle(file, ended);
        self.pump();
        settled
    }

    fn settle(&mut self, file: usize, outcome: Result<(), Fault>) -> Result<(), Fault> {
        let Err(fault) = outcome else { return Ok(()) };
        if self.files[file].counts().packets == 0 {
            return Err(fault);
        }
        self.files[file].fault = Some(fault);
        self.close(file);
        Ok(())
    }

    fn close(&mut self, file: usize) {
        self.files[file].ended = true;
        self.files[file].order.end();
    }

    /// Takes packets from all files in time, as long as none has to be waited for.
    fn pump(&mut self) {
        while !self.files.iter().any(|file| file.order.starved()) {
            let ahead =
                |file: &File| file.order.next_ns().map(|next| next - file.first_ns.unwrap_or(next));
            let Some((index, _)) = self
                .files
                .iter()
                .enumerate()
                .filter_map(|(index, file)| Some((index, ahead(file)?)))
                .min_by_key(|candidate| candidate.1)
            else {
                return;
            };
            if let Some(packet) = self.files[index].order.pop() {
                self.take(index, &packet);
            }
        }
    }

    fn take(&mut self, index: usize, packet: &Packet) {
        let file = &mut self.files[index];
        file.first_ns.get_or_insert(packet.time_ns);
        file.last_ns = packet.time_ns;
        let (key, turned) = Key::of(packet);
        let Some(number) = self.flows.find(&key) else {
            self.flows.insert(key, Flow::Lone(Lone::new(packet, turned, index)));
            return;
        };
        let flow = self.flows.get_mut(number);
        match flow {
            Flow::Passed => self.passed += 1,
            Flow::Lone(lone) => {
                let lone = *lone;
                if self.followed == FOLLOWED_MAX {
                    *flow = Flow::Passed;
                    self.passed += 2;
                    return;
                }
                self.followed += 1;
                *flow = Flow::Followed(Box::default());
                let (first, first_turned, first_file) = lone.packet();
                self.follow(number, first_file, &first, first_turned);
                self.follow(number, index, packet, turned);
            }
            Flow::Followed(followed) => {
                let side = usize::from(turned);
                let point = followed.points.iter().find(|point| point.0 == index);
                if point.is_some_and(|point| point.1.is_reopened_by(packet, side)) {
                    self.flows.insert(key, Flow::Lone(Lone::new(packet, turned, index)));
                } else {
                    self.follow(number, index, packet, turned);
                }
            }
        }
    }

    fn follow(&mut self, number: usize, index: usize, packet: &Packet, turned: bool) {
        let Flow::Followed(followed) = self.flows.get_mut(number) else { return };
        let Followed { points, pairs } = &mut **followed;
        let at = points.iter().position(|point| point.0 == index).unwrap_or_else(|| {
            let logged = self.series.is_some();
            let connection = Connection::new(packet, self.rows.is_some(), self.labelled, logged);
            points.push((index, connection));
            points.len() - 1
        });
        if self.files.len() > 1 && pairs.len() + 1 < self.files.len() {
            pairs.resize_with(self.files.len() - 1, Pair::default);
        }
        let side = usize::from(turned);
        let point = &mut points[at].1;
        let Taken::Packet(kind, sample) = point.take(packet, side) else {
            self.files[index].duplicates += 1;
            return;
        };
        if let Some(rows) = &mut self.rows {
            rows.note(number, index, side, point, packet.time_ns, sample);
        }
        if let Some(series) = &mut self.series {
            series.note((number, index, side), point, packet, kind, sample);
        }
        if index > 0 {
            pairs[index - 1].take(1, side, packet, kind);
        } else {
            for pair in pairs {
                pair.take(0, side, packet, kind);
            }
        }
    }

    /// Returns the results, a recording and each flow's segments if requested; all captures are at their end.
    #[must_use]
    pub fn finish(self) -> (Inspected, Option<Recording>, Vec<FlowSeries>) {
        let (inspected, details) = result::of(&self.files, self.flows, self.passed);
        let recording = self.rows.map(|rows| recording::of(&inspected, &details, &rows));
        let series = self.series.map(|series| series.finish(&details)).unwrap_or_default();
        (inspected, recording, series)
    }
}
