use std::any::Any;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Exception, IntoFunction, LocalFunction};

/// Functions by their names, and the modules that they were linked with. A clone is the same module.
///
/// ```
/// use rpc_session::LocalModule;
///
/// let math = LocalModule::new().with("add", |x: i64, y: i64| x + y);
/// let app = LocalModule::new();
/// app.import(&math).unwrap();
/// assert!(app.get_function("add", false)?.is_none());
/// assert!(app.get_function("add", true)?.is_some());
/// # Ok::<(), rpc_session::Exception>(())
/// ```
#[derive(Clone)]
pub struct LocalModule(Arc<Inner>);

#[derive(Default)]
struct Inner {
    functions: Arc<BTreeMap<String, LocalFunction>>,
    compiled: Option<Box<dyn CompiledModule>>,
    imports: Mutex<Vec<LocalModule>>,
}

/// A module of a [`Backend`](crate::Backend).
pub trait CompiledModule: Any + Send + Sync {
    /// The function of that name, if `query_imports` then also from the modules that this one imports.
    ///
    /// # Errors
    /// The backend failed.
    fn get_function(
        &self,
        name: &str,
        query_imports: bool,
    ) -> Result<Option<LocalFunction>, Exception>;

    /// Imports another module.
    ///
    /// # Errors
    /// It is a module of another backend, or the two would import each other.
    fn import(&self, module: &dyn CompiledModule) -> Result<(), Exception>;
}

/// Held by whoever imports, so that two imports at once make no circle.
static IMPORTING: Mutex<()> = Mutex::new(());

