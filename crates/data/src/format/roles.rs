//! What columns are for: which one is the label when nobody says so, and that no column has two roles.

use crate::Error;

/// Names of columns that are the label when nobody says so, in any case of letters.
pub(crate) const LABEL_NAMES: [&str; 3] = ["label", "target", "y"];

/// Whether a column of this name is the label when nobody says so.
pub(crate) fn is_label_name(name: &str) -> bool {
    LABEL_NAMES.iter().any(|label| name.eq_ignore_ascii_case(label))
}

/// The column that is called like a label; `None` when no column is. `is_taken` says which columns have another role.
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
            "column {} of {file} is called like a label and has another role; say which column is the label with --label",
            quoted(taken)
        ),
        (several, _) => {
            format!("columns {} of {file} may each be the label; say which one with --label", quoted(several))
        }
    };
    Err(Error::BadOption { option: "label", reason })
}

/// What the user is told of a label that was chosen by its name or by its place.
pub(crate) fn label_notice(name: &str, how: &str) -> String {
    format!("label: column '{name}', {how}")
}

/// An error when a column has two of these roles; each is the setting that gave it, with the column's position.
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
            "column '{}' of {file} is already taken by {first}; a column has one role, so name another one or leave one \
             of the two settings out",
            names[*column]
        );
        return Err(Error::BadOption { option: second, reason });
    }
    Ok(())
}
