//! The members of a request that identify its end user or account. They are kept only if the operator
//! configures them (law 11).

use crate::field::{Field, Fields};
use crate::limits::MAX_SELECTED_MEMBERS;
use crate::name::Name;

/// A member of a request that identifies a person or account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Member {
    /// `user`, at the top level (OpenAI's older name).
    User,
    /// `safety_identifier`, at the top level.
    SafetyIdentifier,
    /// A member of `metadata`: OpenAI's are free, Anthropic's is `user_id`.
    Metadata(Box<str>),
}

/// The configured members, built once for all requests.
#[derive(Debug)]
pub struct SelectedMembers {
    pub(super) fields: Fields,
    members: Box<[Member]>,
}

impl SelectedMembers {
    /// Selects the first [`MAX_SELECTED_MEMBERS`] of `members`.
    pub fn new(members: impl IntoIterator<Item = Member>) -> Self {
        let members: Box<[Member]> = members.into_iter().take(MAX_SELECTED_MEMBERS).collect();
        let mut fields = super::fields();
        for (place, member) in (0..).zip(&members) {
            let field = Field::Selected(place);
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

    /// An empty value for each of them.
    pub(super) fn empty_values(&self) -> Box<[Name]> {
        self.members.iter().map(|_| Name::default()).collect()
    }

    /// Bit p: the member at index p is one of `metadata`.
    pub(super) fn metadata(&self) -> u32 {
        const { assert!(MAX_SELECTED_MEMBERS <= 32) };
        let bit = |(place, member)| u32::from(matches!(member, &Member::Metadata(_))) << place;
        (0..).zip(&self.members).map(bit).sum()
    }
}
