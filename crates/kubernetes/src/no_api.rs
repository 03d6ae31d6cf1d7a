//! In place of the calls of the API, in a program without the feature `client`.

use serde_json::Value;

use crate::error::Error;

/// There is none.
pub(crate) enum Api {}

impl Api {
    pub(crate) fn new(_: Option<&str>, _: Option<&str>) -> Result<Self, Error> {
        Err(Error::NotBuilt)
    }

    pub(crate) fn namespace(&self) -> &str {
        match *self {}
    }

    pub(crate) fn call(&self, _: &str, _: &str, _: &str, _: Option<(&str, &Value)>) -> Result<Value, Error> {
        match *self {}
    }

    pub(crate) fn forward(&self, _: String, _: u16) -> Result<String, Error> {
        match *self {}
    }
}
