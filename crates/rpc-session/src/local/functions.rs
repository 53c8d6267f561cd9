use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Arg, Exception, IntoFunction, LocalFunction, LocalModule, LocalValue};

type ByName = BTreeMap<String, LocalFunction>;

/// The functions that a server offers: global ones, and those of its system library.
///
/// ```
/// use rpc_session::{Exception, Functions, LocalTensor};
///
/// let mut functions = Functions::new();
/// functions
///     .add("addone", |x: i64| x + 1)
///     .add("strcat", |name: &str, x: i64| format!("{name}:{x}"))
///     .add("double", |t: LocalTensor| -> Result<(), Exception> {
///         let doubled: Vec<_> = t.to_vec::<f32>()?.iter().map(|x| x * 2.0).collect();
///         t.write(&doubled)
///     })
///     .add_packed("first", |args| match args {
///         [first, ..] => Ok(first.clone().into()),
///         [] => Err(Exception::new("TypeError", "there is no first of nothing")),
///     });
/// let t = LocalTensor::from_slice(&[2], &[1.0_f32, 2.0]).unwrap();
/// functions.get("double").unwrap().call(&[t.clone().into()]).unwrap();
/// assert_eq!(t.to_vec::<f32>().unwrap(), [2.0, 4.0]);
/// ```
///
/// A clone is cheap, and changes to it do not reach the original.
#[derive(Clone, Default)]
pub struct Functions {
    global: Arc<ByName>,
    system_lib: Arc<ByName>,
}

impl Functions {
    /// No functions yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a global function, or replaces the one of that name.
    pub fn add<Marker>(&mut self, name: &str, function: impl IntoFunction<Marker>) -> &mut Self {
        self.insert(LocalFunction::new(name, function))
    }

    /// Adds a global function that takes whatever it is given.
    pub fn add_packed(
        &mut self,
        name: &str,
        body: impl Fn(&[Arg<'_>]) -> Result<LocalValue, Exception> + Send + Sync + 'static,
    ) -> &mut Self {
        self.insert(LocalFunction::packed(name, body))
    }

    /// Adds a global function under its own name.
    pub fn insert(&mut self, function: LocalFunction) -> &mut Self {
        Arc::make_mut(&mut self.global).insert(function.name().to_owned(), function);
        self
    }

    /// Adds a function to the system library, which clients load by no name.
    pub fn add_to_system_lib<Marker>(
        &mut self,
        name: &str,
        function: impl IntoFunction<Marker>,
    ) -> &mut Self {
        self.insert_into_system_lib(LocalFunction::new(name, function))
    }

    /// Adds a function to the system library under its own name.
    pub fn insert_into_system_lib(&mut self, function: LocalFunction) -> &mut Self {
        Arc::make_mut(&mut self.system_lib).insert(function.name().to_owned(), function);
        self
    }

    /// The global function of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<LocalFunction> {
        self.global.get(name).cloned()
    }

    /// The names of the global functions, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.global.keys().map(String::as_str)
    }

    pub(super) fn has_no_system_lib(&self) -> bool {
        self.system_lib.is_empty()
    }

    /// The system library. Each call gives a module of its own, so that what one client imports into
    /// it is not seen by the next.
    #[must_use]
    pub fn system_lib(&self) -> LocalModule {
        LocalModule::of(Arc::clone(&self.system_lib))
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Functions")
            .field("global", &self.global.keys())
            .field("system_lib", &self.system_lib.keys())
            .finish()
    }
}
