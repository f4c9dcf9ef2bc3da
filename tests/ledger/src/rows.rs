//! The rows of a scribe: each is a function of its place, so that an audit knows every one of them.

use std::sync::Arc;

use ledger::Row;
use meter::{ExchangeId, Provenance, TokenType, Tokens};
use price::{Charge, Currency, Rate, Unpriced};

/// The place of a row: the life of the scribe that wrote it, and the number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The life of the scribe, from 0.
    pub life: u32,
    /// The number of the row in that life, from 0.
    pub index: u32,
}

impl Place {
    /// The row's name, from which its place can be parsed.
    pub fn id(self, base_us: i64) -> ExchangeId {
        let chance = u128::from(self.life) << 32 | u128::from(self.index);
        ExchangeId::new(self.ended_us(base_us).unsigned_abs() * 1000, chance)
    }

    /// Parses the place from a name.
    pub fn of(id: [u8; 16]) -> Self {
        let low = u128::from_be_bytes(id) & ((1 << 62) - 1);
        let part = |value: u128| u32::try_from(value & u128::from(u32::MAX)).unwrap_or(u32::MAX);
        Self { life: part(low >> 32), index: part(low) }
    }

    /// Most rows end on the base's day, some on the day before.
    fn ended_us(self, base_us: i64) -> i64 {
        const DAY_US: i64 = 86_400_000_000;
        let before = if self.index % 97 == 96 { DAY_US } else { 0 };
        base_us + i64::from(self.index) - before
    }

    /// The row of this place.
    pub fn row(self, base_us: i64) -> Row {
        // Any distribution will do, as long as it is deterministic.
        let dice = (u64::from(self.life) << 32 | u64::from(self.index)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let pick = |shift: u32, below: u64| (dice >> shift) % below;
        let mut by_type = [0; TokenType::ALL.len()];
        by_type[TokenType::Input as usize] = pick(8, 5000);
        by_type[TokenType::InputCached as usize] = pick(20, 3000);
        by_type[TokenType::Output as usize] = pick(32, 1000);
        by_type[TokenType::OutputReasoning as usize] = pick(44, 300);
        let reported = pick(5, 10) > 0;
        let known = if reported { Provenance::Reported } else { Provenance::Running };
        let ended_us = self.ended_us(base_us);
        Row {
            id: self.id(base_us),
            started_us: ended_us - 1_000_000,
            ended_us,
            tenant: format!("tenant-{}", pick(50, 7)).into(),
            principal: (pick(53, 3) > 0).then(|| format!("key-{}", pick(55, 4)).into()),
            consumer: None,
            upstream: "chat".into(),
            provider: "vllm".into(),
            dialect: "openai_chat".into(),
            model: format!("model-{}", pick(57, 5)).into(),
            response_model: None,
            response_id: Some(format!("chatcmpl-{dice:016x}").into()),
            service_tier: None,
            ending: if reported { "complete" } else { "client_abort" }.into(),
            status: 200,
            streamed: true,
            tokens: Tokens { input_provenance: Provenance::Reported, output_provenance: known, by_type },
            duration_us: 1_000_000,
            first_token_us: Some(20_000),
            charge: charge(&by_type, pick(60, 8) == 0),
            trace: None,
            role: meter::Role::Whole,
            request_id: None,
            upstream_attempts: 1,
            cached_excess: 0,
            usage_disagreement: None,
            day: None,
        }
    }
}

fn charge(tokens: &[u64; TokenType::ALL.len()], unpriced: bool) -> Charge {
    if unpriced {
        return Charge::Unpriced(Unpriced::Model);
    }
    let rate = rate();
    let prices = rate.per_token.iter().map(|price| price.unwrap_or(0));
    let cost = tokens.iter().zip(prices).map(|(count, price)| count.cast_signed() * price).sum();
    Charge::Priced { rate, cost }
}

/// The one rate of all priced rows: odd numbers, so that a lost digit shows.
pub fn rate() -> Arc<Rate> {
    let mut per_token = [None; TokenType::ALL.len()];
    per_token[TokenType::Input as usize] = Some(2_500_001);
    per_token[TokenType::InputCached as usize] = Some(250_003);
    per_token[TokenType::Output as usize] = Some(10_000_007);
    per_token[TokenType::OutputReasoning as usize] = Some(10_000_009);
    Arc::new(Rate {
        id: *b"the scribe's one",
        version: "test".into(),
        book: "0".repeat(64).into(),
        entry: "model-*".into(),
        tier: "standard".into(),
        above_input_tokens: 0,
        currency: Currency::USD,
        per_token,
        per_request: 0,
    })
}
