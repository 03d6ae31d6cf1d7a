//! Settings of an algorithm as the fields of a type: name, default, range, unit and meaning stand in one place.

use std::fmt::Debug;

use crate::param::{CheckedParams, ParamKind, ParamSpec};

/// Checked settings of an algorithm. [`crate::settings!`] makes the type.
pub trait Settings: Debug + Send + Sync + Sized + 'static {
    /// The rows of the parameters.
    const TABLE: &'static [ParamSpec];

    /// Reads the fields from their checked values.
    fn read(checked: &CheckedParams) -> Self;
}

/// The type of a setting: `f64`, `u64` or `bool`.
pub trait SettingType: Sized {
    /// The values from `low` to `high`; a flag has no range.
    fn read(checked: &CheckedParams, spec: &ParamSpec) -> Self;
}

impl SettingType for f64 {
    fn read(checked: &CheckedParams, spec: &ParamSpec) -> Self {
        checked.real(spec)
    }
}

impl SettingType for u64 {
    fn read(checked: &CheckedParams, spec: &ParamSpec) -> Self {
        checked.integer(spec)
    }
}

impl SettingType for bool {
    fn read(checked: &CheckedParams, spec: &ParamSpec) -> Self {
        checked.flag(spec)
    }
}

/// No settings.
impl Settings for () {
    const TABLE: &'static [ParamSpec] = &[];

    fn read(_: &CheckedParams) -> Self {}
}

/// Real numbers of a range that has both ends.
#[doc(hidden)]
pub const fn real(low: f64, high: f64) -> ParamKind {
    ParamKind::Real { low, high, open: crate::param::Bounds::Closed }
}

/// Makes a type with the settings of an algorithm. A field has a type (`f64`, `u64` or `bool`), a default, a range from the
/// lowest to the highest value (but for `bool`), a unit if it has one, and its meaning as a comment:
///
/// ```
/// algo::settings! {
///     struct RankSettings {
///         /// Share of the rank that follows the edges
///         damping: f64 = 0.85, 0.0 to 1.0;
///         /// Largest number of rounds
///         rounds: u64 = 100, 1 to 1_000_000, "rounds";
///     }
/// }
/// assert_eq!(<RankSettings as algo::algorithm::Settings>::TABLE[1].default, "100");
/// ```
#[macro_export]
macro_rules! settings {
    ($(#[$outer:meta])* $scope:vis struct $name:ident {
        $($(#[doc = $meaning:literal])+ $field:ident: $type:ident = $default:literal
            $(, $low:literal to $high:literal $(, $unit:literal)?)?;)*
    }) => {
        $(#[$outer])*
        #[derive(Clone, Debug)]
        $scope struct $name {
            $($(#[doc = $meaning])+ $scope $field: $type,)*
        }

        impl $crate::algorithm::Settings for $name {
            const TABLE: &'static [$crate::ParamSpec] = &[$($crate::params!(
                @row stringify!($field), $crate::settings!(@kind $type $($low, $high)?), stringify!($default),
                [$($($unit)?)?], $($meaning)+
            ),)*];

            fn read(checked: &$crate::param::CheckedParams) -> Self {
                let mut rows = Self::TABLE.iter();
                Self {
                    $($field: $crate::algorithm::SettingType::read(checked, rows.next().expect("a row for each field")),)*
                }
            }
        }
    };
    (@kind f64 $low:literal, $high:literal) => { $crate::algorithm::real($low, $high) };
    (@kind u64 $low:literal, $high:literal) => { $crate::ParamKind::Integer { low: $low, high: $high } };
    (@kind bool) => { $crate::ParamKind::Flag };
}
