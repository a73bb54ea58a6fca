//! A pooler that hands out one session of PostgreSQL by the transaction, as pgbouncer does in that mode.
//!
//! The first client logs in at the server itself; every later one is let in without a question and shares its session.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The listening pooler; its threads end with the process.
pub struct Pooler {
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
}

struct Session {
    server: TcpStream,
    /// What the server said of itself after the login, up to its being ready.
    greeting: Vec<u8>,
}

impl Pooler {
    /// Before the server on this port.
    pub fn before(server: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let session: Arc<Mutex<Option<Session>>> = Arc::default();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let session = Arc::clone(&session);
                std::thread::spawn(move || serve(client.unwrap(), server, &session));
            }
        });
        Self { port }
    }
}

/// One message: its letter and its bytes, the letter and the length included.
fn message(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    stream.read_exact(&mut head).ok()?;
    let length = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
    let mut bytes = head.to_vec();
    bytes.resize(1 + length, 0);
    stream.read_exact(&mut bytes[5..]).ok()?;
    Some((head[0], bytes))
}

/// The first message, which has no letter; a wish for TLS is declined.
fn startup(client: &mut TcpStream) -> Option<Vec<u8>> {
    loop {
        let mut length = [0; 4];
        client.read_exact(&mut length).ok()?;
        let mut bytes = length.to_vec();
        bytes.resize(u32::from_be_bytes(length) as usize, 0);
        client.read_exact(&mut bytes[4..]).ok()?;
        if bytes.len() == 8 {
            client.write_all(b"N").ok()?;
        } else {
            return Some(bytes);
        }
    }
}

fn serve(mut client: TcpStream, server: u16, shared: &Mutex<Option<Session>>) -> Option<()> {
    let first = startup(&mut client)?;
    {
        let mut shared = shared.lock().unwrap();
        match &*shared {
            Some(session) => client.write_all(&session.greeting).ok()?,
            None => *shared = Some(log_in(&mut client, &first, server)?),
        }
    }
    // A transaction at a time: the session belongs to whoever has begun until the server is ready and idle again.
    loop {
        let mut next = message(&mut client)?;
        let mut shared = shared.lock().unwrap();
        let session = shared.as_mut()?;
        loop {
            let (letter, bytes) = &next;
            if *letter == b'X' {
                return Some(());
            }
            session.server.write_all(bytes).ok()?;
            // Only a query and the end of a series are answered up to "ready".
            if matches!(letter, b'Q' | b'S') && pass_answers(&mut session.server, &mut client)? {
                break;
            }
            next = message(&mut client)?;
        }
    }
}

/// Passes on what the server says until it is ready; whether it is in no transaction then.
fn pass_answers(server: &mut TcpStream, client: &mut TcpStream) -> Option<bool> {
    loop {
        let (letter, bytes) = message(server)?;
        client.write_all(&bytes).ok()?;
        if letter == b'Z' {
            return Some(bytes[5] == b'I');
        }
    }
}

/// Lets the client log in at the server.
fn log_in(client: &mut TcpStream, first: &[u8], port: u16) -> Option<Session> {
    const LET_IN: [u8; 9] = [b'R', 0, 0, 0, 8, 0, 0, 0, 0];
    let mut server = TcpStream::connect(("127.0.0.1", port)).ok()?;
    server.write_all(first).ok()?;
    let mut greeting = LET_IN.to_vec();
    loop {
        let (letter, bytes) = message(&mut server)?;
        client.write_all(&bytes).ok()?;
        match letter {
            // Asked for a proof, twice; the end of the exchange and the welcome ask for nothing.
            b'R' if matches!(bytes[8], 10 | 11) => server.write_all(&message(client)?.1).ok()?,
            b'R' => {}
            b'Z' => {
                greeting.extend(&bytes);
                return Some(Session { server, greeting });
            }
            _ => greeting.extend(&bytes),
        }
    }
}
