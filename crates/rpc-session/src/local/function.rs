use std::any::Any;
use std::fmt;
use std::sync::Arc;

use super::{Arg, Exception, FromArg, LocalValue, args};

/// A Rust function that clients can call. A clone is the same function.
///
/// ```
/// use rpc_session::{LocalFunction, LocalValue};
///
/// let strcat = LocalFunction::new("strcat", |name: &str, x: i64| format!("{name}:{x}"));
/// let joined = strcat.call(&["abc".into(), 11.into()]).unwrap();
/// assert_eq!(joined.get::<&str>().unwrap(), "abc:11");
/// assert_eq!(
///     strcat.call(&[1.into(), 11.into()]).unwrap_err().to_string(),
///     "TypeError: argument #0 of strcat: expected a text, found the integer 1"
/// );
/// ```
#[derive(Clone)]
pub struct LocalFunction(Arc<Named<dyn Callable>>);

/// What a [`LocalFunction`] does when it is called: any closure that takes packed arguments, or a function
/// of a [`Backend`](crate::Backend) that wants to recognise it as its own.
pub trait Callable: Any + Send + Sync {
    /// Does it.
    ///
    /// # Errors
    /// It takes other arguments, or fails.
    fn call(&self, args: &[Arg<'_>]) -> Result<LocalValue, Exception>;
}

impl<F> Callable for F
where
    F: Fn(&[Arg<'_>]) -> Result<LocalValue, Exception> + Send + Sync + 'static,
{
    fn call(&self, args: &[Arg<'_>]) -> Result<LocalValue, Exception> {
        self(args)
    }
}

struct Named<F: ?Sized> {
    name: Arc<str>,
    body: F,
}

impl LocalFunction {
    /// A function with arguments of known types; see [`IntoFunction`]. The name is for messages.
    #[must_use]
    pub fn new<Marker>(name: &str, function: impl IntoFunction<Marker>) -> Self {
        function.into_function(name)
    }

    /// A function that takes whatever it is given.
    ///
    /// ```
    /// use rpc_session::{LocalFunction, LocalValue};
    ///
    /// let count = LocalFunction::packed("count", |args| Ok(LocalValue::Int(args.len() as i64)));
    /// assert_eq!(count.call(&[1.into(), "x".into()]).unwrap().get::<u8>().unwrap(), 2);
    /// ```
    #[must_use]
    pub fn packed(
        name: &str,
        body: impl Fn(&[Arg<'_>]) -> Result<LocalValue, Exception> + Send + Sync + 'static,
    ) -> Self {
        Self::of(name, body)
    }

    /// A function that is called by what it is made of.
    #[must_use]
    pub fn of(name: &str, body: impl Callable) -> Self {
        let name = name.into();
        Self(Arc::new(Named { name, body }))
    }

    /// What it is made of, if that is of this type.
    #[must_use]
    pub fn downcast_ref<T: Callable>(&self) -> Option<&T> {
        let body: &dyn Any = &self.0.body;
        body.downcast_ref()
    }

    /// The name under which it was made.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Calls it.
    ///
    /// # Errors
    /// It takes other arguments, or fails.
    pub fn call(&self, args: &[LocalValue]) -> Result<LocalValue, Exception> {
        let args: Vec<_> = args.iter().map(LocalValue::as_arg).collect();
        self.call_with(&args)
    }

    /// Calls it with borrowed arguments.
    ///
    /// # Errors
    /// It takes other arguments, or fails.
    pub fn call_with(&self, args: &[Arg<'_>]) -> Result<LocalValue, Exception> {
        self.0.body.call(args)
    }
}

impl fmt::Debug for LocalFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalFunction").field(&self.name()).finish()
    }
}

/// What becomes a [`LocalFunction`]: closures and functions of up to twelve arguments.
///
/// Each argument is of a type that is [`FromArg`], and the result [`IntoReturn`]. Wrong arguments are
/// exceptions. `Marker` tells apart functions of different numbers of arguments, and is inferred.
pub trait IntoFunction<Marker> {
    /// Makes the function.
    fn into_function(self, name: &str) -> LocalFunction;
}

/// What a local function may give back: what is `Into<LocalValue>`, unsigned integers that fit, and
/// results of those, with any error.
pub trait IntoReturn {
    /// The value, or the exception.
    ///
    /// # Errors
    /// The function failed, or its result cannot be sent.
    fn into_return(self) -> Result<LocalValue, Exception>;
}

impl<T: Into<LocalValue>> IntoReturn for T {
    fn into_return(self) -> Result<LocalValue, Exception> {
        Ok(self.into())
    }
}

impl<T: IntoReturn, E: Into<Exception>> IntoReturn for Result<T, E> {
    fn into_return(self) -> Result<LocalValue, Exception> {
        self.map_err(E::into)?.into_return()
    }
}

macro_rules! unsigned_into_return {
    ($($type:ty),*) => {$(
        impl IntoReturn for $type {
            fn into_return(self) -> Result<LocalValue, Exception> {
                let value = i64::try_from(self).map_err(|_| {
                    Exception::new("OverflowError", format!("{self} is above 63 bits"))
                })?;
                Ok(LocalValue::Int(value))
            }
        }
    )*};
}

unsigned_into_return!(u64, usize);

fn wrong_count(name: &str, expected: usize, found: usize) -> Exception {
    let plural = if expected == 1 { "" } else { "s" };
    Exception::new(
        "TypeError",
        format!("{name}: expected {expected} argument{plural}, found {found}"),
    )
}

/// The argument at `index`.
pub(super) fn typed<'a, T: FromArg>(
    name: &str,
    index: usize,
    arg: &Arg<'a>,
) -> Result<T::Item<'a>, Exception> {
    T::from_arg(arg).ok_or_else(|| {
        let (expected, found) = (T::expected(), args::found(arg));
        Exception::new(
            "TypeError",
            format!("argument #{index} of {name}: expected {expected}, found {found}"),
        )
    })
}

macro_rules! into_function {
    ($count:literal $($type:ident $index:literal),*) => {
        // A closure that takes `&str` takes it for any lifetime; the first bound says which types the
        // arguments have, and the second that it takes them as the request lends them.
        impl<F, R, $($type),*> IntoFunction<fn($($type),*) -> R> for F
        where
            F: Fn($($type),*) -> R,
            F: for<'a> Fn($($type::Item<'a>),*) -> R + Send + Sync + 'static,
            R: IntoReturn,
            $($type: FromArg,)*
        {
            #[allow(
                non_snake_case,
                clippy::too_many_arguments,
                reason = "there is one for each argument, named after its type"
            )]
            fn into_function(self, name: &str) -> LocalFunction {
                // So called, it has one signature, of the two that it is known to have here.
                fn call<R, $($type),*>(function: impl Fn($($type),*) -> R, $($type: $type),*) -> R {
                    function($($type),*)
                }
                let called: Arc<str> = name.into();
                LocalFunction::packed(name, move |args| {
                    let [$($type),*] = args else {
                        return Err(wrong_count(&called, $count, args.len()));
                    };
                    call(&self, $(typed::<$type>(&called, $index, $type)?),*).into_return()
                })
            }
        }
    };
}

into_function!(0);
into_function!(1 A 0);
into_function!(2 A 0, B 1);
into_function!(3 A 0, B 1, C 2);
into_function!(4 A 0, B 1, C 2, D 3);
into_function!(5 A 0, B 1, C 2, D 3, E 4);
into_function!(6 A 0, B 1, C 2, D 3, E 4, G 5);
into_function!(7 A 0, B 1, C 2, D 3, E 4, G 5, H 6);
into_function!(8 A 0, B 1, C 2, D 3, E 4, G 5, H 6, I 7);
into_function!(9 A 0, B 1, C 2, D 3, E 4, G 5, H 6, I 7, J 8);
into_function!(10 A 0, B 1, C 2, D 3, E 4, G 5, H 6, I 7, J 8, K 9);
into_function!(11 A 0, B 1, C 2, D 3, E 4, G 5, H 6, I 7, J 8, K 9, L 10);
into_function!(12 A 0, B 1, C 2, D 3, E 4, G 5, H 6, I 7, J 8, K 9, L 10, M 11);
