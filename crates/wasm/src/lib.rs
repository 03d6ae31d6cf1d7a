//! PS functions as WebAssembly modules: code that a user brings along without building a binary of their own, run in a
//! sandbox with limits on time and memory.
//!
//! What a module exports is in [docs/wasm-functions.md](../../../docs/wasm-functions.md) and, as code, in [`exports`]. This
//! crate alone knows wasmtime; it sees `matrix`, whose traits its functions implement.
//!
//! | module | what it holds |
//! |---|---|
//! | [`exports`] | the exports of the interface |
//! | [`module`] | [`load`]: from bytes to functions, and everything that can be wrong with a file |
//! | [`limits`] | what a module may take |
//! | `instantiate` | an instance, the part of its memory that is ours, calls with a budget; the pool of them |
//! | [`push`], [`pull`], [`sum`] | the three kinds of functions |
//! | [`module_file`] | files that travel with a job, the table that they make |
//!
//! **Time** is counted in steps (wasmtime's fuel: one for an instruction, one for a byte of a bulk copy), not on a clock: the
//! same call takes the same steps on every server, however busy, and needs no thread that ticks.
//!
//! **Same bytes.** NaNs are made canonical, and there are no threads, no relaxed SIMD and no imports, so that a module
//! computes the same everywhere. Instances are used again for later calls in any order, so a function must not carry
//! anything from one call into the next; after a fault its instance is thrown away.

mod error;
pub mod exports;
pub mod limits;
pub mod module;
pub mod module_file;
pub mod pull;
pub mod push;
mod sandbox;
pub mod sum;

pub use error::Error;
pub use limits::Limits;
pub use module::{Module, load};
pub use pull::WasmPull;
pub use push::WasmPush;
pub use sum::WasmSum;
