//! Repeated kills under load on one ledger: every row that the metrics page had acknowledged is there once, and each
//! kill leaves a gap.

use std::net::SocketAddr;
use std::time::Duration;

use chance::Chance;
use simulator::load::{Load, Report};
use tokio::task::JoinHandle;

use super::audit::{Found, audit};
use super::place::{Place, Rows, command, is_up, server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_rows_survive_every_kill() {
    let server = server().await;
    let place = Place::new();
    let mut chance = Chance::new(20_261_121);
    let lives = if chance::is_long() { 100 } else { 10 };
    let mut acknowledged = Vec::new();
    for life in 0..lives {
        let proxy = place.start(server.addr(), "x.db", &[]);
        let load = load(proxy.data, life);
        let enough = 1 + chance.below(300);
        let page = tokio::task::block_in_place(|| {
            proxy.page_when("some are on the disk", |page| Rows::of(page).acknowledged >= enough)
        });
        proxy.kill();
        load.abort();
        acknowledged.push(Rows::of(&page).acknowledged);
    }
    tokio::task::block_in_place(|| {
        // The process after the last kill continues normally.
        let mut proxy = place.start(server.addr(), "x.db", &[]);
        proxy.page_when("it goes on", is_up);
        proxy.terminate();
        assert!(proxy.ended(Duration::from_secs(15)).success(), "{}", proxy.log());
    });
    let found = audit(&place.path("x.db"));
    all_are_there(&found, &acknowledged);
    assert_eq!(found.gaps, lives, "each kill leaves a gap");
    command(&["ledger", "verify", "--ledger", &place.text("x.db")]);
}

/// The rows of each life that were acknowledged at least.
pub(crate) fn all_are_there(found: &Found, acknowledged: &[u64]) {
    for (life, acknowledged) in acknowledged.iter().enumerate() {
        let rows = found.of(&tenant(life as u64));
        assert!(rows >= *acknowledged, "life {life}: {acknowledged} acknowledged, {rows} there");
    }
}

/// Clients that send requests until they are stopped, as a tenant with the life's name.
pub(crate) fn load(to: SocketAddr, life: u64) -> JoinHandle<std::io::Result<Report>> {
    let mut load = Load::new(to);
    load.model = Some("small".to_owned());
    load.output_tokens = 4;
    load.headers = vec![("x-tenant".to_owned(), tenant(life))];
    load.concurrency = 4;
    load.requests = 1_000_000;
    load.seed = life;
    tokio::spawn(async move { simulator::load::run(&load).await })
}

fn tenant(life: u64) -> String {
    format!("life-{life}")
}
