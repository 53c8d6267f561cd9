//! One source for the async and the blocking twin of an API.
//!
//! A file is written once, as async code, and belongs to two modules: in `asynchronous` it is compiled
//! as it stands, in `blocking` without `async` and `.await`. The modules differ in the names that they
//! give to the file (a stream, a mutex, a way to sleep) and in the meaning of three attributes:
//!
//! | attribute | in `asynchronous` | in `blocking` |
//! | --- | --- | --- |
//! | `#[bisync]` | [`macro@as_is`] | [`macro@blocking`] |
//! | `#[only_async]` | [`macro@as_is`] | [`macro@nothing`] |
//! | `#[only_sync]` | [`macro@nothing`] | [`macro@as_is`] |
//!
//! ```text
//! // lib.rs
//! #[path = "."]
//! pub mod asynchronous {
//!     use rpc_bisync::{as_is as bisync, as_is as only_async, nothing as only_sync};
//!     mod client;
//! }
//! #[path = "."]
//! pub mod blocking {
//!     use rpc_bisync::{as_is as only_sync, blocking as bisync, nothing as only_async};
//!     mod client;
//! }
//!
//! // client.rs, once for both
//! use super::{Stream, bisync};
//!
//! #[bisync]
//! impl Client {
//!     pub async fn ping(&mut self) -> std::io::Result<()> {
//!         self.stream.write_all(b"ping").await
//!     }
//! }
//! ```
//!
//! The blocking twin is plain blocking code: no runtime, no future, no thread of its own.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// Leaves the item as it stands.
#[proc_macro_attribute]
pub fn as_is(_: TokenStream, item: TokenStream) -> TokenStream {
    item
}

/// Removes the item.
#[proc_macro_attribute]
pub fn nothing(_: TokenStream, _: TokenStream) -> TokenStream {
    TokenStream::new()
}

/// Makes blocking code of async code: removes each `async` and each `.await`, and turns the closure
/// traits `AsyncFn`, `AsyncFnMut` and `AsyncFnOnce` into `Fn`, `FnMut` and `FnOnce`.
///
/// An `async` block is refused, with or without `move`. Without the word, `?` and `return` in it would
/// leave the function around it; an async closure has the same meaning in both twins.
///
/// ```compile_fail
/// # use rpc_bisync::blocking as bisync;
/// #[bisync]
/// async fn ten() -> Option<u8> {
///     let tens = async { Some(10) }; // async blocks have no blocking twin
///     tens.await
/// }
/// ```
///
/// ```compile_fail
/// # use rpc_bisync::blocking as bisync;
/// #[bisync]
/// async fn ten() -> Option<u8> {
///     let tens = async move { Some(10) };
///     tens.await
/// }
/// ```
///
/// ```
/// # use rpc_bisync::blocking as bisync;
/// #[bisync]
/// async fn ten() -> Option<u8> {
///     let tens = async move || Some(10);
///     tens().await
/// }
/// assert_eq!(ten(), Some(10));
/// ```
#[proc_macro_attribute]
pub fn blocking(_: TokenStream, item: TokenStream) -> TokenStream {
    strip(item)
}

fn strip(tokens: TokenStream) -> TokenStream {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) => match word.to_string().as_str() {
                "async" => {
                    let moves = tokens.next_if(|next| is_word(next, "move"));
                    if tokens.next_if(is_block).is_some() {
                        kept.extend(refusal(word.span()));
                    } else {
                        kept.extend(moves);
                    }
                }
                "await" => {
                    // The dot before it.
                    kept.pop();
                }
                "AsyncFn" => kept.push(ident("Fn", &word)),
                "AsyncFnMut" => kept.push(ident("FnMut", &word)),
                "AsyncFnOnce" => kept.push(ident("FnOnce", &word)),
                _ => kept.push(word.into()),
            },
            TokenTree::Group(group) => {
                let mut stripped = Group::new(group.delimiter(), strip(group.stream()));
                stripped.set_span(group.span());
                kept.push(stripped.into());
            }
            other => kept.push(other),
        }
    }
    kept.into_iter().collect()
}

fn ident(name: &str, replaced: &Ident) -> TokenTree {
    Ident::new(name, replaced.span()).into()
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident.to_string() == word)
}

fn is_block(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

/// An expression that does not compile, at the place of the `async` that it stands for.
fn refusal(place: Span) -> [TokenTree; 3] {
    const REASON: &str = "an async block has no blocking twin: without the word, `?` and `return` in it \
        would leave the function around it; make it an async closure or a function";
    let mut name = TokenTree::from(Ident::new("compile_error", place));
    let mut mark = TokenTree::from(Punct::new('!', Spacing::Alone));
    let reason = TokenTree::from(Literal::string(REASON));
    let mut reason = TokenTree::from(Group::new(Delimiter::Brace, reason.into()));
    for token in [&mut name, &mut mark, &mut reason] {
        token.set_span(place);
    }
    [name, mark, reason]
}
