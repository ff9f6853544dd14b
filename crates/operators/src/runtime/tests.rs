//! When a loop reconciles, in time that passes only when everybody waits.

use super::inputs::listed;
use super::*;
use seedling_api::ConfigMap;
use seedling_cluster::follow::Snapshot;
use std::cell::RefCell;
use std::time::Duration;
use tokio::sync::watch;

/// A client that reaches nobody: these loops ask for nothing.
fn context() -> Context {
    kube::Client::new(axum::Router::<()>::new(), "default").into()
}

/// The milliseconds at which it was called until `end`, while inputs change as `change` lets them. Each call takes so long, and ends as
/// `ends` says by its number.
async fn calls(
    inputs: Inputs,
    takes: u64,
    ends: fn(usize) -> Result<Next>,
    end: u64,
    change: impl AsyncFnOnce(),
) -> Vec<u128> {
    let (at, start, context) = (RefCell::new(vec![]), Instant::now(), context());
    let noted = context.reconcile("x", Pace::USUAL, inputs, async |_| {
        at.borrow_mut().push(start.elapsed().as_millis());
        if takes > 0 {
            ms(takes).await;
        }
        ends(at.borrow().len() - 1)
    });
    let until = async {
        change().await;
        tokio::time::sleep_until(start + Duration::from_millis(end)).await;
    };
    tokio::select! {
        () = noted => {}
        () = until => {}
    }
    at.take()
}

async fn ms(milliseconds: u64) {
    sleep(Duration::from_millis(milliseconds)).await
}

fn fails(_: usize) -> Result<Next> {
    Err(OperatorError::LostLease("no".into()))
}

#[tokio::test(start_paused = true)]
async fn at_once_then_as_often_as_it_says() {
    let busy_twice = |call: usize| Ok(if call < 2 { Next::Busy } else { Next::Quiet });
    let at = calls(Inputs::default(), 0, busy_twice, 63_000, async || {}).await;
    assert_eq!(at, [0, 1000, 2000, 62_000]);
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_one_change() {
    let input = watch::Sender::new(0);
    let inputs = Inputs::default().hears("input", &input.subscribe());
    let change = async || {
        for pause in [100, 10, 10, 500] {
            ms(pause).await;
            input.send_modify(|n| *n += 1);
        }
    };
    let at = calls(inputs, 0, |_| Ok(Next::Quiet), 1000, change).await;
    assert_eq!(at, [0, 150, 670]);
}

#[tokio::test(start_paused = true)]
async fn what_changes_meanwhile_is_looked_at_afterwards() {
    let input = watch::Sender::new(0);
    let inputs = Inputs::default().hears("input", &input.subscribe());
    let change = async || {
        ms(100).await;
        input.send_modify(|n| *n += 1);
    };
    let at = calls(inputs, 400, |_| Ok(Next::Quiet), 2000, change).await;
    assert_eq!(at, [0, 450]);
}

#[tokio::test(start_paused = true)]
async fn after_failures_it_comes_back_ever_later() {
    let four_times = |call: usize| if call < 4 { fails(call) } else { Ok(Next::Quiet) };
    let at = calls(Inputs::default(), 0, four_times, 10_000, async || {}).await;
    let pauses: Vec<_> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let bounds = [250..=501, 500..=1001, 1000..=2001, 1000..=2001];
    assert_eq!(pauses.len(), bounds.len());
    assert!(pauses.iter().zip(bounds).all(|(pause, bounds)| bounds.contains(pause)), "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn a_change_ends_the_pause_after_a_failure() {
    let input = watch::Sender::new(0);
    let inputs = Inputs::default().hears("input", &input.subscribe());
    let change = async || {
        ms(10).await;
        input.send_modify(|n| *n += 1);
    };
    let once = |call: usize| if call < 1 { fails(call) } else { Ok(Next::Quiet) };
    assert_eq!(calls(inputs, 0, once, 200, change).await, [0, 60]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_decided_before_everything_was_listed() {
    for (even_unlisted, want) in [(false, vec![600]), (true, vec![0, 300, 600])] {
        let (list, other) = (watch::Sender::new(Snapshot::<ConfigMap>::default()), watch::Sender::new(()));
        let inputs = Inputs::default().with("ConfigMap", &list.subscribe(), listed);
        let inputs = inputs.hears("other", &other.subscribe());
        let inputs = if even_unlisted { inputs.even_unlisted() } else { inputs };
        let change = async || {
            ms(300).await;
            other.send_modify(|()| ());
            ms(300).await;
            list.send_modify(|list| list.synced = true);
        };
        let at = calls(inputs, 0, |_| Ok(Next::Quiet), 2000, change).await;
        assert_eq!(at, want, "as soon as it was, without waiting for a burst");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_does_not_end_is_dropped() {
    let (context, mut begun) = (context(), 0);
    let run = context.reconcile("x", Pace::USUAL, Inputs::default(), async |_| {
        begun += 1;
        std::future::pending().await
    });
    assert!(timeout(Pace::USUAL.limit + Duration::from_secs(1), run).await.is_err());
    let text = context.metrics.text(Instant::now());
    assert!(text.contains("seedling_reconcile_seconds_count{loop=\"x\",result=\"failed\"} 1"), "{text}");
    assert_eq!(begun, 2);
}

#[test]
fn one_deaf_input_is_told_and_one_unlisted_holds_up() {
    let heard = |synced, deaf: Option<&str>| Heard { synced, deaf: deaf.map(Into::into) };
    for (one, other, want) in [
        (heard(true, None), heard(true, None), heard(true, None)),
        (heard(true, None), heard(false, None), heard(false, None)),
        (heard(true, Some("forbidden")), heard(true, None), heard(true, Some("forbidden"))),
        (heard(true, None), heard(false, Some("gone")), heard(false, Some("gone"))),
    ] {
        let [one, other] = [one, other].map(|heard| watch::Sender::new(heard).subscribe());
        let inputs = Inputs::default().with("one", &one, |heard, _| heard.clone());
        let inputs = inputs.with("other", &other, |heard, _| heard.clone());
        assert_eq!(inputs.heard(std::time::Instant::now()), want);
    }
    assert_eq!(Inputs::default().heard(std::time::Instant::now()), heard(true, None));
}
