//! The samples that a part writes, for the tests of its writer.

use std::sync::Arc;

use metrics::{Metrics, Options, Part, SampleWriter, Samples, Value};

/// A part whose samples a function writes.
struct Written<F>(F);

impl<F: Fn(&mut SampleWriter) + Send + Sync> Samples for Written<F> {
    fn write(&self, to: &mut SampleWriter) {
        (self.0)(to);
    }
}

/// Returns the samples that a part writes, as `name{label values} value`, in the order of the page.
pub(crate) fn written(part: Part, write: impl Fn(&mut SampleWriter) + Send + Sync + 'static) -> Vec<String> {
    let metrics = Metrics::new(Options::default());
    let before = metrics.reading();
    metrics.set(part, Arc::new(Written(write)));
    let mut written = Vec::new();
    for (family, before) in metrics.reading().families.iter().zip(&before.families) {
        let name = family.name();
        if name.starts_with("process_") {
            continue;
        }
        for sample in family.samples.iter().filter(|sample| !before.samples.contains(sample)) {
            let value = match &sample.value {
                Value::Count(n) => n.to_string(),
                Value::Number(n) => n.to_string(),
                Value::Histogram(of) => format!("{} observations", of.count()),
            };
            written.push(format!("{name}{{{}}} {value}", sample.labels.join(",")));
        }
    }
    written
}
