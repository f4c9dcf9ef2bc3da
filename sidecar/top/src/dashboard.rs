//! The state of the display: the last reading, and the user's choices.

use live::curve::{Curves, ModelCurves};
use live::{Now, Scope};

use crate::scope::ScopeName;
use crate::scopes::{MODELS, TENANTS};
use crate::trend::Trend;

/// The state of the display.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dashboard {
    /// The last reading.
    pub(crate) now: Now,
    /// The last curves.
    pub(crate) curves: Curves,
    /// The output rate of the scope.
    pub(crate) trend: Trend,
    /// The scope of the headline.
    pub(crate) scope: ScopeName,
    /// The section that the keys are for.
    pub(crate) section: Section,
    /// The choices in the table of models.
    pub(crate) models: TableView,
    /// Those in the table of tenants.
    pub(crate) tenants: TableView,
    /// The failure since the last reading, and seconds since then.
    pub(crate) failure: Option<(String, u64)>,
    /// True while the help is shown.
    pub(crate) help: bool,
    /// True if colours are used.
    pub(crate) colours: bool,
}

/// The user's choices in a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableView {
    /// The column that the rows are sorted by; `None` is the server's order.
    pub(crate) sort: Option<usize>,
    /// True if the lowest value is first.
    pub(crate) is_reversed: bool,
    /// The name of the selected row; `None` is the first.
    pub(crate) selected: Option<String>,
}

/// The sections, from top to bottom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Section {
    /// The models.
    #[default]
    Models,
    /// The tenants.
    Tenants,
    /// The degradation curve.
    Curve,
    /// The upstreams and their engines.
    Servers,
    /// The GPUs.
    Gpus,
    /// The meter's own cost.
    Meter,
}

impl Section {
    /// Every section, in order.
    pub(crate) const ALL: [Self; 6] =
        [Self::Models, Self::Tenants, Self::Curve, Self::Servers, Self::Gpus, Self::Meter];

    /// Returns the section `by` places further, around the end.
    pub(crate) fn next(self, by: usize) -> Self {
        Self::ALL[(self as usize + by) % Self::ALL.len()]
    }
}

impl TableView {
    /// Sorts by the next of `columns`; after the last one, in the server's order.
    fn sort_by_next(&mut self, columns: usize) {
        let next = self.sort.map_or(1, |column| column + 1);
        self.sort = (next < columns).then_some(next);
    }

    /// Returns the place of the selected row.
    pub(crate) fn position(&self, rows: &[&Scope]) -> usize {
        let name = self.selected.as_deref();
        name.and_then(|name| rows.iter().position(|row| row.name == name)).unwrap_or(0)
    }
}

impl Dashboard {
    /// Returns the scope of the headline; `None` if it is not listed.
    pub(crate) fn scoped(&self) -> Option<&Scope> {
        self.scope.find(&self.now)
    }

    /// Returns the curve of the scope's or the selected model, or the first one.
    pub(crate) fn curve(&self) -> Option<&ModelCurves> {
        let name = match &self.scope {
            ScopeName::Model(name) => Some(name),
            _ => self.models.selected.as_ref(),
        };
        let models = &self.curves.models;
        let named = name.and_then(|name| models.iter().find(|curve| curve.model == *name));
        match self.scope {
            ScopeName::Model(_) => named,
            _ => named.or(models.first()),
        }
    }

    /// Takes a reading.
    pub(crate) fn read(&mut self, now: Now) {
        self.failure = None;
        self.now = now;
        let scope = self.scope.find(&self.now);
        self.trend.push(self.now.at_unix_ms, scope);
    }

    /// Sorts the table of the section by its next column.
    pub(crate) fn sort(&mut self) {
        match self.section {
            Section::Models => self.models.sort_by_next(MODELS.len()),
            Section::Tenants => self.tenants.sort_by_next(TENANTS.len()),
            _ => {}
        }
    }

    /// Reverses the order of the section's table.
    pub(crate) fn reverse(&mut self) {
        if let Some(view) = self.view() {
            view.is_reversed = !view.is_reversed;
        }
    }

    /// Selects the row `by` places below the selected one.
    pub(crate) fn select(&mut self, by: isize) {
        let names: Vec<String> = self.rows(self.section).iter().map(|row| row.name.clone()).collect();
        let Some(view) = self.view() else { return };
        let at = names.iter().position(|name| Some(name) == view.selected.as_ref()).unwrap_or(0);
        let at = at.saturating_add_signed(by).min(names.len().saturating_sub(1));
        view.selected = names.into_iter().nth(at);
    }

    /// Shows the traffic of the selected row.
    pub(crate) fn enter(&mut self) {
        let rows = self.rows(self.section);
        let (view, scope): (_, fn(String) -> ScopeName) = match self.section {
            Section::Models => (&self.models, ScopeName::Model),
            Section::Tenants => (&self.tenants, ScopeName::Tenant),
            _ => return,
        };
        if let Some(row) = rows.get(view.position(&rows)) {
            self.scope = scope(row.name.clone());
        }
    }

    fn view(&mut self) -> Option<&mut TableView> {
        match self.section {
            Section::Models => Some(&mut self.models),
            Section::Tenants => Some(&mut self.tenants),
            _ => None,
        }
    }
}
