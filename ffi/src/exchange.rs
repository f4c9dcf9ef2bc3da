//! Exchanges: the calls in their order, from the head of a request to the record.

use std::net::IpAddr;

use ::exchange::{RequestHead, route};
use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use meter::Tick;

use crate::embedded::Embedded;
use crate::entry::entry;
use crate::handles::{EXCHANGES, ExchangeHandle, MeterHandle, RECORDS, RecordHandle};
use crate::host::UNKNOWN_PEER;
use crate::meter::host;
use crate::numbers::CloseKind;
use crate::slice::{self, Bytes, Slice, Versioned};
use crate::status::{Fault, Status};

/// A header field of a request or of a response.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Header {
    /// The name, in any letter case.
    pub name: Slice,
    /// The value.
    pub value: Slice,
}

/// The head of a request.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RequestInfo {
    /// `sizeof(tm_request)`.
    pub size: usize,
    /// The method, as `POST`.
    pub method: Slice,
    /// The path with its query, as the client sent it: both may name a model.
    pub path: Slice,
    /// All header fields: tenant rules, the usage policy and the model depend on some. A field that HTTP does not allow
    /// is ignored. The library keeps a copy until the exchange is over.
    pub headers: *const Header,
    /// The number of header fields.
    pub headers_count: usize,
    /// The IP address of the client's connection, for tenant rules that depend on it. Empty: not known, which rules see
    /// as 0.0.0.0.
    pub peer: Slice,
    /// The time at which the request began, by the host's monotonic clock.
    pub at_ns: u64,
    /// The same time in nanoseconds since 1970. The validity of tokens (`jwt` rules) and of prices depends on it. 0 is
    /// not known, and rejected if there are `jwt` rules.
    pub unix_ns: u64,
}

impl Default for RequestInfo {
    fn default() -> Self {
        Self {
            size: 0,
            method: Slice::default(),
            path: Slice::default(),
            headers: std::ptr::null(),
            headers_count: 0,
            peer: Slice::default(),
            at_ns: 0,
            unix_ns: 0,
        }
    }
}

// SAFETY: `repr(C)`, the size first, then pointers and integers.
unsafe impl Versioned for RequestInfo {}

/// Begins an exchange when the head of its request is known. `TM_STATUS_NOT_METERED` if the request runs no model, as
/// `GET /health`. A POST to an unknown path begins an exchange, and its response decides. `exchange` is 0 unless the
/// call returns `TM_STATUS_OK`. `TM_STATUS_VALUE` if a tenant rule needs `unix_ns` and it is 0.
///
/// # Safety
/// `request` points to a structure of the size in it, with the header fields; `exchange` is NULL or points to a handle,
/// which is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_exchange_begin(
    meter: MeterHandle,
    request: *const RequestInfo,
    exchange: *mut ExchangeHandle,
) -> Status {
    entry(|| {
        // SAFETY: the caller's contract.
        unsafe { slice::write(exchange, ExchangeHandle::default()) }?;
        let host = host(meter)?;
        // SAFETY: the caller's contract.
        let request = unsafe { slice::sized(request) }?;
        // SAFETY: the caller's contract.
        let (method, path, peer) =
            unsafe { (request.method.bytes()?, request.path.bytes()?, request.peer.bytes()?) };
        // Some servers accept any letter case.
        let method = Method::from_bytes(&method.to_ascii_uppercase())
            .map_err(|_| Fault::new(Status::Text, "not an HTTP method"))?;
        let path = String::from_utf8_lossy(path);
        let (path, query) = target_parts(&path);
        let peer = peer_address(peer);
        // SAFETY: the caller's contract.
        let headers = unsafe { header_map(request.headers, request.headers_count) }?;
        let stripped = host.strip_prefix(path);
        let Ok(route) = route(host.settings.kind, &method, stripped) else {
            return Ok(Status::NotMetered);
        };
        let now_unix_s = request.unix_ns / 1_000_000_000;
        let shard = host.choose_shard();
        let tenant = host
            .tenant(shard, &RequestHead { peer, certificate: None, path, headers: &headers, now_unix_s })?;
        let times = (Tick(request.at_ns), request.unix_ns);
        let id = EXCHANGES.insert_with(|| {
            let mut exchange = Embedded::begin(host, route, (shard, tenant), headers, times);
            exchange.asked_at(stripped, query);
            exchange
        })?;
        // SAFETY: the caller's contract.
        unsafe { slice::write(exchange, ExchangeHandle { id }) }?;
        Ok(Status::Ok)
    })
}

/// Returns the path and the query of a request's target, which may be an absolute URI (RFC 9112 §3.2.2).
fn target_parts(target: &str) -> (&str, Option<&str>) {
    let target = target.split('#').next().unwrap_or_default();
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let path = match path.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => path,
    };
    (path, query)
}

