//! Telemetry about telemetry: the exporter's own samples.

use metrics::{DROPPED_SIGNALS, Metric, OUTCOMES, SampleWriter};

use crate::counts::Counts;
use crate::plan::Signal;

/// Writes the samples of all exported signals.
pub(crate) fn write(counts: &Counts, to: &mut SampleWriter) {
    for (signal, what) in Signal::ALL.into_iter().zip(DROPPED_SIGNALS) {
        let Some(of) = counts.of(signal) else { continue };
        let name = signal.name();
        let outcomes = [
            of.made,
            of.sent,
            of.dropped_full,
            of.dropped_refused,
            of.dropped_unreachable,
            of.dropped_shutdown,
        ];
        for (outcome, n) in OUTCOMES.into_iter().zip(outcomes) {
            to.count(Metric::OtlpItems, &[name, outcome], n);
        }
        to.count(Metric::OtlpQueued, &[name], of.queued);
        to.count(Metric::OtlpUp, &[name], of.up.map(u64::from));
        to.histogram(Metric::OtlpExport, &[name], of.durations.reading());
        to.count(Metric::Dropped, &[what], of.dropped());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use metrics::{Metrics, Options, Part, Samples, Value};

    use super::{Counts, SampleWriter, write};
    use crate::counts::{End, SignalCounts};

    struct Exporter(Counts);

    impl Samples for Exporter {
        fn write(&self, to: &mut SampleWriter) {
            write(&self.0, to);
        }
    }

    #[test]
    fn each_number_of_exported_signal_has_sample() {
        let mut spans = SignalCounts {
            made: 100,
            sent: 60,
            dropped_full: 10,
            dropped_refused: 9,
            dropped_unreachable: 5,
            dropped_shutdown: 7,
            queued: 9,
            ..SignalCounts::default()
        };
        spans.settle(3, End::Unreachable, Duration::from_millis(30));
        let counts = Counts { spans, on: [false, true, true], ..Counts::default() };
        let metrics = Metrics::new(Options::default());
        let before = metrics.reading();
        metrics.set(Part::Export, Arc::new(Exporter(counts)));
        let mut written = Vec::new();
        for (family, before) in metrics.reading().families.iter().zip(&before.families) {
            let ours = family.samples.iter().filter(|sample| !before.samples.contains(sample));
            let ours = ours.filter(|_| !family.name().starts_with("process_"));
            written.extend(ours.map(|sample| {
                let value = match &sample.value {
                    Value::Count(n) => n.to_string(),
                    Value::Number(n) => n.to_string(),
                    Value::Histogram(of) => format!("{} in {} s", of.count(), of.sum),
                };
                format!("{}{{{}}} {value}", family.name(), sample.labels.join(","))
            }));
        }
        assert_eq!(
            written,
            [
                "tokenmeter_otlp_items_total{span,made} 100",
                "tokenmeter_otlp_items_total{span,sent} 60",
                "tokenmeter_otlp_items_total{span,dropped_full} 10",
                "tokenmeter_otlp_items_total{span,dropped_refused} 9",
                "tokenmeter_otlp_items_total{span,dropped_unreachable} 8",
                "tokenmeter_otlp_items_total{span,dropped_shutdown} 7",
                "tokenmeter_otlp_items_total{log,made} 0",
                "tokenmeter_otlp_items_total{log,sent} 0",
                "tokenmeter_otlp_items_total{log,dropped_full} 0",
                "tokenmeter_otlp_items_total{log,dropped_refused} 0",
                "tokenmeter_otlp_items_total{log,dropped_unreachable} 0",
                "tokenmeter_otlp_items_total{log,dropped_shutdown} 0",
                "tokenmeter_otlp_queued_items{span} 6",
                "tokenmeter_otlp_queued_items{log} 0",
                "tokenmeter_otlp_up{span} 0",
                "tokenmeter_otlp_export_seconds{span} 1 in 0.03 s",
                "tokenmeter_dropped_total{span} 34",
                "tokenmeter_dropped_total{log_record} 0",
            ]
        );
    }
}
