//! The meaning of each label value that its name does not explain. A value without a meaning fails the manual.

use meter::Ending;

/// Returns the meaning of `value` in the list `list`: a metric's name, or a label's.
///
/// # Panics
///
/// If the list has no meaning for the value.
pub(crate) fn meaning(list: &str, value: &str) -> &'static str {
    let known = match list {
        "what" => dropped(value),
        "step" => step(value),
        "disagreement" => disagreement(value),
        "fault" => ledger_fault(value),
        "tokenmeter_passthrough_total" => passthrough(value),
        "stated" => mislabelled(value),
        "tokenmeter_refused_total" | "tokenmeter_tenant_refused_total" => refusal(value),
        "tokenmeter_untrusted_tenant_tokens_total" => untrusted_token(value),
        "tokenmeter_no_first_token_total" => no_first_token(value),
        "tokenmeter_gpu_throttled_seconds_total" => throttle(value),
        "tokenmeter_unpriced_exchanges_total" => unpriced(value),
        "tokenmeter_ship_failures_total" => ship_failure(value),
        "tokenmeter_usage_events_failures_total" => events_failure(value),
        "tokenmeter_budget_webhooks_total" => webhook(value),
        "tokenmeter_config_reloads_total" => reload(value),
        "tokenmeter_otlp_items_total" => otlp_item(value),
        _ => None,
    };
    known.unwrap_or_else(|| panic!("{list}: write down what `{value}` means"))
}

/// Returns the cause of an ending, the party that caused it, and what the exchange is charged.
pub(crate) fn ending(ending: Ending) -> [&'static str; 3] {
    match ending {
        Ending::Complete => ["the response ended with the end mark of its dialect", "–", "all tokens"],
        Ending::Length => ["the response ended at a limit of its length: a success", "–", "all tokens"],
        Ending::ClientAbort => {
            ["the client closed its connection", "client", "the tokens counted until then"]
        }
        Ending::UpstreamCut => [
            "the response stopped before its end mark: a crash, a timeout, a lost connection",
            "server",
            "the tokens counted until then",
        ],
        Ending::ErrorInBand => {
            ["the stream, begun with status 200, carried an error", "server", "the tokens counted until then"]
        }
        Ending::ErrorStatus => [
            "the server answered with a status of 400 or above",
            "client or server, by the status",
            "nothing",
        ],
        Ending::NoOutput => ["the response ended regularly and held no output", "server", "the prompt"],
        Ending::Detached => [
            "the server accepted work whose result is fetched later, with neither output nor usage",
            "client",
            "nothing: unpriced as `uncounted`; a usage fetched through tokenmeter is an exchange of its own",
        ],
        Ending::ProxyError => [
            "no upstream could be reached, tokenmeter rejected the request after it had admitted it, or tokenmeter stopped",
            "tokenmeter, or the way to the server",
            "the tokens counted until then",
        ],
    }
}

fn disagreement(value: &str) -> Option<&'static str> {
    Some(match value {
        "total" => "the stated total is the sum of no reading of its parts; the dearer reading is billed",
        "part" => "a part exceeds its whole, and is billed beside it",
        "sequence" => "the counts of successive usages fall; the last one is billed",
        "cached_excess" => "more cached tokens than the prompt has; the prompt is billed as cached",
        _ => return None,
    })
}

