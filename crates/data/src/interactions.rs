//! Interactions: products of the features of two or three groups, each of them a feature of its own. A group is a
//! namespace (VW), a field (libffm) or a column (CSV, dense text, Parquet).
//!
//! For groups A and B and each pair of a feature `a` of A and a feature `b` of B, a record gets a feature with the key
//! `math::hash::product_key(a, b)` and the value `a * b`; three groups work likewise. A product does not depend on the
//! order of its factors. Within one group each pair occurs once, and a feature is multiplied by itself only when its
//! value is not 1, as in Vowpal Wabbit (`-q`, `--cubic`).

use crate::format::FormatContext;
use crate::format::dictionary::{Dictionary, LIMIT_BYTES};
use crate::key_names::name_bytes;
use crate::{BatchBuilder, Error, LineError};
use math::hash::product_key;
use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Number of factors of a product.
const FACTORS: std::ops::RangeInclusive<usize> = 2..=3;
/// Limit of the products of one record.
const PRODUCT_LIMIT: usize = 1 << 20;

/// The name of the group of all features, in Vowpal Wabbit text.
pub(crate) const ALL: &str = ":";

/// Splits `a:b` at its colons, and `ab` into its letters. As in Vowpal Wabbit, the colons in `::` and `:::` stand for all
/// namespaces.
pub fn parse_interaction(text: &str) -> Vec<String> {
    if FACTORS.contains(&text.len()) && text.bytes().all(|byte| byte == b':') {
        vec![ALL.to_owned(); text.len()]
    } else if text.contains(':') {
        text.split(':').map(str::to_owned).collect()
    } else {
        text.chars().map(String::from).collect()
    }
}

/// The groups of all interactions, and the products of groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interactions {
    /// Distinct names.
    pub(crate) groups: Vec<String>,
    /// Positions in `groups`, ascending; each list once.
    products: Vec<Vec<usize>>,
}

impl Interactions {
    /// Fails when an interaction has too few or too many factors.
    pub(crate) fn new(interactions: &[Vec<String>]) -> Result<Self, Error> {
        let mut all = Self::default();
        for factors in interactions {
            if !FACTORS.contains(&factors.len()) {
                let reason = format!(
                    "'{}' has {} factors; give two or three, as letters (ab) or as names between colons (user:item)",
                    factors.join(":"),
                    factors.len()
                );
                return Err(Error::BadOption { option: "interactions", reason });
            }
            let mut product: Vec<usize> = factors.iter().map(|name| all.group(name)).collect();
            product.sort_unstable();
            if !all.products.contains(&product) {
                all.products.push(product);
            }
        }
        Ok(all)
    }

    fn group(&mut self, name: &str) -> usize {
        self.groups.iter().position(|group| group == name).unwrap_or_else(|| {
            self.groups.push(name.to_owned());
            self.groups.len() - 1
        })
    }

    /// Whether there are no products.
    pub(crate) fn is_empty(&self) -> bool {
        self.products.is_empty()
    }

    /// Fails when groups have no feature in the whole input. If only the first lines were searched, it returns a notice.
    pub(crate) fn check_groups(
        &self,
        context: &FormatContext<'_>,
        is_met: impl Fn(&str, &[u8]) -> bool,
    ) -> Result<Option<String>, Error> {
        let mut unmet: Vec<&str> = self.groups.iter().map(String::as_str).collect();
        if unmet.is_empty() || context.trained_schema.is_some() {
            return Ok(None);
        }
        let mut is_complete = true;
        for file in context.files {
            let head = file.head()?;
            is_complete &= head.is_complete;
            unmet.retain(|group| !head.lines().any(|line| is_met(group, line)));
        }
        let names = unmet.iter().map(|group| format!("'{group}'")).collect::<Vec<_>>().join(", ");
        if unmet.is_empty() {
            Ok(None)
        } else if is_complete {
            let reason = format!("the data have no feature of {names}; check the name");
            Err(Error::BadOption { option: "interactions", reason })
        } else {
            Ok(Some(format!("interactions: the first lines have no feature of {names}; check the name")))
        }
    }

    /// The products as a user writes them.
    fn texts(&self) -> impl Iterator<Item = String> {
        self.products.iter().map(|product| {
            let names: Vec<&str> = product.iter().map(|group| self.groups[*group].as_str()).collect();
            if names.iter().all(|name| *name == ALL) { names.concat() } else { names.join(":") }
        })
    }
}

/// A feature of the present record that is a factor.
#[derive(Clone, Copy, Debug)]
struct Factor {
    key: u64,
    value: f32,
}

/// Receives the factors of a product, each with its position in its group.
type ProductVisitor<'a> = dyn FnMut(&[(usize, Factor)]) -> Result<(), LineError> + 'a;

