//! What a process serves at its HTTP port.

use std::pin::Pin;
use std::sync::Arc;

use rpc::serve::Lanes;
use rpc::{Limits, Metrics};

use crate::master_handle::MasterHandle;

type MetricsFuture = Pin<Box<dyn Future<Output = Result<Metrics, String>> + Send>>;
/// Reads the metrics of a process. A process without metrics is not healthy; the error says why.
pub type MetricsSource = Arc<dyn Fn() -> MetricsFuture + Send + Sync>;

/// The metrics of the lanes of a process and of their connections.
pub fn metrics_of_lanes(lanes: Lanes) -> MetricsSource {
    Arc::new(move || {
        let lanes = lanes.clone();
        Box::pin(async move { lanes.metrics().await })
    })
}

/// What a process serves at its HTTP port.
pub struct HttpConfig {
    /// The shared secret; empty when there is none.
    pub token: Vec<u8>,
    /// The limits of connections and of their times. Those of frames have no meaning here.
    pub limits: Limits,
    /// Runs the calls about jobs. Only a master has it.
    pub master: Option<Arc<dyn MasterHandle>>,
    pub metrics: MetricsSource,
}
