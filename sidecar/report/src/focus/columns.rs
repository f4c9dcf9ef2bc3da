//! The table of columns: the versions that have each, and its value. FOCUS's own columns come first, in alphabetical
//! order, then tokenmeter's, which begin with `x_` as the specification requires.
//!
//! The names of the AI keys are those of the draft of 1.5, with the prefix `x_` until it is ratified.

use ledger::period;
use text::{Decimal, money};

use super::charge::{Charge, Kind};
use super::{Billing, Options, Version};

/// A column.
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The versions that have it.
    pub versions: &'static [Version],
    /// True if a cell may be empty.
    pub nullable: bool,
    /// The source of its value.
    pub from: &'static str,
    pub(super) value: fn(&Charge, &Options) -> String,
}

impl Column {
    pub(super) fn is_in(&self, version: Version) -> bool {
        self.versions.contains(&version)
    }
}

impl std::fmt::Debug for Column {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Column").field("name", &self.name).finish_non_exhaustive()
    }
}

const BOTH: &[Version] = &Version::ALL;
const OLD: &[Version] = &[Version::V1_2];
const NEW: &[Version] = &[Version::V1_4];
const NULL: bool = true;
const NEVER: bool = false;

macro_rules! columns {
    ($($name:ident, $versions:ident, $nullable:ident, $from:literal, $value:expr;)*) => {
        /// Every column.
        pub(super) static COLUMNS: &[Column] = &[$(Column {
            name: stringify!($name),
            versions: $versions,
            nullable: $nullable,
            from: $from,
            value: $value,
        }),*];
    };
}

