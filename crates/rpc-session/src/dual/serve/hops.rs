//! The constructors of sessions on other servers.

use rpc_proto::Value;
use rpc_proto::handshake::SessionKey;
use rpc_transport::Address;

use super::super::session::RemoteSession;
#[cfg(unix)]
use super::super::spawn;
use super::super::{bisync, dyn_trait};
use super::constructor::Construct;
use super::session::Session;
use crate::constructor::SessionConstructor;
use crate::{Exception, SessionOptions};

/// `rpc.Connect`: a session on the next server. Its arguments are host, port, match key, whether to log
/// each request, and what the next server shall make of its session.
#[derive(Debug, Clone, Default)]
pub struct ConnectNext {
    options: SessionOptions,
}

impl ConnectNext {
    /// Under this name clients ask for it.
    pub const NAME: &'static str = "rpc.Connect";

    /// Sessions with these options. What the client asks for stands in their place.
    #[must_use]
    pub fn new(options: SessionOptions) -> Self {
        Self { options }
    }
}

#[bisync]
#[dyn_trait]
impl Construct for ConnectNext {
    async fn construct(&self, args: &[Value<'_>]) -> Result<Box<dyn Session>, Exception> {
        let (address, key, options) = next_server(args, &self.options)?;
        let session = RemoteSession::connect_as(&address.into(), &key, &options).await?;
        Ok(Box::new(session))
    }
}

/// `rpc.PopenSession`: a session over the standard input and output of a program that speaks the
/// protocol. Its argument is the path of the program on this machine, or the program itself as bytes.
///
/// Whoever may ask for it may run any program here.
#[cfg(unix)]
#[derive(Debug, Clone, Default)]
pub struct StartProgram {
    options: SessionOptions,
}

#[cfg(unix)]
impl StartProgram {
    /// Under this name clients ask for it.
    pub const NAME: &'static str = "rpc.PopenSession";

    /// Sessions with these options.
    #[must_use]
    pub fn new(options: SessionOptions) -> Self {
        Self { options }
    }
}

#[cfg(unix)]
#[bisync]
#[dyn_trait]
impl Construct for StartProgram {
    async fn construct(&self, args: &[Value<'_>]) -> Result<Box<dyn Session>, Exception> {
        // The file can go once the program runs.
        let (path, _file) = crate::program::find(args)?;
        let stream = crate::program::start(&path, spawn)?;
        let session = RemoteSession::on_stream(stream, &self.options).await?;
        Ok(Box::new(session))
    }
}

/// What the arguments ask for.
fn next_server(
    args: &[Value<'_>],
    options: &SessionOptions,
) -> Result<(Address, SessionKey, SessionOptions), Exception> {
    let [host, port, key, rest @ ..] = args else {
        return Err(wrong(
            "a host, a port and a match key",
            &format!("{} arguments", args.len()),
        ));
    };
    let Value::Str(host) = host else {
        return Err(wrong("a text as the host", host.kind()));
    };
    let port = match port {
        Value::Int(port) => u16::try_from(*port).ok().filter(|&port| port != 0),
        _ => None,
    };
    let Some(port) = port else {
        return Err(wrong("a port from 1 to 65535", &format!("{:?}", args[1])));
    };
    let Value::Str(key) = key else {
        return Err(wrong("a text as the match key", key.kind()));
    };
    // A client may have written options of the handshake behind the key.
    let key = SessionKey::parse(&format!("client:{key}"))?;
    let mut options = options.clone();
    let rest = match rest.split_first() {
        Some((Value::Bool(log), rest)) => {
            options.log_requests = *log;
            rest
        }
        Some((Value::Int(log), rest)) => {
            options.log_requests = *log != 0;
            rest
        }
        Some((other, _)) => return Err(wrong("a truth value for logging", other.kind())),
        None => &[],
    };
    options.constructor = match rest.split_first() {
        None => None,
        Some((Value::Str(name), args)) => {
            let named = SessionConstructor::named(name);
            let all = args.iter().cloned().map(Value::into_owned);
            Some(all.fold(named, SessionConstructor::arg))
        }
        Some((other, _)) => {
            return Err(wrong(
                "the name of the next session constructor",
                other.kind(),
            ));
        }
    };
    Ok((Address::new(host, port), key, options))
}

fn wrong(expected: &str, found: &str) -> Exception {
    Exception::new(
        "TypeError",
        format!("rpc.Connect: expected {expected}, found {found}"),
    )
}
