//! A million keys: how long each step takes, beside what a user would write instead.
//!
//! `cargo bench -p keyed-debounce --bench million [-- KEYS ROUNDS]`. Each round measures all
//! contenders in turn; the tables show medians.
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]

mod contenders;

use std::{
    env,
    time::{Duration, Instant},
};

use contenders::{
    BenchKey, Contender,
    delay_queue::DelayQueueAndMap,
    keys::{LONGEST_DELAY, delay, moment, shuffled},
    ours::Ours,
    scan::Scan,
};

/// Nanoseconds for a key.
#[derive(Clone, Copy, Default)]
struct Times {
    schedule: f64,
    reschedule: f64,
    take_and_finish: f64,
    idle_second: f64,
}

/// All rounds of a contender.
struct Row {
    name: &'static str,
    times: Vec<Times>,
    /// The longest single request.
    longest: f64,
}

/// A column of the table.
type Column = (&'static str, fn(&Times) -> f64);

const COLUMNS: [Column; 4] = [
    ("schedule", |times| times.schedule),
    ("reschedule", |times| times.reschedule),
    ("take and finish", |times| times.take_and_finish),
    ("an idle second", |times| times.idle_second),
];

fn main() {
    let numbers: Vec<u64> = env::args().filter_map(|argument| argument.parse().ok()).collect();
    let keys = numbers.first().copied().unwrap_or(1_000_000);
    let rounds = numbers.get(1).copied().unwrap_or(5);
    compare::<String>(keys, rounds);
    compare::<u64>(keys, rounds);
}

fn compare<K: BenchKey>(keys: u64, rounds: u64) {
    let mut rows = [row::<K, Ours<K>>(), row::<K, DelayQueueAndMap<K>>(), row::<K, Scan<K>>()];
    let mut least = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..rounds {
        rows[0].times.push(measure::<K, Ours<K>>(keys, &mut least[0]));
        rows[1].times.push(measure::<K, DelayQueueAndMap<K>>(keys, &mut least[1]));
        rows[2].times.push(measure::<K, Scan<K>>(keys, &mut least[2]));
    }
    for (row, least) in rows.iter_mut().zip(least) {
        row.longest = least.into_iter().max().map_or(0.0, nanos);
    }
    println!(
        "\n{keys} keys, {}, {rounds} rounds: nanoseconds for a key (times those of ours)",
        K::NAME
    );
    print!("{:22}", "");
    for name in COLUMNS.iter().map(|column| column.0).chain(["longest schedule"]) {
        print!("{name:>22}");
    }
    println!();
    for row in &rows {
        print!("{:22}", row.name);
        for (_, column) in COLUMNS {
            print_cell(median(&row.times, column), median(&rows[0].times, column));
        }
        print_cell(row.longest, rows[0].longest);
        println!();
    }
    println!("the slowest round by the fastest");
    for row in &rows {
        print!("{:22}", row.name);
        for (_, column) in COLUMNS {
            let values = row.times.iter().map(column);
            let least = values.clone().fold(f64::INFINITY, f64::min);
            print!("{:>22.2}", values.fold(0.0, f64::max) / least);
        }
        println!();
    }
}

fn row<K: BenchKey, C: Contender<K>>() -> Row {
    Row { name: C::NAME, times: Vec::new(), longest: 0.0 }
}

fn print_cell(value: f64, ours: f64) {
    print!("{:>22}", format!("{value:.0} ({:.2})", value / ours));
}

fn measure<K: BenchKey, C: Contender<K>>(keys: u64, least: &mut Vec<Duration>) -> Times {
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
    // What the reschedules left to do is not idle.
    assert_eq!(queue.take_and_finish(now), 0);
    let idle = Instant::now();
    assert_eq!(queue.take_and_finish(now), 0);
    times.idle_second = nanos(idle.elapsed());
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
    single::<K, C>(keys, least);
    times
}

/// How long each single request takes while the queue grows; of all rounds the shortest. A table
/// grows with the same request in each round, the system stops the thread in another one each time.
fn single<K: BenchKey, C: Contender<K>>(keys: u64, least: &mut Vec<Duration>) {
    let mut queue = C::new();
    let new: Vec<K> = (0..keys).map(K::number).collect();
    least.resize(new.len(), Duration::MAX);
    for ((number, key), least) in (0..).zip(new).zip(least) {
        let start = Instant::now();
        queue.request(key, delay(number), moment(number));
        *least = start.elapsed().min(*least);
    }
}

fn each(keys: u64, work: impl FnOnce()) -> f64 {
    let start = (on_cpu(), Instant::now());
    work();
    let wall = start.1.elapsed();
    let took = on_cpu().zip(start.0).map_or(wall, |(end, start)| end - start);
    #[expect(clippy::cast_precision_loss, reason = "a number of keys")]
    let keys = keys as f64;
    nanos(took) / keys
}

/// How long this thread was on a CPU, where the system says so: others who are on it then do not
/// count.
fn on_cpu() -> Option<Duration> {
    // Others first: the system brings the number up to date when it changes threads.
    std::thread::yield_now();
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    said.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

fn median(times: &[Times], column: fn(&Times) -> f64) -> f64 {
    let mut values: Vec<f64> = times.iter().map(column).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn nanos(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}