columns! {
    BilledCost, BOTH, NEVER, "EffectiveCost if charged back, 0 if only shown", |charge, options| match options.billing {
        Billing::Showback => money(0).to_string(),
        Billing::Chargeback => money(charge.cost_pico).to_string(),
    };
    BillingAccountId, BOTH, NEVER, "--issuer", |_, options| options.issuer.clone();
    BillingAccountName, BOTH, NULL, "--issuer", |_, options| options.issuer.clone();
    BillingCurrency, BOTH, NEVER, "currency of the price book, or USD by GPU", |charge, _| charge.currency.code().to_owned();
    BillingPeriodEnd, BOTH, NEVER, "end of the month it is billed in", |charge, _| at(period::month_start_us(charge.billed + 1));
    BillingPeriodStart, BOTH, NEVER, "month it is billed in", |charge, _| at(period::month_start_us(charge.billed));
    ChargeCategory, BOTH, NEVER, "Usage; Adjustment for another price in an open month, and for `ledger adjust`", |charge, _| match charge.kind {
        Kind::Usage | Kind::Correction => "Usage".to_owned(),
        Kind::Adjustment | Kind::LateAdjustment => "Adjustment".to_owned(),
    };
    ChargeClass, BOTH, NULL, "Correction if the period was closed before it came", |charge, _| match charge.kind {
        Kind::Correction | Kind::LateAdjustment => "Correction".to_owned(),
        Kind::Usage | Kind::Adjustment => String::new(),
    };
    ChargeDescription, BOTH, NULL, "in words", |charge, _| charge.description.clone();
    ChargeFrequency, BOTH, NEVER, "always", |_, _| "Usage-Based".to_owned();
    ChargePeriodEnd, BOTH, NEVER, "end of the day or month it was used in", |charge, _| at(charge.period_us.1);
    ChargePeriodStart, BOTH, NEVER, "day or month it was used in", |charge, _| at(charge.period_us.0);
    ConsumedQuantity, BOTH, NULL, "tokens, requests, GPU hours, kWh", |charge, _| {
        charge.quantity.as_ref().map(|quantity| quantity.consumed.to_string()).unwrap_or_default()
    };
    ConsumedUnit, BOTH, NULL, "its unit", |charge, _| {
        charge.quantity.as_ref().map(|quantity| quantity.consumed_unit.to_owned()).unwrap_or_default()
    };
    ContractedCost, BOTH, NEVER, "as ListCost: the price book is the contract", |charge, _| money(charge.cost_pico).to_string();
    ContractedUnitPrice, BOTH, NULL, "as ListUnitPrice", unit_price;
    EffectiveCost, BOTH, NEVER, "charge by price, or by GPU", |charge, _| money(charge.cost_pico).to_string();
    HostProviderName, NEW, NULL, "--issuer: whose machines", |_, options| options.issuer.clone();
    InvoiceDetailId, NEW, NULL, "none: there is no invoice", |_, _| String::new();
    InvoiceId, BOTH, NULL, "none: there is no invoice", |_, _| String::new();
    InvoiceIssuerName, BOTH, NEVER, "--issuer", |_, options| options.issuer.clone();
    ListCost, BOTH, NEVER, "tokens times list price", |charge, _| money(charge.cost_pico).to_string();
    ListUnitPrice, BOTH, NULL, "price book, for one PricingUnit", unit_price;
    PricingCategory, BOTH, NULL, "always, of usage", |charge, _| {
        if charge.quantity.is_some() { "Standard".to_owned() } else { String::new() }
    };
    PricingQuantity, BOTH, NULL, "quantity in PricingUnits", |charge, _| {
        charge.quantity.as_ref().map(|quantity| quantity.priced.to_string()).unwrap_or_default()
    };
    PricingUnit, BOTH, NULL, "what the price is for", |charge, _| {
        charge.quantity.as_ref().map(|quantity| quantity.priced_unit.to_owned()).unwrap_or_default()
    };
    ProviderName, OLD, NEVER, "kind of the model's server, else the upstream's name", provider;
    PublisherName, OLD, NEVER, "kind of the model's server, else the upstream's name", provider;
    RegionId, BOTH, NULL, "none", |_, _| String::new();
    RegionName, BOTH, NULL, "none", |_, _| String::new();
    ResourceId, BOTH, NULL, "upstream, if asked for; __idle__ and __unattributed__", resource;
    ResourceName, BOTH, NULL, "as ResourceId", resource;
    ResourceType, BOTH, NULL, "Inference Server or GPU", |charge, _| {
        charge.resource.as_ref().map(|(_, kind)| (*kind).to_owned()).unwrap_or_default()
    };
    ServiceCategory, BOTH, NEVER, "always", |_, _| "AI and Machine Learning".to_owned();
    ServiceName, BOTH, NEVER, "--service", |_, options| options.service.clone();
    ServiceProviderName, NEW, NEVER, "kind of the model's server, else the upstream's name", provider;
    ServiceSubcategory, BOTH, NEVER, "always", |_, _| "Generative AI".to_owned();
    SkuId, BOTH, NULL, "model and kind of token", |charge, _| {
        charge.sku.as_ref().map(|sku| sku.id.clone()).unwrap_or_default()
    };
    SkuMeter, BOTH, NULL, "what is counted", |charge, _| {
        charge.sku.as_ref().map(|sku| sku.meter.to_owned()).unwrap_or_default()
    };
    SkuPriceDetails, BOTH, NULL, "model, direction, cache, tier", |charge, _| {
        charge.sku.as_ref().map(|sku| sku.details.clone()).unwrap_or_default()
    };
    SkuPriceId, BOTH, NULL, "SkuId, tier, prompt length and unit price: one for each price", |charge, _| {
        charge.sku.as_ref().map(|sku| sku.price_id.clone()).unwrap_or_default()
    };
    SubAccountId, BOTH, NULL, "tenant", tenant;
    SubAccountName, BOTH, NULL, "tenant", tenant;
    Tags, BOTH, NULL, "tenant", |charge, _| match &charge.tenant {
        Some(tenant) => serde_json::json!({ "tenant": tenant.as_ref() }).to_string(),
        None => String::new(),
    };
    x_ConsumerId, BOTH, NULL, "end user, if asked for", |charge, _| text(charge.consumer.as_deref());
    x_EnergyJoules, BOTH, NULL, "energy, on the first row of its exchanges", |charge, _| {
        charge.energy.map(|energy| energy.to_string()).unwrap_or_default()
    };
    x_LedgerDigest, BOTH, NULL, "digest under which the month was closed", |charge, _| text(charge.digest.as_deref());
    x_ModelId, BOTH, NULL, "model", |charge, _| text(charge.model.as_deref());
    x_PrincipalId, BOTH, NULL, "key or account, if asked for", |charge, _| text(charge.principal.as_deref());
    x_ReasoningTokens, BOTH, NULL, "reasoning tokens among the quantity", |charge, _| {
        charge.reasoning.map(|count| count.to_string()).unwrap_or_default()
    };
    x_RequestCount, BOTH, NULL, "exchanges, on the first row of theirs", |charge, _| {
        charge.requests.map(|count| count.to_string()).unwrap_or_default()
    };
    x_UsageSource, BOTH, NULL, "provenance of the quantity", |charge, _| charge.known.words();
}

fn at(us: i64) -> String {
    period::time(us)
}

fn text(text: Option<&str>) -> String {
    text.unwrap_or_default().to_owned()
}

fn unit_price(charge: &Charge, _: &Options) -> String {
    let price = charge.quantity.as_ref().and_then(|quantity| quantity.unit_price);
    price.as_ref().map(Decimal::to_string).unwrap_or_default()
}

fn provider(charge: &Charge, options: &Options) -> String {
    charge.provider.as_deref().unwrap_or(&options.issuer).to_owned()
}

fn resource(charge: &Charge, _: &Options) -> String {
    charge.resource.as_ref().map(|(id, _)| id.to_string()).unwrap_or_default()
}

fn tenant(charge: &Charge, _: &Options) -> String {
    text(charge.tenant.as_deref())
}
