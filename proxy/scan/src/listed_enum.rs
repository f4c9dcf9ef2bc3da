//! Enums that list their variants: a variant that the list or the names lack does not compile.

/// Declares an enum with `ALL`, the array of its variants in the order of their declaration, and with the function of
/// their names, if they have any; `fn from_name(&str)` is the way back. A metric's label values, a column's words and a
/// setting's choices are such enums. `impl` in place of `enum` is for an enum that is declared elsewhere.
///
/// ```
/// scan::listed_enum! {
///     /// A way to cross a river.
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Crossing {
///         /// Over it.
///         Bridge = "bridge",
///         /// Through it.
///         Ford = "ford",
///     }
///     /// The word on the map.
///     pub fn word(self);
///     /// The crossing with this word.
///     pub fn from_word(&str);
/// }
///
/// assert_eq!(Crossing::ALL.map(Crossing::word), ["bridge", "ford"]);
/// assert_eq!(Crossing::ALL[Crossing::Ford as usize], Crossing::Ford);
/// assert_eq!([Crossing::from_word("ford"), Crossing::from_word("Ford")], [Some(Crossing::Ford), None]);
/// ```
#[macro_export]
macro_rules! listed_enum {
    (
        $(#[$of_enum:meta])*
        $vis:vis enum $Enum:ident {
            $($(#[$of_variant:meta])* $Variant:ident,)+
        }
    ) => {
        $(#[$of_enum])*
        $vis enum $Enum {
            $($(#[$of_variant])* $Variant,)+
        }
        impl $Enum {
            /// Every variant, in the order of their declaration.
            $vis const ALL: [Self; [$(stringify!($Variant)),+].len()] = [$(Self::$Variant),+];
        }
    };
    (
        $(#[$of_enum:meta])*
        $vis:vis enum $Enum:ident {
            $($(#[$of_variant:meta])* $Variant:ident = $name:literal,)+
        }
        $($functions:tt)+
    ) => {
        $(#[$of_enum])*
        $vis enum $Enum {
            $($(#[$of_variant])* $Variant,)+
        }
        $crate::listed_enum! {
            impl $Enum {
                $($Variant = $name,)+
            }
            $($functions)+
        }
    };
    (
        impl $Enum:ident {
            $($Variant:ident = $name:literal,)+
        }
        $(#[$of_function:meta])*
        $vis:vis fn $function:ident(self);
        $(
            $(#[$of_reading:meta])*
            $reading_vis:vis fn $reading:ident(&str);
        )?
    ) => {
        impl $Enum {
            /// Every variant, in the order of their declaration.
            $vis const ALL: [Self; [$($name),+].len()] = [$(Self::$Variant),+];

            $(#[$of_function])*
            $vis const fn $function(self) -> &'static str {
                match self {
                    $(Self::$Variant => $name,)+
                }
            }
            $(
                $(#[$of_reading])*
                $reading_vis fn $reading(name: &str) -> Option<Self> {
                    Self::ALL.into_iter().find(|one| one.$function() == name)
                }
            )?
        }
    };
}
