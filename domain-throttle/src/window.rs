use std::time::Duration;

use crate::moment::{Moment, nanos};

/// The last starts of one domain: what the rule L1 is decided by.
///
/// A start is kept as the low 32 bits of its tick. A tick is the smallest power of two of
/// nanoseconds that lets a window be less than 2^31 ticks: 32 ns for a window of 60 s, 1 ns up to
/// 2 s. Stamps are rounded up, so that rounding never lets a start in too early.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// A ring, oldest first. All lie within one kept window (below 2^31 ticks) of the newest.
    ring: Box<[u32]>,
    head: u32,
    len: u32,
    /// The high bits of the newest stamp's tick.
    high: u32,
    /// A tick is `1 << shift` nanoseconds.
    shift: u8,
}

const FIRST_CAPACITY: usize = 4;

impl Window {
    pub(crate) fn new(window: Duration) -> Self {
        Self { shift: shift_for(window), ..Self::default() }
    }

    /// The first moment at which one more start leaves at most `max` in every half-open interval of
    /// length `window`. In the past if there is room now.
    #[inline]
    pub(crate) fn room_at(&self, max: usize, window: Duration) -> Moment {
        match max {
            // No two starts lie in an interval without length.
            _ if window.is_zero() => Moment::ZERO,
            0 => Moment::MAX,
            _ if self.len() < max => Moment::ZERO,
            _ => self.start(self.len() - max).saturating_add(window),
        }
    }

    /// Records a start and returns its stamp. Of the older ones it keeps those that are younger
    /// than `keep`, the latest `max` at most.
    #[inline]
    pub(crate) fn push(&mut self, now: Moment, max: usize, keep: Duration) -> Moment {
        self.drop_old(now, keep);
        self.drop_first(self.len().saturating_sub(max.saturating_sub(1)));
        if self.len() == self.ring.len() {
            self.resize((2 * self.len()).max(FIRST_CAPACITY).min(max.max(1)));
        }
        let tick = self.tick(now);
        let newest = self.newest().map_or(tick, |newest| newest.max(tick));
        self.append(newest);
        self.moment(newest)
    }

    /// Takes a start out again, if it is still there.
    pub(crate) fn remove(&mut self, stamp: Moment) {
        let tick = self.tick(stamp);
        let found = (0..self.len()).rev().find(|&at| self.full(at) <= tick);
        let Some(at) = found.filter(|&at| self.full(at) == tick) else { return };
        if at + 1 == self.len() && at > 0 {
            self.high = high_bits(self.full(at - 1));
        }
        for to in at..self.len() - 1 {
            let next = self.ring[self.index(to + 1)];
            let to = self.index(to);
            self.ring[to] = next;
        }
        self.len -= 1;
    }

    /// Makes room for stamps of a longer window. Ticks only ever grow coarser, so a stamp that was
    /// returned by [`push`](Self::push) is found again.
    pub(crate) fn lengthen(&mut self, window: Duration) {
        let shift = shift_for(window);
        if shift <= self.shift {
            return;
        }
        let starts: Vec<Moment> = (0..self.len()).map(|at| self.start(at)).collect();
        self.shift = shift;
        self.clear();
        for start in starts {
            self.append(self.tick(start));
        }
    }

    /// Gives back what limits that are no longer in force needed: it keeps what
    /// [`push`](Self::push) with the same numbers would, and memory for that.
    pub(crate) fn trim(&mut self, now: Moment, max: usize, keep: Duration) {
        self.drop_old(now, keep);
        self.drop_first(self.len().saturating_sub(max));
        if self.ring.len() > max.max(FIRST_CAPACITY) {
            self.resize(self.len());
        }
    }

    /// What is left when nothing goes on: the stamps, oldest first, and the newest's high bits and
    /// the length of a tick.
    pub(crate) fn into_parts(mut self) -> (Box<[u32]>, u32, u8) {
        if self.head != 0 || self.len() != self.ring.len() {
            self.resize(self.len());
        }
        (self.ring, self.high, self.shift)
    }

    /// The opposite of [`into_parts`](Self::into_parts).
    pub(crate) fn from_parts(ring: Box<[u32]>, high: u32, shift: u8) -> Self {
        let len = as_u32(ring.len());
        Self { ring, head: 0, len, high, shift }
    }

    /// [`empty_at`](Self::empty_at) of what [`into_parts`](Self::into_parts) gave.
    pub(crate) fn parts_empty_at(stamps: &[u32], high: u32, shift: u8, window: Duration) -> Moment {
        stamps.last().map_or(Moment::ZERO, |&low| {
            let tick = u64::from(high) << 32 | u64::from(low);
            Moment::from_nanos(tick << shift).saturating_add(window)
        })
    }

