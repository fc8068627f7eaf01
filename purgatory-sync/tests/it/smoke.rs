use crate::common::*;

#[tokio::test(start_paused = true)]
async fn an_event_goes_when_its_data_came() {
    let world = World::new();
    let server = url("https://one.example/a.git");
    world.git.serve(&server, [oid(1), oid(2)]);
    world.announce("a", &[&server]);
    world.state("a", "state", &[1, 2]);
    world.idle().await;
    assert_eq!(world.store.released(), ["state"]);
    assert_eq!(world.fetch_times(), [500]);
    world.sync.shutdown().await;
}
