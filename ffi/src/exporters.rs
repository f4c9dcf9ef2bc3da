//! Exporters: the admin listener, the ledger and the OTLP export of a meter. They are in the library if it was built with
//! the feature `exporters`; the functions are there in each build.

#[cfg(not(feature = "exporters"))]
mod absent;
#[cfg(feature = "exporters")]
mod ledger_path;
#[cfg(feature = "exporters")]
mod running;
#[cfg(feature = "exporters")]
mod signals;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::entry::entry;
use crate::handles::{EXPORTERS, ExportersHandle, MeterHandle};
use crate::host::Host;
use crate::meter::host;
use crate::slice::{self, Slice, Text, Versioned};
use crate::status::{Fault, Status};

#[cfg(not(feature = "exporters"))]
pub(crate) use absent::Exporters;
#[cfg(feature = "exporters")]
pub(crate) use running::Exporters;

/// The settings of exporters. A field that is 0 or empty has its default. The call copies the texts.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportersOptions {
    /// `sizeof(tm_exporters_options)`.
    pub size: usize,
    /// The address of the admin listener, as in `127.0.0.1:9464` or `[::1]:9464`; with port 0 the system chooses one. The
    /// listener serves `/metrics` (OpenMetrics, Prometheus' protobuf or text), `/readyz`, `/livez` and the live page, without
    /// authentication. Default: no listener.
    pub listen: Slice,
    /// The host names by which clients address the listener, separated by commas. It rejects other names, but not
    /// addresses and `localhost`. Default: none.
    pub hosts: Slice,
    /// The path of the ledger file, which ends in `.db`, in a folder that exists. One meter at a time writes it. Default: no
    /// ledger.
    pub ledger: Slice,
    /// The number of days for which the rows of a month are kept after its end. Default: for ever.
    pub ledger_keep_days: u64,
    /// The export to an OpenTelemetry collector, as the standard variables in lines of `NAME=VALUE`:
    /// `OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318` exports metrics, `OTEL_LOGS_EXPORTER=otlp` adds a log record for each
    /// exchange; sidecar/otlp/otlp.md has all. There are no spans. The library does not read the environment; a host may pass
    /// all of it. Default: no export.
    pub otlp_variables: Slice,
}

// SAFETY: `repr(C)`, the size first, then pointers and integers.
unsafe impl Versioned for ExportersOptions {}

/// The settings of exporters, checked.
pub(crate) struct Settings<'a> {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) hosts: Vec<String>,
    pub(crate) ledger: Option<PathBuf>,
    pub(crate) ledger_keep_days: u32,
    pub(crate) otlp_variables: Vec<(&'a str, &'a str)>,
}

/// Starts exporters of a meter, which take the exchanges that end from now on. This is the only function that starts
/// threads, opens connections and writes files. A meter has at most one group of exporters: `TM_STATUS_ORDER` if it has one
/// already. `TM_STATUS_START` if an address, the ledger's path or a variable of the export cannot be used; nothing runs then.
/// `TM_STATUS_UNSUPPORTED` if the library was built without the feature `exporters`.
///
/// A ledger whose disk fails later, and a collector that does not answer, affect no exchange: the metrics report both, and
/// `tm_exporters_problems` the ledger. Calls of `tm_exchange_end` wait for no disk and no network. This call waits for a
/// shutdown of the meter's exporters before. The threads block all signals but those of faults.
///
/// # Safety
/// `options` points to a structure of the size in it; `exporters` is NULL or points to a handle, which is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_exporters_start(
    meter: MeterHandle,
    options: *const ExportersOptions,
    exporters: *mut ExportersHandle,
) -> Status {
    entry(|| {
        slice::check(exporters)?;
        // SAFETY: the caller's contract.
        let options = unsafe { slice::sized(options) }?;
        // SAFETY: the caller's contract.
        let settings = unsafe { settings(&options) }?;
        let host = host(meter)?;
        let id = EXPORTERS.insert(Arc::clone(&host))?;
        if let Err(fault) = host.start_exporters(&settings) {
            EXPORTERS.take(id)?;
            return Err(fault);
        }
        // SAFETY: the caller's contract.
        unsafe { slice::write(exporters, ExportersHandle { id }) }?;
        Ok(Status::Ok)
    })
}

