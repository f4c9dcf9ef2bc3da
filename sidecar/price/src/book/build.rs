//! Builds a book from drafts of its entries: reports contradictions between entries, hashes the
//! content and creates each rate once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use blake3::Hasher;
use origin::Diagnostic;
use text::Glob;

use crate::charge::Rate;
use crate::entry::{Entry, Models, Offer};
use crate::instant;
use crate::pattern;
use crate::prices::{Prices, identifying};
use crate::read::{self, Draft, PriceFile, Sheet};
use crate::warning::{Warning, WarningKind};

use super::{Book, Term};

pub(super) fn read(path: &str, text: &str) -> Result<(Book, Vec<Warning>), Vec<Diagnostic>> {
    let (mut file, mut warnings) = read::read(path, text)?;
    file.drafts.sort_by(|one, other| sort_key(one).cmp(&sort_key(other)));
    let until = terms(&file.drafts)?;
    let hash: Arc<str> = content_hash(&file).to_hex().as_str().into();
    let PriceFile { version, currency, tenants, response_models, drafts } = file;
    let mut entries = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let offer = |sheet: &Sheet| {
            let rate = |prices: &Prices| {
                let mut rate = Rate {
                    id: [0; 16],
                    version: Arc::clone(&version),
                    book: Arc::clone(&hash),
                    entry: Arc::clone(draft.models.text()),
                    tier: Arc::clone(&sheet.tier),
                    above_input_tokens: sheet.above,
                    currency,
                    per_token: prices.with_derived().0,
                    per_request: prices.per_request.unwrap_or(0),
                };
                rate.id = rate.identify();
                Arc::new(rate)
            };
            Offer {
                rate: rate(&sheet.prices),
                by_factor: sheet.by_factor.iter().map(rate).collect(),
                derived: sheet.prices.with_derived().1,
                marked: vec![OnceLock::new(); 1 + sheet.by_factor.len()],
            }
        };
        let (offers, combined) =
            (draft.sheets.iter().map(offer).collect(), draft.combined.iter().map(offer).collect());
        entries.push(Entry {
            line: draft.origin.line(),
            offers,
            combined,
            models: draft.models,
            aliases: draft.aliases,
            provider: draft.provider,
            upstream: draft.upstream,
            about: draft.about,
            from_us: draft.from_us,
            until_us: draft.until_us,
        });
    }
    let (names, patterns) = index(&entries, &until);
    warnings.extend(ambiguous(&entries, &patterns));
    warnings.extend(left_behind(&entries, &names));
    warnings.sort_by_key(|warning| warning.line);
    Ok((Book { version, hash, currency, tenants, response_models, entries, names, patterns }, warnings))
}

/// Returns the sort key of a draft: models, place, start and line.
fn sort_key(draft: &Draft) -> (&Models, Option<&str>, Option<&str>, i64, u64) {
    (&draft.models, draft.upstream.as_deref(), draft.provider.as_deref(), draft.from_us, draft.origin.line())
}

/// A name, alias or pattern at one place: is it a pattern, its text, the upstream, the provider.
type Spelling<'d> = (bool, &'d Arc<str>, Option<&'d str>, Option<&'d str>);

fn spellings(draft: &Draft) -> impl Iterator<Item = Spelling<'_>> {
    let is_pattern = matches!(draft.models, Models::Pattern(_));
    std::iter::once(draft.models.text())
        .chain(&draft.aliases)
        .map(move |text| (is_pattern, text, draft.upstream.as_deref(), draft.provider.as_deref()))
}

/// The end of each draft (by index) under each of its spellings, exclusive, in microseconds since 1970.
type Ends = HashMap<(usize, Arc<str>), i64>;