/// Reads the address of a peer, which may have a zone (`fe80::1%eth0`). Other text is an unknown peer: a forwarded
/// address is the client's word, and must not keep an exchange from being metered.
fn peer_address(peer: &[u8]) -> IpAddr {
    let address = peer.split(|byte| *byte == b'%').next().unwrap_or_default();
    std::str::from_utf8(address).ok().and_then(|text| text.parse().ok()).unwrap_or(UNKNOWN_PEER)
}

/// Reads the fields of a head. Fields that HTTP does not allow are left out: a client must not be able to hide an
/// exchange by sending one.
///
/// # Safety
/// `first` points to `count` fields, and each to its bytes.
unsafe fn header_map(first: *const Header, count: usize) -> Result<HeaderMap, Fault> {
    // SAFETY: the caller's contract.
    let fields = unsafe { slice::array(first, count) }?;
    let mut headers = HeaderMap::new();
    for field in fields {
        // SAFETY: the caller's contract.
        let (name, value) = unsafe { (field.name.bytes()?, field.value.bytes()?) };
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
            // Only a head of more than 24,576 fields is too large for the map.
            let _ = headers.try_append(name, value);
        }
    }
    Ok(headers)
}

/// Reads the next part of the request body, as the client sent it. `TM_STATUS_ORDER` if the request is complete.
///
/// # Safety
/// `bytes` points to its bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_exchange_request_body(exchange: ExchangeHandle, bytes: Slice) -> Status {
    entry(|| {
        // SAFETY: the caller's contract.
        let bytes = unsafe { bytes.bytes() }?;
        EXCHANGES.with(exchange.id, |exchange| exchange.request_body(bytes))
    })
}

/// Records that the request is complete. Call it also for a request without a body. The times of the record count from
/// `at_ns`.
#[unsafe(no_mangle)]
pub extern "C" fn tm_exchange_request_complete(exchange: ExchangeHandle, at_ns: u64) -> Status {
    entry(|| EXCHANGES.with(exchange.id, |exchange| exchange.request_complete(Tick(at_ns))))
}

/// Writes the request body with an option for usage, so that the server reports its counts in a stream. The usage
/// policy of the meter, the server's kind and the request decide. Call it once, between `tm_exchange_request_complete`
/// and `tm_exchange_response_head`, with the whole body.
///
/// `TM_STATUS_OK`: send `edited` in place of the body, with its length as `content-length`, and pass the response to
/// `tm_exchange_response_edit`. `TM_STATUS_UNCHANGED`: send the body as it is. `TM_STATUS_BUFFER`: call again with a
/// larger buffer.
///
/// # Safety
/// `body` points to its bytes; `edited` is NULL or points to a `tm_bytes` whose buffer has its capacity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_exchange_request_edit(
    exchange: ExchangeHandle,
    body: Slice,
    edited: *mut Bytes,
) -> Status {
    entry(|| {
        slice::check(edited)?;
        // SAFETY: the caller's contract.
        let body = unsafe { body.bytes() }?;
        EXCHANGES.with(exchange.id, |exchange| {
            let Some(request) = exchange.edit_request(body)? else { return Ok(Status::Unchanged) };
            // SAFETY: the caller's contract. The buffer may be the body's own memory, which is read no more.
            let status = unsafe { slice::write_bytes(edited, request.parts.iter().map(|part| &**part)) }?;
            exchange.request_edited(request.added);
            Ok(status)
        })
    })
}

/// Reads the head of the response that the client gets. It completes a request that is not complete, because a server
/// may answer before it has read the whole request. `TM_STATUS_NOT_METERED` if the response is not that of a model: the
/// exchange is over without a record, and its handle is freed.
///
/// # Safety
/// `headers` points to `headers_count` fields, and each to its bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_exchange_response_head(
    exchange: ExchangeHandle,
    status: u16,
    headers: *const Header,
    headers_count: usize,
    at_ns: u64,
) -> Status {
    entry(|| {
        match status {
            100..=199 => return EXCHANGES.with(exchange.id, |_| Ok(Status::Ok)),
            200..=999 => {}
            _ => return Err(Fault::new(Status::Value, format!("there is no HTTP status {status}"))),
        }
        // SAFETY: the caller's contract.
        let headers = unsafe { header_map(headers, headers_count) }?;
        let is_metered =
            EXCHANGES.with(exchange.id, |exchange| exchange.response_head(status, &headers, Tick(at_ns)))?;
        if is_metered {
            return Ok(Status::Ok);
        }
        if let Some(mut exchange) = EXCHANGES.take_or(exchange.id, Embedded::discard)? {
            exchange.discard();
        }
        Ok(Status::NotMetered)
    })
}

