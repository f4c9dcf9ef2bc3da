//! tokenmeter's own count, from its metrics page: proof that it metered during the measurement.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::Failure;

/// Time for the last exchange's record to reach the page.
const PATIENCE: Duration = Duration::from_secs(2);

/// Waits until this number of output tokens is counted; returns an error with the actual number.
pub(crate) fn await_output_tokens(admin: &str, expected: u64) -> Result<(), Failure> {
    let began = Instant::now();
    loop {
        let counted = output_tokens(&page(admin)?);
        if counted == expected {
            return Ok(());
        }
        if began.elapsed() > PATIENCE {
            return Err(format!("tokenmeter counted {counted} output tokens; {expected} passed").into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn page(admin: &str) -> Result<String, Failure> {
    let mut stream = TcpStream::connect(admin)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}

fn output_tokens(page: &str) -> u64 {
    let lines = page
        .lines()
        .filter(|line| line.starts_with("tokenmeter_tokens_total{") && line.contains("type=\"output\""));
    lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_tokens_of_all_provenances_are_summed() {
        let page = "tokenmeter_tokens_total{model=\"m\",type=\"output\",provenance=\"frames\"} 7\n\
                    tokenmeter_tokens_total{model=\"m\",type=\"output\",provenance=\"reported\"} 5\n\
                    tokenmeter_tokens_total{model=\"m\",type=\"input\",provenance=\"reported\"} 9\n";
        assert_eq!(output_tokens(page), 12);
    }
}
