//! The ways in which a server contradicts itself in its counts.

scan::listed_enum! {
    /// A contradiction in the counts of one exchange, the most important first. [`crate::Record::disagreement`] has the
    /// first that holds.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Disagreement {
        /// The total is the sum of no reading of the parts.
        Total = "total",
        /// A part exceeds its whole.
        Part = "part",
        /// The counts of successive usages fall, and do not add up to the last one.
        Sequence = "sequence",
        /// More cached tokens than the prompt has. SGLang's prefill and decode servers count the prefix twice.
        CachedExcess = "cached_excess",
    }
    /// The label value.
    pub fn name(self);
    /// Returns the disagreement with this name.
    pub fn from_name(&str);
}
