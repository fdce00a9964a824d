//! Finds the server: an explicit command, `UNDERSTUDY_COMMAND`, the `PATH`, the binary's folder, a container.

use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use crate::{Error, VERSION};

pub(crate) const TOKEN_VARIABLE: &str = "UNDERSTUDY_CONTROL_TOKEN";
pub(crate) const SETTINGS_VARIABLE: &str = "UNDERSTUDY_SET";
const SERVE: [&str; 2] = ["serve", "--lifeline"];
const SHARED: [&str; 2] = ["shared", "--lifeline"];
const FREE_PORTS: [&str; 4] = ["--port", "0", "--control-port", "0"];

/// How to start the server. Addresses and the token are only known before the start for a container.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) container: Option<Container>,
}

#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) brokers: Vec<String>,
    pub(crate) control: String,
    pub(crate) token: String,
    /// What was looked for before it, for the error if it does not start.
    pub(crate) searched: String,
}

/// Where to look; tests replace the environment.
pub(crate) struct Search<'a> {
    pub(crate) command: Option<&'a str>,
    pub(crate) image: Option<&'a str>,
    pub(crate) options: &'a [String],
    pub(crate) environment: &'a dyn Fn(&str) -> Option<OsString>,
}

impl Search<'_> {
    /// Returns the first server that exists, or an error that names all locations searched.
    pub(crate) fn run(&self) -> Result<Found, Error> {
        let variable = self.text("UNDERSTUDY_COMMAND");
        for (name, command) in [("command", self.command), ("UNDERSTUDY_COMMAND", variable.as_deref())] {
            if let Some(command) = command.filter(|command| !command.trim().is_empty()) {
                return self.explicit(name, command);
            }
        }
        if let Some(program) = self.on_path("understudy") {
            return Ok(self.local(program, []));
        }
        let folder = self.server_folder();
        if let Some(program) = programs(&folder, "understudy").find(|each| is_program(each)) {
            return Ok(self.local(program, []));
        }
        if let Some(docker) = self.on_path("docker") {
            return self.container(docker);
        }
        Err(Error::NoServer(format!(
            "there is no understudy server; {}",
            self.searched("docker on the PATH (not found)")
        )))
    }

    /// What was looked for, in which order, and two ways to get a server.
    fn searched(&self, docker: &str) -> String {
        let binary = self.server_folder().join("understudy");
        format!(
            "looked, in this order, for builder().command(...) (not given), UNDERSTUDY_COMMAND (not set), understudy on \
             the PATH (not found), {binary} (not found), {docker}. To get a server, run in a checkout of Understudy `make \
             packages`, which links its server to {binary}, or `docker build -t understudy:{VERSION} .`",
            binary = binary.display()
        )
    }

    /// Splits a command such as `python3 -m understudy` at blanks; a path with blanks is kept whole if it exists.
    fn explicit(&self, name: &str, command: &str) -> Result<Found, Error> {
        let mut parts = if Path::new(command).exists() { vec![command] } else { command.split_whitespace().collect() };
        let first = Path::new(parts.remove(0));
        let program = if first.components().count() > 1 {
            Some(first.to_owned()).filter(|each| is_program(each))
        } else {
            self.on_path(&first.to_string_lossy())
        };
        match program {
            Some(program) => Ok(self.local(program, parts)),
            None => Err(Error::NoServer(format!("{name} is {command:?}, but there is no such program"))),
        }
    }

    /// A cluster in the server that all test processes of this user share; with `UNDERSTUDY_SERVER=own`, a server.
    fn local<'a>(&self, program: PathBuf, arguments: impl IntoIterator<Item = &'a str>) -> Found {
        let is_own = self.text("UNDERSTUDY_SERVER").as_deref() == Some("own");
        let command = if is_own { SERVE } else { SHARED };
        let arguments = arguments.into_iter().chain(command).chain(FREE_PORTS).map(str::to_owned).collect();
        Found { program, arguments, container: None }
    }

    fn text(&self, name: &str) -> Option<String> {
        (self.environment)(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
    }

    fn on_path(&self, name: &str) -> Option<PathBuf> {
        let path = (self.environment)("PATH")?;
        let folders = std::env::split_paths(&path).filter(|each| !each.as_os_str().is_empty());
        folders.flat_map(|folder| programs(&folder, name).collect::<Vec<_>>()).find(|each| is_program(each))
    }

    /// The folder into which the binary's archive of this version may have been unpacked.
    fn server_folder(&self) -> PathBuf {
        let home = || PathBuf::from(self.text("HOME").or_else(|| self.text("USERPROFILE")).unwrap_or_default());
        let cache = self.text("XDG_CACHE_HOME").map_or_else(|| home().join(".cache"), PathBuf::from);
        cache.join("understudy").join(VERSION)
    }

    /// Runs the image; its ports are chosen here, because clients connect to the advertised ones.
    fn container(&self, docker: PathBuf) -> Result<Found, Error> {
        let image = self.image.map(str::to_owned).or_else(|| self.text("UNDERSTUDY_IMAGE"));
        let count = broker_count(self.options)?;
        let first = ports_in_a_row(count + 1)
            .map_err(|error| Error::NoServer(format!("there are no free ports for a container: {error}")))?;
        let control = first + count;
        // Pass only the names of the token and settings: each user of this machine can read a command line.
        let mut arguments: Vec<String> =
            ["run", "--rm", "-i", "-e", TOKEN_VARIABLE, "-e", SETTINGS_VARIABLE].map(str::to_owned).into();
        for port in first..=control {
            arguments.extend(["-p".to_owned(), format!("127.0.0.1:{port}:{port}")]);
        }
        let image = image.unwrap_or_else(|| format!("understudy:{VERSION}"));
        let searched = self.searched(&format!("docker on the PATH (found), to run {image}"));
        arguments.push(image);
        arguments.extend(SERVE.map(str::to_owned));
        for (name, value) in [
            ("--host", "0.0.0.0".to_owned()),
            ("--port", first.to_string()),
            ("--advertise", format!("127.0.0.1:{first}")),
            ("--control-host", "0.0.0.0".to_owned()),
            ("--control-port", control.to_string()),
        ] {
            arguments.extend([name.to_owned(), value]);
        }
        let container = Container {
            brokers: (first..control).map(|port| format!("127.0.0.1:{port}")).collect(),
            control: format!("http://127.0.0.1:{control}"),
            token: new_token(),
            searched,
        };
        Ok(Found { program: docker, arguments, container: Some(container) })
    }
}

