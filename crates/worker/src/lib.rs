//! Reaches parameters on servers: the agent as a pure state machine, and its sockets.
