//! The traffic that is shown: all, or that of one model or tenant.

use live::{Now, Scope};

/// The name of a scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ScopeName {
    /// All traffic.
    #[default]
    All,
    /// That of a model.
    Model(String),
    /// That of a tenant.
    Tenant(String),
}

impl ScopeName {
    /// Returns the scope in a reading; `None` if it is not listed.
    pub(crate) fn find<'n>(&self, now: &'n Now) -> Option<&'n Scope> {
        match self {
            Self::All => Some(&now.all),
            Self::Model(name) => now.models.iter().find(|scope| scope.name == *name),
            Self::Tenant(name) => now.tenants.iter().find(|scope| scope.name == *name),
        }
    }

    /// Returns the value of the parameter `scope` of `/api/history`, percent-encoded.
    pub(crate) fn query(&self) -> String {
        let (kind, name) = match self {
            Self::All => return "all".to_owned(),
            Self::Model(name) => ("model", name),
            Self::Tenant(name) => ("tenant", name),
        };
        let mut query = format!("{kind}:");
        for byte in name.bytes() {
            match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                true => query.push(byte.into()),
                false => query.push_str(&format!("%{byte:02X}")),
            }
        }
        query
    }
}

#[cfg(test)]
mod tests {
    use super::ScopeName;

    #[test]
    fn query_is_percent_encoded() {
        assert_eq!(ScopeName::All.query(), "all");
        assert_eq!(ScopeName::Model("qwen3-8b_A.~".into()).query(), "model:qwen3-8b_A.~");
        assert_eq!(ScopeName::Tenant("a b&c=%\n/ü".into()).query(), "tenant:a%20b%26c%3D%25%0A%2F%C3%BC");
    }
}
