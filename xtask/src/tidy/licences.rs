//! Licences: every package must be usable under a licence of the list.

use super::Finding;
use crate::metadata::Package;

const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

pub(super) fn check(packages: &[Package], also: &[&str]) -> Vec<Finding> {
    let allowed = |name: &str| ALLOWED.contains(&name) || also.contains(&name);
    let mut findings = Vec::new();
    for package in packages {
        let place = format!("{} {}", package.name, package.version);
        match &package.license {
            None if package.source.is_none() => {}
            None => findings.push(Finding::new(place, "states no licence")),
            Some(text) if satisfied(text, &allowed) => {}
            Some(text) => findings.push(Finding::new(
                place,
                format!("licence {text:?} needs one that is not in the list {ALLOWED:?}"),
            )),
        }
    }
    findings
}

/// Whether an SPDX expression can be satisfied by allowed licences. `/` is the old spelling of `OR`.
fn satisfied(expression: &str, allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, at: 0, allowed };
    parser.or_expression() == Some(true) && parser.at == words.len()
}

/// `or_expression := and_expression (OR and_expression)*`, `and_expression := one (AND one)*`,
/// `one := ( or_expression ) | NAME [WITH EXCEPTION]`.
struct Parser<'a> {
    words: &'a [&'a str],
    at: usize,
    allowed: &'a dyn Fn(&str) -> bool,
}

impl Parser<'_> {
    fn or_expression(&mut self) -> Option<bool> {
        let mut value = self.and_expression()?;
        while self.take("OR") {
            value |= self.and_expression()?;
        }
        Some(value)
    }

    fn and_expression(&mut self) -> Option<bool> {
        let mut value = self.primary()?;
        while self.take("AND") {
            value &= self.primary()?;
        }
        Some(value)
    }

    fn primary(&mut self) -> Option<bool> {
        if self.take("(") {
            let value = self.or_expression()?;
            return self.take(")").then_some(value);
        }
        let mut name = (*self.words.get(self.at)?).to_owned();
        self.at += 1;
        if self.take("WITH") {
            name = format!("{name} WITH {}", self.words.get(self.at)?);
            self.at += 1;
        }
        Some((self.allowed)(&name))
    }

    fn take(&mut self, word: &str) -> bool {
        let there = self.words.get(self.at) == Some(&word);
        self.at += usize::from(there);
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fine(expression: &str) -> bool {
        satisfied(expression, &|name| ALLOWED.contains(&name))
    }

    #[test]
    fn one_allowed_choice_is_enough_and_every_conjunct_is_needed() {
        assert!(fine("MIT"));
        assert!(fine("MIT/Apache-2.0"));
        assert!(fine("MIT OR Apache-2.0 OR LGPL-2.1-or-later"));
        assert!(fine("(MIT OR GPL-3.0) AND Unicode-3.0"));
        assert!(fine("Apache-2.0 WITH LLVM-exception OR GPL-2.0"));
        assert!(!fine("MIT AND GPL-3.0"));
        assert!(!fine("GPL-3.0-only"));
        assert!(!fine("GPL-2.0 WITH Classpath-exception-2.0"));
    }

    #[test]
    fn an_expression_that_cannot_be_read_is_not_satisfied() {
        for broken in ["", "(MIT", "MIT OR", "MIT MIT", "AND MIT"] {
            assert!(!fine(broken), "{broken:?}");
        }
    }

    #[test]
    fn a_foreign_package_without_a_licence_is_found() {
        let foreign = Package { source: Some("registry".into()), ..Package::default() };
        assert_eq!(check(&[foreign, Package::default()], &[]).len(), 1);
    }
}
