//! An instance of a module: its store with limits, its memory, and the area of that memory that holds the rows.
//!
//! The host grows the memory by the pages of the area, so a module needs no allocator for rows. The module may write
//! anywhere in its own memory, and the host checks everything that the module returns.

use std::sync::{Mutex, PoisonError};

use matrix::FunctionFault;
use wasmtime::{
    Engine, Instance, InstancePre, Memory, Store, StoreLimits, StoreLimitsBuilder, Trap, TypedFunc,
    WasmParams, WasmResults,
};

use crate::{Error, Limits, exports};

/// Size of a page of linear memory, in bytes.
const PAGE: usize = 1 << 16;

/// Maximum number of table elements (functions that are called by pointer).
const TABLE_ELEMENTS: usize = 10_000;

/// Alignment of every slice in the area, in bytes: one cache line.
pub(crate) const ALIGNMENT: usize = 64;

/// Everything that is needed to create an instance.
#[derive(Clone)]
pub(crate) struct SandboxFactory {
    pub(crate) engine: Engine,
    pub(crate) instance: InstancePre<StoreLimits>,
    pub(crate) limits: Limits,
}

impl SandboxFactory {
    pub(crate) fn instantiate(&self) -> Result<Sandbox, FunctionFault> {
        let limits = StoreLimitsBuilder::new()
            .memory_size(self.limits.memory_bytes)
            .table_elements(TABLE_ELEMENTS)
            .instances(1)
            .memories(1)
            .trap_on_grow_failure(true)
            .build();
        let mut store = Store::new(&self.engine, limits);
        store.limiter(|limits| limits);
        let budget = CallLimits { steps: self.limits.steps, memory_bytes: self.limits.memory_bytes };
        let start = |store: &mut Store<StoreLimits>| {
            store.set_fuel(budget.steps)?;
            self.instance.instantiate(store)
        };
        let instance = start(&mut store).map_err(|error| budget.fault("its start", &error))?;
        let memory = instance
            .get_memory(&mut store, exports::MEMORY)
            .ok_or_else(|| FunctionFault::user("the module exports no memory"))?;
        Ok(Sandbox { store, instance, memory, area: 0, area_bytes: 0, limits: self.limits })
    }
}

/// An instance of a module with its memory.
pub(crate) struct Sandbox {
    store: Store<StoreLimits>,
    instance: Instance,
    memory: Memory,
    area: usize,
    area_bytes: usize,
    limits: Limits,
}

impl Sandbox {
    /// Returns an exported function.
    pub(crate) fn function<P: WasmParams, R: WasmResults>(
        &mut self,
        name: &str,
    ) -> Result<TypedFunc<P, R>, Error> {
        let typed = self.instance.get_typed_func(&mut self.store, name);
        typed.map_err(|error| {
            Error::export(name, format!("of another type ({error:#})"), "that of the interface")
        })
    }

    /// Returns the address of an area of at least `bytes` bytes for rows.
    pub(crate) fn area(&mut self, bytes: usize) -> Result<usize, FunctionFault> {
        if bytes <= self.area_bytes {
            return Ok(self.area);
        }
        let old = self.memory.data_size(&self.store);
        // An area at the end of the memory is extended; otherwise a new one starts there.
        let at_end = self.area_bytes > 0 && self.area + self.area_bytes == old;
        let start = if at_end { self.area } else { old };
        let pages = (start + bytes - old).div_ceil(PAGE);
        if self.memory.grow(&mut self.store, pages as u64).is_err() {
            return Err(FunctionFault::user(format!(
                "the rows of a call need {bytes} bytes beside the {start} of the module, {} are allowed (or fewer by \
                 the module's own maximum): reduce the memory of the module",
                self.limits.memory_bytes
            )));
        }
        self.area = start;
        self.area_bytes = old + pages * PAGE - start;
        Ok(start)
    }

    /// Returns the whole memory of the module.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        self.memory.data_mut(&mut self.store)
    }

    /// Calls a function of the module with the fuel for this number of columns.
    pub(crate) fn call<P: WasmParams, R: WasmResults>(
        &mut self,
        what: &str,
        function: &TypedFunc<P, R>,
        columns: usize,
        arguments: P,
    ) -> Result<R, FunctionFault> {
        let steps = self.limits.fuel_for(columns);
        let budget = CallLimits { steps, memory_bytes: self.limits.memory_bytes };
        let set = self.store.set_fuel(steps);
        set.and_then(|()| function.call(&mut self.store, arguments))
            .map_err(|error| budget.fault(what, &error))
    }

    /// Returns the bytes at a packed address (lower 32 bits) and length (upper 32 bits).
    pub(crate) fn packed_slice(&mut self, what: &str, place: u64) -> Result<&[u8], FunctionFault> {
        let (address, len) = (place as u32 as usize, (place >> 32) as usize);
        let bytes = self.bytes();
        let size = bytes.len();
        bytes.get(address..address.saturating_add(len)).ok_or_else(|| {
            FunctionFault::user(format!(
                "{what} returned {len} bytes at address {address}, outside of its memory of {size} bytes"
            ))
        })
    }
}

/// The limits of a call, for the text of errors.
struct CallLimits {
    steps: u64,
    memory_bytes: usize,
}

impl CallLimits {
    fn fault(&self, what: &str, error: &wasmtime::Error) -> FunctionFault {
        let text = match error.downcast_ref::<Trap>() {
            Some(Trap::OutOfFuel) => format!(
                "{what} was stopped after {} units of fuel: it has an endless loop, or does too much work for one \
                 call",
                self.steps
            ),
            Some(Trap::StackOverflow) => format!("{what} overflowed the stack: its recursion is too deep"),
            Some(trap) => format!("{what} trapped: {trap}"),
            None => {
                let limit = self.memory_bytes;
                let reason = error.root_cause();
                format!("{what} failed: {reason} (at most {limit} bytes of memory are allowed)")
            }
        };
        FunctionFault::user(text)
    }
}

/// Idle instances: at most one for each thread that has been in a call at the same time.
pub(crate) struct InstancePool<T> {
    idle: Mutex<Vec<T>>,
}

impl<T> InstancePool<T> {
    pub(crate) fn new() -> Self {
        Self { idle: Mutex::new(Vec::new()) }
    }

    /// Runs `use_it` on an idle instance, or on one that `make` creates when none is idle. The instance becomes idle
    /// again afterwards, unless there was a fault.
    pub(crate) fn with<R>(
        &self,
        make: impl FnOnce() -> Result<T, FunctionFault>,
        use_it: impl FnOnce(&mut T) -> Result<R, FunctionFault>,
    ) -> Result<R, FunctionFault> {
        let waiting = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut instance = waiting.map_or_else(make, Ok)?;
        let outcome = use_it(&mut instance)?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(instance);
        Ok(outcome)
    }
}

/// Turns a status other than 0 into a fault.
pub(crate) fn check_status(what: &str, status: i32) -> Result<(), FunctionFault> {
    if status == 0 {
        return Ok(());
    }
    Err(FunctionFault::user(format!(
        "{what} refused with status {status}; its meaning is defined by the module"
    )))
}

/// Lays slices out one after the other.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    end: usize,
}

impl Layout {
    /// Reserves `bytes` bytes and returns their offset.
    pub(crate) fn reserve(&mut self, bytes: usize) -> usize {
        let start = self.end.next_multiple_of(ALIGNMENT);
        self.end = start + bytes;
        start
    }

    /// Total number of bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.end
    }
}