fn dropped(value: &str) -> Option<&'static str> {
    Some(match value {
        "record" => {
            "the queue to the exporters and the access log was full; the metrics and the ledger have the exchange"
        }
        "usage_rejected" => "a count in a response was negative, too large or no number",
        "frame_unparsed" => "the meter could not parse a frame of a stream to its end",
        "panic" => "a bug: the connection was closed, or its metering ended; please report it",
        "accept" => "a connection could not be accepted, as without free file descriptors",
        "handshake" => "a client failed the TLS handshake, stalled in it, or sent HTTP instead",
        "proxy_header" => {
            "a connection without the header of the PROXY protocol that its listener expects, or from a peer that is not trusted"
        }
        "decoding" => "a compressed body was broken or expanded too much; its tokens are unknown",
        "tokenizing" => "a local tokenizer failed or had no capacity",
        "usage_edit" => "injected usage could not be removed from the response in time",
        "refusal" => "the access log line of a rejected request",
        "connection" => "an idle or slow client connection was closed so that another client is served",
        "gathering" => "a slow upload was forwarded without buffering, to free memory for another request",
        "slow_client" => "a client was too slow to read its response, which was cut",
        "label_overflow" => "a model or tenant without a label of its own is counted under `_other`",
        "gpu_sample" => "a GPU sample failed or was implausible",
        "gpu_share" => "the energy share of an exchange, which is counted as unattributed",
        "metric_export" => "data points that no collector accepted",
        "span" => "spans that no collector accepted",
        "log_record" => "log records that no collector accepted",
        "ledger_row" => "rows that the ledger keeps as totals only, or lost; a gap names the number",
        "ledger_energy" => "energy of an exchange, or of idle GPUs, that the ledger had no capacity for",
        "usage_event" => {
            "a usage event that the receiver rejects, or whose row retention deleted before it was sent"
        }
        "admin_connection" => "a connection to the metrics page was closed so that another is served",
        "admin_handshake" => {
            "a client of the metrics page failed the TLS handshake, stalled in it, or sent HTTP instead"
        }
        _ => return None,
    })
}

fn step(value: &str) -> Option<&'static str> {
    Some(match value {
        "injected" => "usage is requested for the client and removed from the response",
        "continuous" => "running usage is requested too",
        "client_asked" => "none needed: the client requested usage",
        "not_streamed" => "none needed: a whole response states its usage",
        "sent_unasked" => "none needed: this server sends usage without a request",
        "refused" => "none: this server rejects the option",
        "too_large" => "none: the request is over 8 MiB, or no memory is left",
        "unreadable" => "none: the request is compressed, sealed by a digest, or not valid JSON",
        "observed" => "none: `--usage observe`",
        _ => return None,
    })
}

fn ledger_fault(value: &str) -> Option<&'static str> {
    Some(match value {
        "full" => "the disk is full",
        "read_only" => "the file or its file system cannot be written",
        "io" => "a write or a sync failed",
        "corrupt" => "the file is damaged and was quarantined",
        "locked" => "another process has the file open",
        "other" => "any other; the log has the error",
        _ => return None,
    })
}

fn passthrough(value: &str) -> Option<&'static str> {
    Some(match value {
        "path" => "the path is not a known inference endpoint",
        "method" => "the method does not infer (`GET`, `HEAD`, `OPTIONS`)",
        "encoding" => "the response has a content coding that tokenmeter cannot decode",
        "content_type" => "the response is neither SSE, NDJSON nor JSON",
        "upgrade" => "the connection became a tunnel of unknown use",
        "socket" => {
            "a WebSocket of an inference endpoint whose messages cannot be read: compressed, in broken frames, of Gemini \
             Live, or of more than 16 responses at a time"
        }
        "replay" => "a stored answer is read again, or polled for; it is counted where it was generated",
        _ => return None,
    })
}

fn mislabelled(value: &str) -> Option<&'static str> {
    Some(match value {
        "sse" => "`text/event-stream`",
        "ndjson" => "NDJSON, by any of its names",
        "json" => "JSON",
        "other" => "any other, such as `text/plain`; a missing content type is not counted",
        _ => return None,
    })
}

fn refusal(value: &str) -> Option<&'static str> {
    Some(match value {
        "framing" => "400 or 501: the framing is ambiguous (request smuggling)",
        "host" => "400: `Host` is missing, repeated or invalid",
        "target" => "400, 405 or 414: the target is invalid or too long, or the method is `CONNECT`",
        "upstream_unreachable" => "502 or 504: no connection to the server",
        "upstream_broken" => "502 or 504: the server broke off before its response",
        "upstream_invalid" => "502: the response violates HTTP",
        "overload" => "503: a limit of tokenmeter is reached",
        "budget" => "429: the tenant's budget is spent",
        "unpriced" => "403: the model has no price, and the tenant's budget requires one",
        "unknown_path" => "403: the path is unknown, and the tenant's budget rejects such paths",
        "unreadable" => "403: the request cannot be read, and the tenant's budget requires it",
        "uncountable" => "403: the response could not be counted, and the tenant's budget requires it",
        "slow_body" => "408: the request's body came too slowly",
        "upstream_full" => {
            "503: all connections to the server are in use, or the client has its share of them"
        }
        "gather_room" => "503: the request must be read whole, and no memory is left for it",
        "detached" => "403: the work would continue without its client and could not be counted",
        _ => return None,
    })
}

