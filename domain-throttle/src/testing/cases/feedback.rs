use super::*;

pub(super) async fn a_key_that_is_told_to_stay_away_stays_away(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(5, 1_000)).await;
    let server = at("https://a.example");
    let hour = 60 * MINUTE;
    granted(&throttle, &server, "a").await?.finish(Feedback::RetryAfter(hour));
    is_paused(&throttle, &server, "b", "another key at first").await?;
    backend.advance(MINUTE).await;
    granted(&throttle, &server, "b").await?.finish(Feedback::Ok);
    is_paused(&throttle, &server, "a", "the key itself").await?;
    backend.advance(hour - MINUTE - MILLI).await;
    is_paused(&throttle, &server, "a", "the key itself, to the end").await?;
    backend.advance(MILLI).await;
    granted(&throttle, &server, "a").await.map(drop)
}

pub(super) async fn two_keys_pause_the_domain(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(5, 1_000)).await;
    let server = at("https://a.example");
    let one = granted(&throttle, &server, "a").await?;
    let two = granted(&throttle, &server, "b").await?;
    for permit in [one, two] {
        permit.finish(Feedback::RetryAfter(10 * MINUTE));
    }
    backend.advance(10 * MINUTE - MILLI).await;
    is_paused(&throttle, &server, "c", "everybody, after two keys were told").await?;
    granted(&throttle, &at("https://b.example"), "a").await?.finish(Feedback::Ok);
    backend.advance(MILLI).await;
    granted(&throttle, &server, "c").await.map(drop)
}

pub(super) async fn failures_pause_nothing(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(5, 1_000)).await;
    let server = at("https://a.example");
    for n in 0..50 {
        granted(&throttle, &server, &n.to_string()).await?.finish(Feedback::Failed);
    }
    Ok(())
}

pub(super) async fn a_broken_endpoint_is_probed(backend: &dyn Backend) -> Outcome {
    let throttle = backend.throttle(limits(5, 1_000)).await;
    let (server, other_port) = (at("https://a.example"), at("https://a.example:8443"));
    for _ in 0..4 {
        granted(&throttle, &server, "a").await?.finish(Feedback::Broken);
    }
    is_paused(&throttle, &server, "b", "a broken endpoint").await?;
    granted(&throttle, &other_port, "b").await?.finish(Feedback::Ok);
    backend.advance(MINUTE).await;
    let probe = granted(&throttle, &server, "a").await?;
    is_paused(&throttle, &server, "b", "everybody but the probe").await?;
    probe.finish(Feedback::Broken);
    backend.advance(2 * MINUTE - MILLI).await;
    is_paused(&throttle, &server, "b", "twice as long after a probe that failed").await?;
    backend.advance(MILLI).await;
    // A probe is a guard: dropped, it has ended.
    drop(granted(&throttle, &server, "b").await?);
    backend.advance(Duration::ZERO).await;
    let one = granted(&throttle, &server, "b").await?;
    granted(&throttle, &server, "c").await.map(drop)?;
    drop(one);
    Ok(())
}
