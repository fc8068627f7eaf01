//! A million keys: how long each step takes, beside what a user would write instead.
//!
//! `cargo bench -p keyed-debounce --bench million [-- KEYS ROUNDS]`. Each round measures all
//! contenders in turn; the tables show medians, and for the longest single request the best round,
//! since a machine that is busy with something else only makes it longer.
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

mod contenders;

use std::{
    env,
    time::{Duration, Instant},
};

use contenders::{
    BenchKey, Contender, delay, delay_queue::DelayQueueAndMap, keys::LONGEST_DELAY, moment,
    scan::Scan, shuffled,
};
use keyed_debounce::schedule::Schedule;

/// Nanoseconds for a key.
#[derive(Clone, Copy, Default)]
struct Times {
    schedule: f64,
    reschedule: f64,
    take_and_finish: f64,
    idle_second: f64,
    longest: f64,
}

/// A column of the table.
type Column = (&'static str, fn(&Times) -> f64, Pick);

#[derive(Clone, Copy)]
enum Pick {
    Median,
    Least,
}

const COLUMNS: [Column; 5] = [
    ("schedule", |times| times.schedule, Pick::Median),
    ("reschedule", |times| times.reschedule, Pick::Median),
    ("take and finish", |times| times.take_and_finish, Pick::Median),
    ("an idle second", |times| times.idle_second, Pick::Median),
    ("longest schedule", |times| times.longest, Pick::Least),
];

fn main() {
    let numbers: Vec<u64> = env::args().filter_map(|argument| argument.parse().ok()).collect();
    let keys = numbers.first().copied().unwrap_or(1_000_000);
    let rounds = numbers.get(1).copied().unwrap_or(5);
    compare::<u64>(keys, rounds);
    compare::<String>(keys, rounds);
}

fn compare<K: BenchKey>(keys: u64, rounds: u64) {
    let mut rows: [(&str, Vec<Times>); 3] = [
        (<Schedule<K> as Contender<K>>::NAME, Vec::new()),
        (<DelayQueueAndMap<K> as Contender<K>>::NAME, Vec::new()),
        (<Scan<K> as Contender<K>>::NAME, Vec::new()),
    ];
    for _ in 0..rounds {
        rows[0].1.push(measure::<K, Schedule<K>>(keys));
        rows[1].1.push(measure::<K, DelayQueueAndMap<K>>(keys));
        rows[2].1.push(measure::<K, Scan<K>>(keys));
    }
    println!("\n{keys} keys, {}, {rounds} rounds; nanoseconds (times those of ours)", K::NAME);
    print!("{:24}", "");
    for (name, ..) in COLUMNS {
        print!("{name:>24}");
    }
    println!();
    for (name, times) in &rows {
        print!("{name:24}");
        for (_, column, pick) in COLUMNS {
            let value = picked(times, column, pick);
            let ratio = value / picked(&rows[0].1, column, pick);
            print!("{:>24}", format!("{value:.0} ({ratio:.2})"));
        }
        println!();
    }
    println!("spread (slowest round by fastest)");
    for (name, times) in &rows {
        print!("{name:24}");
        for (_, column, _) in COLUMNS {
            let values = times.iter().map(column);
            let least = values.clone().fold(f64::INFINITY, f64::min);
            let most = values.fold(0.0, f64::max);
            print!("{:>24}", format!("{:.2}", most / least));
        }
        println!();
    }
}

fn measure<K: BenchKey, C: Contender<K>>(keys: u64) -> Times {
    let mut times = Times::default();
    let mut queue = C::new();
    let new: Vec<K> = (0..keys).map(K::number).collect();
    times.schedule = each(keys, || {
        for (number, key) in (0..).zip(new) {
            queue.request(key, delay(number), moment(number));
        }
    });
    let again: Vec<(u64, K)> =
        shuffled(keys).into_iter().map(|number| (number, K::number(number))).collect();
    times.reschedule = each(keys, || {
        for (requests, (number, key)) in (keys..).zip(again) {
            queue.request(key, delay(number), moment(requests));
        }
    });
    let mut now = moment(2 * keys);
    assert_eq!(queue.take_and_finish(now), 0);
    let idle = Instant::now();
    assert_eq!(queue.take_and_finish(now), 0);
    times.idle_second = idle.elapsed().as_secs_f64() * 1e9;
    let mut taken = 0;
    times.take_and_finish = each(keys, || {
        // Some clocks have milliseconds and round them up.
        while now < moment(2 * keys) + LONGEST_DELAY + 2 * C::STEP {
            now += C::STEP;
            taken += queue.take_and_finish(now);
        }
    });
    assert_eq!(u64::try_from(taken), Ok(keys));
    drop(queue);
    times.longest = longest::<K, C>(keys);
    times
}

/// The longest single request while the queue grows.
fn longest<K: BenchKey, C: Contender<K>>(keys: u64) -> f64 {
    let mut queue = C::new();
    let new: Vec<K> = (0..keys).map(K::number).collect();
    let mut longest = Duration::ZERO;
    for (number, key) in (0..).zip(new) {
        let start = Instant::now();
        queue.request(key, delay(number), moment(number));
        longest = longest.max(start.elapsed());
    }
    longest.as_secs_f64() * 1e9
}

fn each(keys: u64, work: impl FnOnce()) -> f64 {
    let start = (on_cpu(), Instant::now());
    work();
    let wall = start.1.elapsed();
    let took = on_cpu().zip(start.0).map_or(wall, |(end, start)| end - start);
    #[expect(clippy::cast_precision_loss, reason = "a number of keys")]
    let keys = keys as f64;
    took.as_secs_f64() * 1e9 / keys
}

/// How long this thread was on a CPU, where the system says so: others who are on it then do not
/// count.
fn on_cpu() -> Option<Duration> {
    // Others first: the system brings the number up to date when it changes threads.
    std::thread::yield_now();
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    said.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn picked(times: &[Times], column: fn(&Times) -> f64, pick: Pick) -> f64 {
    let mut values: Vec<f64> = times.iter().map(column).collect();
    values.sort_by(f64::total_cmp);
    match pick {
        Pick::Median => values[values.len() / 2],
        Pick::Least => values[0],
    }
}