/// Returns the end of each spelling of each draft: the start of the next entry for it, or an earlier
/// `valid_until`. Two entries for one spelling from one instant contradict each other.
fn terms(drafts: &[Draft]) -> Result<Ends, Vec<Diagnostic>> {
    let mut lines: BTreeMap<Spelling<'_>, Vec<usize>> = BTreeMap::new();
    for (at, draft) in drafts.iter().enumerate() {
        for spelling in spellings(draft) {
            lines.entry(spelling).or_default().push(at);
        }
    }
    let mut until = HashMap::new();
    let mut errors = Vec::new();
    for ((_, text, ..), mut members) in lines {
        members.sort_by_key(|at| (drafts[*at].from_us, drafts[*at].origin.line()));
        for (position, at) in members.iter().enumerate() {
            let draft = &drafts[*at];
            let Some(next) = members.get(position + 1).map(|next| &drafts[*next]) else {
                until.insert((*at, Arc::clone(text)), draft.until_us.unwrap_or(i64::MAX));
                continue;
            };
            if next.from_us == draft.from_us {
                // They are sorted by line.
                let message = format!(
                    "`{text}` has prices already, on line {}, in force from the same instant",
                    draft.origin.line()
                );
                let remedy =
                    "remove one, give it another `valid_from`, or restrict one by `provider` or `upstream`";
                errors.push(Diagnostic::at(&next.origin, message, remedy));
            } else if let Some(end) = draft.until_us.filter(|end| *end > next.from_us) {
                let message = format!(
                    "`{text}` is in force until {}, but the prices on line {} begin {}",
                    instant::written(end),
                    next.origin.line(),
                    instant::written(next.from_us)
                );
                let remedy = "remove `valid_until`: prices end where the next begin";
                errors.push(Diagnostic::at(&draft.origin, message, remedy));
            }
            until.insert((*at, Arc::clone(text)), draft.until_us.unwrap_or(next.from_us).min(next.from_us));
        }
    }
    errors.sort_by_key(|problem| problem.line);
    errors.dedup();
    if errors.is_empty() { Ok(until) } else { Err(errors) }
}

type Index = (HashMap<Arc<str>, Vec<Term>>, Vec<(Glob, Term)>);

fn index(entries: &[Entry], until: &Ends) -> Index {
    let mut names: HashMap<Arc<str>, Vec<Term>> = HashMap::new();
    let mut patterns = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        for text in std::iter::once(entry.models.text()).chain(&entry.aliases) {
            let until_us = until.get(&(at, Arc::clone(text))).copied().unwrap_or(i64::MAX);
            let term = Term { entry: at, from_us: entry.from_us, until_us };
            match entry.models {
                Models::Name(_) => names.entry(Arc::clone(text)).or_default().push(term),
                Models::Pattern(_) => patterns.push((Glob::new(text), term)),
            }
        }
    }
    for terms in names.values_mut() {
        terms.sort_by_key(|term| std::cmp::Reverse(entries[term.entry].rank()));
    }
    // The sort is stable, and the entries are in the order of their patterns' text.
    patterns.sort_by_key(|(_, term): &(Glob, Term)| {
        let entry = &entries[term.entry];
        std::cmp::Reverse((entry.rank(), entry.literal_chars()))
    });
    (names, patterns)
}

/// Returns a warning for each pair of patterns that only alphabetical order ranks.
fn ambiguous(entries: &[Entry], patterns: &[(Glob, Term)]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (position, (_, first)) in patterns.iter().enumerate() {
        let one = &entries[first.entry];
        let others = patterns[position + 1..].iter();
        // Patterns are sorted by rank and literal characters, so equal ones are neighbours.
        for (_, second) in others.take_while(|(_, term)| {
            let other = &entries[term.entry];
            (other.rank(), other.literal_chars()) == (one.rank(), one.literal_chars())
        }) {
            let other = &entries[second.entry];
            let (text, rival) = (one.models.text(), other.models.text());
            let apart = |mine: &Option<Arc<str>>, theirs: &Option<Arc<str>>| mine != theirs;
            if text == rival
                || apart(&one.provider, &other.provider)
                || apart(&one.upstream, &other.upstream)
                || first.until_us <= second.from_us
                || second.until_us <= first.from_us
                || !pattern::overlap(text, rival)
            {
                continue;
            }
            warnings.push(Warning {
                line: other.line,
                kind: WarningKind::Ambiguous,
                message: format!(
                    "some names match both `{rival}` and `{text}` (line {}), which are equally specific; `{text}` applies",
                    one.line
                ),
            });
            if warnings.len() >= MAX_WARNINGS_PER_KIND {
                return warnings;
            }
        }
    }
    warnings
}

