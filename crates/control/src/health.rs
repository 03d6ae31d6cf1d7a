//! The service `grpc.health.v1.Health`, the standard health check. It answers like `GET /health`.

use tonic::{Request, Response, Status};

use crate::http_config::MetricsSource;
use crate::pb::health::health_check_response::ServingStatus;
use crate::pb::health::health_server::Health;
use crate::pb::health::{HealthCheckRequest, HealthCheckResponse};

pub(crate) struct HealthService {
    pub(crate) metrics: MetricsSource,
    /// Names of the services of this process.
    pub(crate) services: &'static [&'static str],
}

#[tonic::async_trait]
impl Health for HealthService {
    type WatchStream = tokio_stream::Empty<Result<HealthCheckResponse, Status>>;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let service = request.into_inner().service;
        if !service.is_empty() && !self.services.contains(&service.as_str()) {
            let text = format!("no service {service:?}: this process has {:?}", self.services);
            return Err(Status::not_found(text));
        }
        let status = match (self.metrics)().await {
            Ok(_) => ServingStatus::Serving,
            Err(text) => {
                tracing::warn!(text, "health check failed");
                ServingStatus::NotServing
            }
        };
        Ok(Response::new(HealthCheckResponse { status: status.into() }))
    }

    async fn watch(
        &self,
        _request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("Watch is not supported: call Check from time to time"))
    }
}
