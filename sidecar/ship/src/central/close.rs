//! Closing a month at the store, with all its ledger files, also those that are lost. Rows that arrive for it later are
//! billed in the first open month.
//!
//! Laws: a month is closed once, after those before it, and only if it verifies. A crash at any point leaves it open or
//! closed; closing it again completes the sign-off.

use std::collections::{BTreeMap, HashMap};

use ledger::digest::{self, Digest, PartDigest};
use ledger::source::{Month, Range, Source, SourceError};
use ledger::{AuditEvent, MonthSums, SignOff, month, utc};
use postgres::Client;
use postgres::types::Type;
use serde_json::{Value, json};

use super::Central;
use crate::address::Address;
use crate::connect::connect;
use crate::error::{ShipError, uuid};
use crate::schema;
use crate::values::{Id, Instant};

/// A closed month, as the store has it.
#[derive(Clone, Debug)]
pub(super) struct Closing {
    pub(super) month: Month,
    at_us: i64,
    who: String,
    role: String,
    /// The digest and the document of the sign-off, once it is complete.
    pub(super) signed: Option<(Vec<u8>, Value)>,
}

impl Closing {
    /// Returns the event that closes each file of the month.
    fn event(&self) -> AuditEvent {
        let who = self.who.as_str().into();
        AuditEvent { at_us: self.at_us, what: "closed".into(), who, detail: "{}".into() }
    }
}

/// The sign-off of a month, computed from its rows, and the files that it covers.
pub(super) struct Computed {
    pub(super) digest: Digest,
    pub(super) document: Value,
    files: BTreeMap<[u8; 16], ComputedFile>,
}

struct ComputedFile {
    digest: Digest,
    rows_since: Month,
    parts: Vec<PartDigest>,
}

/// A ledger file as it was when its month was closed.
pub(super) struct ClosedFile {
    pub(super) digest: Vec<u8>,
    rows_since: Month,
    parts: Value,
}

/// Closes a month of a store and signs it off. If the month is closed already, returns its sign-off, unchanged.
///
/// # Errors
/// If the month is not over, has no file, does not verify, or follows an open one; if a file of it is being sent again; or
/// if the store cannot be written by the role.
pub fn close(address: &Address, wanted: Month, who: &str) -> Result<SignOff, SourceError> {
    let mut client = connect(address)?;
    schema::check(&mut client)?;
    let name = month::name(wanted);
    // A rehearsal without an effect, because a month that cannot be closed need not be verified.
    let mut rehearsal = client.transaction().map_err(ShipError::from)?;
    freeze(&mut rehearsal, &name, who)?;
    rehearsal.rollback().map_err(ShipError::from)?;
    let central = Central::open(address)?;
    if central.closing(wanted)?.is_none() {
        let verdicts = central.verify(Some(wanted))?;
        let differences: Vec<String> = verdicts.into_iter().flat_map(|verdict| verdict.differences).collect();
        if !differences.is_empty() {
            let differences = differences.join("; ");
            return Err(format!("{name} cannot be closed: it does not verify: {differences}").into());
        }
    }
    drop(central);
    freeze(&mut client, &name, who)?;
    // Nothing changes in the month from here on.
    let central = Central::open(address)?;
    let closing = central.closing(wanted)?.ok_or_else(|| format!("{name} is not closed"))?;
    if let Some((digest, document)) = closing.signed {
        return Ok(SignOff { month: wanted, digest: digest::hex(&digest), document });
    }
    let computed = central.compute(&closing, &HashMap::new(), &[])?;
    drop(central);
    computed.write(&mut client, wanted)?;
    Ok(SignOff { month: wanted, digest: digest::hex(&computed.digest), document: computed.document })
}

fn freeze(client: &mut impl postgres::GenericClient, month: &str, who: &str) -> Result<(), ShipError> {
    client.query_typed(
        "SELECT month FROM tokenmeter.close($1, $2)",
        &[(&month, Type::TEXT), (&who, Type::TEXT)],
    )?;
    Ok(())
}

impl Computed {
    /// Returns the files.
    pub(super) fn files(&self) -> impl Iterator<Item = &[u8; 16]> {
        self.files.keys()
    }

    /// Returns the digest of a file.
    pub(super) fn file(&self, file: &[u8; 16]) -> Option<&[u8]> {
        self.files.get(file).map(|file| &file.digest[..])
    }

