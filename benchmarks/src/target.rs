//! What a figure must reach (`required`), and what we aim at (`goal`).

use std::collections::BTreeMap;

/// Whether a figure must be above or below its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitKind {
    /// The figure must be at least the limit.
    AtLeast,
    /// The figure must be at most the limit.
    AtMost,
}

/// Whether the limit applies to our figure or to its ratio to that of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    Ours,
    /// Our figure divided by that of the peer.
    Ratio,
}

/// A target: one line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// Name of the figure.
    pub(crate) figure: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) basis: Basis,
    pub(crate) limit_kind: LimitKind,
    /// The limit that the figure must reach.
    pub(crate) required: f64,
    /// The limit that we aim at.
    pub(crate) goal: f64,
}

impl Target {
    /// A figure that must be at least `must`.
    pub(crate) const fn at_least(figure: &'static str, unit: &'static str, must: f64, aim: f64) -> Self {
        Self { figure, unit, basis: Basis::Ours, limit_kind: LimitKind::AtLeast, required: must, goal: aim }
    }

    /// A figure that must be at most `must`.
    pub(crate) const fn at_most(figure: &'static str, unit: &'static str, must: f64, aim: f64) -> Self {
        Self { figure, unit, basis: Basis::Ours, limit_kind: LimitKind::AtMost, required: must, goal: aim }
    }

    /// A time whose ratio to that of the peer must be at most `must`.
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

    /// A figure whose ratio to that of the peer must be at most `must`.
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

    /// Which limit the figure reaches: `aim`, `must` or `SHORT`; `no peer` without a ratio.
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

/// A measured figure, ours and that of the peer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figure {
    pub(crate) ours: f64,
    pub(crate) peer: Option<f64>,
    pub(crate) ratio: Option<f64>,
}

impl Figure {
    /// Our figure without a peer.
    pub(crate) fn ours(ours: f64) -> Self {
        Self { ours, peer: None, ratio: None }
    }

    /// Our figure and, if it was measured, that of the peer.
    pub(crate) fn with_peer(ours: f64, peer: Option<f64>) -> Self {
        Self { ours, peer, ratio: peer.filter(|&peer| peer != 0.0).map(|peer| ours / peer) }
    }
}

/// Figures of a benchmark by name.
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
