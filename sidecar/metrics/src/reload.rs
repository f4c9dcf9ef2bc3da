//! Files that are read again while the process runs. The law: a file that is refused changes nothing
//! but these numbers.

/// A file that is read again when it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadedFile {
    /// The rules that say whose a request is.
    Tenants,
    /// The price book.
    Prices,
    /// The keys that tokens are verified by.
    Keys,
}

impl ReloadedFile {
    /// Every file.
    pub const ALL: [Self; 3] = [Self::Tenants, Self::Prices, Self::Keys];

    /// The label value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tenants => "tenants",
            Self::Prices => "prices",
            Self::Keys => "keys",
        }
    }
}

/// Label values of `outcome` of `tokenmeter_config_reloads_total`.
pub const RELOAD_OUTCOMES: [&str; 2] = ["loaded", "refused"];

/// How often each file was read; in the order of [`ReloadedFile::ALL`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reloads(pub(crate) [Reload; ReloadedFile::ALL.len()]);

/// How often one file was read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reload {
    /// Whether it was taken the last time; `None` before the first.
    pub(crate) last: Option<bool>,
    /// In the order of [`RELOAD_OUTCOMES`].
    pub(crate) outcomes: [u64; RELOAD_OUTCOMES.len()],
}

impl Reloads {
    pub(crate) fn add(&mut self, file: ReloadedFile, taken: bool) {
        let reload = &mut self.0[file as usize];
        reload.last = Some(taken);
        reload.outcomes[usize::from(!taken)] += 1;
    }
}