    /// Writes the sign-off, unless another process did.
    fn write(&self, client: &mut Client, month: Month) -> Result<(), ShipError> {
        let mut transaction = client.transaction()?;
        let (digest, document) = (&self.digest[..], self.document.to_string());
        let previous = self.document["previous_digest"].as_str().unwrap_or_default();
        let signed = transaction.execute_typed(
            "UPDATE tokenmeter.closing SET digest = $2, previous = decode(nullif($3, ''), 'hex'), document = $4::text::jsonb \
             WHERE month = date '1970-01-01' + $1 AND digest IS NULL",
            &[(&month::first_day(month), Type::INT4), (&digest, Type::BYTEA), (&previous, Type::TEXT), (&document, Type::TEXT)],
        )?;
        if signed == 0 {
            return Ok(());
        }
        for (file, ComputedFile { digest, rows_since, parts }) in &self.files {
            let parts: Value = parts
                .iter()
                .map(|part| (part.table.to_owned(), json!([part.rows, digest::hex(&part.digest)])))
                .collect();
            transaction.execute_typed(
                "INSERT INTO tokenmeter.closed_file (instance, month, digest, rows_since, parts) \
                 VALUES ($1, date '1970-01-01' + $2, $3, date '1970-01-01' + $4, $5::text::jsonb)",
                &[
                    (&Id(*file), Type::UUID),
                    (&month::first_day(month), Type::INT4),
                    (&&digest[..], Type::BYTEA),
                    (&month::first_day(*rows_since), Type::INT4),
                    (&parts.to_string(), Type::TEXT),
                ],
            )?;
        }
        Ok(transaction.commit()?)
    }
}

impl Central {
    /// Returns the last closed month.
    pub(super) fn closed_until(&self) -> Result<Option<Month>, SourceError> {
        let mut last = None;
        let sql = "SELECT max(month) - date '1970-01-01' AS day FROM tokenmeter.closing";
        self.each(sql, &[], |row| {
            last = row.try_get::<_, Option<i32>>("day")?.map(month::of_day);
            Ok(())
        })?;
        Ok(last)
    }

