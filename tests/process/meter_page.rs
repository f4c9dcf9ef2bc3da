//! Sums of samples of the metrics page by name and labels.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// One scrape.
pub(crate) struct Page {
    /// The whole page.
    pub(crate) text: String,
}

impl Page {
    /// Scrapes `admin`.
    pub(crate) fn fetch(admin: SocketAddr) -> Self {
        let response = get(admin, "/metrics").expect("the admin port answers");
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        let text = response.split_once("\r\n\r\n").expect("a head and a body").1.to_owned();
        assert!(text.ends_with("# EOF\n"), "the page is truncated:\n{text}");
        Self { text }
    }

    /// The sum of all samples of `name` that have all these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let wanted: Vec<String> = labels.iter().map(|(key, value)| format!("{key}=\"{value}\"")).collect();
        self.text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| {
                let (series, value) = line.rsplit_once(' ')?;
                let (found, rest) = series.split_once('{').unwrap_or((series, ""));
                let matches = found == name && wanted.iter().all(|label| rest.contains(label.as_str()));
                matches.then(|| value.parse::<f64>().ok()).flatten()
            })
            .sum()
    }
}

/// The whole answer to a `GET`.
pub(crate) fn get(admin: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(admin)?;
    let accept = "application/openmetrics-text, */*;q=0.1";
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {admin}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n")?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}
