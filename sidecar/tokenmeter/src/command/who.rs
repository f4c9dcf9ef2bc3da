//! Who does what is written down: the name given, else that of this process's user.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::machine::Machine;

/// The name to write down.
pub(crate) fn named(given: Option<&str>, machine: &dyn Machine) -> String {
    let variable = |name: &str| machine.variable(name).filter(|text| !text.is_empty());
    let given = given.filter(|name| !name.is_empty()).map(str::to_owned);
    given.or_else(|| variable("USER")).or_else(|| variable("LOGNAME")).unwrap_or_else(of_this_process)
}

/// What the system calls this process's user; its number, if it has no name there.
fn of_this_process() -> String {
    let Ok(owner) = fs::metadata("/proc/self") else { return "unknown".to_owned() };
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    in_list(&users, owner.uid()).unwrap_or_else(|| format!("uid {}", owner.uid()))
}

/// The name of a user in the text of a `passwd` file.
fn in_list(users: &str, uid: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::{in_list, named};
    use crate::machine::Alone;

    #[test]
    fn the_name_given_counts_then_the_variables_then_the_system() {
        let machine = Alone(&[("USER", "alice"), ("LOGNAME", "bob")]);
        assert_eq!(named(Some("carol"), &machine), "carol");
        assert_eq!(named(Some(""), &machine), "alice");
        assert_eq!(named(None, &Alone(&[("USER", ""), ("LOGNAME", "bob")])), "bob");
        assert_ne!(named(None, &Alone(&[])), "unknown");
    }

    #[test]
    fn users_are_found_by_their_number() {
        let users = "root:x:0:0:root:/root:/bin/bash\nbroken\nmeter:x:1001:1001::/:/bin/false\n";
        assert_eq!(in_list(users, 0).as_deref(), Some("root"));
        assert_eq!(in_list(users, 1001).as_deref(), Some("meter"));
        assert_eq!(in_list(users, 7), None);
    }
}
