//! The resolution on a paused clock.

use super::*;
use crate::resolve::script::Script;
use std::sync::Mutex;

fn ip(text: &str) -> SocketAddr {
    SocketAddr::new(text.parse().unwrap(), 80)
}

fn names(answers: &[(u64, &[&str])]) -> Arc<Names> {
    let answers = answers.iter().map(|(delay_ms, answer)| {
        (Duration::from_millis(*delay_ms), answer.iter().map(|text| ip(text)).collect())
    });
    Names::new(&"gpu".into(), 80, Source::Script(Script(Mutex::new(answers.collect()))))
}

async fn first(names: &Arc<Names>) -> Result<String, String> {
    let addresses = names.addresses().await.map_err(|error| error.to_string())?;
    Ok(addresses[0].ip().to_string())
}

#[test]
fn families_alternate_and_addresses_take_turns() {
    let order = |addresses: &[&str], turn| {
        let addresses: Vec<_> = addresses.iter().map(|text| ip(text)).collect();
        let ordered: Vec<_> = in_turn(&addresses, turn).iter().map(|one| one.ip().to_string()).collect();
        ordered.join(" ")
    };
    let both = ["fd::1", "fd::2", "10.0.0.1", "10.0.0.2", "10.0.0.3"];
    assert_eq!(order(&both, 0), "fd::1 10.0.0.1 fd::2 10.0.0.2 10.0.0.3");
    assert_eq!(order(&both, 1), "fd::2 10.0.0.2 fd::1 10.0.0.3 10.0.0.1");
    assert_eq!(order(&both, 3), "fd::2 10.0.0.1 fd::1 10.0.0.2 10.0.0.3");
    assert_eq!(order(&["10.0.0.1", "fd::1"], 7), "10.0.0.1 fd::1");
    assert_eq!(order(&["10.0.0.1"], usize::MAX), "10.0.0.1");
}

#[tokio::test(start_paused = true)]
async fn new_answer_is_used_within_the_refresh() {
    let names = names(&[(30, &["10.0.0.1"]), (2000, &["10.0.0.2"])]);
    let began = Instant::now();
    assert_eq!(first(&names).await.unwrap(), "10.0.0.1");
    assert_eq!(began.elapsed(), Duration::from_millis(30), "the first connection waits");
    tokio::time::advance(REFRESH).await;
    let before = Instant::now();
    assert_eq!(
        first(&names).await.unwrap(),
        "10.0.0.1",
        "an old answer is used while a new one is on its way"
    );
    assert_eq!(before.elapsed(), Duration::ZERO);
    tokio::time::sleep(Duration::from_millis(2001)).await;
    assert_eq!(first(&names).await.unwrap(), "10.0.0.2");
}

#[tokio::test(start_paused = true)]
async fn failure_keeps_the_last_addresses() {
    let names = names(&[(0, &["10.0.0.1", "10.0.0.2"]), (0, &[]), (0, &["10.0.0.3"])]);
    assert_eq!(first(&names).await.unwrap(), "10.0.0.1");
    assert_eq!(first(&names).await.unwrap(), "10.0.0.2", "the addresses take turns");
    assert_eq!(names.server_count(), 2);
    tokio::time::sleep(REFRESH).await;
    first(&names).await.unwrap();
    tokio::time::sleep(RETRY / 2).await;
    assert_eq!(first(&names).await.unwrap(), "10.0.0.2", "the failure kept them");
    tokio::time::sleep(RETRY).await;
    first(&names).await.unwrap();
    tokio::time::sleep(RETRY / 2).await;
    assert_eq!(first(&names).await.unwrap(), "10.0.0.3");
}

#[tokio::test(start_paused = true)]
async fn one_address_of_each_family_is_one_server() {
    let names = names(&[(0, &["::1", "127.0.0.1"])]);
    assert_eq!(names.server_count(), 0);
    assert_eq!(first(&names).await.unwrap(), "::1");
    assert_eq!(names.server_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn failure_is_remembered_for_a_second() {
    let names = names(&[(10, &[]), (10, &["10.0.0.1"])]);
    let error = "its name has no address: no such name".to_owned();
    assert_eq!(first(&names).await, Err(error.clone()));
    let before = Instant::now();
    assert_eq!(first(&names).await, Err(error));
    assert_eq!(before.elapsed(), Duration::ZERO, "it is not resolved again yet");
    tokio::time::sleep(RETRY).await;
    assert_eq!(first(&names).await, Ok("10.0.0.1".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn simultaneous_connections_share_one_resolution() {
    let names = names(&[(10, &["10.0.0.1"]), (10, &["10.0.0.2"])]);
    let (one, other) = tokio::join!(first(&names), first(&names));
    assert_eq!((one, other), (Ok("10.0.0.1".to_owned()), Ok("10.0.0.1".to_owned())));
}

#[test]
fn resolution_that_its_runtime_dropped_is_repeated() {
    let names = names(&[(1000, &["10.0.0.1"]), (0, &["10.0.0.2"])]);
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let short = runtime();
    short.block_on(async {
        let _ = tokio::time::timeout(Duration::from_millis(5), names.addresses()).await;
    });
    drop(short);
    assert_eq!(runtime().block_on(first(&names)), Ok("10.0.0.2".to_owned()));
}
