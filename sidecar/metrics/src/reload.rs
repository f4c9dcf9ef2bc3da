//! Counts of the files that are reloaded while the process runs. Invariant: a rejected file changes only these counts.

meter::listed_enum! {
    /// A file that is reloaded when it changes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ReloadedFile {
        /// The tenants file, or the hash key file its hashes need.
        Tenants = "tenants",
        /// The price book.
        Prices = "prices",
        /// Published keys, of a file or a URL.
        Keys = "keys",
        /// The certificate of a listener, with its key and the authorities of client certificates.
        Certificate = "certificate",
    }
    /// Returns the label value.
    pub fn name(self);
}

/// Label values of `outcome` of `tokenmeter_config_reloads_total`.
pub const RELOAD_OUTCOMES: [&str; 2] = ["loaded", "refused"];

/// The reads of each file, in the order of [`ReloadedFile::ALL`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reloads(pub(crate) [Reload; ReloadedFile::ALL.len()]);

/// The reads of one file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reload {
    /// True if the last read was accepted; `None` before the first.
    pub(crate) last: Option<bool>,
    /// In the order of [`RELOAD_OUTCOMES`].
    pub(crate) outcomes: [u64; RELOAD_OUTCOMES.len()],
}

impl Reloads {
    pub(crate) fn add(&mut self, file: ReloadedFile, accepted: bool) {
        let reload = &mut self.0[file as usize];
        reload.last = Some(accepted);
        reload.outcomes[usize::from(!accepted)] += 1;
    }
}
