//! What a figure must reach, and what we are after.

use std::collections::BTreeMap;

/// Which side of the limit is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitKind {
    /// The figure must be at least the limit.
    AtLeast,
    /// The figure must be at most the limit.
    AtMost,
}

/// Whether the limit speaks of our figure or of its ratio to the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// Our figure.
    Ours,
    /// Ours divided by the peer's.
    Ratio,
}

/// A bar: one line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// Name of the figure.
    pub(crate) figure: &'static str,
    /// Its unit.
    pub(crate) unit: &'static str,
    /// What the limits speak of.
    pub(crate) basis: Basis,
    /// Which side is good.
    pub(crate) limit_kind: LimitKind,
    /// What it must reach.
    pub(crate) required: f64,
    /// What we are after.
    pub(crate) goal: f64,
}

impl Target {
    /// A figure that must be at least `required`.
    pub(crate) const fn at_least(figure: &'static str, unit: &'static str, must: f64, aim: f64) -> Self {
        Self { figure, unit, basis: Basis::Ours, limit_kind: LimitKind::AtLeast, required: must, goal: aim }
    }

    /// A figure that must be at most `required`.
    pub(crate) const fn at_most(figure: &'static str, unit: &'static str, must: f64, aim: f64) -> Self {
        Self { figure, unit, basis: Basis::Ours, limit_kind: LimitKind::AtMost, required: must, goal: aim }
    }

    /// A time whose ratio to the peer's must be at most `required`.
    pub(crate) const fn time_ratio(must: f64, aim: f64) -> Self {
        Self {
            figure: "time",
            unit: "s",
            basis: Basis::Ratio,
            limit_kind: LimitKind::AtMost,
            required: must,
            goal: aim,
        }
    }

    /// A figure whose ratio to the peer's must be at most `required`.
    pub(crate) const fn ratio(figure: &'static str, must: f64, aim: f64) -> Self {
        Self {
            figure,
            unit: "",
            basis: Basis::Ratio,
            limit_kind: LimitKind::AtMost,
            required: must,
            goal: aim,
        }
    }

    /// What a measurement is worth.
    pub(crate) fn verdict(&self, figure: &Figure) -> &'static str {
        let judged = match self.basis {
            Basis::Ours => Some(figure.ours),
            Basis::Ratio => figure.ratio,
        };
        let Some(value) = judged else { return "no peer" };
        let reaches = |limit: f64| match self.limit_kind {
            LimitKind::AtLeast => value >= limit,
            LimitKind::AtMost => value <= limit,
        };
        match () {
            () if reaches(self.goal) => "aim",
            () if reaches(self.required) => "must",
            () => "SHORT",
        }
    }
}

/// A measured figure, ours beside the peer's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figure {
    pub(crate) ours: f64,
    pub(crate) peer: Option<f64>,
    pub(crate) ratio: Option<f64>,
}

impl Figure {
    /// Ours alone.
    pub(crate) fn ours(ours: f64) -> Self {
        Self { ours, peer: None, ratio: None }
    }

    /// Ours beside the peer's, when that was measured.
    pub(crate) fn with_peer(ours: f64, peer: Option<f64>) -> Self {
        Self { ours, peer, ratio: peer.filter(|&peer| peer != 0.0).map(|peer| ours / peer) }
    }
}

/// Figures of a work by name.
pub(crate) type Figures = BTreeMap<&'static str, Figure>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_reaches_the_aim_the_must_or_falls_short() {
        let auc = Target::at_least("auc", "", 0.77, 0.78);
        assert_eq!(auc.verdict(&Figure::ours(0.78)), "aim");
        assert_eq!(auc.verdict(&Figure::ours(0.77)), "must");
        assert_eq!(auc.verdict(&Figure::ours(0.76)), "SHORT");
        assert_eq!(auc.verdict(&Figure::ours(f64::NAN)), "SHORT");
    }

    #[test]
    fn a_ratio_needs_a_peer() {
        let time = Target::time_ratio(0.5, 0.25);
        assert_eq!(time.verdict(&Figure::with_peer(1.0, Some(2.0))), "must");
        assert_eq!(time.verdict(&Figure::ours(1.0)), "no peer");
    }
}
