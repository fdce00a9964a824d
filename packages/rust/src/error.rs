//! What can go wrong: no server, a server that does not start, a request that the control plane rejects.

use std::fmt;
use std::time::Duration;

/// An error of this crate.
///
/// Its `Debug` is its sentence too, because that is what a test prints that unwraps it or returns it.
#[non_exhaustive]
pub enum Error {
    /// There is no server to start; the sentence names all locations searched.
    NoServer(String),
    /// The server did not start in time, or ended first.
    NotReady {
        /// The reason, such as `it ended with exit status: 2`.
        why: String,
        /// The last lines of the server's log.
        log: String,
    },
    /// The control plane rejected a request.
    Refused {
        /// Method and path.
        call: String,
        /// The HTTP status, such as 404 or 422.
        status: u16,
        /// The reason; the whole body if it came from something else, such as a gateway.
        detail: String,
        /// The invalid field, if there is one.
        field: Option<String>,
    },
    /// The control plane did not answer, not within the time limit, or not as documented.
    NoAnswer {
        /// Method and path.
        call: String,
        /// The reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Fewer requests met a fault than a test waited for.
    TooFewHits {
        /// How many did.
        hits: u64,
        /// How many were expected.
        wanted: u64,
        /// How long the test waited.
        limit: Duration,
    },
}

impl Error {
    /// The HTTP status, if the control plane rejected the request.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoServer(why) => to.write_str(why),
            Self::NotReady { why, log } => write!(to, "understudy is not ready: {why}\n{log}"),
            Self::Refused { call, detail, field: None, .. } => write!(to, "{call}: {detail}"),
            Self::Refused { call, detail, field: Some(field), .. } => write!(to, "{call}: {detail} (field {field})"),
            Self::NoAnswer { call, source } => write!(to, "{call}: {source}"),
            Self::TooFewHits { hits, wanted, limit } => {
                write!(to, "{hits} of {wanted} requests met the fault within {limit:?}")
            }
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, to)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoAnswer { source, .. } => Some(source.as_ref()),
            _ => None,
        }
    }
}
