//! The content of the admin listener that comes from the metrics and from billing.

use metrics::{Format, Metrics};

use crate::billing::State;

/// Returns the scrape page in the format that `accept`, a header field, prefers.
pub fn scrape(metrics: &Metrics, accept: &str) -> page::Scrape {
    let format = Format::accepted(accept);
    let metrics = metrics.clone();
    page::Scrape {
        content_type: format.content_type(),
        write: Box::new(move |out| metrics.scrape(format).write(format, out)),
    }
}

/// Returns the readiness of a process that can serve: problems of billing affect no traffic.
pub fn readiness(billing: &State) -> page::Readiness {
    match billing.troubles() {
        none if none.is_empty() => page::Readiness::Ready,
        troubles => page::Readiness::Impaired(troubles),
    }
}

/// Returns the models with any activity.
pub fn models(metrics: &Metrics) -> Vec<page::Model> {
    let models = metrics.snapshot().models.into_iter().map(model);
    models.filter(|model| model.in_flight + model.exchanges + model.output_tokens > 0).collect()
}

fn model(model: metrics::ModelSnapshot) -> page::Model {
    page::Model {
        name: model.model.to_string(),
        in_flight: model.in_flight,
        exchanges: model.exchanges,
        errors: model.errors,
        aborts: model.aborts,
        output_tokens: model.live_output_tokens,
        first_token_p50_s: model.first_token_p50_s,
        first_token_p99_s: model.first_token_p99_s,
        request_rate_p50: model.output_rate_p50,
    }
}
