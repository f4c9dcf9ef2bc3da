//! Numbers of tokens that servers report at members of a usage that the meter does not read: a provider has changed its
//! answers, and the counts may lack something. The law: servers choose the names, so their number is limited.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use meter::Record;
use metrics::{Metric, SampleWriter, Samples};

/// The exchanges with such a member, by dialect and name.
#[derive(Debug, Default)]
pub(crate) struct UnknownCounts(Mutex<BTreeMap<&'static str, BTreeMap<Box<str>, u64>>>);

impl UnknownCounts {
    /// Counts the members of an exchange, and logs each new one.
    pub(crate) fn record(&self, record: &Record) {
        if record.unknown_counts.is_empty() {
            return;
        }
        let (dialect, upstream) = (record.identity.dialect.name(), &*record.identity.upstream);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_dialect = all.entry(dialect).or_default();
        for member in &record.unknown_counts {
            let is_named = of_dialect.contains_key(member.as_str()) || of_dialect.len() < NAMES_MAX;
            let member = if is_named { member.as_str() } else { OTHER };
            let exchanges = of_dialect.entry(member.into()).or_default();
            if *exchanges == 0 {
                tracing::warn!(
                    dialect,
                    upstream,
                    member,
                    "a server reports a number of tokens that is not read: its counts and costs may lack them"
                );
            }
            *exchanges += 1;
        }
    }

    /// Returns a sentence for each dialect with such members.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sentence = |(dialect, members): (&&str, &BTreeMap<Box<str>, u64>)| {
            let names: Vec<&str> = members.keys().take(SHOWN_MAX).map(|name| &**name).collect();
            let more = if members.len() > SHOWN_MAX { ", …" } else { "" };
            format!("{dialect}: servers report tokens that are not read ({}{more})", names.join(", "))
        };
        all.iter().map(sentence).collect()
    }
}

impl Samples for UnknownCounts {
    fn write(&self, to: &mut SampleWriter) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (dialect, members) in &*all {
            for (member, exchanges) in members {
                to.count(Metric::UnknownUsage, &[dialect, member], *exchanges);
            }
        }
    }
}

/// Names of one dialect; further ones are counted together.
const NAMES_MAX: usize = 32;

/// The name of the others.
const OTHER: &str = "_other";

/// Names in a sentence.
const SHOWN_MAX: usize = 4;