    /// How many starts are younger than `window`.
    pub(crate) fn count(&self, now: Moment, window: Duration) -> usize {
        (0..self.len()).filter(|&at| self.start(at).saturating_add(window) > now).count()
    }

    /// When the newest start is `window` old. In the past if there is none.
    #[inline]
    pub(crate) fn empty_at(&self, window: Duration) -> Moment {
        self.newest().map_or(Moment::ZERO, |newest| self.moment(newest).saturating_add(window))
    }

    #[inline]
    fn drop_old(&mut self, now: Moment, keep: Duration) {
        if self.empty_at(keep) <= now {
            self.clear();
        }
        while self.len > 0 && self.start(0).saturating_add(keep) <= now {
            self.drop_first(1);
        }
    }

    #[inline]
    fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    fn clear(&mut self) {
        (self.head, self.len) = (0, 0);
    }

    /// Drops so many of the oldest.
    #[inline]
    fn drop_first(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        self.head = as_u32(self.index(count));
        self.len -= as_u32(count);
    }

    #[inline]
    fn append(&mut self, tick: u64) {
        let at = self.index(self.len());
        self.ring[at] = low_bits(tick);
        self.high = high_bits(tick);
        self.len += 1;
    }

    fn resize(&mut self, capacity: usize) {
        let mut ring = Vec::with_capacity(capacity);
        ring.extend((0..self.len()).map(|at| self.ring[self.index(at)]));
        ring.resize(capacity, 0);
        self.ring = ring.into_boxed_slice();
        self.head = 0;
    }

    /// Where the stamp of this number is, counted from the oldest.
    #[inline]
    fn index(&self, at: usize) -> usize {
        let index = self.head as usize + at;
        if index < self.ring.len() { index } else { index - self.ring.len() }
    }

    /// The full tick of the newest stamp.
    #[inline]
    fn newest(&self) -> Option<u64> {
        let last = self.len().checked_sub(1)?;
        Some(u64::from(self.high) << 32 | u64::from(self.ring[self.index(last)]))
    }

    #[inline]
    fn start(&self, at: usize) -> Moment {
        self.moment(self.full(at))
    }

    /// The full tick of a stamp that is there.
    #[inline]
    fn full(&self, at: usize) -> u64 {
        let newest = self.newest().unwrap_or_default();
        newest - u64::from(low_bits(newest).wrapping_sub(self.ring[self.index(at)]))
    }

    #[inline]
    fn moment(&self, tick: u64) -> Moment {
        Moment::from_nanos(tick << self.shift)
    }

    /// The tick of a moment, rounded up; at the very end of time, down.
    #[inline]
    fn tick(&self, moment: Moment) -> u64 {
        let nanos = moment.as_nanos();
        let down = nanos >> self.shift;
        let part = u64::from(down << self.shift != nanos);
        (down + part).min(u64::MAX >> self.shift)
    }
}

fn shift_for(window: Duration) -> u8 {
    let bits = u64::BITS - nanos(window).leading_zeros();
    u8::try_from(bits.saturating_sub(31)).expect("a u64 has at most 64 bits")
}

#[expect(clippy::cast_possible_truncation, reason = "the low bits are what is wanted")]
#[inline]
fn low_bits(tick: u64) -> u32 {
    tick as u32
}

#[inline]
fn high_bits(tick: u64) -> u32 {
    low_bits(tick >> 32)
}

fn as_u32(at: usize) -> u32 {
    u32::try_from(at).expect("a window has at most u32::MAX starts")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// L12: the memory of a huge window goes when its limits have gone.
    #[test]
    fn a_window_that_was_huge_gives_its_memory_back() {
        let mut window = Window::new(MINUTE);
        for nanos in 0..100_000 {
            window.push(Moment::from_nanos(nanos), 1_000_000, MINUTE);
        }
        assert!(window.ring.len() >= 100_000);
        window.trim(Moment::from_nanos(100_000), 30, MINUTE);
        assert_eq!((window.ring.len(), window.len()), (30, 30));
        assert_eq!(window.start(29), Moment::from_nanos(99_999).rounded_up_to(32));
    }

    impl Moment {
        fn rounded_up_to(self, tick: u64) -> Self {
            Self::from_nanos(self.as_nanos().next_multiple_of(tick))
        }
    }
}
