//! What Prometheus reads, read by a reader of Prometheus' format that is not ours.

use prometheus_parse::{Scrape, Value};
use tempfile::TempDir;

use crate::{
    serve_support::{Client, RelayProcess, assert_pushed, push, until},
    support::TestRepo,
    support_events::Person,
    support_server::TestServer,
};

fn scrape(relay: &RelayProcess) -> Scrape {
    let answer = relay.get("/metrics");
    assert!(answer.head.contains("content-type: text/plain; version=0.0.4"), "{}", answer.head);
    let lines = answer.text().lines().map(|line| Ok(line.to_owned())).collect::<Vec<_>>();
    Scrape::parse(lines.into_iter()).expect("Prometheus can read it")
}

/// The value of a counter or gauge with this label, if it is there.
fn value(scrape: &Scrape, name: &str, label: Option<(&str, &str)>) -> Option<f64> {
    let of_name = scrape.samples.iter().filter(|it| it.metric == name);
    let mut of_label =
        of_name.filter(|it| label.is_none_or(|(name, value)| it.labels.get(name) == Some(value)));
    of_label.next().map(|it| match it.value {
        Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value) => value,
        _ => panic!("{name} is no number"),
    })
}

/// P12: all six metrics of the engine, and those of the relay, move as they should.
#[tokio::test(flavor = "multi_thread")]
async fn prometheus_reads_all_metrics_and_they_move() {
    let relay = RelayProcess::start_with(&["--sync-default-delay-secs=1"], &[]);
    let before = scrape(&relay);
    assert_eq!(value(&before, "ngit_relay_events_total", Some(("result", "held"))), Some(0.0));
    assert_eq!(value(&before, "ngit_relay_pushes_total", Some(("result", "accepted"))), Some(0.0));

    let (dir, owner) = (TempDir::new().unwrap(), Person::new(1));
    let source = TestRepo::init(dir.path().join("lantern.git"));
    let (main, dev) = (source.commit("main", "a", "1"), source.commit("dev", "b", "1"));
    let server = TestServer::start("127.0.0.2", dir.path());
    let mut client = Client::connect(&relay).await;
    client.request("live", serde_json::json!({"kinds": [30618]})).await;
    let url = server.url("lantern.git");
    client.publish_held(&relay.announcement(&owner, "lantern", &[&url])).await;
    let refs = [("refs/heads/main", main), ("refs/heads/dev", dev)];
    client.publish_held(&owner.state("lantern", &refs)).await;
    client.live("live").await;
    // Nobody listens there: it is tried again after a backoff of 20 s.
    let dead = "http://127.0.0.3:9/dead.git";
    client.publish_held(&relay.announcement(&owner, "dead", &[dead])).await;
    client.publish_held(&owner.state("dead", &[("refs/heads/main", main)])).await;
    until("it backs off", || {
        value(&scrape(&relay), "purgatory_domain_requests_total", Some(("domain", "127.0.0.3")))
            .is_some_and(|requests| requests >= 1.0)
            && relay.get("/").text().contains("next attempt in")
            && value(&scrape(&relay), "purgatory_sync_queue_size", None) == Some(1.0)
    })
    .await;

    let after = scrape(&relay);
    let number = |name, label| value(&after, name, label).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(number("purgatory_sync_queue_size", None), 1.0);
    assert!(number("purgatory_sync_attempts_total", None) >= 2.0);
    assert_eq!(number("purgatory_sync_oids_fetched_total", None), 2.0);
    let (good, bad) = (Some(("domain", "127.0.0.2")), Some(("domain", "127.0.0.3")));
    assert_eq!(number("purgatory_domain_requests_total", good), 1.0);
    assert_eq!(number("purgatory_domain_in_flight", good), 0.0);
    assert_eq!(number("purgatory_domain_in_flight", bad), 0.0);
    let backoff = after.samples.iter().find(|it| it.metric == "purgatory_sync_backoff_seconds");
    let Some(Value::Histogram(buckets)) = backoff.map(|it| &it.value) else {
        panic!("{backoff:?}")
    };
    let upto = |bound: f64| buckets.iter().find(|it| it.less_than >= bound).unwrap().count;
    assert!(upto(20.0) >= 1.0, "{buckets:?}");

    assert_eq!(number("ngit_relay_connections", None), 1.0);
    assert_eq!(number("ngit_relay_subscriptions", None), 1.0);
    assert_eq!(number("ngit_relay_events_total", Some(("result", "held"))), 4.0);
    assert_eq!(number("ngit_relay_held_events", None), 2.0);
    let url = relay.repository_url(&owner, "dead");
    assert_pushed(&push(&source, &url, &["main"]));
    let last = scrape(&relay);
    assert_eq!(value(&last, "ngit_relay_pushes_total", Some(("result", "accepted"))), Some(1.0));
    assert!(value(&last, "ngit_relay_git_requests_total", Some(("service", "push"))) >= Some(2.0));
    assert_eq!(value(&last, "ngit_relay_held_events", None), Some(0.0));
    drop(client);
    until("the connection has ended", || {
        value(&scrape(&relay), "ngit_relay_connections", None) == Some(0.0)
    })
    .await;
    until("nothing is queued", || {
        value(&scrape(&relay), "purgatory_sync_queue_size", None) == Some(0.0)
    })
    .await;
}
