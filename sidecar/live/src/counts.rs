//! The counts of a label since the start of the process, and their growth.

use meter::{Ending, TokenType};
use metrics::{BucketCounts, Metric, ModelSnapshot, TenantSnapshot};

/// The counts of a label, or their growth.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    /// Output tokens, counted while they arrive; for tenants, of exchanges that ended.
    pub(crate) output_tokens: u64,
    /// Prompt tokens, cached ones included.
    pub(crate) input_tokens: u64,
    /// Exchanges that ended.
    pub(crate) exchanges: u64,
    /// Exchanges that failed.
    pub(crate) errors: u64,
    /// Exchanges that the client left.
    pub(crate) aborts: u64,
    /// Cost by the price book.
    pub(crate) spend_pico: i128,
    /// The times of exchanges; `None` for tenants.
    pub(crate) times: Option<Times>,
}

/// The times of exchanges by bucket.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Times {
    pub(crate) first_token: BucketCounts,
    pub(crate) output_rate: BucketCounts,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            first_token: BucketCounts::empty(Metric::FirstToken),
            output_rate: BucketCounts::empty(Metric::OutputRate),
        }
    }
}

impl Counts {
    /// Returns the counts of a model.
    pub(crate) fn of_model(model: &ModelSnapshot) -> Self {
        let input = model.tokens.iter().map(input).fold(0, u64::saturating_add);
        Self {
            output_tokens: model.live_output_tokens,
            input_tokens: input,
            spend_pico: model.spend_pico.unwrap_or_default(),
            times: Some(Times {
                first_token: model.first_token.clone(),
                output_rate: model.output_rate.clone(),
            }),
            ..Self::ended(&model.endings)
        }
    }

    /// Returns the counts of a tenant.
    pub(crate) fn of_tenant(tenant: &TenantSnapshot) -> Self {
        Self {
            output_tokens: output(&tenant.tokens),
            input_tokens: input(&tenant.tokens),
            spend_pico: tenant.spend_pico.unwrap_or_default(),
            ..Self::ended(&tenant.endings)
        }
    }

    fn ended(endings: &[u64; Ending::ALL.len()]) -> Self {
        let sum = |which: fn(Ending) -> bool| {
            let endings = Ending::ALL.into_iter().zip(endings).filter(|(ending, _)| which(*ending));
            endings.map(|(_, n)| *n).fold(0, u64::saturating_add)
        };
        Self {
            exchanges: sum(|_| true),
            errors: sum(|ending| !ending.is_success() && ending != Ending::ClientAbort),
            aborts: sum(|ending| ending == Ending::ClientAbort),
            ..Self::default()
        }
    }

    /// Adds the counts of another label.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self { output_tokens, input_tokens, exchanges, errors, aborts, spend_pico, times } = self;
        for (mine, theirs) in [
            (output_tokens, other.output_tokens),
            (input_tokens, other.input_tokens),
            (exchanges, other.exchanges),
            (errors, other.errors),
            (aborts, other.aborts),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        *spend_pico = spend_pico.saturating_add(other.spend_pico);
        if let Some(theirs) = &other.times {
            times.get_or_insert_default().add(theirs);
        }
    }

    /// Returns the growth since earlier counts. A count that decreased did not grow.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            output_tokens: self.output_tokens.saturating_sub(earlier.output_tokens),
            input_tokens: self.input_tokens.saturating_sub(earlier.input_tokens),
            exchanges: self.exchanges.saturating_sub(earlier.exchanges),
            errors: self.errors.saturating_sub(earlier.errors),
            aborts: self.aborts.saturating_sub(earlier.aborts),
            spend_pico: self.spend_pico.saturating_sub(earlier.spend_pico).max(0),
            times: match (&self.times, &earlier.times) {
                (Some(now), Some(then)) => Some(now.since(then)),
                (now, _) => now.clone(),
            },
        }
    }
}

impl Times {
    /// Adds the times of others.
    pub(crate) fn add(&mut self, other: &Self) {
        self.first_token.add(&other.first_token);
        self.output_rate.add(&other.output_rate);
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            first_token: self.first_token.since(&earlier.first_token),
            output_rate: self.output_rate.since(&earlier.output_rate),
        }
    }
}

/// Returns the prompt tokens of all types.
pub(crate) fn input(types: &[u64; TokenType::ALL.len()]) -> u64 {
    sum(types, TokenType::is_input)
}

/// Returns the generated tokens of all types.
pub(crate) fn output(types: &[u64; TokenType::ALL.len()]) -> u64 {
    sum(types, |kind| !kind.is_input())
}

fn sum(types: &[u64; TokenType::ALL.len()], which: fn(TokenType) -> bool) -> u64 {
    let types = TokenType::ALL.into_iter().zip(types).filter(|(kind, _)| which(*kind));
    types.map(|(_, n)| *n).fold(0, u64::saturating_add)
}
