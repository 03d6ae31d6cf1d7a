//! Tables of parameters and sets of words, each written in one place.

use super::ParamSpec;

/// Makes constants of type [`ParamSpec`], the rows of a table. A row has its meaning as a comment, whose lines are joined,
/// then a name for the program and one for the user, a kind, a default, and a unit if it has one:
///
/// ```
/// use algo::ParamKind;
///
/// algo::params! {
///     const ROWS = [
///         /// Records with the label 0 that are added
///         /// to each feature
///         SMOOTHING = "smoothing": ParamKind::Integer { low: 0, high: 100 }, "1", "records";
///         /// Learn an intercept
///         INTERCEPT = "intercept": ParamKind::Flag, "true";
///     ];
/// }
/// assert_eq!(SMOOTHING.meaning, "Records with the label 0 that are added to each feature");
/// assert_eq!(ROWS[1].name, INTERCEPT.name);
/// ```
///
/// Without `const ROWS = [` and `];` there are only the constants of the rows.
#[macro_export]
macro_rules! params {
    (@row $name:expr, $kind:expr, $default:expr, [$($unit:literal)?], $($meaning:literal)+) => {
        $crate::ParamSpec {
            name: $name,
            kind: $kind,
            default: $default,
            unit: concat!($($unit)?),
            meaning: concat!($($meaning),+).trim_ascii(),
        }
    };
    ($($(#[doc = $meaning:literal])+
        $scope:vis $row:ident = $name:literal: $kind:expr, $default:literal $(, $unit:literal)?;)+) => {$(
        $scope const $row: $crate::ParamSpec =
            $crate::params!(@row $name, $kind, $default, [$($unit)?], $($meaning)+);
    )+};
    ($table_scope:vis const $table:ident = [
        $($(#[doc = $meaning:literal])+
            $scope:vis $row:ident = $name:literal: $kind:expr, $default:literal $(, $unit:literal)?;)+
    ];) => {
        $table_scope const $table: [$crate::ParamSpec; [$($name),+].len()] = [$($row),+];
        $crate::params! {
            $($(#[doc = $meaning])+ $scope $row = $name: $kind, $default $(, $unit)?;)+
        }
    };
}

/// The rows of several tables as one table of `N` rows.
pub const fn joined<const N: usize>(tables: &[&[ParamSpec]]) -> [ParamSpec; N] {
    let mut all = [tables[0][0]; N];
    let mut rest = all.as_mut_slice();
    let mut number = 0;
    while number < tables.len() {
        let (rows, others) = rest.split_at_mut(tables[number].len());
        rows.copy_from_slice(tables[number]);
        (rest, number) = (others, number + 1);
    }
    assert!(rest.is_empty(), "N is the number of rows");
    all
}

/// Makes enums that implement [`Choice`](crate::param::Choice). A value has its word, then its help and the parameters that
/// only it and some others read, if it has them:
///
/// ```
/// use algo::param::Choice;
///
/// algo::params! {
///     /// Share of the rank that follows the edges
///     DAMPING = "damping": algo::ParamKind::Flag, "true";
/// }
/// algo::choices! {
///     /// How nodes are ranked.
///     enum Ranking {
///         Degree = "degree";
///         PageRank = "page_rank": "rank flows along the edges", reads DAMPING;
///     }
/// }
/// assert_eq!(Ranking::PageRank.name(), "page_rank");
/// assert_eq!(Ranking::Degree.reads().len(), 0);
/// ```
#[macro_export]
macro_rules! choices {
    ($($(#[$outer:meta])* $scope:vis enum $name:ident {
        $($(#[$inner:meta])* $value:ident = $word:literal $(: $help:literal)? $(, reads $($read:ident),+)?;)+
    })+) => {$(
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $scope enum $name {
            $($(#[$inner])* $value,)+
        }

        impl $crate::param::Choice for $name {
            fn all() -> Vec<(&'static str, Self)> {
                vec![$(($word, Self::$value)),+]
            }

            fn help(self) -> &'static str {
                match self { $(Self::$value => concat!($($help)?),)+ }
            }

            fn reads(self) -> &'static [&'static $crate::ParamSpec] {
                match self { $(Self::$value => &[$($(&$read),+)?],)+ }
            }
        }
    )+};
}