/// Multiplies the features of one record after the other.
#[derive(Debug)]
pub(crate) struct InteractionGenerator {
    interactions: Interactions,
    /// Whether a record so far has had each of the products.
    is_met: Vec<Cell<bool>>,
    /// Factors of the present record, by group.
    factors: Vec<Vec<Factor>>,
    /// Names of the factors of all records so far; they give the names of products.
    names: HashMap<u64, String>,
    /// What the names take of [`LIMIT_BYTES`].
    names_bytes: usize,
    keep_zeros: bool,
}

impl InteractionGenerator {
    pub(crate) fn new(interactions: Interactions, keep_zeros: bool) -> Self {
        let factors = vec![Vec::new(); interactions.groups.len()];
        let is_met = vec![Cell::new(false); interactions.products.len()];
        Self { interactions, is_met, factors, names: HashMap::new(), names_bytes: 0, keep_zeros }
    }

    /// Whether there are no products.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.interactions.is_empty()
    }

    /// Names of the groups.
    pub(crate) fn groups(&self) -> &[String] {
        &self.interactions.groups
    }

    /// The interactions of which no record so far had a product, as a user writes them.
    pub(crate) fn unmet(&self) -> Vec<String> {
        self.interactions
            .texts()
            .zip(&self.is_met)
            .filter(|(_, is_met)| !is_met.get())
            .map(|(text, _)| text)
            .collect()
    }

    /// Begins a record.
    pub(crate) fn clear(&mut self) {
        self.factors.iter_mut().for_each(Vec::clear);
    }

    /// Adds a feature to a group; `name` is called when the key is new.
    pub(crate) fn add(&mut self, group: usize, key: u64, value: f32, name: impl FnOnce() -> String) {
        self.factors[group].push(Factor { key, value });
        if self.names_bytes < LIMIT_BYTES
            && let Entry::Vacant(entry) = self.names.entry(key)
        {
            let name = name();
            self.names_bytes += name_bytes(name.len());
            entry.insert(name);
        }
    }

    /// Calls `push` for each product of the record, with the group of the first factor.
    pub(crate) fn multiply(
        &self,
        dictionary: &mut Dictionary,
        mut push: impl FnMut(&str, u64, f32),
    ) -> Result<(), LineError> {
        let mut count = 0;
        for (product, is_met) in self.interactions.products.iter().zip(&self.is_met) {
            let space = &self.interactions.groups[product[0]];
            let mut chosen = [(0, Factor { key: 0, value: 1.0 }); 3];
            self.visit_products(product, 0, &mut chosen, &mut |factors| {
                count += 1;
                if count > PRODUCT_LIMIT {
                    let expected = format!("at most {PRODUCT_LIMIT} interactions a record");
                    return Err(LineError::with_actual(0, expected, "more of them"));
                }
                let exact: f64 = factors.iter().map(|(_, factor)| f64::from(factor.value)).product();
                let value = exact as f32;
                if !value.is_finite() {
                    let expected = "features whose products stay within the range of f32";
                    return Err(LineError::with_actual(0, expected, format!("{exact}")));
                }
                if value != 0.0 || self.keep_zeros {
                    let mut keys = [0; 3];
                    let keys = &mut keys[..factors.len()];
                    keys.iter_mut().zip(factors).for_each(|(key, (_, factor))| *key = factor.key);
                    let key = product_key(keys);
                    dictionary.add_named(key, || self.name(factors));
                    push(space, key, value);
                    is_met.set(true);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Visits all choices of one factor per group of `product`; the first `at` factors are chosen already. Within equal
    /// groups each set is visited once, and a factor of value 1 is not combined with itself.
    fn visit_products(
        &self,
        product: &[usize],
        at: usize,
        chosen: &mut [(usize, Factor); 3],
        each: &mut ProductVisitor<'_>,
    ) -> Result<(), LineError> {
        if at == product.len() {
            return each(&chosen[..at]);
        }
        let same = at > 0 && product[at] == product[at - 1];
        let from = if same { chosen[at - 1].0 } else { 0 };
        for (position, factor) in self.factors[product[at]].iter().enumerate().skip(from) {
            if same && position == from && factor.value == 1.0 {
                continue;
            }
            chosen[at] = (position, *factor);
            self.visit_products(product, at + 1, chosen, each)?;
        }
        Ok(())
    }

    /// The name of a product; none if there was no memory for the name of a factor.
    fn name(&self, factors: &[(usize, Factor)]) -> Option<String> {
        let name = |factor: &Factor| self.names.get(&factor.key).map(String::as_str);
        let names: Option<Vec<&str>> = factors.iter().map(|(_, factor)| name(factor)).collect();
        Some(names?.join("*"))
    }
}

/// Pushes the products of a record as further entries.
pub(crate) fn push_products(
    multiplier: &InteractionGenerator,
    dictionary: &mut Dictionary,
    out: &mut BatchBuilder,
) -> Result<(), LineError> {
    multiplier.multiply(dictionary, |_, key, value| out.push(key, value))
}

#[cfg(test)]
mod tests;
