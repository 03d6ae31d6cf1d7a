//! Column roles: the choice of a label by default, and the rule that no column has two roles.

use std::collections::BTreeSet;

use crate::Error;
use crate::number::parse_f64;

/// Names of columns that are the label by default, in upper or lower case.
pub(crate) const LABEL_NAMES: [&str; 3] = ["label", "target", "y"];

/// Whether a column of this name is the label by default.
pub(crate) fn is_label_name(name: &str) -> bool {
    LABEL_NAMES.iter().any(|label| name.eq_ignore_ascii_case(label))
}

/// Returns the column whose name is that of a label; `None` when there is none. `is_taken` says which columns have
/// another role.
pub(crate) fn label_by_name(
    file: &str,
    names: &[&str],
    is_taken: impl Fn(usize) -> bool,
) -> Result<Option<usize>, Error> {
    let candidates: Vec<usize> = (0..names.len()).filter(|at| is_label_name(names[*at])).collect();
    let free: Vec<usize> = candidates.iter().copied().filter(|at| !is_taken(*at)).collect();
    let quoted = |columns: &[usize]| {
        columns.iter().map(|at| format!("'{}'", names[*at])).collect::<Vec<_>>().join(" and ")
    };
    let reason = match (&free[..], &candidates[..]) {
        ([only], _) => return Ok(Some(*only)),
        ([], []) => return Ok(None),
        ([], taken) => format!(
            "column {} of {file} has the name of a label, but another role; set the label column with --label",
            quoted(taken)
        ),
        (several, _) => {
            format!("columns {} of {file} can each be the label; choose one with --label", quoted(several))
        }
    };
    Err(Error::BadOption { option: "label", reason })
}

/// Number of distinct values in the first rows from which on a column is not accepted as a label of classes by default.
const MANY_VALUES: usize = 100;

/// Fails when a column that is the label only by default has more values than classes have. `values` are those of its
/// first `row_count` rows, without missing ones.
pub(crate) fn refuse_guess(
    file: &str,
    name: &str,
    by_name: bool,
    values: &BTreeSet<&[u8]>,
    row_count: usize,
) -> Result<(), Error> {
    let fraction = |value: &&&[u8]| parse_f64(value).is_some_and(|number| number.fract() != 0.0);
    let real = values.iter().find(fraction).filter(|_| values.len() > 2);
    if real.is_none() && (by_name || values.len() <= MANY_VALUES) {
        return Ok(());
    }
    let example = real
        .or_else(|| values.first())
        .map_or(String::new(), |value| format!(", such as '{}'", String::from_utf8_lossy(value)));
    let reason = format!(
        "column '{name}' of {file}, which was chosen as the label {}, has {} different values in the first \
         {row_count} rows{example}; set the column of the classes with --label, or use linear for numbers",
        if by_name { "by its name" } else { "because it is the last" },
        values.len(),
    );
    Err(Error::BadOption { option: "label", reason })
}

/// Makes the notice about a label that was chosen by its name or its position.
pub(crate) fn label_notice(name: &str, how: &str) -> String {
    format!("label: column '{name}', {how}")
}

/// Fails when a column has two of these roles. Each role is the setting that gave it, with the position of the column.
pub(crate) fn refuse_two_roles(
    file: &str,
    names: &[&str],
    roles: &[(&'static str, usize)],
) -> Result<(), Error> {
    for (at, (second, column)) in roles.iter().enumerate() {
        let Some((first, _)) = roles[..at].iter().find(|(first, other)| other == column && first != second)
        else {
            continue;
        };
        let reason = format!(
            "column '{}' of {file} is already used by {first}; a column has one role: choose another column, or \
             remove one of the two settings",
            names[*column]
        );
        return Err(Error::BadOption { option: second, reason });
    }
    Ok(())
}
/// Fails when two columns of a file have the same name: a model identifies columns by their names.
pub(crate) fn refuse_duplicate_names<'a>(
    file: &str,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), Error> {
    let mut sorted: Vec<&str> = names.collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(Error::BadFile {
            file: file.to_owned(),
            record: None,
            reason: format!("two columns have the name '{}'; rename one of them", pair[0]),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason<T>(result: Result<T, Error>) -> Option<(&'static str, String)> {
        match result {
            Err(Error::BadOption { option, reason }) => Some((option, reason)),
            Err(other) => panic!("{other}"),
            Ok(_) => None,
        }
    }

    #[test]
    fn the_label_by_its_name_is_the_only_one_that_is_free() {
        let find = |names: &[&str], taken: &[usize]| label_by_name("f", names, |at| taken.contains(&at));
        assert_eq!(find(&["a", "b"], &[]).unwrap(), None);
        assert_eq!(find(&["a", "TARGET", "b"], &[]).unwrap(), Some(1));
        assert_eq!(find(&["y", "a", "Label"], &[0]).unwrap(), Some(2));
        let (option, text) = reason(find(&["y", "a", "label", "b"], &[])).unwrap();
        assert!(option == "label" && text.contains("columns 'y' and 'label' of f can each be"), "{text}");
        let (option, text) = reason(find(&["y", "a"], &[0])).unwrap();
        assert!(option == "label" && text.contains("column 'y' of f has the name of a label, but"), "{text}");
    }

    #[test]
    fn a_guessed_label_has_few_values_and_no_fractions() {
        let texts: Vec<String> = (0..101).map(|number| number.to_string()).collect();
        let refuse = |values: &[&str], by_name: bool| {
            let values = values.iter().map(|value| value.as_bytes()).collect();
            reason(refuse_guess("f", "c", by_name, &values, 1000))
        };
        let all: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert!(refuse(&all[..100], false).is_none());
        let (_, text) = refuse(&all, false).unwrap();
        assert!(text.contains("because it is the last, has 101 different values"), "{text}");
        assert!(text.contains("in the first 1000 rows, such as '0'"), "{text}");
        assert!(refuse(&all, true).is_none(), "its name says that it is the label");
        assert!(refuse(&["0.5", "1.5"], false).is_none(), "two classes may have any names");
        let (_, text) = refuse(&["0", "1.5", "2"], true).unwrap();
        assert!(
            text.contains("by its name, has 3 different values") && text.contains("such as '1.5'"),
            "{text}"
        );
        assert!(refuse(&[], false).is_none());
    }

    #[test]
    fn a_column_has_one_role_and_one_name() {
        let names = ["a", "b", "c"];
        let refuse = |roles: &[(&'static str, usize)]| reason(refuse_two_roles("f", &names, roles));
        assert!(refuse(&[("label", 0), ("weight", 1), ("group", 2)]).is_none());
        assert!(refuse(&[("skip_columns", 1), ("skip_columns", 1)]).is_none(), "the same role twice");
        let (option, text) = refuse(&[("label", 0), ("weight", 2), ("group", 2)]).unwrap();
        assert!(option == "group" && text.contains("column 'c' of f is already used by weight"), "{text}");
        assert!(refuse_duplicate_names("f", ["b", "a", "c"].into_iter()).is_ok());
        let error = refuse_duplicate_names("f", ["b", "a", "b"].into_iter()).unwrap_err().to_string();
        assert!(error.contains("two columns have the name 'b'"), "{error}");
    }
}
