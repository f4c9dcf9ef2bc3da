//! Members of a usage object that no path names: their numbers of tokens are reported by the name of the member.

use crate::field::{says_answer, says_tokens};
use crate::limits::UNKNOWN_NAME_BYTES;
use crate::name::MemberName;
use crate::short::Short;

/// The member that contains the current value.
#[derive(Debug, Default)]
pub(crate) struct UnknownMember {
    /// The name of the outermost one: of the usage itself, or of one of its known objects.
    name: Short<UNKNOWN_NAME_BYTES>,
    /// True if that name says that it holds numbers of tokens.
    is_named: bool,
    /// True if the current value may be such a number.
    is_tokens: bool,
}

impl UnknownMember {
    /// Begins a member, which may be in an outer one.
    pub(crate) fn begin(&mut self, name: &[u8], is_nested: bool, is_tokens: bool) {
        self.is_tokens = is_tokens || says_tokens(name);
        if is_nested {
            self.is_tokens |= self.is_named;
        } else {
            self.name = Short::of(name);
            self.is_named = self.is_tokens;
        }
    }

    /// Returns true if the outermost name says that the model generated the tokens.
    pub(crate) fn is_of_answer(&self) -> bool {
        says_answer(self.name.word())
    }

    /// Returns the name by which a number of tokens in it is reported; `None` for another number.
    pub(crate) fn name(&self) -> Option<MemberName> {
        let name = if self.name.cut { b"" } else { self.name.word() };
        self.is_tokens.then(|| MemberName::of(name))
    }
}
