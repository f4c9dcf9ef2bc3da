//! What a request says of the person or account it is made for. These are names and no content, but
//! they are nobody's business unless somebody asks: who wants none keeps none (law 11).

use crate::field::{Field, Fields};
use crate::limits::WANTED;
use crate::name::Name;

/// A member of a request that names somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Member {
    /// `user`, at the top (OpenAI's older name for it).
    User,
    /// `safety_identifier`, at the top.
    SafetyIdentifier,
    /// A member of `metadata`: OpenAI's are free, Anthropic's is `user_id`.
    Metadata(Box<str>),
}

/// The members that are wanted; made once, for all requests.
#[derive(Debug)]
pub struct Wanted {
    pub(super) fields: Fields,
    members: Box<[Member]>,
}

impl Wanted {
    /// Wants `members`: the first [`WANTED`] of them.
    pub fn new(members: impl IntoIterator<Item = Member>) -> Self {
        let members: Box<[Member]> = members.into_iter().take(WANTED).collect();
        let mut fields = super::fields();
        for (place, member) in (0..).zip(&members) {
            let field = Field::Wanted(place);
            match member {
                Member::User => fields.add_path(["user"], field),
                Member::SafetyIdentifier => fields.add_path(["safety_identifier"], field),
                Member::Metadata(key) => {
                    fields.add_path(["metadata"], Field::Metadata);
                    fields.add_path(["metadata", &**key], field);
                }
            }
        }
        Self { fields, members }
    }

    /// The members, in their order.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// No answer yet to any of them.
    pub(super) fn unsaid(&self) -> Box<[Name]> {
        self.members.iter().map(|_| Name::default()).collect()
    }

    /// Bit p: the member at place p is one of `metadata`.
    pub(super) fn metadata(&self) -> u32 {
        const { assert!(WANTED <= 32) };
        let bit = |(place, member)| u32::from(matches!(member, &Member::Metadata(_))) << place;
        (0..).zip(&self.members).map(bit).sum()
    }
}
