//! The options of a cluster.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use crate::finding::Search;
use crate::server::Server;
use crate::{Client, Cluster, Error};

const START_LIMIT: Duration = Duration::from_secs(120);

/// Options of a cluster, see [`builder`](crate::builder). Tests with equal ones share a server, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Builder {
    options: Vec<String>,
    command: Option<String>,
    image: Option<String>,
    start_limit: Option<Duration>,
    pub(crate) control_limit: Option<Duration>,
    pub(crate) separate: bool,
    pub(crate) fresh: bool,
}

impl Builder {
    /// That many brokers, with ids from 1; one by default.
    pub fn brokers(self, count: u16) -> Self {
        self.options(["--brokers".to_owned(), count.to_string()])
    }

    /// A topic that exists from the start, such as `orders:3` with three partitions.
    pub fn topic(self, described: impl Into<String>) -> Self {
        self.options(["--topic".to_owned(), described.into()])
    }

    /// A setting of all brokers, by its Kafka name. It is not on the server's command line, so it may be a secret.
    pub fn setting(self, name: &str, value: impl Display) -> Self {
        self.options(["--set".to_owned(), format!("{name}={value}")])
    }

    /// Behaves like this release of Kafka, such as `3.9`.
    pub fn as_version(self, release: impl Into<String>) -> Self {
        self.options(["--as-version".to_owned(), release.into()])
    }

    /// Makes ids, leaders and jitter the same in each run.
    pub fn seed(self, seed: u64) -> Self {
        self.options(["--seed".to_owned(), seed.to_string()])
    }

    /// A data directory in Kafka's own file formats; by default all data is kept in memory. The server is
    /// [separate](Builder::separate), so that the directory is complete when the cluster has been dropped.
    pub fn data_dir(self, folder: impl AsRef<Path>) -> Self {
        let folder = folder.as_ref().to_string_lossy().into_owned();
        self.options(["--data-dir".to_owned(), folder]).separate()
    }

    /// Further options of `understudy serve`, one element per argument.
    pub fn options<O: Into<String>>(mut self, options: impl IntoIterator<Item = O>) -> Self {
        self.options.extend(options.into_iter().map(Into::into));
        self
    }

    /// The command that starts the server; by default `UNDERSTUDY_COMMAND`, then `understudy` on the `PATH`, the
    /// binary, a container.
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }

    /// The image of the container; by default `UNDERSTUDY_IMAGE`, then `understudy:VERSION`.
    pub fn image(mut self, image: impl Into<String>) -> Self {
        self.image = Some(image.into());
        self
    }

    /// Time limit for the start; two minutes by default.
    pub fn start_limit(mut self, limit: Duration) -> Self {
        self.start_limit = Some(limit);
        self
    }

    /// Time limit for each request to the control plane; 60 s by default.
    pub fn control_limit(mut self, limit: Duration) -> Self {
        self.control_limit = Some(limit);
        self
    }

    /// A server that no other test uses; it ends when the cluster is dropped.
    pub fn separate(mut self) -> Self {
        self.separate = true;
        self
    }

    /// A new cluster, which ends when it is dropped, instead of a reset one, where the server is shared. A reset is
    /// faster.
    pub fn fresh(mut self) -> Self {
        self.fresh = true;
        self
    }

    /// Returns a freshly started or reset cluster.
    pub fn start(self) -> Result<Cluster, Error> {
        Cluster::take(self)
    }

    pub(crate) fn time_to_start(&self) -> Duration {
        self.start_limit.unwrap_or(START_LIMIT)
    }

    pub(crate) fn start_server(&self) -> Result<(Server, Client), Error> {
        let (command, image) = (self.command.as_deref(), self.image.as_deref());
        // Kafka's defaults would make clients pause in each test.
        let options: Vec<String> = std::iter::once("--for-tests".to_owned()).chain(self.options.clone()).collect();
        let search = Search { command, image, options: &options, environment: &|name| std::env::var_os(name) };
        Server::start(&search.run()?, &options, self)
    }
}
