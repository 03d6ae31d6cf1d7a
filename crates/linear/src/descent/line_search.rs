//! Line searches as state machines on numbers: a search receives the objective at the current step length and returns
//! the next length to try.
//!
//! [`WolfeSearch`] implements Nocedal and Wright, "Numerical Optimization", algorithms 3.5 and 3.6, with cubic
//! interpolation (eq. 3.59). [`ArmijoSearch`] halves the length until the objective has decreased enough; it is for
//! objectives with corners.

use serde::{Deserialize, Serialize};

/// The objective must decrease by this share of the decrease that the slope predicts (`c1`; Nocedal and Wright, page
/// 62).
const DECREASE: f64 = 1e-4;
/// The absolute slope must become at most this share of the slope at the start (`c2`, for quasi-Newton directions).
const CURVATURE: f64 = 0.9;
/// Largest number of evaluations of a search.
const EVALUATION_LIMIT: u32 = 30;
/// A bracket grows by at most this factor.
const GROWTH: f64 = 10.0;
/// Interpolated lengths keep at least this share of the bracket as distance from its ends.
const MARGIN: f64 = 0.1;
/// Factor of a halving.
const HALVING: f64 = 0.5;
/// Differences of the objective below this share of it are rounding errors.
const ROUNDING: f64 = 1e-13;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SearchDecision {
    /// The point that was evaluated satisfies the conditions.
    Accept,
    /// Evaluate at this length.
    Try(f64),
    /// The search found no such point, for this reason.
    Fail(&'static str),
}

/// Step length, value and slope of a point on the line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct LinePoint {
    t: f64,
    value: f64,
    slope: f64,
}

/// A search for a step length that satisfies the strong Wolfe conditions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WolfeSearch {
    start: LinePoint,
    last: LinePoint,
    bracket: Option<(LinePoint, LinePoint)>,
    t: f64,
    evaluations: u32,
}

impl WolfeSearch {
    /// A search from `value` along a direction of `slope`, with the first length `t`. `None` if the direction does not
    /// descend.
    pub fn new(value: f64, slope: f64, t: f64) -> Option<Self> {
        let start = LinePoint { t: 0.0, value, slope };
        (slope < 0.0 && t > 0.0 && value.is_finite()).then_some(Self {
            start,
            last: start,
            bracket: None,
            t,
            evaluations: 0,
        })
    }

    pub fn length(&self) -> f64 {
        self.t
    }

    /// Receives the objective and its slope along the direction at [`Self::length`].
    pub fn observe(&mut self, value: f64, slope: f64) -> SearchDecision {
        self.evaluations += 1;
        let now = LinePoint { t: self.t, value, slope };
        let is_low = self.has_decreased(&now);
        if is_low && slope.abs() <= -CURVATURE * self.start.slope {
            return SearchDecision::Accept;
        }
        if self.evaluations >= EVALUATION_LIMIT {
            return SearchDecision::Fail("no step length decreases the objective enough");
        }
        self.bracket = match self.bracket {
            None => self.first_bracket(now, is_low),
            Some((low, high)) => Some(zoom(low, high, now, is_low)),
        };
        match self.bracket {
            None => {
                let grown = cubic(self.start, now).filter(|t| *t > now.t).unwrap_or(GROWTH * now.t);
                self.last = now;
                self.t = grown.clamp(2.0 * now.t, GROWTH * now.t);
            }
            Some((low, high)) => {
                let (left, right) = (low.t.min(high.t), low.t.max(high.t));
                let width = right - left;
                if width <= f64::EPSILON * right {
                    return SearchDecision::Fail("the remaining step lengths differ only by rounding");
                }
                let middle = left + 0.5 * width;
                let t = cubic(low, high).unwrap_or(middle);
                self.t = t.clamp(left + MARGIN * width, right - MARGIN * width);
            }
        }
        SearchDecision::Try(self.t)
    }

    fn has_decreased(&self, now: &LinePoint) -> bool {
        let slack = ROUNDING * self.start.value.abs();
        now.value <= self.start.value + DECREASE * now.t * self.start.slope + slack
    }

    /// Algorithm 3.5: the first bracket, with its lower end first.
    fn first_bracket(&self, now: LinePoint, is_low: bool) -> Option<(LinePoint, LinePoint)> {
        if !is_low || (self.evaluations > 1 && now.value >= self.last.value) {
            Some((self.last, now))
        } else if now.slope >= 0.0 {
            Some((now, self.last))
        } else {
            None
        }
    }
}

/// Algorithm 3.6: the bracket with the new point as one of its ends.
fn zoom(low: LinePoint, high: LinePoint, now: LinePoint, is_low: bool) -> (LinePoint, LinePoint) {
    if !is_low || now.value >= low.value {
        (low, now)
    } else if now.slope * (high.t - low.t) >= 0.0 {
        (now, low)
    } else {
        (now, high)
    }
}

/// The minimum of the cubic that interpolates values and slopes of both points (eq. 3.59).
fn cubic(a: LinePoint, b: LinePoint) -> Option<f64> {
    let d1 = a.slope + b.slope - 3.0 * (a.value - b.value) / (a.t - b.t);
    let square = d1 * d1 - a.slope * b.slope;
    if square.is_nan() || square < 0.0 {
        return None;
    }
    let d2 = (b.t - a.t).signum() * square.sqrt();
    let t = b.t - (b.t - a.t) * (b.slope + d2 - d1) / (b.slope - a.slope + 2.0 * d2);
    t.is_finite().then_some(t)
}

