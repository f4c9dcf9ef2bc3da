//! nghttpd, a server by other authors: what it sends arrives, and it accepts what the proxy sends.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use super::{ask, proxy};
use crate::support::{Peer, eventually};

/// A running nghttpd, with what it prints.
struct Nghttpd {
    child: Child,
    address: SocketAddr,
    folder: PathBuf,
    printed: Arc<Mutex<String>>,
}

impl Nghttpd {
    /// Starts it with a file `/file`, trailers, padded frames, and at most four streams on a connection. It echoes
    /// uploads.
    fn start(file: &[u8]) -> Self {
        let folder = std::env::temp_dir().join(format!("tokenmeter-nghttpd-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(folder.join("key"), own.signing_key.serialize_pem()).unwrap();
        std::fs::write(folder.join("cert"), own.cert.pem()).unwrap();
        std::fs::write(folder.join("file"), file).unwrap();
        // Free when it was asked for; nghttpd does not print the port that it got.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut child = Command::new("nghttpd")
            .args(["-v", "-b", "100", "-m", "4", "--trailer", "x-t: v", "--echo-upload", "-a", "127.0.0.1"])
            .arg("-d")
            .arg(&folder)
            .arg(address.port().to_string())
            .args([folder.join("key"), folder.join("cert")])
            .stdout(Stdio::piped())
            .spawn()
            .expect("nghttpd is installed: apt install nghttp2-server");
        let printed = Arc::<Mutex<String>>::default();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let noted = Arc::clone(&printed);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                noted.lock().unwrap().extend([&line, "\n"]);
            }
        });
        eventually("it listens", || TcpStream::connect(address).is_ok());
        Self { child, address, folder, printed }
    }

    fn has_printed(&self, text: &str) -> bool {
        self.printed.lock().unwrap().contains(text)
    }
}

impl Drop for Nghttpd {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn get(client: &mut Peer) -> String {
    let (head, body) = ask(client, "GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("\r\nserver: nghttpd"), "{head}");
    body
}

#[test]
#[ignore = "needs nghttpd (apt install nghttp2-server)"]
fn nghttpd_is_an_upstream() {
    let file: String = (0..400_000).map(|n| format!("{n} ")).collect();
    let server = Nghttpd::start(file.as_bytes());
    let proxy = proxy(server.address);
    let mut client = proxy.connect();
    assert!(get(&mut client) == file);

    let upload = "0123456789".repeat(100_000);
    let post =
        format!("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{upload}", upload.len());
    let mut sender = proxy.connect();
    let sending = std::thread::spawn(move || ask(&mut sender, &post));
    let (head, body) = sending.join().unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && body == upload, "{head}");

    client.send("HEAD /file HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let head = client.head().unwrap();
    assert!(head.contains(&format!("content-length: {}", file.len())), "{head}");
    assert!(ask(&mut client, "GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n").0.starts_with("HTTP/1.1 404"));

    let clients: Vec<_> = (0..12)
        .map(|_| {
            let mut client = proxy.connect();
            std::thread::spawn(move || get(&mut client).len())
        })
        .collect();
    assert!(clients.into_iter().all(|client| client.join().unwrap() == file.len()));

    let mut leaving = proxy.connect();
    leaving.send("GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n");
    leaving.head();
    leaving.reset();
    eventually("its stream is reset", || server.has_printed("error_code=CANCEL"));
    assert!(get(&mut client) == file);
    assert!(!server.has_printed("PROTOCOL_ERROR") && !server.has_printed("FLOW_CONTROL_ERROR"));
}