/// Reads the next part of the response body, as the server sent it. `at_ns` is the time at which the host read it.
///
/// # Safety
/// `bytes` points to its bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_exchange_response_body(
    exchange: ExchangeHandle,
    bytes: Slice,
    at_ns: u64,
) -> Status {
    entry(|| {
        // SAFETY: the caller's contract.
        let bytes = unsafe { bytes.bytes() }?;
        EXCHANGES.with(exchange.id, |exchange| exchange.response_body(bytes, Tick(at_ns)))
    })
}

/// Reads the next part of the response body, in place of `tm_exchange_response_body`, and removes the usage that only
/// `tm_exchange_request_edit` asked for. Call it for every part of the response to an edited request. The capacity of
/// `shown` is at least the length of the part and `TM_HOLD_MAX`.
///
/// `TM_STATUS_OK`: send `shown` to the client; it may be empty, because the start of an event is held until its rest
/// comes. `TM_STATUS_UNCHANGED`: send the part as it is. `TM_STATUS_BUFFER`: the part was not read; call again with a
/// larger buffer. After any other failure, send the part as it is.
///
/// An empty part releases the held bytes. Pass one if no part came for 50 ms, and one before `tm_exchange_end`: bytes
/// that are still held then do not reach the client.
///
/// # Safety
/// `bytes` points to its bytes; `shown` is NULL or points to a `tm_bytes` whose buffer has its capacity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_exchange_response_edit(
    exchange: ExchangeHandle,
    bytes: Slice,
    at_ns: u64,
    shown: *mut Bytes,
) -> Status {
    entry(|| {
        // SAFETY: the caller's contract.
        let bytes = unsafe { bytes.bytes() }?;
        // SAFETY: the caller's contract.
        unsafe { slice::require_capacity(shown, shown_max(bytes.len())) }?;
        let edited = EXCHANGES.with(exchange.id, |exchange| match bytes {
            [] => Ok(Some(exchange.release())),
            bytes => exchange.edit_response(bytes, Tick(at_ns)),
        })?;
        match edited {
            // SAFETY: the caller's contract.
            Some(edited) => unsafe { slice::write_bytes(shown, std::iter::once(&*edited)) },
            None => Ok(Status::Unchanged),
        }
    })
}

/// The maximum number of bytes that `tm_exchange_response_edit` may write beyond the length of a part of at most 4 MiB:
/// half of them for the bytes that it held back, the rest for words that it replaces by longer ones.
pub const TM_HOLD_MAX: usize = 131072;

/// The buffer that the editing of a part needs. A replaced word adds one byte, and is in an event of at least 64.
fn shown_max(part_bytes: usize) -> usize {
    part_bytes + TM_HOLD_MAX.max(usage::HOLD_MAX_BYTES + part_bytes / 64 + 1)
}

/// Adds nanoseconds for which bytes of the response were ready and the client's connection was not.
#[unsafe(no_mangle)]
pub extern "C" fn tm_exchange_client_wait(exchange: ExchangeHandle, ns: u64) -> Status {
    entry(|| {
        EXCHANGES.with(exchange.id, |exchange| {
            exchange.add_client_wait(ns);
            Ok(Status::Ok)
        })
    })
}

/// Ends an exchange and frees its handle. `close` is a `tm_close`. Writes the record, unless `record` is NULL; the
/// metrics have the exchange in either case. `TM_STATUS_NOT_METERED` if nothing of inference was seen: there is no
/// record, and `record` is 0. After `TM_STATUS_VALUE` and `TM_STATUS_ALIGNMENT` the exchange goes on; after any other
/// status it is over.
///
/// # Safety
/// `record` is NULL or points to a handle, which is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_exchange_end(
    exchange: ExchangeHandle,
    close: u32,
    at_ns: u64,
    record: *mut RecordHandle,
) -> Status {
    entry(|| {
        let close = CloseKind::close(close)
            .ok_or_else(|| Fault::new(Status::Value, format!("there is no way to end {close}")))?;
        if !record.is_null() {
            // SAFETY: the caller's contract.
            unsafe { slice::write(record, RecordHandle::default()) }?;
        }
        let ended = EXCHANGES.take_with(
            exchange.id,
            |exchange| exchange.end(close, Tick(at_ns)),
            Embedded::discard,
        )?;
        let Some(finished) = ended else { return Ok(Status::NotMetered) };
        if !record.is_null() {
            let id = RECORDS.insert(finished)?;
            // SAFETY: the caller's contract.
            unsafe { slice::write(record, RecordHandle { id }) }?;
        }
        Ok(Status::Ok)
    })
}

/// Ends an exchange without a record, as for a request that was not sent to a model, and frees its handle.
#[unsafe(no_mangle)]
pub extern "C" fn tm_exchange_discard(exchange: ExchangeHandle) -> Status {
    entry(|| {
        if let Some(mut exchange) = EXCHANGES.take_or(exchange.id, Embedded::discard)? {
            exchange.discard();
        }
        Ok(Status::Ok)
    })
}
