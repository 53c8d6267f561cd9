use serde::Serialize;

/// What a process uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Used {
    /// Memory that it has touched, in KiB, without that of its children.
    pub memory: u64,
    /// Files and sockets that it has open.
    pub files: u64,
}

impl Used {
    /// Asks the system, which on others than Linux says nothing.
    pub(super) fn by(pid: u32) -> Option<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let memory = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?
            .split_whitespace()
            .next()?
            .parse()
            .ok()?;
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
        Some(Self {
            memory,
            files: u64::try_from(files).ok()?,
        })
    }
}
