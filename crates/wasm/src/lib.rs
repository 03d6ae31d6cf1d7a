//! PS functions as WebAssembly modules. Users supply code without building a binary of their own; it runs in a sandbox
//! with limits on time and memory.
//!
//! [docs/wasm-functions.md](../../../docs/wasm-functions.md) describes the exports of a module; [`exports`] has them as
//! code. Only this crate uses wasmtime. It depends on `matrix`, whose function traits it implements.
//!
//! | module | what it holds |
//! |---|---|
//! | [`exports`] | the exports of the interface |
//! | [`module`] | [`load`]: from bytes to functions, and everything that can be wrong with a file |
//! | [`limits`] | limits on what a module uses |
//! | `sandbox` | an instance, the area of its memory that holds rows, calls with limits, and the pool of instances |
//! | [`push`], [`pull`], [`sum`] | the three kinds of functions |
//! | [`module_file`] | module files that are sent with a job, and the function table that they make |
//!
//! **Time** is counted in units of wasmtime's fuel (one for an instruction, one for a byte of a bulk copy), not on a
//! clock. The same call uses the same fuel on every server, however busy, and needs no timer thread.
//!
//! **Same bytes.** NaNs are made canonical, and there are no threads, no relaxed SIMD and no imports, so that a module
//! computes the same everywhere. Instances are reused for later calls in any order, so a function must not keep state
//! from one call to the next. After a fault its instance is discarded.

mod error;
pub mod exports;
pub mod limits;
mod memory;
pub mod module;
pub mod module_file;
pub mod pull;
pub mod push;
mod sandbox;
mod signature;
pub mod sum;

pub use error::Error;
pub use limits::Limits;
pub use module::{Module, load};
pub use pull::WasmPull;
pub use push::WasmPush;
pub use sum::WasmSum;
