use std::collections::BTreeMap;
use std::sync::Arc;

use rpc_proto::Value;

use super::super::{bisync, dyn_trait};
use super::session::Session;
use crate::Exception;

/// Makes the session that a client asks for, from the arguments that it gives.
#[bisync]
#[dyn_trait]
pub trait Construct: Send + Sync {
    /// Makes a session. An exception is the client's answer; it may ask again.
    async fn construct(&self, args: &[Value<'_>]) -> Result<Box<dyn Session>, Exception>;
}

/// The session constructors of a server, by the names under which clients ask for them.
#[derive(Clone)]
pub struct Constructors {
    by_name: BTreeMap<String, Arc<dyn Construct>>,
}

impl Constructors {
    /// The session of a client that asks for none in particular.
    pub const LOCAL: &'static str = "rpc.LocalSession";

    /// `local` makes the server's own sessions; clients that do not name a constructor get one as well.
    #[must_use]
    pub fn new(local: impl Construct + 'static) -> Self {
        let none = Self {
            by_name: BTreeMap::new(),
        };
        none.with(Self::LOCAL, local)
    }

    /// Adds a constructor, or replaces the one of that name.
    #[must_use]
    pub fn with(mut self, name: &str, constructor: impl Construct + 'static) -> Self {
        self.by_name.insert(name.to_owned(), Arc::new(constructor));
        self
    }
}

#[bisync]
impl Constructors {
    /// The session that the values of an init packet ask for: the name of a constructor and its
    /// arguments, or nothing.
    pub(super) async fn construct(
        &self,
        values: &[Value<'_>],
    ) -> Result<Box<dyn Session>, Exception> {
        let (name, args) = match values.split_first() {
            None => (Self::LOCAL, values),
            Some((Value::Str(name), args)) => (&**name, args),
            Some((other, _)) => {
                return Err(Exception::new(
                    "TypeError",
                    format!(
                        "session constructor: expected its name first, found {}",
                        other.kind()
                    ),
                ));
            }
        };
        let Some(constructor) = self.by_name.get(name) else {
            let known: Vec<_> = self.by_name.keys().map(String::as_str).collect();
            return Err(Exception::new(
                "ValueError",
                format!(
                    "unknown session constructor {name:?}; this server has {}",
                    known.join(", ")
                ),
            ));
        };
        constructor.construct(args).await
    }
}

impl std::fmt::Debug for Constructors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}
