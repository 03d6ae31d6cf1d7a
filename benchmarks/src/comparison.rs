//! Runs of ours and of the peer in turns.

use anyhow::Result;

use crate::process::Usage;
use crate::target::Figure;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) seconds: f64,
    pub(crate) cpu_s: f64,
    pub(crate) peak_mb: f64,
}

impl Sample {
    /// A time that the peer measured itself; its other usage is not known.
    pub(crate) fn time(seconds: f64) -> Self {
        Self { seconds, cpu_s: f64::NAN, peak_mb: f64::NAN }
    }
}

impl From<Usage> for Sample {
    fn from(usage: Usage) -> Self {
        Self { seconds: usage.wall_s, cpu_s: usage.cpu_s, peak_mb: usage.peak_mb }
    }
}

/// All runs of ours and of the peer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comparison {
    ours: Vec<Sample>,
    peer: Vec<Sample>,
}

impl Comparison {
    /// Runs `ours` and `peer` in turns. A round without a result of the peer counts for ours alone.
    pub(crate) fn run(
        rounds: usize,
        mut ours: impl FnMut() -> Result<Sample>,
        mut peer: impl FnMut() -> Result<Option<Sample>>,
    ) -> Result<Self> {
        let mut race = Self::default();
        for _ in 0..rounds {
            race.ours.push(ours()?);
            race.peer.extend(peer()?);
        }
        Ok(race)
    }

    /// Medians of the times, and the median of the ratios of the rounds.
    pub(crate) fn time(&self) -> Figure {
        self.figure(|sample| sample.seconds)
    }

    /// Medians of the peaks, and the median of the ratios of the rounds.
    pub(crate) fn peaks(&self) -> Figure {
        self.figure(|sample| sample.peak_mb)
    }

    /// The median of our peaks.
    pub(crate) fn peak(&self) -> Figure {
        Figure::ours(self.figure(|sample| sample.peak_mb).ours)
    }

    /// The median of our processor times.
    pub(crate) fn cpu(&self) -> Figure {
        Figure::ours(self.figure(|sample| sample.cpu_s).ours)
    }

    fn figure(&self, of: impl Fn(&Sample) -> f64) -> Figure {
        let ours: Vec<f64> = self.ours.iter().map(&of).collect();
        let peer: Vec<f64> = self.peer.iter().map(&of).collect();
        let ratios: Vec<f64> = ours.iter().zip(&peer).map(|(ours, peer)| ours / peer).collect();
        Figure { ours: median(&ours).unwrap_or(f64::NAN), peer: median(&peer), ratio: median(&ratios) }
    }
}

/// The median; for an even count the mean of the two middle values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_neighbours_not_of_medians() {
        let (mut a, mut b) = ([1.0, 4.0, 2.0].into_iter(), [2.0, 8.0, 8.0].into_iter());
        let sample = |seconds: Option<f64>| Sample::time(seconds.unwrap());
        let race = Comparison::run(3, || Ok(sample(a.next())), || Ok(Some(sample(b.next())))).unwrap();
        let time = race.time();
        assert_eq!((time.ours, time.peer, time.ratio), (2.0, Some(8.0), Some(0.5)));
    }

    #[test]
    fn without_a_peer_there_is_no_ratio() {
        let race = Comparison::run(2, || Ok(Sample::default()), || Ok(None)).unwrap();
        assert_eq!(race.time().ratio, None);
    }

    #[test]
    fn the_median_of_an_even_count_is_between() {
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
        assert_eq!(median(&[]), None);
    }
}
