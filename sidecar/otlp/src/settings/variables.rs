//! Names of the variables of exporter and queues, and defaults of the queues. Names and defaults come from
//! `opentelemetry-otlp` or the SDK if these have them. For PEM files and for times and histograms of metrics they have
//! none; those follow the specification.

use std::time::Duration;

use opentelemetry_otlp as official;
use opentelemetry_sdk::{logs, trace};

use crate::plan::Signal;

/// A variable for all signals, and those for each.
#[derive(Clone, Copy)]
pub(crate) struct Variable {
    /// Applies to the signals without a variable of their own.
    pub(crate) general: &'static str,
    /// In the order of [`Signal::ALL`].
    own: [&'static str; 3],
}

impl Variable {
    /// Returns the variable of one signal.
    pub(crate) fn own(self, signal: Signal) -> &'static str {
        self.own[signal as usize]
    }
}

pub(crate) const ENDPOINT: Variable = Variable {
    general: official::OTEL_EXPORTER_OTLP_ENDPOINT,
    own: [
        official::OTEL_EXPORTER_OTLP_METRICS_ENDPOINT,
        official::OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
        official::OTEL_EXPORTER_OTLP_LOGS_ENDPOINT,
    ],
};

pub(crate) const PROTOCOL: Variable = Variable {
    general: official::OTEL_EXPORTER_OTLP_PROTOCOL,
    own: [
        official::OTEL_EXPORTER_OTLP_METRICS_PROTOCOL,
        official::OTEL_EXPORTER_OTLP_TRACES_PROTOCOL,
        official::OTEL_EXPORTER_OTLP_LOGS_PROTOCOL,
    ],
};

pub(crate) const HEADERS: Variable = Variable {
    general: official::OTEL_EXPORTER_OTLP_HEADERS,
    own: [
        official::OTEL_EXPORTER_OTLP_METRICS_HEADERS,
        official::OTEL_EXPORTER_OTLP_TRACES_HEADERS,
        official::OTEL_EXPORTER_OTLP_LOGS_HEADERS,
    ],
};

pub(crate) const TIMEOUT: Variable = Variable {
    general: official::OTEL_EXPORTER_OTLP_TIMEOUT,
    own: [
        official::OTEL_EXPORTER_OTLP_METRICS_TIMEOUT,
        official::OTEL_EXPORTER_OTLP_TRACES_TIMEOUT,
        official::OTEL_EXPORTER_OTLP_LOGS_TIMEOUT,
    ],
};

pub(crate) const COMPRESSION: Variable = Variable {
    general: official::OTEL_EXPORTER_OTLP_COMPRESSION,
    own: [
        official::OTEL_EXPORTER_OTLP_METRICS_COMPRESSION,
        official::OTEL_EXPORTER_OTLP_TRACES_COMPRESSION,
        official::OTEL_EXPORTER_OTLP_LOGS_COMPRESSION,
    ],
};

pub(crate) const INSECURE: Variable = Variable {
    general: official::OTEL_EXPORTER_OTLP_INSECURE,
    own: [
        official::OTEL_EXPORTER_OTLP_METRICS_INSECURE,
        official::OTEL_EXPORTER_OTLP_TRACES_INSECURE,
        official::OTEL_EXPORTER_OTLP_LOGS_INSECURE,
    ],
};

pub(crate) const CERTIFICATE: Variable = Variable {
    general: "OTEL_EXPORTER_OTLP_CERTIFICATE",
    own: [
        "OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE",
        "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
        "OTEL_EXPORTER_OTLP_LOGS_CERTIFICATE",
    ],
};

pub(crate) const CLIENT_KEY: Variable = Variable {
    general: "OTEL_EXPORTER_OTLP_CLIENT_KEY",
    own: [
        "OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY",
        "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY",
        "OTEL_EXPORTER_OTLP_LOGS_CLIENT_KEY",
    ],
};

