//! Values that a job chooses for the settings that are left open, with the reasons.

use std::fmt::Display;

use crate::job::ResolvedSettings;
use crate::param::ParamSpec;

/// A chosen value and the reason; the reason is empty if the value was given or there is nothing to tell.
pub struct ChosenValue<T> {
    pub value: T,
    pub reason: String,
}

/// A chosen value with its reason.
pub fn chosen<T>(value: T, why: impl Into<String>) -> ChosenValue<T> {
    ChosenValue { value, reason: why.into() }
}

impl ResolvedSettings {
    /// Sets a parameter, and tells the reason unless it is empty.
    pub fn add(&mut self, spec: &ParamSpec, value: impl Display, reason: &str) {
        if !reason.is_empty() {
            self.reasons.push(format!("{}={value}: {reason}", spec.name));
        }
        self.settings.set_text(spec.name, value.to_string());
    }
}
