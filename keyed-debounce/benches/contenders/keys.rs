use std::{hash::Hash, time::Duration};

/// A key as the benches make it.
pub(crate) trait BenchKey: Hash + Eq + Clone + Send + Sync + 'static {
    const NAME: &'static str;

    fn number(number: u64) -> Self;
}

impl BenchKey for u64 {
    const NAME: &'static str = "u64";

    fn number(number: u64) -> Self {
        mixed(number)
    }
}

/// 75 bytes, as an address of a repository is long.
impl BenchKey for String {
    const NAME: &'static str = "String of 75 bytes";

    fn number(number: u64) -> Self {
        let key =
            format!("30617:{:016x}{:016x}{:032x}:name", mixed(number), mixed(!number), number);
        // Without the room to grow that `format` leaves.
        key.into_boxed_str().into_string()
    }
}

/// The longest that [`delay`] says.
pub(crate) const LONGEST_DELAY: Duration = Duration::from_secs(180);

/// How long the key with this number waits: 500 ms, 3 min and 20 to 120 s in turns, as a synced event,
/// a submitted one and a backoff do.
pub(crate) fn delay(number: u64) -> Duration {
    match number % 3 {
        0 => Duration::from_millis(500),
        1 => LONGEST_DELAY,
        _ => Duration::from_nanos(20_000_000_000 + mixed(number) % 100_000_000_000),
    }
}

/// When the request with this number comes: ten million come in a second, so that a million keys are
/// requested twice before the first is due.
pub(crate) fn moment(number: u64) -> Duration {
    Duration::from_nanos(100 * number)
}

/// The numbers below `count` in an order that no cache likes.
pub(crate) fn shuffled(count: u64) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..count).collect();
    numbers.sort_unstable_by_key(|&number| mixed(number ^ 0x5555));
    numbers
}

fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
