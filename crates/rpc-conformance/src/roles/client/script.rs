//! The script of a client, and the lines that it prints.

use serde::Deserialize;

/// What a client has to do. The page on the script, `docs/client-script.md`, says how it is told.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(super) key: Option<String>,
    steps: String,
    pub(super) variables: Vec<(&'static str, String)>,
}

impl Script {
    /// These steps, separated by commas, between the beginning of the session and its end.
    pub(crate) fn steps(steps: &str) -> Self {
        Self {
            key: None,
            steps: steps.to_owned(),
            variables: vec![("TVM_RPC_CASE_STEPS", steps.to_owned())],
        }
    }

    /// The same step some times.
    pub(crate) fn times(step: &str, times: usize) -> Self {
        Self::steps(&vec![step; times].join(","))
    }

    /// A device of this key instead of one that only this case knows.
    pub(crate) fn with_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// How many seconds the session may last, as text.
    pub(crate) fn with_session_timeout(self, seconds: &str) -> Self {
        self.with("TVM_RPC_CASE_SESSION_TIMEOUT", seconds)
    }

    /// The priority of the request.
    pub(crate) fn with_priority(self, priority: i32) -> Self {
        self.with("TVM_RPC_CASE_PRIORITY", priority.to_string())
    }

    /// How many devices the client may ask for.
    pub(crate) fn with_tries(self, tries: u32) -> Self {
        self.with("TVM_RPC_CASE_TRIES", tries.to_string())
    }

    /// Name and arguments of the session's constructor.
    pub(crate) fn with_constructor(self, constructor: &serde_json::Value) -> Self {
        self.with("TVM_RPC_CASE_CONSTRUCTOR", constructor.to_string())
    }

    /// Elements of the tensor.
    pub(crate) fn with_elements(self, elements: usize) -> Self {
        self.with("TVM_RPC_CASE_ELEMENTS", elements.to_string())
    }

    /// The steps whose lines a client prints that does all of it.
    pub(super) fn lines(&self) -> Vec<String> {
        let steps = self.steps.split(',').filter(|step| !step.is_empty());
        let steps = ["session"].into_iter().chain(steps).chain(["end"]);
        steps.map(str::to_owned).collect()
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }
}

/// A line that the client printed: what it saw in one step.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Line {
    /// The step.
    pub(crate) step: String,
    /// Whether it went as the script says.
    pub(crate) ok: bool,
    /// What kind of thing a function gave.
    #[serde(default, rename = "type")]
    pub(crate) kind: Option<String>,
    /// The same as text.
    #[serde(default)]
    pub(crate) value: Option<String>,
    /// The kind of the error: `exception`, `timeout` or `other`.
    #[serde(default)]
    pub(crate) error: Option<String>,
    /// What the client says of the error.
    #[serde(default)]
    pub(crate) text: Option<String>,
}
