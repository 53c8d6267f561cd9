//! Messages that are rightly not reproduced.

/// File, number of the message, what the error says, and why that is right.
pub(crate) type Exception = (&'static str, usize, &'static str, &'static str);

/// Counts the messages that came out the same, and compares the others with those that may not.
pub(crate) struct Verdict {
    exceptions: Vec<Exception>,
    met: Vec<bool>,
    reproduced: usize,
    wrong: Vec<String>,
}

impl Verdict {
    pub(crate) fn new(exceptions: &[&[Exception]]) -> Self {
        let exceptions = exceptions.concat();
        Self {
            met: vec![false; exceptions.len()],
            exceptions,
            reproduced: 0,
            wrong: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, file: &str, i: usize, outcome: Result<(), String>) {
        let listed = self
            .exceptions
            .iter()
            .position(|exception| exception.0 == file && exception.1 == i);
        match (outcome, listed) {
            (Ok(()), None) => self.reproduced += 1,
            (Err(error), Some(at)) if error.contains(self.exceptions[at].2) => self.met[at] = true,
            (Err(error), _) => self.wrong.push(format!("{file} {i}: {error}")),
            (Ok(()), Some(_)) => self
                .wrong
                .push(format!("{file} {i}: reproduced, but listed as exception")),
        }
    }

    /// Panics unless all is as listed and `reproduced` messages came out the same.
    pub(crate) fn assert(self, reproduced: usize) {
        let mut wrong = self.wrong;
        for (exception, met) in self.exceptions.iter().zip(self.met) {
            if !met {
                wrong.push(format!("exception that no message met: {exception:?}"));
            }
        }
        assert!(
            wrong.is_empty(),
            "{} of {reproduced}:\n{}",
            wrong.len(),
            wrong.join("\n")
        );
        assert_eq!(
            self.reproduced, reproduced,
            "messages that came out the same"
        );
    }
}