    /// Returns a closed month.
    pub(super) fn closing(&self, wanted: Month) -> Result<Option<Closing>, SourceError> {
        let mut found = None;
        let sql = "SELECT closed_at, closed_by, role::text AS role, digest, document::text AS document \
                   FROM tokenmeter.closing WHERE month = date '1970-01-01' + $1";
        self.each(sql, &[(&month::first_day(wanted), Type::INT4)], |row| {
            let digest: Option<Vec<u8>> = row.try_get("digest")?;
            let document =
                row.try_get::<_, Option<&str>>("document")?.map(serde_json::from_str).transpose()?;
            found = Some(Closing {
                month: wanted,
                at_us: row.try_get::<_, Instant>("closed_at")?.0,
                who: row.try_get("closed_by")?,
                role: row.try_get("role")?,
                signed: digest.zip(document),
            });
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns the files of a closed month, as they were then.
    pub(super) fn closed_files(&self, wanted: Month) -> Result<HashMap<[u8; 16], ClosedFile>, SourceError> {
        let mut files = HashMap::new();
        let sql = "SELECT instance, digest, rows_since - date '1970-01-01' AS rows_since, parts::text AS parts \
                   FROM tokenmeter.closed_file WHERE month = date '1970-01-01' + $1";
        self.each(sql, &[(&month::first_day(wanted), Type::INT4)], |row| {
            let file = ClosedFile {
                digest: row.try_get("digest")?,
                rows_since: month::of_day(row.try_get("rows_since")?),
                parts: serde_json::from_str(row.try_get("parts")?)?,
            };
            files.insert(row.try_get::<_, Id>("instance")?.0, file);
            Ok(())
        })?;
        Ok(files)
    }

    /// Computes the sign-off of a closed month from the rows of its files. `signed`: the files as they were when the
    /// month was closed, whose parts replace those of rows that were `forgotten` since, by month.
    pub(super) fn compute(
        &self,
        closing: &Closing,
        signed: &HashMap<[u8; 16], ClosedFile>,
        forgotten: &[Month],
    ) -> Result<Computed, SourceError> {
        let wanted = closing.month;
        let (mut files, mut about) = (Vec::new(), Vec::new());
        let sql = "SELECT x.instance, x.host, x.late_of, x.is_central, x.ended, p.digest AS previous, \
                   coalesce((SELECT min(l.day) FROM tokenmeter.line l WHERE l.instance = x.instance AND l.class = 'usage'), \
                   x.month) - date '1970-01-01' AS rows_since \
                   FROM tokenmeter.file x \
                   LEFT JOIN tokenmeter.closed_file p ON p.instance = x.previous AND p.month < x.month \
                   WHERE x.month = date '1970-01-01' + $1 ORDER BY x.instance";
        self.each(sql, &[(&month::first_day(wanted), Type::INT4)], |row| {
            let file: Id = row.try_get("instance")?;
            let previous: Option<Vec<u8>> = row.try_get("previous")?;
            let previous = previous.and_then(|previous| Digest::try_from(previous).ok());
            let late_of: Option<Id> = row.try_get("late_of")?;
            let kind = match (late_of, row.try_get::<_, bool>("is_central")?) {
                (_, true) => "corrections made in the store".to_owned(),
                (Some(Id(of)), _) => format!("late rows of {}", uuid(&of)),
                (None, _) => "ledger file".to_owned(),
            };
            files.push(file);
            let described = json!({
                "instance": uuid(&file.0),
                "host": row.try_get::<_, &str>("host")?,
                "kind": kind,
                "is_shipped_to_its_end": late_of.is_some() || row.try_get("is_central")? || row.try_get("ended")?,
            });
            about.push((file.0, described, previous, month::of_day(row.try_get("rows_since")?)));
            Ok(())
        })?;
        let mut parts = self.parts(&files, closing.event())?;
        let (mut computed, mut digests, mut described) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
        for (file, mut about, previous, rows_since) in about {
            let mut parts = parts.remove(&file).unwrap_or_default();
            let signed = signed.get(&file);
            if let Some(signed) = signed {
                signed.replace_forgotten(wanted, forgotten, &mut parts);
            }
            // A file whose first row came after the month was closed has none here: all are late.
            let is_empty = parts.iter().all(|part| part.rows <= i64::from(part.table == "act"));
            if is_empty && closing.signed.is_some() && signed.is_none() {
                continue;
            }
            for part in &parts {
                *counts.entry(part.table).or_default() += part.rows;
            }
            let digest = digest::of_parts(wanted, previous.as_ref(), &parts);
            digests.insert(file, digest);
            about["digest"] = digest::hex(&digest).into();
            described.push(about);
            computed.insert(file, ComputedFile { digest, rows_since, parts });
        }
        let previous = self.previous_digest(wanted)?;
        let digest = digest::of_files(wanted, previous.as_ref(), &digests);
        let count = |table| counts.get(table).copied().unwrap_or_default();
        let mut document = json!({
            "month": month::name(wanted),
            "closed_at": utc(closing.at_us),
            "closed_by": closing.who,
            "role": closing.role,
            "digest": digest::hex(&digest),
            "previous_digest": previous.map(|previous| digest::hex(&previous)),
            "files": described,
            "rows": count("exchange"),
            "energy_rows": count("energy"),
            "correction_rows": count("correction"),
            "gaps": count("gap"),
        });
        if let (Some(document), Value::Object(sums)) =
            (document.as_object_mut(), self.month_sums(wanted)?.document())
        {
            document.extend(sums);
        }
        Ok(Computed { digest, document, files: computed })
    }

    /// Returns the digest of the last month closed before another.
    fn previous_digest(&self, wanted: Month) -> Result<Option<Digest>, SourceError> {
        let mut found = None;
        let sql = "SELECT digest, to_char(month, 'YYYY-MM') AS name FROM tokenmeter.closing \
                   WHERE month < date '1970-01-01' + $1 ORDER BY month DESC LIMIT 1";
        self.each(sql, &[(&month::first_day(wanted), Type::INT4)], |row| {
            let name: &str = row.try_get("name")?;
            let digest =
                row.try_get::<_, Option<Vec<u8>>>("digest")?.and_then(|digest| Digest::try_from(digest).ok());
            let missing = || {
                format!(
                    "the sign-off of {name} is not complete: run `tokenmeter ledger close {name}` again first"
                )
            };
            found = Some(digest.ok_or_else(missing)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// Returns the sums that are billed in a month.
    fn month_sums(&self, wanted: Month) -> Result<MonthSums, SourceError> {
        let mut sums = MonthSums::new(wanted);
        self.rates()?.iter().for_each(|rate| sums.rate(rate));
        let range = Range { since_us: i64::MIN, until_us: self.calendar.month_begin_us(wanted + 1) };
        self.daily_totals(&range, &mut |billed, line| {
            if billed == wanted {
                sums.add(line)?;
            }
            Ok(())
        })?;
        Ok(sums)
    }
}

impl ClosedFile {
    /// Replaces the parts of tables whose rows were deleted since by those of the sign-off.
    fn replace_forgotten(&self, of: Month, forgotten: &[Month], parts: &mut [PartDigest]) {
        if !forgotten.iter().any(|month| (self.rows_since..=of).contains(month)) {
            return;
        }
        for part in parts.iter_mut().filter(|part| matches!(part.table, "exchange" | "energy")) {
            let signed = &self.parts[part.table];
            let digest = signed[1].as_str().and_then(digest::from_hex);
            if let (Some(rows), Some(digest)) = (signed[0].as_i64(), digest) {
                *part = PartDigest { rows, digest, ..*part };
            }
        }
    }
}