impl LocalModule {
    /// A module without functions.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::default())
    }

    pub(super) fn of(functions: Arc<BTreeMap<String, LocalFunction>>) -> Self {
        Self(Arc::new(Inner {
            functions,
            imports: Mutex::default(),
            compiled: None,
        }))
    }

    /// A module of a backend.
    #[must_use]
    pub fn compiled(module: impl CompiledModule) -> Self {
        Self(Arc::new(Inner {
            functions: Arc::default(),
            imports: Mutex::default(),
            compiled: Some(Box::new(module)),
        }))
    }

    /// What it is, if it is a module of a backend.
    #[must_use]
    pub fn as_compiled(&self) -> Option<&dyn CompiledModule> {
        self.0.compiled.as_deref()
    }

    /// A module with the functions of this one, and one more.
    #[must_use]
    pub fn with<Marker>(self, name: &str, function: impl IntoFunction<Marker>) -> Self {
        let mut functions = Arc::clone(&self.0.functions);
        let function = LocalFunction::new(name, function);
        Arc::make_mut(&mut functions).insert(name.to_owned(), function);
        let imports = Mutex::new(self.imports().clone());
        Self(Arc::new(Inner {
            functions,
            imports,
            compiled: None,
        }))
    }

    /// The function of that name, if `query_imports` then also from the modules that this one imports.
    ///
    /// # Errors
    /// A backend that has one of these modules failed.
    pub fn get_function(
        &self,
        name: &str,
        query_imports: bool,
    ) -> Result<Option<LocalFunction>, Exception> {
        let mut found = Ok(None);
        self.search(|module| {
            found = match &module.0.compiled {
                Some(compiled) => compiled.get_function(name, query_imports),
                None => Ok(module.0.functions.get(name).cloned()),
            };
            !matches!(found, Ok(None)) || !query_imports
        });
        found
    }

    /// Imports a module. One of a backend imports others of it alone.
    ///
    /// # Errors
    /// That module is this one, or imports it, or more than 1024 modules would hang together; or the backend
    /// refuses.
    pub fn import(&self, module: &Self) -> Result<(), Exception> {
        /// Modules that a client let go of live on in those that import them.
        const MOST: usize = 1024;
        if let Some(own) = self.as_compiled() {
            return match module.as_compiled() {
                Some(compiled) => own.import(compiled),
                None => Err(Exception::new(
                    "TypeError",
                    "a compiled module cannot import functions in Rust",
                )),
            };
        }
        let _alone = IMPORTING.lock().unwrap_or_else(PoisonError::into_inner);
        if module.search(|imported| Arc::ptr_eq(&imported.0, &self.0)) {
            return Err(Exception::new(
                "ValueError",
                "a module cannot import itself, nor one that imports it",
            ));
        }
        let together = self.count() + module.count();
        if together > MOST {
            return Err(Exception::runtime(format!(
                "{together} modules would import each other, more than the limit of {MOST}"
            )));
        }
        self.imports().push(module.clone());
        Ok(())
    }

    /// How many modules there are: this one, and what it imports.
    fn count(&self) -> usize {
        let mut count = 0;
        self.search(|_| {
            count += 1;
            false
        });
        count
    }

    /// Visits the module and what it imports, nearest first and each once, until one is what is
    /// looked for. (Not a function that calls itself: clients may build long chains.)
    fn search(&self, mut is_it: impl FnMut(&Self) -> bool) -> bool {
        let mut seen = HashSet::new();
        let mut pending = vec![self.clone()];
        while let Some(module) = pending.pop() {
            if !seen.insert(Arc::as_ptr(&module.0)) {
                continue;
            }
            if is_it(&module) {
                return true;
            }
            pending.extend(module.imports().iter().rev().cloned());
        }
        false
    }

    fn imports(&self) -> MutexGuard<'_, Vec<Self>> {
        self.0
            .imports
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for LocalModule {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Inner {
    /// Drops a long chain of imports one after the other, and not one inside the other.
    fn drop(&mut self) {
        let imports = |inner: &mut Self| {
            let imports = inner.imports.get_mut();
            std::mem::take(imports.unwrap_or_else(PoisonError::into_inner))
        };
        let mut pending = imports(self);
        while let Some(module) = pending.pop() {
            if let Some(mut last) = Arc::into_inner(module.0) {
                pending.append(&mut imports(&mut last));
            }
        }
    }
}

impl fmt::Debug for LocalModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.compiled {
            Some(_) => f.write_str("LocalModule(compiled)"),
            None => f
                .debug_tuple("LocalModule")
                .field(&self.0.functions.keys())
                .finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answering(name: &str, answer: i64) -> LocalModule {
        LocalModule::new().with(name, move || answer)
    }

    fn answer(module: &LocalModule, name: &str) -> Option<i64> {
        let function = module.get_function(name, true).unwrap()?;
        function.call(&[]).unwrap().get::<i64>().ok()
    }

    #[test]
    fn own_functions_come_before_imported_ones_and_those_in_order() {
        let app = answering("f", 0);
        for module in [answering("f", 1), answering("g", 2), answering("g", 3)] {
            app.import(&module).unwrap();
        }
        assert_eq!(answer(&app, "f"), Some(0));
        assert_eq!(answer(&app, "g"), Some(2));
        assert_eq!(answer(&app, "h"), None);
    }

    #[test]
    fn circles_are_refused() {
        let (a, b, c) = (LocalModule::new(), LocalModule::new(), LocalModule::new());
        assert!(a.import(&a).is_err());
        a.import(&b).unwrap();
        b.import(&c).unwrap();
        a.import(&c).unwrap();
        for importer in [&b, &c] {
            assert!(importer.import(&a).is_err());
        }
    }

    #[test]
    fn a_chain_has_a_limit() {
        let mut chain = LocalModule::new();
        let refused = loop {
            let next = LocalModule::new();
            if let Err(error) = next.import(&chain) {
                break error;
            }
            chain = next;
            assert!(chain.count() <= 1024);
        };
        assert_eq!(chain.count(), 1024);
        assert!(refused.message().starts_with("1025 modules"), "{refused}");
    }

    #[test]
    fn chains_and_lattices_cost_what_they_are_long() {
        let mut chain = answering("deep", 7);
        for _ in 0..100_000 {
            let next = LocalModule::new();
            next.0.imports.lock().unwrap().push(chain);
            chain = next;
        }
        assert_eq!(answer(&chain, "deep"), Some(7));
        drop(chain);

        let mut lattice = LocalModule::new();
        for _ in 0..64 {
            let next = LocalModule::new();
            next.import(&lattice).unwrap();
            next.import(&lattice).unwrap();
            lattice = next;
        }
        assert_eq!(answer(&lattice, "none"), None);
    }
}
