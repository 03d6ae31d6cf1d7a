//! The ranges of the settings of push rules.

#[derive(Clone, Copy)]
pub(super) enum SettingRange {
    Positive,
    NonNegative,
    UnitInterval,
}

impl SettingRange {
    pub(super) fn contains(self, x: f64) -> bool {
        match self {
            SettingRange::Positive => x > 0.0 && x.is_finite(),
            SettingRange::NonNegative => x >= 0.0 && x.is_finite(),
            SettingRange::UnitInterval => (0.0..1.0).contains(&x),
        }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            SettingRange::Positive => "a finite number > 0",
            SettingRange::NonNegative => "a finite number >= 0",
            SettingRange::UnitInterval => "a number in [0, 1)",
        }
    }
}
