//! A certificate authority of a test's own and a server certificate under it, made with the openssl program.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::guard::run;

const CONFIG: &str = "
[req]
distinguished_name = name
prompt = no
[name]
CN = tbmq-migrate test
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = serverAuth, clientAuth
subjectAltName = DNS:localhost, IP:127.0.0.1
";

/// The files in one directory.
pub struct Certificates(PathBuf);

impl Certificates {
    /// Makes all of them in `directory`.
    pub fn make(directory: &Path) -> Self {
        std::fs::write(directory.join("openssl.cnf"), CONFIG).unwrap();
        let openssl = |line: &str| {
            run(Command::new("openssl").current_dir(directory).args(line.split_whitespace()));
        };
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -config openssl.cnf";
        openssl(&format!("req -x509 -days 7 {key} -extensions authority -keyout ca.key -out ca.crt"));
        openssl(&format!("req -new {key} -subj /CN=localhost -keyout server.key -out server.csr"));
        openssl(
            "x509 -req -days 7 -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial \
             -extfile openssl.cnf -extensions server -out server.crt",
        );
        Self::at(directory)
    }

    /// Those made in `directory` before.
    pub fn at(directory: &Path) -> Self {
        Self(directory.to_owned())
    }

    /// The authority's certificate (PEM).
    pub fn authority(&self) -> PathBuf {
        self.0.join("ca.crt")
    }

    /// The server's certificate (PEM), for 127.0.0.1 and localhost; it may serve a client too.
    pub fn server_certificate(&self) -> PathBuf {
        self.0.join("server.crt")
    }

    /// The server's key (PEM).
    pub fn server_key(&self) -> PathBuf {
        self.0.join("server.key")
    }
}
