//! Reads the attributes file of tenants. A run does not use it, but an error in it prevents the start, so that reports
//! do not fail later.

use std::path::Path;

use origin::{Diagnostic, Diagnostics, Origin, content};
use report::Attributes;

use super::values::Reader;

/// The maximum size of an attributes file in bytes: a hundred thousand tenants.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

impl Reader<'_> {
    /// Reports the errors of the attributes file, if one is set.
    pub(super) fn check_attributes(&mut self) {
        let value = self.value("attributes");
        if !value.text.is_empty()
            && let Err(errors) = read(&value.text, &value.origin)
        {
            self.errors.extend(errors.0);
        }
    }
}

/// Reads the attributes file at `path`; `origin` is that of the setting.
pub(crate) fn read(path: &str, origin: &Origin) -> Result<Attributes, Diagnostics> {
    match content::bounded(Path::new(path), FILE_BYTES).and_then(content::text) {
        Ok(text) => Attributes::parse(path, &text),
        Err(error) => {
            let problem = format!("the attributes file {path} cannot be read: {error}");
            let remedy = "name a readable YAML file of at most 16 MiB";
            Err(Diagnostics(vec![Diagnostic::at(origin, problem, remedy)]))
        }
    }
}

#[cfg(test)]
mod tests {
    use origin::Origin;

    use super::read;
    use crate::folder::Folder;

    #[test]
    fn example_is_valid() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/attributes.yaml");
        let read = read(path, &Origin::Default).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read.entries().count(), 3);
    }

    #[test]
    fn unreadable_file_names_the_setting() {
        let folder = Folder::new("attributes");
        let path = folder.at("a.yaml").display().to_string();
        let error =
            read(&path, &Origin::Flag("--attributes".to_owned())).expect_err("it is absent").to_string();
        assert!(error.starts_with("--attributes: the attributes file") && error.contains(&path), "{error}");
        std::fs::write(&path, "tenants:\n- {tenant: a, owner: b}\n").unwrap();
        assert_eq!(read(&path, &Origin::Default).unwrap().entries().count(), 1);
        std::fs::write(&path, "tenants:\n- {tenat: a}\n").unwrap();
        let error = read(&path, &Origin::Default).expect_err("it is wrong").to_string();
        assert!(error.contains("a.yaml:2: an entry has no key `tenat`"), "{error}");
    }
}
