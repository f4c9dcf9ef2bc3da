//! The types of handles, and the table of the objects of each. A macro would hide them from cbindgen.

use std::sync::Arc;

use price::Book;
use tenant::Rules;

use crate::embedded::Embedded;
use crate::finished::Finished;
use crate::handle::Table;
use crate::host::Host;

/// A meter: the settings and metrics of the exchanges that begin in it. Free it with `tm_meter_free`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterHandle {
    /// The number; 0 means no object.
    pub id: u64,
}

/// A running exchange: a request and its response. `tm_exchange_end` and `tm_exchange_discard` free it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeHandle {
    /// The number; 0 means no object.
    pub id: u64,
}

/// The record of an ended exchange. Free it with `tm_record_free`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordHandle {
    /// The number; 0 means no object.
    pub id: u64,
}

/// A price book. Free it with `tm_prices_free`, also while a meter uses it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PricesHandle {
    /// The number; 0 means no object.
    pub id: u64,
}

/// Tenant rules. Free them with `tm_tenants_free`, also while a meter uses them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantsHandle {
    /// The number; 0 means no object.
    pub id: u64,
}

/// The exporters of a meter. `tm_exporters_shutdown` frees them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportersHandle {
    /// The number; 0 means no object.
    pub id: u64,
}

pub(crate) static METERS: Table<Arc<Host>> = Table::new(1);
pub(crate) static EXCHANGES: Table<Embedded> = Table::new(2);
pub(crate) static RECORDS: Table<Finished> = Table::new(3);
pub(crate) static PRICES: Table<Arc<Book>> = Table::new(4);
pub(crate) static TENANTS: Table<Arc<Rules>> = Table::new(5);
pub(crate) static EXPORTERS: Table<Arc<Host>> = Table::new(6);
