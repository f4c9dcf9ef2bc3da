//! One log record for each exchange, linked to its trace: an event, whose name [`EventName`] sets, with a summary as its
//! body and the values of the exchange's record as attributes.

use std::time::{SystemTime, UNIX_EPOCH};

use meter::{Ending, Provenance, Record};
use metrics::Upstream;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::resource::v1::Resource;

use crate::attributes::{Attributes, scope};
use crate::finished::{self, Finished};
use crate::plan::{Detail, EventName};

/// The form of log records.
pub(crate) struct Form {
    /// The event name.
    pub(crate) event: EventName,
    /// The extent.
    pub(crate) detail: Detail,
    /// Maximum bytes of an attribute's text.
    pub(crate) text_limit: usize,
}

/// Returns a request with the log records of a batch.
pub(crate) fn request(
    batch: &[Finished],
    resource: &Resource,
    upstreams: &[Upstream],
    form: &Form,
) -> ExportLogsServiceRequest {
    let observed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let observed = u64::try_from(observed.as_nanos()).unwrap_or(u64::MAX);
    let log_records = batch.iter().map(|finished| LogRecord {
        observed_time_unix_nano: observed,
        event_name: form.event.of(finished.record.identity.dialect).to_owned(),
        ..log_record(finished, upstreams, form)
    });
    let log_records = log_records.collect();
    let scope_logs = vec![ScopeLogs { scope: Some(scope()), log_records, ..ScopeLogs::default() }];
    let resource = Some(resource.clone());
    ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs { resource, scope_logs, ..ResourceLogs::default() }],
    }
}

fn log_record(finished: &Finished, upstreams: &[Upstream], form: &Form) -> LogRecord {
    let record = &*finished.record;
    let mut list = Attributes::new(form.text_limit);
    finished::request(record, upstreams, &mut list);
    finished::outcome(record, &mut list);
    finished::own(finished, &mut list);
    finished::details(record, &mut list);
    if form.detail == Detail::Full {
        finished::internals(record, &mut list);
    }
    if !record.identity.role.is_counted() {
        list.remove_gen_ai();
    }
    let (severity, severity_text) = severity(record);
    let trace = record.identity.trace.as_deref();
    LogRecord {
        // The end of the exchange, when its values are known.
        time_unix_nano: record.ended_unix_ns(),
        severity_number: severity.into(),
        severity_text: severity_text.to_owned(),
        body: Some(AnyValue { value: Some(Value::StringValue(summary(record))) }),
        attributes: list.into_list(),
        flags: trace.map_or(0, |trace| trace.sampled.into()),
        trace_id: trace.map(|trace| trace.trace_id.to_vec()).unwrap_or_default(),
        span_id: trace.and_then(|trace| trace.spans).map(|spans| spans.client.to_vec()).unwrap_or_default(),
        ..LogRecord::default()
    }
}

/// Returns the exchange in one line, like `chat qwen3-8b complete: 120 input and 50 output tokens in 2.000 s`.
fn summary(record: &Record) -> String {
    let tokens = &record.tokens;
    let role = record.identity.role;
    let operation = if role.is_counted() { record.identity.dialect.operation() } else { role.name() };
    let model = finished::model(record).map_or(String::new(), |model| format!(" {model}"));
    format!(
        "{operation}{model} {ending}: {input} input and {output} output tokens in {seconds:.3} s",
        ending = record.ending.name(),
        input = count(tokens.input(), tokens.input_provenance),
        output = count(tokens.output(), tokens.output_provenance),
        seconds = record.timing.duration_ns as f64 / 1e9,
    )
}

fn count(tokens: u64, provenance: Provenance) -> String {
    match provenance {
        Provenance::None => "unknown".to_owned(),
        Provenance::Frames => format!("about {tokens}"),
        Provenance::Engine
        | Provenance::Reported
        | Provenance::Running
        | Provenance::Ids
        | Provenance::Tokenized => tokens.to_string(),
    }
}

/// Returns the severity: `ERROR` for failures of the server's side.
fn severity(record: &Record) -> (SeverityNumber, &'static str) {
    match record.ending {
        Ending::Complete | Ending::Length | Ending::ClientAbort => (SeverityNumber::Info, "INFO"),
        Ending::ErrorStatus if record.status < 500 => (SeverityNumber::Warn, "WARN"),
        Ending::NoOutput | Ending::Detached => (SeverityNumber::Warn, "WARN"),
        Ending::ErrorStatus | Ending::ErrorInBand | Ending::UpstreamCut | Ending::ProxyError => {
            (SeverityNumber::Error, "ERROR")
        }
    }
}
