//! Values in PostgreSQL's types: ids, instants in microseconds, and text without NUL.

use std::error::Error;

use bytes::{BufMut, BytesMut};
use ledger::month;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// Sixteen bytes, as `uuid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id(pub(crate) [u8; 16]);

impl ToSql for Id {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::UUID
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Id {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(raw.try_into()?))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::UUID
    }
}

/// Microseconds since 1970, as `timestamptz`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instant(pub(crate) i64);

impl ToSql for Instant {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_i64(self.0.clamp(0, LAST_US) - EPOCH_US);
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TIMESTAMPTZ
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Instant {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(i64::from_be_bytes(raw.try_into()?).saturating_add(EPOCH_US)))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::TIMESTAMPTZ
    }
}

/// Days since 1970, as `date`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Day(pub(crate) i32);

impl ToSql for Day {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_i32(self.0.clamp(0, LAST_DAY) - EPOCH_DAY);
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::DATE
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Day {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(i32::from_be_bytes(raw.try_into()?).saturating_add(EPOCH_DAY)))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::DATE
    }
}

/// Returns the UTC day of an instant in the store, in days since 1970.
pub(crate) fn utc_day(us: i64) -> i32 {
    month::day(us).clamp(0, LAST_DAY)
}

/// Returns text that the store can hold: NUL becomes U+FFFD.
pub(crate) fn text(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// PostgreSQL's epoch, the year 2000, in microseconds since 1970.
const EPOCH_US: i64 = 946_684_800_000_000;

/// PostgreSQL's epoch, in days since 1970.
const EPOCH_DAY: i32 = 10_957;

/// The last day of the year 9999, in days since 1970.
pub(crate) const LAST_DAY: i32 = 2_932_896;

/// The last microsecond of the year 9999: a partition's name has four digits for the year, and a later clock
/// is wrong.
const LAST_US: i64 = 253_402_300_799_999_999;
