use std::any::{Any, type_name};
use std::fmt;
use std::sync::Arc;

/// A Rust value that a client can hold, and pass to other functions. A clone is the same value.
///
/// ```
/// use rpc_session::{Exception, Functions, LocalObject};
///
/// struct Counter(std::sync::atomic::AtomicU32);
///
/// let mut functions = Functions::new();
/// functions
///     .add("counter", || LocalObject::new(Counter(0.into())))
///     .add("count", |object: LocalObject| {
///         let counter = object.downcast_ref::<Counter>();
///         let counter = counter.ok_or_else(|| Exception::new("TypeError", "that is no counter"))?;
///         Ok::<_, Exception>(counter.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
///     });
/// ```
#[derive(Clone)]
pub struct LocalObject {
    value: Arc<dyn Any + Send + Sync>,
    type_name: &'static str,
    type_index: i64,
}

impl LocalObject {
    /// The type index of an object of which nothing more is known.
    const OBJECT: i64 = 64;

    /// An object.
    #[must_use]
    pub fn new<T: Any + Send + Sync>(value: T) -> Self {
        Self {
            value: Arc::new(value),
            type_name: type_name::<T>(),
            type_index: Self::OBJECT,
        }
    }

    /// Replaces the number of the type that clients are told, 64 unless set.
    ///
    /// # Panics
    /// The number is not one of an object, or that of a type with a meaning of its own (text, bytes,
    /// function, tensor, module).
    #[must_use]
    pub fn with_type_index(mut self, index: i64) -> Self {
        assert!(
            (Self::OBJECT..=i32::MAX.into()).contains(&index)
                && ![65, 66, 68, 70, 73].contains(&index),
            "{index} is not the type index of an object"
        );
        self.type_index = index;
        self
    }

    /// The number of the type that clients are told.
    #[must_use]
    pub fn type_index(&self) -> i64 {
        self.type_index
    }

    /// The value, if it is of this type.
    #[must_use]
    pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
        self.value.downcast_ref()
    }
}

impl fmt::Debug for LocalObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalObject").field(&self.type_name).finish()
    }
}