fn untrusted_token(value: &str) -> Option<&'static str> {
    Some(match value {
        "malformed" => "not a readable token, or with `crit`",
        "algorithm" => "the algorithm is not allowed, or `none`",
        "unknown_key" => "no key has its id, or no key is loaded yet",
        "signature" => "no key verifies the signature",
        "issuer" => "the issuer is not allowed",
        "audience" => "the audience is not allowed",
        "times" => "`exp` is missing, or a time is invalid",
        "tenant" => "the tenant claim is missing or invalid",
        "early" => "not valid yet",
        "expired" => "expired",
        _ => return None,
    })
}

fn no_first_token(value: &str) -> Option<&'static str> {
    Some(match value {
        "complete" | "length" => "a success without a token that the meter could time",
        "client_abort" => "the client left before the first token",
        "upstream_cut" => "the response stopped before the first token",
        "error_in_band" => "the error came before the first token",
        "error_status" => "a status of 400 or above",
        "no_output" => "the response held no output",
        "detached" => "the server accepted work whose result is fetched later",
        "proxy_error" => "tokenmeter ended the exchange before the first token",
        "not_streamed" => "the response was not a stream, so its first token has no time",
        _ => return None,
    })
}

fn throttle(value: &str) -> Option<&'static str> {
    Some(match value {
        "power_cap" => "the power limit",
        "hw_slowdown" => "hardware slowdown: `hw_thermal`, `hw_power_brake` or an external signal",
        "hw_thermal" => "the hardware's temperature limit",
        "hw_power_brake" => "the power brake signal of the machine",
        "sw_thermal" => "the driver's temperature limit",
        "sync_boost" => "the clock of a group of GPUs",
        "other" => "any other reason that the driver reports",
        _ => return None,
    })
}

fn unpriced(value: &str) -> Option<&'static str> {
    Some(match value {
        "no_book" => "there is no price book",
        "model" => "the price book has no entry for the model",
        "token_type" => "the entry has no price for a type of token that was counted",
        "overflow" => "the cost exceeds the range of an amount",
        "uncounted" => "the tokens are unknown",
        _ => return None,
    })
}

fn ship_failure(value: &str) -> Option<&'static str> {
    Some(match value {
        "unreachable" => "no connection to the central store",
        "refused" => "the central store rejected the rows or the role",
        "other" => "any other; the log has the error",
        _ => return None,
    })
}

fn events_failure(value: &str) -> Option<&'static str> {
    Some(match value {
        "unreachable" => "no response in time, or none that is HTTP",
        "busy" => "the receiver answered 408, 425, 429 or 5xx",
        "refused" => "any other status: the receiver refuses the sender, the address or every event",
        "local" => "the ledger, the cursor or the token's file cannot be read or written",
        _ => return None,
    })
}

fn webhook(value: &str) -> Option<&'static str> {
    Some(match value {
        "sent" => "the receiver accepted the alert",
        "failed" => "no attempt succeeded; an alert that is accepted later counts as sent too",
        "dropped" => "never attempted: the queue was full, or the process ended",
        _ => return None,
    })
}

fn reload(value: &str) -> Option<&'static str> {
    Some(match value {
        "loaded" => "the new content is in force",
        "refused" => "the new content has errors; the old one stays in force",
        _ => return None,
    })
}

fn otlp_item(value: &str) -> Option<&'static str> {
    Some(match value {
        "made" => "created; equals the sum of all other outcomes and the queue",
        "sent" => "the collector accepted it",
        "dropped_full" => "the queue was full",
        "dropped_refused" => "the collector rejected it",
        "dropped_unreachable" => "no attempt succeeded in the time for its batch",
        "dropped_shutdown" => "it was still queued at the end of the process",
        _ => return None,
    })
}
