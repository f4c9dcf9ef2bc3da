//! A PostgreSQL of the tests' own: a cluster in a directory that goes away, on a Unix socket and a port of
//! the loopback. It ends with the process that started it, however that ends.

use std::fs;
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};

/// The owner's password. Nothing that is printed may hold it.
pub(crate) const PASSWORD: &str = "canary-hunter2";

/// A running server.
pub(crate) struct Server {
    directory: PathBuf,
    port: u16,
    settings: Vec<String>,
    child: Option<Child>,
}

/// The server that tests share; each has a database of its own.
pub(crate) fn shared() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(Server::start)
}

impl Server {
    /// Makes a cluster for tests, in a hurry, and starts it.
    pub(crate) fn start() -> Self {
        Self::with(&["fsync=off", "max_connections=60", "shared_buffers=32MB"])
    }

    /// Makes a cluster of these settings and starts it.
    pub(crate) fn with(settings: &[&str]) -> Self {
        let directory = new_directory();
        let data = directory.join("data");
        let password = directory.join("password");
        fs::write(&password, PASSWORD).unwrap();
        make_certificate(&directory);
        give_away(&directory);
        let made = as_postgres(&program("initdb"))
            .arg("--pgdata")
            .arg(&data)
            .args(["--username=owner", "--auth=scram-sha-256", "--no-sync", "--encoding=UTF8", "--locale=C"])
            .arg("--pwfile")
            .arg(&password)
            .output()
            .unwrap();
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = settings.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]).collect();
        let mut server = Self { directory, port, settings, child: None };
        server.up();
        server
    }

    /// Starts it again, if it does not run.
    pub(crate) fn up(&mut self) {
        if self.child.is_some() {
            return;
        }
        let until = Instant::now() + STATEMENT_TIMEOUT;
        loop {
            self.child = Some(self.spawn());
            while Instant::now() < until {
                if self.client("postgres").is_ok() {
                    return;
                }
                // The remains of a killed server may hold the port and the memory for a moment.
                if self.child.as_mut().is_some_and(|child| child.try_wait().unwrap().is_some()) {
                    // Dropped without a word it would take the data with it.
                    self.down();
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            assert!(Instant::now() < until, "PostgreSQL did not start: {}", self.log());
        }
    }

    /// The shell waits for this process's end of the pipe to close, and cleans up unless it has to keep the data: so
    /// nothing outlives the tests.
    fn spawn(&self) -> Child {
        let script = "directory=$1; shift; \"$@\" & server=$!; \
                      (read word; kill -QUIT $server; while kill -0 $server; do sleep 0.02; done; \
                      [ \"$word\" = keep ] || rm -rf \"$directory\") <&3 2>/dev/null & wait $server";
        let log = fs::File::options().create(true).append(true).open(self.directory.join("log")).unwrap();
        as_postgres(Path::new("bash"))
            .args(["-c", &format!("exec 3<&0; {script}"), "postgres"])
            .arg(&self.directory)
            .arg(program("postgres"))
            .arg("-D")
            .arg(self.directory.join("data"))
            .arg("-k")
            .arg(&self.directory)
            .args(["-p", &self.port.to_string(), "-c", "listen_addresses=127.0.0.1"])
            .args(["-c", "ssl=on"])
            .args(&self.settings)
            .args(["-c", &format!("ssl_cert_file={}", self.directory.join("server.crt").display())])
            .args(["-c", &format!("ssl_key_file={}", self.directory.join("server.key").display())])
            .stdin(Stdio::piped())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    /// Kills the server as the kernel would when memory is short.
    pub(crate) fn kill(&mut self) {
        let pid = fs::read_to_string(self.directory.join("data/postmaster.pid")).unwrap();
        let pid = pid.lines().next().unwrap().to_owned();
        assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
        self.down();
    }

    /// Stops it.
    pub(crate) fn down(&mut self) {
        let mut child = self.child.take().unwrap();
        child.stdin.take().unwrap().write_all(b"keep\n").unwrap();
        child.wait().unwrap();
    }

    /// Creates a database of its own.
    pub(crate) fn database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("db{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.client("postgres").unwrap().batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        name
    }

    /// A URL of the owner's, over the loopback.
    pub(crate) fn url(&self, database: &str) -> String {
        self.url_of("owner", PASSWORD, database)
    }

    /// Returns the URL of a user.
    pub(crate) fn url_of(&self, user: &str, password: &str, database: &str) -> String {
        format!("postgres://{user}:{password}@127.0.0.1:{}/{database}", self.port)
    }

    /// A connection of the owner's.
    pub(crate) fn client(&self, database: &str) -> Result<Client, postgres::Error> {
        Client::connect(&format!("{}?sslmode=disable", self.url(database)), NoTls)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The directory of its socket, where its certificate is too, `server.crt`, for `localhost`.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.down();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn new_directory() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // Short: the path of a Unix socket has 107 bytes at most.
    let path = std::env::temp_dir().join(format!("tm-pg-{}-{number}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    path
}

/// The directory of PostgreSQL's programs, of the newest version there is.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let newest = versions
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|version| *version >= 15)
        .max();
    let Some(newest) = newest else {
        panic!(
            "these tests need PostgreSQL 15 or later: apt-get install -y --no-install-recommends postgresql"
        )
    };
    PathBuf::from(format!("/usr/lib/postgresql/{newest}/bin"))
}

fn program(name: &str) -> PathBuf {
    programs().join(name)
}

fn is_root() -> bool {
    fs::metadata("/proc/self").map(|data| std::os::unix::fs::MetadataExt::uid(&data)).unwrap_or(0) == 0
}

/// A command as a user that PostgreSQL runs as: it refuses to be root.
fn as_postgres(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--"]).arg(program);
    command.current_dir("/");
    command
}

fn give_away(directory: &Path) {
    if is_root() {
        let given = Command::new("chown").args(["-R", "postgres:postgres"]).arg(directory).status().unwrap();
        assert!(given.success());
    }
}

/// A certificate for `localhost`, which signs itself.
fn make_certificate(directory: &Path) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    fs::write(directory.join("server.crt"), made.cert.pem()).unwrap();
    let key = directory.join("server.key");
    let mut file = fs::File::create(&key).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
    file.write_all(made.signing_key.serialize_pem().as_bytes()).unwrap();
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + STATEMENT_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A directory for a test's ledgers, which goes away.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(new_directory()))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Maximum time for any step here, on a busy machine.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(300);
