//! The operator's name for sign-offs and the audit trail: the name given, else that of the process' user.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::plan::machine::Machine;

/// Returns the operator's name.
pub(crate) fn name(given: Option<&str>, machine: &dyn Machine) -> String {
    let variable = |name: &str| machine.variable(name).filter(|text| !text.is_empty());
    let given = given.filter(|name| !name.is_empty()).map(str::to_owned);
    given.or_else(|| variable("USER")).or_else(|| variable("LOGNAME")).unwrap_or_else(process_user)
}

/// Returns the name of the process' user, or its uid if it has none.
fn process_user() -> String {
    let Ok(owner) = fs::metadata("/proc/self") else { return "unknown".to_owned() };
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    find_user(&users, owner.uid()).unwrap_or_else(|| format!("uid {}", owner.uid()))
}

/// Returns the name of a user from the text of a `passwd` file.
fn find_user(users: &str, uid: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::{find_user, name};
    use crate::plan::machine::Alone;

    #[test]
    fn given_name_precedes_variables_and_system() {
        let machine = Alone(&[("USER", "alice"), ("LOGNAME", "bob")]);
        assert_eq!(name(Some("carol"), &machine), "carol");
        assert_eq!(name(Some(""), &machine), "alice");
        assert_eq!(name(None, &Alone(&[("USER", ""), ("LOGNAME", "bob")])), "bob");
        assert_ne!(name(None, &Alone(&[])), "unknown");
    }

    #[test]
    fn users_are_found_by_uid() {
        let users = "root:x:0:0:root:/root:/bin/bash\nbroken\nmeter:x:1001:1001::/:/bin/false\n";
        assert_eq!(find_user(users, 0).as_deref(), Some("root"));
        assert_eq!(find_user(users, 1001).as_deref(), Some("meter"));
        assert_eq!(find_user(users, 7), None);
    }
}
