//! Rows like those of traffic, by number: the same number gives the same row. A hundred tenants with two keys each,
//! some of which send many more requests than others, mostly for three of ten models; the client cuts one of twenty
//! exchanges, and one of fifty fails.

use std::sync::Arc;

use ledger::Row;
use meter::{ExchangeId, Provenance, TokenType, Tokens};
use price::{Charge, Currency, Rate};

/// Tenants.
pub(crate) const TENANTS: usize = 100;
/// Models.
pub(crate) const MODELS: usize = 10;

/// The values common to all rows.
pub(crate) struct Traffic {
    tenants: Vec<(Arc<str>, [Arc<str>; 2])>,
    models: Vec<(Arc<str>, Arc<Rate>)>,
    upstream: Arc<str>,
    provider: Arc<str>,
}

impl Traffic {
    pub(crate) fn new() -> Self {
        let tenant = |n: usize| {
            let key = |which: u64| {
                format!("{:016x}{:016x}", mixed(n as u64), mixed(n as u64 + 1000 * (which + 1))).into()
            };
            (format!("team-{n:03}").into(), [key(0), key(1)])
        };
        let models = ["llama-3.3-70b", "qwen3-8b", "qwen3-32b", "mistral-small-3.2", "deepseek-v3.1"];
        let model = |n: usize| {
            let name: Arc<str> = match n / models.len() {
                0 => models[n % models.len()].into(),
                more => format!("{}-v{}", models[n % models.len()], more + 1).into(),
            };
            (Arc::clone(&name), Arc::new(rate(name, n as i64)))
        };
        Self {
            tenants: (0..TENANTS).map(tenant).collect(),
            models: (0..MODELS).map(model).collect(),
            upstream: "default".into(),
            provider: "vllm".into(),
        }
    }

    /// The row of a number, with this end. It allocates as much as in a proxy.
    pub(crate) fn row(&self, number: u64, ended_us: i64) -> Row {
        let chance = mixed(number);
        let (one, two) = (share(chance), share(mixed(chance)));
        let mut bits = mixed(mixed(chance));
        let mut draw = |below: u64| {
            let drawn = bits % below;
            bits /= below;
            drawn
        };
        // Squared, so that the first tenants send ten times as many requests as the last.
        let who = (one * one * TENANTS as f64) as usize % TENANTS;
        let own = [0, 0, 0, 0, 0, 3, 3, 7][(two * 8.0) as usize % 8];
        let stray = draw(20) == 0;
        let which = (who + own + if stray { draw(10) as usize } else { 0 }) % MODELS;
        let (tenant, keys) = &self.tenants[who];
        let (model, rate) = &self.models[which];
        let fate = draw(100);
        let (ending, status) = match fate {
            0..5 => ("client_abort", 200),
            5..7 => ("error_status", 503),
            _ => ("complete", 200),
        };
        let mut by_type = [0; TokenType::ALL.len()];
        if status == 200 {
            by_type[TokenType::Input as usize] = 20 + draw(4000);
            by_type[TokenType::InputCached as usize] = draw(3) * 512;
            by_type[TokenType::Output as usize] = 1 + draw(900);
        }
        let cut = fate < 5;
        let cost = rate.cost(&by_type, status == 200).unwrap_or_default();
        let duration_us = 200_000 + (chance % 8_000_000) as i64;
        let started_us = ended_us - duration_us;
        Row {
            id: ExchangeId::new(
                started_us.unsigned_abs() * 1000,
                (u128::from(chance) << 64) | u128::from(mixed(chance ^ 1)),
            ),
            started_us,
            ended_us,
            tenant: Arc::clone(tenant),
            principal: Some(Arc::clone(&keys[usize::from(chance.is_multiple_of(5))])),
            consumer: chance
                .is_multiple_of(2)
                .then(|| format!("{chance:016x}{:016x}", mixed(chance ^ 2)).into()),
            upstream: Arc::clone(&self.upstream),
            provider: Arc::clone(&self.provider),
            dialect: "openai_chat".into(),
            model: Arc::clone(model),
            response_model: Some(Arc::clone(model)),
            response_id: (status == 200)
                .then(|| format!("chatcmpl-{chance:016x}{:016x}", mixed(chance ^ 3)).into()),
            service_tier: None,
            ending: ending.into(),
            status,
            streamed: !chance.is_multiple_of(4),
            tokens: Tokens {
                by_type,
                input_provenance: Provenance::Reported,
                output_provenance: if cut { Provenance::Frames } else { Provenance::Reported },
            },
            duration_us,
            first_token_us: (status == 200).then_some(duration_us / 8),
            charge: Charge::Priced { rate: Arc::clone(rate), cost },
            trace: chance.is_multiple_of(3).then(|| u128::from(mixed(chance ^ 4)).to_be_bytes()),
            role: meter::Role::Whole,
            request_id: None,
            upstream_attempts: 1,
            cached_excess: 0,
            usage_disagreement: None,
            day: None,
        }
    }
}

fn rate(entry: Arc<str>, n: i64) -> Rate {
    let mut per_token = [None; TokenType::ALL.len()];
    per_token[TokenType::Input as usize] = Some(100_000 + n * 10_000);
    per_token[TokenType::InputCached as usize] = Some(25_000);
    per_token[TokenType::Output as usize] = Some(400_000 + n * 30_000);
    let mut rate = Rate {
        id: [0; 16],
        version: "bench".into(),
        book: "0000000000000000".into(),
        entry,
        tier: "standard".into(),
        above_input_tokens: 0,
        currency: Currency::USD,
        per_token,
        per_request: 0,
    };
    rate.id = rate.identify();
    rate
}

/// A number with pseudo-random bits (SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn share(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}
