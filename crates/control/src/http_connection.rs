//! One HTTP connection. It must make a call soon, show the token within a minute, and read its answers.

use axum::{Extension, Router};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rpc::serve::{Socket, first_of};
use rpc::{Limits, Stop};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::counters::{Counters, count};
use crate::limits::UNAUTHENTICATED_TIME;

/// What a connection has done so far; it only rises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AuthState {
    /// It has made no call.
    #[default]
    Silent,
    /// It has made calls that need no token.
    Anonymous,
    /// It has shown the token.
    Authenticated,
    /// It has left an answer unread for too long.
    Unread,
}

/// The standing of a connection, shared by its calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpConnection(watch::Sender<AuthState>);

/// Why a connection is ended by this process.
enum End {
    Finished,
    Stopped,
    Silent,
    Unauthenticated,
    Unread,
}

impl HttpConnection {
    pub(crate) fn raise(&self, auth_state: AuthState) {
        self.0.send_if_modified(|current| {
            let rises = *current < auth_state;
            *current = auth_state.max(*current);
            rises
        });
    }

    /// Serves the connection to its end. When this process ends it, its calls may finish, unless nobody reads them.
    pub(crate) async fn serve(
        self,
        protocol: &Builder<TokioExecutor>,
        routes: Router,
        socket: Socket,
        limits: &Limits,
        stop: &Stop,
        counters: &Counters,
    ) {
        let service = TowerToHyperService::new(routes.layer(Extension(self.clone())));
        let mut served = std::pin::pin!(protocol.serve_connection(TokioIo::new(socket), service));
        let finished = async {
            // An error is one of the other end, which has left.
            let _ = served.as_mut().await;
            End::Finished
        };
        let stopped = async {
            stop.raised().await;
            End::Stopped
        };
        match first_of(finished, first_of(stopped, self.must_end(limits))).await {
            End::Finished => return,
            End::Stopped => {}
            End::Silent => return count(&counters.closed_unauthenticated),
            End::Unauthenticated => count(&counters.closed_unauthenticated),
            End::Unread => return count(&counters.closed_unread),
        }
        served.as_mut().graceful_shutdown();
        let _ = timeout(limits.close_time, served).await;
    }

    /// Ends when the connection has not done in time what it must do.
    async fn must_end(&self, limits: &Limits) -> End {
        let mut auth_state = self.0.subscribe();
        for (limit, expected, end) in [
            (limits.hello_time, AuthState::Anonymous, End::Silent),
            (UNAUTHENTICATED_TIME, AuthState::Authenticated, End::Unauthenticated),
        ] {
            if timeout(limit, auth_state.wait_for(|auth_state| *auth_state >= expected)).await.is_err() {
                return end;
            }
        }
        // The sender is in `self`, so waiting does not fail.
        let _ = auth_state.wait_for(|auth_state| *auth_state == AuthState::Unread).await;
        End::Unread
    }
}
