//! Room in queues that follow a window.

use std::collections::VecDeque;

/// Makes room for one more at the end of `queue`. A large one grows by an eighth and not to the double: what
/// one packet in flight takes is the sum of several such queues.
#[inline]
pub fn make_room<T>(queue: &mut VecDeque<T>) {
    if queue.len() == queue.capacity() {
        grow(queue);
    }
}

#[cold]
fn grow<T>(queue: &mut VecDeque<T>) {
    const SMALL: usize = 1_024;
    let more = if queue.len() < SMALL { queue.len().max(4) } else { queue.len() / 8 };
    queue.reserve_exact(more);
}

#[cfg(test)]
mod tests {
    use super::make_room;
    use std::collections::VecDeque;

    #[test]
    fn a_long_queue_has_at_most_an_eighth_of_empty_places() {
        let mut queue = VecDeque::new();
        for n in 0..100_000_u32 {
            make_room(&mut queue);
            queue.push_back(n);
            assert!(queue.len() < 1_024 || queue.capacity() <= queue.len() * 9 / 8);
        }
        assert!(queue.iter().copied().eq(0..100_000));
    }
}
