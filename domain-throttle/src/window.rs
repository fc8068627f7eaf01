use std::{collections::VecDeque, time::Duration};

use crate::moment::{Moment, nanos};

/// The last starts of one domain: what the rule L1 is decided by.
///
/// A start is kept as the low 32 bits of its tick. A tick is the smallest power of two of
/// nanoseconds that lets a window be less than 2^31 ticks: 32 ns for a window of 60 s, 1 ns up to
/// 2 s. Stamps are rounded up, so that rounding never lets a start in too early.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// Oldest first. All lie within one kept window (below 2^31 ticks) of `newest`.
    stamps: VecDeque<u32>,
    /// The full tick of the newest stamp.
    newest: u64,
    /// A tick is `1 << shift` nanoseconds.
    shift: u8,
}

impl Window {
    pub(crate) fn new(window: Duration) -> Self {
        Self { shift: shift_for(window), ..Self::default() }
    }

    /// The first moment at which one more start leaves at most `max` in every half-open interval of
    /// length `window`. In the past if there is room now.
    pub(crate) fn room_at(&self, max: usize, window: Duration) -> Moment {
        match max {
            // No two starts lie in an interval without length.
            _ if window.is_zero() => Moment::ZERO,
            0 => Moment::MAX,
            _ if self.stamps.len() < max => Moment::ZERO,
            _ => self.start(self.stamps.len() - max).saturating_add(window),
        }
    }

    /// Records a start and returns its stamp. Of the older ones it keeps those that are younger
    /// than `keep`, the latest `max` at most.
    pub(crate) fn push(&mut self, now: Moment, max: usize, keep: Duration) -> Moment {
        self.drop_old(now, keep);
        while self.stamps.len() >= max {
            self.stamps.pop_front();
        }
        if self.stamps.len() == self.stamps.capacity() {
            let double = self.stamps.len().max(4);
            self.stamps.reserve_exact(double.min(max - self.stamps.len()).max(1));
        }
        let tick = self.tick(now);
        self.newest = if self.stamps.is_empty() { tick } else { tick.max(self.newest) };
        self.stamps.push_back(low_bits(self.newest));
        self.moment(self.newest)
    }

    /// Takes a start out again, if it is still there.
    pub(crate) fn remove(&mut self, stamp: Moment) {
        let tick = self.tick(stamp);
        let found = (0..self.stamps.len()).rev().find(|&at| self.full(at) <= tick);
        let Some(at) = found.filter(|&at| self.full(at) == tick) else { return };
        if at + 1 == self.stamps.len() && at > 0 {
            self.newest = self.full(at - 1);
        }
        self.stamps.remove(at);
    }

    /// Makes room for stamps of a longer window. Ticks only ever grow coarser, so a stamp that was
    /// returned by [`push`](Self::push) is found again.
    pub(crate) fn lengthen(&mut self, window: Duration) {
        let shift = shift_for(window);
        if shift <= self.shift {
            return;
        }
        let starts: Vec<Moment> = (0..self.stamps.len()).map(|at| self.start(at)).collect();
        self.shift = shift;
        self.stamps.clear();
        for start in starts {
            self.newest = self.tick(start);
            self.stamps.push_back(low_bits(self.newest));
        }
    }

    /// How many starts are younger than `window`.
    pub(crate) fn count(&self, now: Moment, window: Duration) -> usize {
        (0..self.stamps.len()).filter(|&at| self.start(at).saturating_add(window) > now).count()
    }

    /// When the newest start is `window` old. In the past if there is none.
    pub(crate) fn empty_at(&self, window: Duration) -> Moment {
        if self.stamps.is_empty() {
            return Moment::ZERO;
        }
        self.moment(self.newest).saturating_add(window)
    }

    fn drop_old(&mut self, now: Moment, keep: Duration) {
        if self.empty_at(keep) <= now {
            self.stamps.clear();
        }
        while !self.stamps.is_empty() && self.start(0).saturating_add(keep) <= now {
            self.stamps.pop_front();
        }
    }

    fn start(&self, at: usize) -> Moment {
        self.moment(self.full(at))
    }

    fn full(&self, at: usize) -> u64 {
        self.newest - u64::from(low_bits(self.newest).wrapping_sub(self.stamps[at]))
    }

    fn moment(&self, tick: u64) -> Moment {
        Moment::from_nanos(tick << self.shift)
    }

    /// The tick of a moment, rounded up; at the very end of time, down.
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
fn low_bits(tick: u64) -> u32 {
    tick as u32
}
