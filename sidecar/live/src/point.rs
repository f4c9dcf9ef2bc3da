//! One second, or one minute, of a scope.

use serde::{Deserialize, Serialize};

/// Generates the struct and the list of its members, so that a history has the same names.
macro_rules! point {
    ($($(#[$meaning:meta])* $member:ident,)*) => {
        /// One second, or one minute, of a scope. Rates are over that time. Quantiles are over the exchanges that ended
        /// in it and the nine points before, so that a second without an end has one; a minute's are over the minute.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Point {
            $($(#[$meaning])* pub $member: Option<f64>,)*
        }

        impl Point {
            /// The names of the members.
            pub const MEMBERS: [&str; [$(stringify!($member)),*].len()] = [$(stringify!($member)),*];

            /// Returns the members' values, in the order of [`Point::MEMBERS`].
            pub(crate) fn values(&self) -> [Option<f64>; Self::MEMBERS.len()] {
                [$(self.$member),*]
            }

            /// Returns a point of these values, in the order of [`Point::MEMBERS`].
            pub(crate) fn of([$($member),*]: [Option<f64>; Self::MEMBERS.len()]) -> Self {
                Self { $($member),* }
            }
        }
    };
}

point! {
    /// Output tokens per second, counted while they arrive; for tenants, of exchanges that ended.
    output_tokens_per_second,
    /// Prompt tokens per second, cached ones included, of exchanges that ended.
    input_tokens_per_second,
    /// Exchanges in flight at the end of the second, or the mean of the minute; `null` for tenants.
    in_flight,
    /// Exchanges that ended, per second.
    exchanges_per_second,
    /// Exchanges that failed, per second.
    errors_per_second,
    /// Exchanges that the client left, per second.
    aborts_per_second,
    /// Median time to the first token, seconds; `null` for tenants.
    first_token_p50_seconds,
    /// 99th percentile of it, seconds; `null` for tenants.
    first_token_p99_seconds,
    /// The speed that half of the requests reach, output tokens per second of one request; `null` for tenants.
    request_tokens_per_second_p50,
    /// Spend per hour at the rate of this time, in `Now::currency`; `null` without a price book.
    spend_per_hour,
    /// Power of all GPUs, watts; only for all traffic.
    watts,
}
