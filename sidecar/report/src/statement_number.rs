//! The number of a statement: month, tenant and the first digits of the sign-off's digest. It is also the name of the
//! statement's files, so it has no character with a meaning in a path or a shell, and `InvoiceId` in FOCUS.

use ledger::month;
use ledger::source::Month;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters of a tenant's name that stay as they are.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// Maximum characters of an encoded name; file systems allow 255 bytes of a file name.
const NAME_MAX_CHARS: usize = 120;

/// The digits of a digest in a number.
const DIGEST_DIGITS: usize = 8;

/// The word in the place of the digest, unless the month is closed.
const DRAFT: &str = "DRAFT";

/// Returns the number of the statement of a tenant's month. `digest`: that of the sign-off, in hexadecimal; `None`
/// unless the month is signed off.
pub fn statement_number(month: Month, tenant: &str, digest: Option<&str>) -> String {
    let digest = digest.map_or(DRAFT, |digest| digest.get(..DIGEST_DIGITS).unwrap_or(digest));
    format!("{}-{}-{digest}", month::name(month), encoded(tenant))
}

/// Returns a name percent-encoded. A long one is cut, and a hash of the whole keeps it different from others.
fn encoded(tenant: &str) -> String {
    let encoded = utf8_percent_encode(tenant, PLAIN).to_string();
    match encoded.get(..NAME_MAX_CHARS) {
        Some(cut) if encoded.len() > NAME_MAX_CHARS => {
            format!("{cut}~{}", &blake3::hash(tenant.as_bytes()).to_hex()[..DIGEST_DIGITS])
        }
        _ => encoded,
    }
}

#[cfg(test)]
mod tests {
    use super::statement_number;

    #[test]
    fn number_has_month_tenant_and_digest() {
        let closed = Some("0123456789abcdef");
        for (tenant, digest, expected) in [
            ("acme", closed, "2026-10-acme-01234567"),
            ("acme", None, "2026-10-acme-DRAFT"),
            ("../a b", closed, "2026-10-..%2Fa%20b-01234567"),
            ("ü\u{202e}", closed, "2026-10-%C3%BC%E2%80%AE-01234567"),
            ("", closed, "2026-10--01234567"),
        ] {
            assert_eq!(statement_number(681, tenant, digest), expected);
        }
    }

    #[test]
    fn long_names_are_cut_and_stay_different() {
        let long = |last: char| format!("{}{last}", "é".repeat(500));
        let [one, two] = ['a', 'b'].map(|last| statement_number(681, &long(last), None));
        assert!(one.len() < 160 && one != two, "{one} {two}");
    }
}
