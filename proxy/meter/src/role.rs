//! The role of an exchange in its request: all of it, or one leg where prefill and decode run on two
//! servers.

scan::listed_enum! {
    /// The role of an exchange in its request.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Role {
        /// The whole request: prefill and decode.
        #[default]
        Whole = "whole",
        /// The prefill leg: it computes the prompt, and the decode leg answers. The decode leg counts and pays
        /// for its tokens.
        Prefill = "prefill",
        /// The decode leg: it takes the computed prompt from another server and generates the answer.
        Decode = "decode",
    }
    /// The label value.
    pub fn name(self);
}

impl Role {
    /// Returns false for a prefill leg: its decode leg has the same prompt again, and is counted.
    pub fn is_counted(self) -> bool {
        self != Self::Prefill
    }

    /// Returns true for one of two legs.
    pub fn is_leg(self) -> bool {
        self != Self::Whole
    }
}

#[cfg(test)]
mod tests {
    use super::Role;

    #[test]
    fn only_legs_are_legs_and_prefill_is_uncounted() {
        let facts = [Role::Whole, Role::Prefill, Role::Decode].map(|role| (role.is_leg(), role.is_counted()));
        assert_eq!(facts, [(false, true), (true, false), (true, true)]);
    }
}
