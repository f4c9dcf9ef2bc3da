//! The two text formats, OpenMetrics 1.0 and Prometheus' older 0.0.4, encoded by prometheus-client. Invariant: the
//! page is streamed and never held in memory.

use std::io::{self, Write};

use prometheus_client::encoding::text;

use super::collector::{Encoding, registry};
use super::splice::Splice;
use crate::reading::Reading;

pub(super) fn open_metrics(reading: &Reading, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Splice::new(out);
    let registry = registry(&reading.families, &Encoding::OpenMetrics(page.exemplars()));
    let written = text::encode(&mut page, &registry);
    page.finish(written)
}

/// Writes the same lines without units, exemplars and the end, which 0.0.4 does not have.
pub(super) fn plain(reading: &Reading, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Splice::new(out);
    let written = text::encode_registry(&mut page, &registry(&reading.families, &Encoding::Text));
    page.finish(written)
}