/// Returns a warning for each alias that keeps the prices of an entry after the entry's name got new ones, because
/// the next entry of the name does not repeat the alias.
fn left_behind(entries: &[Entry], names: &HashMap<Arc<str>, Vec<Term>>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let Models::Name(name) = &entry.models else { continue };
        let until_us =
            |text: &Arc<str>| names.get(text)?.iter().find(|term| term.entry == at).map(|term| term.until_us);
        let Some(end_us) = until_us(name) else { continue };
        let mut aliases =
            entry.aliases.iter().filter(|alias| until_us(alias).is_some_and(|until_us| until_us > end_us));
        let Some(first) = aliases.next() else { continue };
        // Aliases end with an entry that has no successor; only a successor at the same place leaves them behind.
        let next = names.get(name).into_iter().flatten().map(|term| &entries[term.entry]).find(|next| {
            (next.from_us, &next.upstream, &next.provider) == (end_us, &entry.upstream, &entry.provider)
        });
        let Some(next) = next else { continue };
        for alias in std::iter::once(first).chain(aliases) {
            warnings.push(Warning {
                line: entry.line,
                kind: WarningKind::LeftBehind,
                message: format!(
                    "the alias `{alias}` keeps these prices when `{name}` is charged by those on line {}, from {} on; \
                     repeat it there, or give it an entry of its own if it is to keep them",
                    next.line,
                    instant::written(next.from_us)
                ),
            });
            if warnings.len() >= MAX_WARNINGS_PER_KIND {
                return warnings;
            }
        }
    }
    warnings
}

/// Maximum warnings of one kind in one reading; after fixing some, the operator checks the file again.
const MAX_WARNINGS_PER_KIND: usize = 100;

/// Returns BLAKE3 over the meaning of the file; each part follows its length.
fn content_hash(file: &PriceFile) -> blake3::Hash {
    let mut hasher = Hasher::new();
    hash_text(&mut hasher, "tokenmeter price book 1");
    hash_text(&mut hasher, &file.version);
    hash_text(&mut hasher, file.currency.code());
    for draft in &file.drafts {
        hash_text(&mut hasher, if matches!(draft.models, Models::Name(_)) { "name" } else { "pattern" });
        hash_text(&mut hasher, draft.models.text());
        hash_number(&mut hasher, draft.aliases.len() as u64);
        draft.aliases.iter().for_each(|alias| hash_text(&mut hasher, alias));
        for restriction in [&draft.provider, &draft.upstream] {
            hash_text(&mut hasher, restriction.as_deref().unwrap_or_default());
        }
        hasher.update(&draft.from_us.to_le_bytes());
        hasher.update(&draft.until_us.unwrap_or(i64::MAX).to_le_bytes());
        hash_number(&mut hasher, draft.sheets.len() as u64);
        for sheet in &draft.sheets {
            hash_text(&mut hasher, &sheet.tier);
            hash_number(&mut hasher, sheet.above);
            let (per_token, _) = sheet.prices.with_derived();
            for (kind, price) in identifying(&per_token) {
                hash_text(&mut hasher, kind.name());
                hasher.update(&price.to_le_bytes());
            }
            hash_text(&mut hasher, "");
            hasher.update(&sheet.prices.per_request.unwrap_or(0).to_le_bytes());
        }
    }
    for place in file.response_models.iter().flatten() {
        hash_text(&mut hasher, "response_model");
        hash_text(&mut hasher, place);
    }
    // An empty list differs from none.
    if file.response_models.as_ref().is_some_and(Vec::is_empty) {
        hash_text(&mut hasher, "no response_model");
    }
    // A book without terms has the hash that it had before there were any.
    for term in file.tenants.all() {
        hash_text(&mut hasher, "tenant");
        hash_text(&mut hasher, term.tenants.text());
        hasher.update(&term.factor.billionths().to_le_bytes());
    }
    hasher.finalize()
}

fn hash_text(hasher: &mut Hasher, text: &str) {
    hash_number(hasher, text.len() as u64);
    hasher.update(text.as_bytes());
}

fn hash_number(hasher: &mut Hasher, number: u64) {
    hasher.update(&number.to_le_bytes());
}