/// Reads the options.
///
/// # Safety
/// The texts of the options point to their bytes.
unsafe fn settings(options: &ExportersOptions) -> Result<Settings<'_>, Fault> {
    // SAFETY: the caller's contract.
    let (listen, hosts, ledger, variables) = unsafe {
        (
            options.listen.text()?,
            options.hosts.text()?,
            options.ledger.text()?,
            options.otlp_variables.text()?,
        )
    };
    let listen = match listen {
        "" => None,
        text => Some(text.parse().map_err(|_| {
            Fault::new(Status::Text, format!("`{text}` is not an address and a port, as in 127.0.0.1:9464"))
        })?),
    };
    let keep_days = options.ledger_keep_days;
    let keep_days = u32::try_from(keep_days).map_err(|_| {
        Fault::new(Status::Value, format!("ledger_keep_days is {keep_days}; {} is the maximum", u32::MAX))
    })?;
    let hosts = hosts.split(',').map(str::trim).filter(|name| !name.is_empty());
    Ok(Settings {
        listen,
        hosts: hosts.map(str::to_owned).collect(),
        ledger: (!ledger.is_empty()).then(|| ledger.into()),
        ledger_keep_days: keep_days,
        otlp_variables: variables
            .lines()
            .filter(|line| !line.is_empty())
            .map(variable)
            .collect::<Result<_, _>>()?,
    })
}

/// Splits a line into a variable's name and value.
fn variable(line: &str) -> Result<(&str, &str), Fault> {
    // Not the line itself: it may be a secret.
    line.split_once('=').ok_or_else(|| Fault::new(Status::Text, "a line of otlp_variables is not NAME=VALUE"))
}

/// Writes the address of the listener, with the port that the system chose. `TM_STATUS_ABSENT` if there is no listener.
///
/// # Safety
/// `text` is NULL or points to a `tm_text` whose buffer has its capacity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_exporters_address(exporters: ExportersHandle, text: *mut Text) -> Status {
    entry(|| match with(exporters, Exporters::address)? {
        // SAFETY: the caller's contract.
        Some(address) => unsafe { slice::write_text(text, &address.to_string()) },
        None => Ok(Status::Absent),
    })
}

/// Writes the current problems, one a line, such as a ledger that waits for its disk. `TM_STATUS_ABSENT` if there is none.
///
/// # Safety
/// `text` is NULL or points to a `tm_text` whose buffer has its capacity.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tm_exporters_problems(exporters: ExportersHandle, text: *mut Text) -> Status {
    entry(|| match with(exporters, Exporters::problems)?.join("\n") {
        none if none.is_empty() => Ok(Status::Absent),
        // SAFETY: the caller's contract.
        problems => unsafe { slice::write_text(text, &problems) },
    })
}

/// Stops the exporters and frees them: commits the queue of the ledger, sends the last telemetry and closes the listener.
/// Returns within some 15 seconds, usually at once. Call it before the process ends: rows of the last seconds may otherwise
/// not be in the ledger. Exchanges that end later are in the metrics only; new exporters may be started. Final counts stay in
/// the metrics.
#[unsafe(no_mangle)]
pub extern "C" fn tm_exporters_shutdown(exporters: ExportersHandle) -> Status {
    entry(|| {
        if let Some(host) = EXPORTERS.take(exporters.id)? {
            host.shutdown_exporters();
        }
        Ok(Status::Ok)
    })
}

/// Calls `act` with the exporters of a handle; their table is not locked meanwhile.
fn with<R>(handle: ExportersHandle, act: impl FnOnce(&Exporters) -> R) -> Result<R, Fault> {
    let host: Arc<Host> = EXPORTERS.with(handle.id, |host| Ok(Arc::clone(host)))?;
    host.exporters(act).ok_or_else(|| Status::Handle.into())
}
