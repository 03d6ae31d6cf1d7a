//! What a figure must reach, and what we are after.

use std::collections::BTreeMap;

/// Which side of the limit is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    /// The figure must be at least the limit.
    More,
    /// The figure must be at most the limit.
    Less,
}

/// Whether the limit speaks of our figure or of its ratio to the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// Our figure.
    Ours,
    /// Ours divided by the peer's.
    Ratio,
}

/// A bar: one line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bar {
    /// Name of the figure.
    pub(crate) figure: &'static str,
    /// Its unit.
    pub(crate) unit: &'static str,
    /// What the limits speak of.
    pub(crate) of: Of,
    /// Which side is good.
    pub(crate) better: Better,
    /// What it must reach.
    pub(crate) must: f64,
    /// What we are after.
    pub(crate) aim: f64,
}

impl Bar {
    /// A figure that must be at least `must`.
    pub(crate) const fn at_least(figure: &'static str, unit: &'static str, must: f64, aim: f64) -> Self {
        Self { figure, unit, of: Of::Ours, better: Better::More, must, aim }
    }

    /// A figure that must be at most `must`.
    pub(crate) const fn at_most(figure: &'static str, unit: &'static str, must: f64, aim: f64) -> Self {
        Self { figure, unit, of: Of::Ours, better: Better::Less, must, aim }
    }

    /// A time whose ratio to the peer's must be at most `must`.
    pub(crate) const fn time_ratio(must: f64, aim: f64) -> Self {
        Self { figure: "time", unit: "s", of: Of::Ratio, better: Better::Less, must, aim }
    }

    /// A figure whose ratio to the peer's must be at most `must`.
    pub(crate) const fn ratio(figure: &'static str, must: f64, aim: f64) -> Self {
        Self { figure, unit: "", of: Of::Ratio, better: Better::Less, must, aim }
    }

    /// What a measurement is worth.
    pub(crate) fn verdict(&self, figure: &Figure) -> &'static str {
        let judged = match self.of {
            Of::Ours => Some(figure.ours),
            Of::Ratio => figure.ratio,
        };
        let Some(value) = judged else { return "no peer" };
        let reaches = |limit: f64| match self.better {
            Better::More => value >= limit,
            Better::Less => value <= limit,
        };
        match () {
            () if reaches(self.aim) => "aim",
            () if reaches(self.must) => "must",
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
    pub(crate) fn beside(ours: f64, peer: Option<f64>) -> Self {
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
        let auc = Bar::at_least("auc", "", 0.77, 0.78);
        assert_eq!(auc.verdict(&Figure::ours(0.78)), "aim");
        assert_eq!(auc.verdict(&Figure::ours(0.77)), "must");
        assert_eq!(auc.verdict(&Figure::ours(0.76)), "SHORT");
        assert_eq!(auc.verdict(&Figure::ours(f64::NAN)), "SHORT");
    }

    #[test]
    fn a_ratio_needs_a_peer() {
        let time = Bar::time_ratio(0.5, 0.25);
        assert_eq!(time.verdict(&Figure::beside(1.0, Some(2.0))), "must");
        assert_eq!(time.verdict(&Figure::ours(1.0)), "no peer");
    }
}