/// A search for a step length with enough decrease, by halving.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArmijoSearch {
    value: f64,
    t: f64,
    evaluations: u32,
}

impl ArmijoSearch {
    pub fn new(value: f64, t: f64) -> Self {
        Self { value, t, evaluations: 0 }
    }

    pub fn length(&self) -> f64 {
        self.t
    }

    /// Receives the objective at [`Self::length`], and the change that the slope at the start predicts for this step.
    pub fn observe(&mut self, value: f64, promised: f64) -> SearchDecision {
        self.evaluations += 1;
        // A long step that is cut at many corners may predict no decrease; a shorter one may.
        let descends = promised < 0.0;
        if descends && value <= self.value + DECREASE * promised + ROUNDING * self.value.abs() {
            return SearchDecision::Accept;
        }
        if self.evaluations >= EVALUATION_LIMIT {
            return SearchDecision::Fail(if descends {
                "no step length decreases the objective enough"
            } else {
                "the search direction is not a descent direction"
            });
        }
        self.t *= HALVING;
        SearchDecision::Try(self.t)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Minimizes `f` along the line. Returns the accepted length and the number of evaluations.
    fn search(f: impl Fn(f64) -> (f64, f64), t: f64) -> (f64, u32) {
        let (value, slope) = f(0.0);
        let mut wolfe = WolfeSearch::new(value, slope, t).expect("descends");
        loop {
            let (now, along) = f(wolfe.length());
            match wolfe.observe(now, along) {
                SearchDecision::Accept => return (wolfe.length(), wolfe.evaluations),
                SearchDecision::Try(_) => {}
                SearchDecision::Fail(why) => panic!("{why} after {} evaluations", wolfe.evaluations),
            }
        }
    }

    #[test]
    fn accepted_lengths_fulfil_the_strong_wolfe_conditions() {
        // More and Thuente, "Line search algorithms with guaranteed sufficient decrease", 1994, functions 5.1 and 5.2,
        // and other functions with walls, kinks of the slope and distant minima.
        let functions: [fn(f64) -> (f64, f64); 5] = [
            |t| (-t / (t * t + 2.0), (t * t - 2.0) / (t * t + 2.0).powi(2)),
            |t| {
                let u = t + 0.004;
                (u.powi(5) - 2.0 * u.powi(4), 5.0 * u.powi(4) - 8.0 * u.powi(3))
            },
            |t| ((t - 3.0).powi(2), 2.0 * (t - 3.0)),
            |t| (t.exp() - 5.0 * t, t.exp() - 5.0),
            |t| ((t - 1.0).abs().powi(3), 3.0 * (t - 1.0) * (t - 1.0).abs()),
        ];
        for (i, f) in functions.into_iter().enumerate() {
            for t in [1e-3, 0.1, 1.0, 10.0, 1e3] {
                let (found, evaluations) = search(f, t);
                let ((value, slope), (start, first)) = (f(found), f(0.0));
                assert!(value <= start + DECREASE * found * first + 1e-12, "{i} from {t}");
                assert!(slope.abs() <= -CURVATURE * first, "{i} from {t}: {found}");
                assert!(evaluations <= 16, "{i} from {t}: {evaluations} evaluations");
            }
        }
    }

    #[test]
    fn values_that_are_no_numbers_shorten_the_step() {
        let f = |t: f64| if t > 0.1 { (f64::INFINITY, f64::NAN) } else { (t * t - 0.1 * t, 2.0 * t - 0.1) };
        let (found, _) = search(f, 10.0);
        assert!(found <= 0.1);
        let mut wolfe = WolfeSearch::new(0.0, -0.1, 10.0).expect("descends");
        assert_eq!(wolfe.observe(f64::INFINITY, f64::NAN), SearchDecision::Try(5.0), "half of the step");
    }

    #[test]
    fn a_line_that_does_not_descend_is_refused() {
        assert!(WolfeSearch::new(1.0, 0.0, 1.0).is_none() && WolfeSearch::new(1.0, f64::NAN, 1.0).is_none());
        let mut wolfe = WolfeSearch::new(1.0, -1.0, 1.0).expect("said to descend");
        let mut last = SearchDecision::Accept;
        for _ in 0..EVALUATION_LIMIT {
            last = wolfe.observe(2.0, 1.0);
        }
        assert!(matches!(last, SearchDecision::Fail(_)), "the slope was a lie: {last:?}");
        let mut armijo = ArmijoSearch::new(1.0, 1.0);
        assert_eq!(armijo.observe(0.5, 0.0), SearchDecision::Try(HALVING), "a shorter one may");
        for _ in 1..EVALUATION_LIMIT {
            last = armijo.observe(0.5, 0.0);
        }
        assert_eq!(last, SearchDecision::Fail("the search direction is not a descent direction"));
    }

    #[test]
    fn halving_stops_at_the_first_length_that_is_low_enough() {
        let mut search = ArmijoSearch::new(0.0, 8.0);
        let f = |t: f64| t * t - t;
        let mut lengths = vec![];
        while search.observe(f(search.length()), -search.length()) != SearchDecision::Accept {
            lengths.push(search.length());
        }
        assert_eq!((lengths, search.length()), (vec![4.0, 2.0, 1.0, 0.5], 0.5));
    }
}
