//! Order statistics of the measurements.

/// The value below which a share of the values lies. `None` if there are none.
pub(crate) fn of<T: Copy + PartialOrd>(values: &mut [T], share: f64) -> Option<T> {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let last = values.len().checked_sub(1)?;
    values.get((last as f64 * share).round() as usize).copied()
}
