//! The flows of all captures by addresses and ports: a few bytes each until there is more to know.

use dragstrip_capture::read::{Address, Packet};

/// Both ends of a connection, the lesser first, and the tunnel in which it is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// The ends' addresses.
    pub addresses: [Address; 2],
    /// The ends' ports.
    pub ports: [u16; 2],
    /// A number of the tunnel; 0: none.
    pub tunnel: u32,
}

impl Key {
    /// The connection of a packet, and whether the packet goes from the second end to the first.
    pub fn of(packet: &Packet) -> (Self, bool) {
        let from = (packet.source, packet.source_port);
        let to = (packet.destination, packet.destination_port);
        let turned = from > to;
        let (first, second) = if turned { (to, from) } else { (from, to) };
        let (addresses, ports) = ([first.0, second.0], [first.1, second.1]);
        (Self { addresses, ports, tunnel: packet.layers.tunnel() }, turned)
    }

    fn hash(&self) -> u64 {
        let ports = u64::from(self.ports[0]) << 16 | u64::from(self.ports[1]);
        let mut hash = ports ^ u64::from(self.tunnel) << 32;
        for address in &self.addresses {
            for half in address.chunks_exact(8) {
                let word = u64::from_le_bytes(half.try_into().expect("eight bytes"));
                hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                hash ^= hash >> 29;
            }
        }
        hash.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16
    }
}

/// Entries per piece of the store: it grows by pieces, so that nothing is ever there twice.
const PIECE: usize = 1 << 14;

/// Values by key, numbered in the order of their first appearance.
#[derive(Debug)]
pub struct Table<T> {
    /// Number plus one of the entry in each place; 0: free. Its length is a power of two.
    places: Vec<u32>,
    pieces: Vec<Vec<(Key, T)>>,
    len: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { places: vec![0; 64], pieces: Vec::new(), len: 0 }
    }
}

impl<T> Table<T> {
    /// The number of a key's entry, if there is one.
    pub fn find(&self, key: &Key) -> Option<usize> {
        let mask = self.places.len() - 1;
        let mut place = key.hash() as usize & mask;
        while self.places[place] != 0 {
            let number = self.places[place] as usize - 1;
            if self.entry(number).0 == *key {
                return Some(number);
            }
            place = (place + 1) & mask;
        }
        None
    }

    /// Adds the entry of a new connection of this key; an older one of the key is found no more.
    pub fn insert(&mut self, key: Key, value: T) -> usize {
        let number = self.len;
        if number.is_multiple_of(PIECE) {
            self.pieces.push(Vec::with_capacity(if number == 0 { 16 } else { PIECE }));
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.push((key, value));
        }
        self.len += 1;
        if 2 * self.len > self.places.len() {
            self.places = vec![0; self.places.len() * 2];
            for number in 0..self.len {
                self.place(number);
            }
        } else {
            self.place(number);
        }
        number
    }

    fn place(&mut self, number: usize) {
        let key = self.entry(number).0;
        let mask = self.places.len() - 1;
        let mut place = key.hash() as usize & mask;
        while self.places[place] != 0 && self.entry(self.places[place] as usize - 1).0 != key {
            place = (place + 1) & mask;
        }
        self.places[place] = number as u32 + 1;
    }

    fn entry(&self, number: usize) -> &(Key, T) {
        &self.pieces[number / PIECE][number % PIECE]
    }

    /// The entry of this number.
    pub fn get_mut(&mut self, number: usize) -> &mut T {
        &mut self.pieces[number / PIECE][number % PIECE].1
    }

    /// All entries with their keys, in the order of their numbers, to look at.
    pub fn entries(&self) -> impl Iterator<Item = &(Key, T)> {
        self.pieces.iter().flatten()
    }

    /// All entries with their keys, in the order of their numbers.
    pub fn into_entries(self) -> impl Iterator<Item = (Key, T)> {
        self.pieces.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> Key {
        let packet = Packet {
            source: [1; 16],
            destination: [0; 16],
            source_port: (number >> 16) as u16,
            destination_port: number as u16,
            ..Packet::default()
        };
        Key::of(&packet).0
    }

    #[test]
    fn entries_are_found_and_stay_in_order() {
        let mut table = Table::default();
        for number in 0..40_000 {
            assert_eq!(table.find(&key(number)), None);
            assert_eq!(table.insert(key(number), number), number as usize);
        }
        for number in 0..40_000 {
            assert_eq!(table.find(&key(number)), Some(number as usize));
        }
        assert_eq!(table.insert(key(7), 0), 40_000, "ports used again");
        assert_eq!(table.find(&key(7)), Some(40_000));
        *table.get_mut(40_000) = 9;
        assert_eq!(table.into_entries().last().map(|(_, value)| value), Some(9));
    }

    #[test]
    fn both_directions_are_one_connection() {
        let mut packet = Packet { source: [2; 16], source_port: 80, ..Packet::default() };
        let (key, turned) = Key::of(&packet);
        std::mem::swap(&mut packet.source, &mut packet.destination);
        std::mem::swap(&mut packet.source_port, &mut packet.destination_port);
        assert_eq!(Key::of(&packet), (key, !turned));
    }
}