pub(crate) const CLIENT_CERTIFICATE: Variable = Variable {
    general: "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
    own: [
        "OTEL_EXPORTER_OTLP_METRICS_CLIENT_CERTIFICATE",
        "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE",
        "OTEL_EXPORTER_OTLP_LOGS_CLIENT_CERTIFICATE",
    ],
};

/// All of them; setting any enables the export.
pub(crate) const ALL: [Variable; 9] = [
    ENDPOINT,
    PROTOCOL,
    HEADERS,
    TIMEOUT,
    COMPRESSION,
    CERTIFICATE,
    CLIENT_KEY,
    CLIENT_CERTIFICATE,
    INSECURE,
];

pub(crate) const TEMPORALITY: &str = official::OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE;

pub(crate) const HISTOGRAMS: &str = "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION";

pub(crate) const INTERVAL: &str = "OTEL_METRIC_EXPORT_INTERVAL";

pub(crate) const WITHIN: &str = "OTEL_METRIC_EXPORT_TIMEOUT";

/// The variables of a queue, each with its default.
#[derive(Clone, Copy)]
pub(crate) struct Queue {
    pub(crate) capacity: (&'static str, usize),
    pub(crate) batch: (&'static str, usize),
    pub(crate) delay: (&'static str, Duration),
    pub(crate) within: (&'static str, Duration),
}

pub(crate) const SPANS: Queue = Queue {
    capacity: (trace::OTEL_BSP_MAX_QUEUE_SIZE, trace::OTEL_BSP_MAX_QUEUE_SIZE_DEFAULT),
    batch: (trace::OTEL_BSP_MAX_EXPORT_BATCH_SIZE, trace::OTEL_BSP_MAX_EXPORT_BATCH_SIZE_DEFAULT),
    delay: (trace::OTEL_BSP_SCHEDULE_DELAY, trace::OTEL_BSP_SCHEDULE_DELAY_DEFAULT),
    within: (trace::OTEL_BSP_EXPORT_TIMEOUT, trace::OTEL_BSP_EXPORT_TIMEOUT_DEFAULT),
};

pub(crate) const LOGS: Queue = Queue {
    capacity: (logs::OTEL_BLRP_MAX_QUEUE_SIZE, logs::OTEL_BLRP_MAX_QUEUE_SIZE_DEFAULT),
    batch: (logs::OTEL_BLRP_MAX_EXPORT_BATCH_SIZE, logs::OTEL_BLRP_MAX_EXPORT_BATCH_SIZE_DEFAULT),
    delay: (logs::OTEL_BLRP_SCHEDULE_DELAY, logs::OTEL_BLRP_SCHEDULE_DELAY_DEFAULT),
    within: (logs::OTEL_BLRP_EXPORT_TIMEOUT, logs::OTEL_BLRP_EXPORT_TIMEOUT_DEFAULT),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_specification() {
        let words = [
            "ENDPOINT",
            "PROTOCOL",
            "HEADERS",
            "TIMEOUT",
            "COMPRESSION",
            "CERTIFICATE",
            "CLIENT_KEY",
            "CLIENT_CERTIFICATE",
            "INSECURE",
        ];
        for (variable, word) in ALL.into_iter().zip(words) {
            assert_eq!(variable.general, format!("OTEL_EXPORTER_OTLP_{word}"));
            for signal in Signal::ALL {
                let name = format!("OTEL_EXPORTER_OTLP_{}_{word}", signal.word());
                assert_eq!(variable.own(signal), name);
            }
        }
        assert_eq!(TEMPORALITY, "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE");
        for (queue, prefix) in [(SPANS, "OTEL_BSP"), (LOGS, "OTEL_BLRP")] {
            assert_eq!(queue.capacity.0, format!("{prefix}_MAX_QUEUE_SIZE"));
            assert_eq!(queue.batch.0, format!("{prefix}_MAX_EXPORT_BATCH_SIZE"));
            assert_eq!(queue.delay.0, format!("{prefix}_SCHEDULE_DELAY"));
            assert_eq!(queue.within.0, format!("{prefix}_EXPORT_TIMEOUT"));
        }
    }
}
