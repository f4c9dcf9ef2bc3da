//! The two text forms, OpenMetrics 1.0 and Prometheus' older 0.0.4, in prometheus-client's words. The
//! law: a page is written as it is read, and never held.

use std::io::{self, Write};

use prometheus_client::encoding::text;

use super::collector::{Form, registry};
use super::splice::Splice;
use crate::reading::Reading;

pub(super) fn open_metrics(reading: &Reading, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Splice::new(out);
    let registry = registry(&reading.families, &Form::OpenMetrics(page.exemplars()));
    let written = text::encode(&mut page, &registry);
    page.finish(written)
}

/// The same lines, but for what 0.0.4 has no words for: units, exemplars and the end.
pub(super) fn plain(reading: &Reading, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Splice::new(out);
    let written = text::encode_registry(&mut page, &registry(&reading.families, &Form::Text));
    page.finish(written)
}
