//! Connects to the first of several addresses that accepts (RFC 8305, Happy Eyeballs).

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

/// Tries the addresses in order, and returns the first connection. The next address is tried when an attempt fails, or
/// [`ATTEMPT_DELAY`] after the previous one began; attempts that lose are dropped. The error is that of the last attempt.
pub(crate) async fn race<S, F>(addresses: &[SocketAddr], connect: impl Fn(SocketAddr) -> F) -> io::Result<S>
where
    S: Send + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
{
    if let [only] = addresses {
        return connect(*only).await;
    }
    let mut waiting = addresses.iter();
    let mut attempts = JoinSet::new();
    let mut last = None;
    loop {
        let has_more = match waiting.next() {
            Some(address) => {
                attempts.spawn(connect(*address));
                waiting.len() > 0
            }
            None => false,
        };
        tokio::select! {
            ended = attempts.join_next() => match ended {
                Some(Ok(Ok(stream))) => return Ok(stream),
                Some(Ok(Err(error))) => last = Some(error),
                Some(Err(panic)) => last = Some(io::Error::other(panic)),
                None => return Err(last.unwrap_or_else(|| io::ErrorKind::NotFound.into())),
            },
            () = sleep(ATTEMPT_DELAY), if has_more => {}
        }
    }
}

/// The Connection Attempt Delay: the next attempt begins beside one that takes longer (RFC 8305 §5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::Mutex;

    use tokio::time::Instant;

    use super::*;

    /// Runs a race in which address `n` behaves as `plan[n]`: the milliseconds of its attempt, and if it succeeds.
    /// Returns the winner and the time in milliseconds, and the instants at which the attempts began.
    async fn run(plan: &[(u64, bool)]) -> (Result<usize, String>, u64, Vec<u64>) {
        let addresses: Vec<SocketAddr> =
            (0..plan.len()).map(|port| SocketAddr::from(([127, 0, 0, 1], port as u16))).collect();
        let began = Instant::now();
        let starts = Arc::new(Mutex::new(Vec::new()));
        let winner = race(&addresses, |address| {
            let at = usize::from(address.port());
            let (takes, succeeds) = plan[at];
            let starts = Arc::clone(&starts);
            async move {
                starts.lock().unwrap().push(began.elapsed().as_millis() as u64);
                sleep(Duration::from_millis(takes)).await;
                if succeeds { Ok(at) } else { Err(io::Error::other(format!("failed {at}"))) }
            }
        })
        .await;
        let starts = starts.lock().unwrap().clone();
        (winner.map_err(|error| error.to_string()), began.elapsed().as_millis() as u64, starts)
    }

    const NEVER: (u64, bool) = (1_000_000, false);

    #[tokio::test(start_paused = true)]
    async fn first_address_wins_if_it_accepts_at_once() {
        assert_eq!(run(&[(100, true), (1, true)]).await, (Ok(0), 100, vec![0]));
        assert_eq!(run(&[(900, true)]).await, (Ok(0), 900, vec![0]));
    }

    #[tokio::test(start_paused = true)]
    async fn silent_address_costs_the_attempt_delay() {
        assert_eq!(run(&[NEVER, (20, true), (1, true)]).await, (Ok(1), 270, vec![0, 250]));
        assert_eq!(run(&[NEVER, NEVER, (20, true)]).await, (Ok(2), 520, vec![0, 250, 500]));
    }

    #[tokio::test(start_paused = true)]
    async fn failure_starts_the_next_at_once() {
        assert_eq!(run(&[(10, false), (20, true)]).await, (Ok(1), 30, vec![0, 10]));
        // An earlier attempt may still win.
        assert_eq!(run(&[(400, true), (200, false)]).await, (Ok(0), 400, vec![0, 250]));
    }

    #[tokio::test(start_paused = true)]
    async fn last_error_is_returned_when_all_failed() {
        assert_eq!(run(&[(10, false), (20, false)]).await, (Err("failed 1".to_owned()), 30, vec![0, 10]));
        assert!(run(&[]).await.0.is_err());
    }
}
