//! One log record for each exchange, with all values of its record, linked to its trace. It is an event without a body;
//! [`EventName`] sets its name.

use std::time::{SystemTime, UNIX_EPOCH};

use meter::{Ending, Record};
use metrics::Upstream;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::resource::v1::Resource;

use crate::attributes::{Attributes, scope};
use crate::finished::{self, Finished};
use crate::plan::EventName;

/// Returns a request with the log records of a batch.
pub(crate) fn request(
    batch: &[Finished],
    resource: &Resource,
    upstreams: &[Upstream],
    event: EventName,
    text_limit: usize,
) -> ExportLogsServiceRequest {
    let observed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let observed = u64::try_from(observed.as_nanos()).unwrap_or(u64::MAX);
    let log_records = batch.iter().map(|finished| LogRecord {
        observed_time_unix_nano: observed,
        event_name: event.of(finished.record.identity.dialect).to_owned(),
        ..log_record(finished, upstreams, text_limit)
    });
    let log_records = log_records.collect();
    let scope_logs = vec![ScopeLogs { scope: Some(scope()), log_records, ..ScopeLogs::default() }];
    let resource = Some(resource.clone());
    ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs { resource, scope_logs, ..ResourceLogs::default() }],
    }
}

fn log_record(finished: &Finished, upstreams: &[Upstream], text_limit: usize) -> LogRecord {
    let record = &*finished.record;
    let mut list = Attributes::new(text_limit);
    finished::request(record, upstreams, &mut list);
    finished::outcome(record, &mut list);
    finished::own(finished, &mut list);
    finished::details(record, &mut list);
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
        attributes: list.into_list(),
        flags: trace.map_or(0, |trace| trace.sampled.into()),
        trace_id: trace.map(|trace| trace.trace_id.to_vec()).unwrap_or_default(),
        span_id: trace.and_then(|trace| trace.spans).map(|spans| spans.client.to_vec()).unwrap_or_default(),
        ..LogRecord::default()
    }
}

/// Returns the severity: `ERROR` for failures of the server's side.
fn severity(record: &Record) -> (SeverityNumber, &'static str) {
    match record.ending {
        Ending::Complete | Ending::Length | Ending::ClientAbort => (SeverityNumber::Info, "INFO"),
        Ending::ErrorStatus if record.status < 500 => (SeverityNumber::Warn, "WARN"),
        Ending::NoOutput => (SeverityNumber::Warn, "WARN"),
        Ending::ErrorStatus | Ending::ErrorInBand | Ending::UpstreamCut | Ending::ProxyError => {
            (SeverityNumber::Error, "ERROR")
        }
    }
}
