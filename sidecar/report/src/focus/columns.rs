//! The table of columns: the versions that have each, and its value. FOCUS's own columns come first, in alphabetical
//! order, then tokenmeter's, which begin with `x_` as the specification requires.
//!
//! The names of the AI keys are those of the draft of 1.5, with the prefix `x_` until it is ratified.

use ledger::period;
use text::{Decimal, money};

use super::charge::{Charge, Kind, Split};
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

const ALL: &[Version] = &Version::ALL;
const UNTIL_1_3: &[Version] = &[Version::V1_2, Version::V1_3];
const SINCE_1_3: &[Version] = &[Version::V1_3, Version::V1_4];
const SINCE_1_4: &[Version] = &[Version::V1_4];
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
    AllocatedMethodDetails, SINCE_1_3, NULL, "share of the idle GPU cost", |charge, _| {
        charge.split.as_ref().map(Split::details).unwrap_or_default()
    };
    AllocatedMethodId, SINCE_1_3, NULL, "--idle", |charge, _| {
        charge.split.as_ref().map(|split| split.method.to_owned()).unwrap_or_default()
    };
    AllocatedResourceId, SINCE_1_3, NULL, "tenant that idle GPU cost is allocated to", allocated_tenant;
    AllocatedResourceName, SINCE_1_3, NULL, "as AllocatedResourceId", allocated_tenant;
    AllocatedTags, SINCE_1_3, NULL, "tags of that tenant", |charge, _| {
        if charge.split.is_some() { tags(charge) } else { String::new() }
    };
    BilledCost, ALL, NEVER, "EffectiveCost if charged back, 0 if only shown", |charge, options| match options.billing {
        Billing::Showback => money(0).to_string(),
        Billing::Chargeback => money(charge.cost_pico).to_string(),
    };
    BillingAccountId, ALL, NEVER, "--issuer", |_, options| options.issuer.clone();
    BillingAccountName, ALL, NULL, "--issuer", |_, options| options.issuer.clone();
    BillingCurrency, ALL, NEVER, "currency of the price book, or USD by GPU", |charge, _| charge.currency.code().to_owned();
    BillingPeriodEnd, ALL, NEVER, "end of the month it is billed in", |charge, _| at(charge.billing.until_us);
    BillingPeriodStart, ALL, NEVER, "month it is billed in", |charge, _| at(charge.billing.since_us);
    ChargeCategory, ALL, NEVER, "Usage; Adjustment for another price in an open month, and for `ledger adjust`", |charge, _| match charge.kind {
        Kind::Usage | Kind::Correction => "Usage".to_owned(),
        Kind::Adjustment | Kind::LateAdjustment => "Adjustment".to_owned(),
    };
    ChargeClass, ALL, NULL, "Correction if the period was closed before it came", |charge, _| match charge.kind {
        Kind::Correction | Kind::LateAdjustment => "Correction".to_owned(),
        Kind::Usage | Kind::Adjustment => String::new(),
    };
    ChargeDescription, ALL, NULL, "in words", |charge, _| charge.description.clone();
    ChargeFrequency, ALL, NEVER, "always", |_, _| "Usage-Based".to_owned();
    ChargePeriodEnd, ALL, NEVER, "end of the day or month it was used in", |charge, _| at(charge.period_us.1);
    ChargePeriodStart, ALL, NEVER, "day or month it was used in", |charge, _| at(charge.period_us.0);
    ConsumedQuantity, ALL, NULL, "tokens, requests, GPU hours, kWh", |charge, _| {
        charge.quantity.as_ref().map(|quantity| quantity.consumed.to_string()).unwrap_or_default()
    };
    ConsumedUnit, ALL, NULL, "its unit", |charge, _| {
        charge.quantity.as_ref().map(|quantity| quantity.consumed_unit.to_owned()).unwrap_or_default()
    };
    ContractedCost, ALL, NEVER, "as ListCost: the price book is the contract", |charge, _| money(charge.cost_pico).to_string();
    ContractedUnitPrice, ALL, NULL, "as ListUnitPrice", unit_price;
    EffectiveCost, ALL, NEVER, "charge by price, or by GPU", |charge, _| money(charge.cost_pico).to_string();
    HostProviderName, SINCE_1_3, NULL, "--issuer: whose machines", |_, options| options.issuer.clone();
    InvoiceDetailId, SINCE_1_4, NULL, "none: lines of a statement have no numbers", |_, _| String::new();
    InvoiceId, ALL, NULL, "number of the tenant's statement of a closed month, if charged back", |charge, options| match options.billing {
        Billing::Showback => String::new(),
        Billing::Chargeback => text(charge.statement.as_deref()),
    };
    InvoiceIssuerName, ALL, NEVER, "--issuer", |_, options| options.issuer.clone();
    ListCost, ALL, NEVER, "tokens times list price", |charge, _| money(charge.cost_pico).to_string();
    ListUnitPrice, ALL, NULL, "price book, for one PricingUnit", unit_price;
    PricingCategory, ALL, NULL, "always, of usage", |charge, _| {
        if charge.quantity.is_some() { "Standard".to_owned() } else { String::new() }
    };
    PricingQuantity, ALL, NULL, "quantity in PricingUnits", |charge, _| {
        charge.quantity.as_ref().map(|quantity| quantity.priced.to_string()).unwrap_or_default()
    };
    PricingUnit, ALL, NULL, "what the price is for", |charge, _| {
        charge.quantity.as_ref().map(|quantity| quantity.priced_unit.to_owned()).unwrap_or_default()
    };
    ProviderName, UNTIL_1_3, NEVER, "kind of the model's server, else the upstream's name", provider;
    PublisherName, UNTIL_1_3, NEVER, "kind of the model's server, else --issuer", |charge, options| {
        charge.publisher.as_deref().unwrap_or(&options.issuer).to_owned()
    };
    RegionId, ALL, NULL, "none", |_, _| String::new();
    RegionName, ALL, NULL, "none", |_, _| String::new();
    ResourceId, ALL, NULL, "upstream, if asked for; __idle__ and __unattributed__", resource;
    ResourceName, ALL, NULL, "as ResourceId", resource;
    ResourceType, ALL, NULL, "Inference Server or GPU", |charge, _| {
        charge.resource.as_ref().map(|(_, kind)| (*kind).to_owned()).unwrap_or_default()
    };
    ServiceCategory, ALL, NEVER, "always", |_, _| "AI and Machine Learning".to_owned();
    ServiceName, ALL, NEVER, "--service", |_, options| options.service.clone();
    ServiceProviderName, SINCE_1_3, NEVER, "kind of the model's server, else the upstream's name", provider;
    ServiceSubcategory, ALL, NEVER, "always", |_, _| "Generative AI".to_owned();
    SkuId, ALL, NULL, "model and kind of token", |charge, _| {
        charge.sku.as_ref().map(|sku| sku.id.clone()).unwrap_or_default()
    };
    SkuMeter, ALL, NULL, "what is counted", |charge, _| {
        charge.sku.as_ref().map(|sku| sku.meter.to_owned()).unwrap_or_default()
    };
    SkuPriceDetails, ALL, NULL, "model, direction, cache, tier", |charge, _| {
        charge.sku.as_ref().map(|sku| sku.details.clone()).unwrap_or_default()
    };
    SkuPriceId, ALL, NULL, "SkuId, tier, prompt length and unit price: one for each price", |charge, _| {
        charge.sku.as_ref().map(|sku| sku.price_id.clone()).unwrap_or_default()
    };
    SubAccountId, ALL, NULL, "tenant", tenant;
    SubAccountName, ALL, NULL, "tenant", tenant;
    Tags, ALL, NULL, "tenant and its attributes", |charge, options| {
        if is_of_origin(charge, options) { String::new() } else { tags(charge) }
    };
    x_ConsumerId, ALL, NULL, "end user, if asked for", |charge, _| text(charge.consumer.as_deref());
    x_EnergyJoules, ALL, NULL, "energy, on the first row of its exchanges", |charge, _| {
        charge.energy.map(|energy| energy.to_string()).unwrap_or_default()
    };
    x_LedgerDigest, ALL, NULL, "digest under which the month was closed", |charge, _| text(charge.digest.as_deref());
    x_ModelId, ALL, NULL, "model", |charge, _| text(charge.model.as_deref());
    x_PrincipalId, ALL, NULL, "key or account, if asked for", |charge, _| text(charge.principal.as_deref());
    x_ReasoningTokens, ALL, NULL, "reasoning tokens among the quantity", |charge, _| {
        charge.reasoning.map(|count| count.to_string()).unwrap_or_default()
    };
    x_RequestCount, ALL, NULL, "exchanges, on the first row of theirs", |charge, _| {
        charge.requests.map(|count| count.to_string()).unwrap_or_default()
    };
    x_UsageSource, ALL, NULL, "provenance of the quantity", |charge, _| charge.known.words();
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

fn tenant(charge: &Charge, options: &Options) -> String {
    if is_of_origin(charge, options) { String::new() } else { text(charge.tenant.as_deref()) }
}

fn allocated_tenant(charge: &Charge, _: &Options) -> String {
    text(charge.split.as_ref().and(charge.tenant.as_deref()))
}

/// Returns true for allocated cost in a version that has columns for it: the others are those of the origin, which is
/// of no tenant.
fn is_of_origin(charge: &Charge, options: &Options) -> bool {
    charge.split.is_some() && options.version >= Version::V1_3
}

/// Returns the tenant and its attributes as JSON.
fn tags(charge: &Charge) -> String {
    let Some(tenant) = charge.tenant.as_deref() else { return String::new() };
    let named = charge.attributes.iter().flat_map(|attributes| attributes.named());
    let tags = [("tenant", tenant)].into_iter().chain(named);
    serde_json::Value::Object(tags.map(|(name, value)| (name.to_owned(), value.into())).collect()).to_string()
}
