//! Bytes inside a JSON message.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes that JSON shows as base64 (RFC 4648, section 4, with padding): four characters for three bytes.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Base64Bytes(pub Vec<u8>);

impl fmt::Debug for Base64Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for Base64Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let fault = |error| D::Error::custom(format!("expected base64 with padding: {error}"));
        STANDARD.decode(text).map(Self).map_err(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_other_text_is_refused() {
        for bytes in [vec![], vec![0], vec![0, 97, 115, 109], (0..=255).collect()] {
            let text = serde_json::to_string(&Base64Bytes(bytes.clone())).expect("a text");
            assert_eq!(serde_json::from_str::<Base64Bytes>(&text).expect("its own text"), Base64Bytes(bytes));
        }
        assert_eq!(serde_json::to_string(&Base64Bytes(b"\0asm".to_vec())).expect("a text"), "\"AGFzbQ==\"");
        let error = serde_json::from_str::<Base64Bytes>("\"AGF*\"").expect_err("a star").to_string();
        assert!(error.contains("expected base64"), "{error}");
        assert_eq!(format!("{:?}", Base64Bytes(vec![1; 5])), "5 bytes");
    }
}
