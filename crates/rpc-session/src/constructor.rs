use rpc_proto::{OwnedValue, Value};
use rpc_transport::Address;

/// What the server is asked to make of the session: its *constructor* and the arguments.
///
/// ```
/// use rpc_session::SessionConstructor;
///
/// // Through a gateway to a board that only the gateway can reach.
/// let board = SessionConstructor::connect(&"10.0.0.7:9090".parse()?, "board");
/// // Any constructor that the server knows.
/// let custom = SessionConstructor::named("my.Session").arg(2).arg("fast");
/// # Ok::<(), rpc_transport::ParseAddressError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionConstructor {
    values: Vec<OwnedValue>,
}

impl SessionConstructor {
    /// The server itself, as when nothing is asked for.
    #[must_use]
    pub fn local() -> Self {
        Self::named("rpc.LocalSession")
    }

    /// A session of the server at `address`, which the asked server opens: a hop. `key` is its match
    /// key.
    #[must_use]
    pub fn connect(address: &Address, key: &str) -> Self {
        const LOGGING: bool = false;
        Self::named("rpc.Connect")
            .arg(address.host().to_owned())
            .arg(i64::from(address.port()))
            .arg(key.to_owned())
            .arg(LOGGING)
    }

    /// A session over the pipes of a program that the server starts; `program` is a path there.
    #[must_use]
    pub fn popen(program: &str) -> Self {
        Self::named("rpc.PopenSession").arg(program.to_owned())
    }

    /// As [`SessionConstructor::popen`], with a program that is sent along.
    #[must_use]
    pub fn popen_binary(program: Vec<u8>) -> Self {
        Self::named("rpc.PopenSession").arg(program)
    }

    /// Any constructor by its name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            values: vec![Value::from(name.to_owned())],
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, value: impl Into<OwnedValue>) -> Self {
        self.values.push(value.into());
        self
    }

    /// What the next server shall make of its session: the arguments of `next` behind those that are
    /// here. With [`SessionConstructor::connect`] on the left, chains of any length can be built from
    /// the far end on.
    #[must_use]
    pub fn then(mut self, next: Self) -> Self {
        self.values.extend(next.values);
        self
    }

    pub(crate) fn values(&self) -> &[OwnedValue] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_one_list_of_arguments() {
        let near = "a:1".parse().unwrap();
        let far = "b:2".parse().unwrap();
        let chain =
            SessionConstructor::connect(&near, "k1").then(SessionConstructor::connect(&far, "k2"));
        let expected: Vec<OwnedValue> = vec![
            "rpc.Connect".into(),
            "a".into(),
            1_i64.into(),
            "k1".into(),
            false.into(),
            "rpc.Connect".into(),
            "b".into(),
            2_i64.into(),
            "k2".into(),
            false.into(),
        ];
        assert_eq!(chain.values(), expected);
    }
}
