//! Starts a mock Apache Kafka cluster for Rust tests.
//!
//! ```no_run
//! #[test]
//! fn an_order_is_sent() {
//!     let kafka = understudy::start(["--topic", "orders:1"]).unwrap();
//!     // Connect a client to kafka.bootstrap_servers(), or write without one:
//!     kafka.write("orders", ["one order"]).unwrap();
//!     assert_eq!(kafka.records("orders", 0).unwrap()[0].text(), Some("one order"));
//! }
//! ```
//!
//! The cluster runs in a separate process and is reset before each test. Tests with the same options use the same
//! cluster one after the other; tests that run at the same time have a cluster each. A test that panics prints the
//! cluster's report; one that passes although no request met one of its faults fails ([`Cluster`]).

#![deny(missing_docs)]

mod answers;
mod builder;
mod client;
mod cluster;
mod error;
mod faults;
mod finding;
mod server;
mod verbs;

pub use answers::{
    ClockState, Content, Header, JournalEntry, NewRecord, Record, Refusal, Report, ReportedRefusal, ReportedRequest,
    Written,
};
pub use builder::Builder;
pub use client::Client;
pub use cluster::Cluster;
pub use error::Error;
pub use faults::{Disconnect, Effect, Fault, FaultMatch, FaultState};
pub use verbs::JournalQuery;

/// The version of the server that this crate was made with.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns a freshly started or reset cluster with these options of `understudy serve`, such as `--brokers`, `3`,
/// `--topic`, `orders:3`. [`builder`] has the same, and a command, an image and time limits.
pub fn start<O: Into<String>>(options: impl IntoIterator<Item = O>) -> Result<Cluster, Error> {
    builder().options(options).start()
}

/// Options of a cluster, all of them with a default.
///
/// ```no_run
/// # fn main() -> Result<(), understudy::Error> {
/// let kafka = understudy::builder().brokers(3).topic("orders:1").setting("message.max.bytes", 1000).start()?;
/// # Ok(()) }
/// ```
pub fn builder() -> Builder {
    Builder::default()
}