/// The files that a program of this name may be.
fn programs(folder: &Path, name: &str) -> impl Iterator<Item = PathBuf> {
    let endings: &[&str] = if cfg!(windows) { &[".exe", ""] } else { &[""] };
    endings.iter().map(move |ending| folder.join(format!("{name}{ending}")))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

fn broker_count(options: &[String]) -> Result<u16, Error> {
    let mut value = "1";
    for (at, option) in options.iter().enumerate() {
        if option == "--brokers" {
            value = options.get(at + 1).map_or("", String::as_str);
        } else if let Some(given) = option.strip_prefix("--brokers=") {
            value = given;
        }
    }
    let count = match value.trim_end_matches(',').split(',').count() {
        1 if !value.ends_with(',') => value.parse().unwrap_or(0),
        ids => ids as u16,
    };
    match count {
        0 => Err(Error::NoServer(format!("--brokers {value} is not a number of brokers"))),
        count => Ok(count),
    }
}

/// Returns the first of that many consecutive free ports.
fn ports_in_a_row(count: u16) -> std::io::Result<u16> {
    loop {
        let first = TcpListener::bind(("127.0.0.1", 0))?;
        let port = first.local_addr()?.port();
        let Some(last) = port.checked_add(count - 1) else { continue };
        let others: Vec<_> = (port + 1..=last).map(|port| TcpListener::bind(("127.0.0.1", port))).collect();
        if others.iter().all(Result::is_ok) {
            return Ok(port);
        }
    }
}

/// A secret, from the standard library's hash function: its key is the operating system's random 128 bits.
fn new_token() -> String {
    let hash = RandomState::new();
    format!("{:016x}{:016x}", hash.hash_one("first"), hash.hash_one("second"))
}

#[cfg(all(test, unix))]
mod tests {
    use std::collections::HashMap;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn found(options: &[&str], environment: &HashMap<&str, OsString>) -> Result<Found, Error> {
        let options: Vec<String> = options.iter().map(|&each| each.to_owned()).collect();
        let environment = |name: &str| environment.get(name).cloned();
        Search { command: None, image: None, options: &options, environment: &environment }.run()
    }

    #[test]
    fn the_server_is_found_in_order() {
        let folder = std::env::temp_dir().join(format!("understudy-finding-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut environment: HashMap<_, _> =
            ["PATH", "XDG_CACHE_HOME"].map(|name| (name, folder.clone().into_os_string())).into();
        environment.insert("UNDERSTUDY_COMMAND", " ".into());
        let missing = found(&[], &environment).unwrap_err().to_string();
        let looked = "there is no understudy server; looked, in this order, for builder().command(...) (not given), ";
        assert!(missing.starts_with(looked), "{missing}");
        assert!(missing.contains("(not found), docker on the PATH (not found). To get a server, run"), "{missing}");

        program(&folder.join("docker"));
        for options in
            [&["--brokers", "3"][..], &["--brokers=3"], &["--brokers=1,2,3"], &["--brokers", "2", "--brokers=3"]]
        {
            let made = found(options, &environment).unwrap();
            let container = made.container.unwrap();
            assert_eq!((made.program, container.brokers.len()), (folder.join("docker"), 3), "{options:?}");
            assert!(made.arguments.contains(&format!("understudy:{VERSION}")), "{:?}", made.arguments);
            assert!(!made.arguments.contains(&container.token), "each user could read it");
        }
        assert!(found(&["--brokers", "many"], &environment).is_err());

        let binary = folder.join("understudy").join(VERSION).join("understudy");
        program(&binary);
        assert_eq!(found(&[], &environment).unwrap().program, binary);

        environment.insert("UNDERSTUDY_COMMAND", "docker -m understudy".into());
        let made = found(&[], &environment).unwrap();
        assert_eq!(made.program, folder.join("docker"));
        assert_eq!(made.arguments[..4], ["-m", "understudy", "shared", "--lifeline"]);
        environment.insert("UNDERSTUDY_SERVER", "own".into());
        assert_eq!(found(&[], &environment).unwrap().arguments[2], "serve");

        environment.insert("UNDERSTUDY_COMMAND", "nowhere -m understudy".into());
        let wrong = found(&[], &environment).unwrap_err().to_string();
        assert_eq!(wrong, "UNDERSTUDY_COMMAND is \"nowhere -m understudy\", but there is no such program");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn tokens_differ() {
        assert_eq!(new_token().len(), 32);
        assert_ne!(new_token(), new_token());
    }
}
