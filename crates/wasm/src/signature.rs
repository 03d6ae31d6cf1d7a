//! The properties of one function of a module, and its code.

use matrix::function::{Arity, Shape};
use matrix::{ElementType, FunctionFault};
use wasmtime::{TypedFunc, WasmParams, WasmResults};

use crate::exports::{ExportKind, TYPE_COUNT, type_index};
use crate::sandbox::Sandbox;

/// The properties of one function of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionSignature {
    pub(crate) name: String,
    pub(crate) kind: ExportKind,
    pub(crate) version: u32,
    pub(crate) reads: Arity,
    pub(crate) writes: Arity,
    /// Count of numbers in the argument.
    pub(crate) arguments: Option<Arity>,
    /// Whether the function is tried on all partitions before it changes the first.
    pub(crate) tries_first: bool,
    /// Whether the function writes all values of its rows without reading the old ones.
    pub(crate) overwrites: bool,
    /// For each of [`ElementType::ALL`], whether the module has code.
    pub(crate) types: [bool; TYPE_COUNT],
    /// Whether the module has an `answer` export, which makes the answer from the last partial answer.
    pub(crate) has_answer: bool,
}

/// The methods of [`PullFunction`](matrix::PullFunction) and [`PushFunction`](matrix::PushFunction) that return the
/// signature.
macro_rules! signature_methods {
    () => {
        fn name(&self) -> &str {
            &self.signature.name
        }

        fn version(&self) -> u32 {
            self.signature.version
        }

        fn reads(&self) -> Arity {
            self.signature.reads
        }

        fn check(&self, argument: &Vec<f64>, shape: &Shape) -> Result<(), FunctionFault> {
            self.signature.check(argument, shape)
        }
    };
}
pub(crate) use signature_methods;

impl FunctionSignature {
    /// Returns the exported functions of an instance, one for each element type.
    pub(crate) fn code<P: WasmParams, R: WasmResults>(
        &self,
        sandbox: &mut Sandbox,
        kind: ExportKind,
    ) -> Result<[Option<TypedFunc<P, R>>; TYPE_COUNT], FunctionFault> {
        let mut code = [const { None }; TYPE_COUNT];
        for (i, element) in ElementType::ALL.iter().enumerate() {
            if self.types[i] {
                let export = format!("{}:{}:{}", kind.prefix(), self.name, element.name());
                let function = sandbox.function(&export);
                code[i] = Some(function.map_err(|error| FunctionFault::user(error.to_string()))?);
            }
        }
        Ok(code)
    }

    /// Refuses arguments and shapes that the function does not accept.
    pub(crate) fn check(&self, argument: &[f64], shape: &Shape) -> Result<(), FunctionFault> {
        let element = type_index(shape.element);
        if !self.types[element] {
            let known: Vec<&str> = ElementType::ALL
                .iter()
                .zip(self.types)
                .filter(|(_, has)| *has)
                .map(|(element, _)| element.name())
                .collect();
            let expected = format!("{}, for which the module has code", known.join(" or "));
            return Err(FunctionFault::argument(
                "element type of the matrix",
                ElementType::ALL[element].name(),
                expected,
            ));
        }
        if let Some(count) = self.arguments
            && !accepts(count, argument.len())
        {
            let actual = argument.len().to_string();
            return Err(FunctionFault::argument("numbers in the argument", actual, count.to_string()));
        }
        Ok(())
    }

    /// The fault of a call with an element type that the module has no code for.
    pub(crate) fn missing_code(&self, element: usize) -> FunctionFault {
        let element = ElementType::ALL[element].name();
        FunctionFault::user(format!("the module has no code of {} for {element}", self.name))
    }
}

fn accepts(count: Arity, n: usize) -> bool {
    match count {
        Arity::Exactly(exact) => n == exact,
        Arity::AtLeast(least) => n >= least,
    }
}
