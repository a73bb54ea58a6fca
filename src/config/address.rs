//! The address of one or several servers: `scheme://user:password@host:port,host:port/path?name=value`.
//!
//! Split here and not by a URL library, because such a library refuses a list of hosts, leaves a broken escape as it is, reads `+` as a space
//! (libpq does not), and repeats the text in its errors, where a password must not appear.

/// An address taken apart, every part decoded.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// The part before `://`.
    pub scheme: String,
    /// The name before the first `:` in front of `@`.
    pub user: Option<String>,
    /// What follows that `:`.
    pub password: Option<String>,
    /// At least one; of an address without a host, one with an empty name.
    pub hosts: Vec<Host>,
    /// What follows the hosts, without the leading `/`.
    pub path: String,
    /// Names and values, in the order given.
    pub parameters: Vec<(String, String)>,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Host {
    /// A name or an IP address, an IPv6 address without its brackets.
    pub name: String,
    /// The port, where there is one.
    pub port: Option<u16>,
}

/// Why a text is not an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum AddressProblem {
    #[error("is not a URL")]
    NoScheme,
    #[error("holds a `#`")]
    Fragment,
    #[error("has an `@` after the host")]
    StrayAt,
    #[error("has a `%` that is no escape")]
    Escape,
    #[error("has an escape that is not UTF-8, or is NUL")]
    EscapedBytes,
    #[error("has a port that is not between 1 and 65535")]
    Port,
    #[error("has an IPv6 address without its brackets")]
    Brackets,
    #[error("has a character in the host that no host name has")]
    HostName,
}

impl AddressProblem {
    pub(super) fn hint(self) -> Option<&'static str> {
        match self {
            Self::NoScheme => Some("an address begins with a scheme, as in postgres://HOST/DATABASE or redis://HOST"),
            Self::Fragment | Self::StrayAt | Self::Port | Self::HostName => {
                Some("in a user or password write # as %23, / as %2F, : as %3A, ? as %3F, @ as %40 and % as %25")
            }
            Self::Escape | Self::EscapedBytes => Some("write a % of a user or password as %25"),
            Self::Brackets => Some("write it as in [::1]:6379"),
        }
    }
}

/// What a `+` in a parameter stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plus {
    /// Itself (libpq).
    Plus,
    /// A space (JDBC).
    Space,
}

impl Address {
    /// Takes an address apart.
    pub fn parse(text: &str, plus: Plus) -> Result<Self, AddressProblem> {
        let (scheme, rest) = text.trim().split_once("://").ok_or(AddressProblem::NoScheme)?;
        if !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.:".contains(&byte)) {
            return Err(AddressProblem::NoScheme);
        }
        if rest.contains('#') {
            return Err(AddressProblem::Fragment);
        }
        let (before_query, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = before_query.split_once('/').unwrap_or((before_query, ""));
        if path.contains('@') {
            return Err(AddressProblem::StrayAt);
        }
        let (userinfo, hosts) = authority.rsplit_once('@').map_or((None, authority), |(userinfo, hosts)| (Some(userinfo), hosts));
        let (user, password) = match userinfo.map(|userinfo| userinfo.split_once(':').unwrap_or((userinfo, ""))) {
            Some((user, password)) => (Some(decode(user)?), Some(decode(password)?)),
            None => (None, None),
        };
        Ok(Self {
            scheme: scheme.to_ascii_lowercase(),
            user: user.filter(|user| !user.is_empty()),
            password: password.filter(|password| !password.is_empty()),
            hosts: hosts.split(',').map(Host::parse).collect::<Result<_, _>>()?,
            path: decode(path)?,
            parameters: parse_parameters(query, plus)?,
        })
    }
}

impl Host {
    /// `host`, `host:port`, `[::1]`, `[::1]:port`.
    pub fn parse(text: &str) -> Result<Self, AddressProblem> {
        let text = text.trim();
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (name, after) = rest.split_once(']').ok_or(AddressProblem::Brackets)?;
                name.parse::<std::net::Ipv6Addr>().map_err(|_| AddressProblem::Brackets)?;
                let port = if after.is_empty() { None } else { Some(after.strip_prefix(':').ok_or(AddressProblem::Port)?) };
                (name.to_owned(), port)
            }
            None if text.parse::<std::net::Ipv6Addr>().is_ok() => return Err(AddressProblem::Brackets),
            None => {
                let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
                (decode(name)?, port)
            }
        };
        if name.chars().any(|letter| letter.is_whitespace() || letter.is_control() || "@,?#".contains(letter)) {
            return Err(AddressProblem::HostName);
        }
        let port = port.map(|port| port.parse::<u16>().ok().filter(|port| *port != 0).ok_or(AddressProblem::Port)).transpose()?;
        Ok(Self { name, port })
    }

    /// The host as it stands in an address, with the port that holds.
    pub fn display(name: &str, port: u16) -> String {
        if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") }
    }
}

/// Names and values of a query, decoded; a name without `=` has an empty value.
pub(super) fn parse_parameters(query: &str, plus: Plus) -> Result<Vec<(String, String)>, AddressProblem> {
    let decode_parameter = |text: &str| match plus {
        Plus::Plus => decode(text),
        Plus::Space => decode(&text.replace('+', " ")),
    };
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode_parameter(name)?, decode_parameter(value)?))
        })
        .collect()
}

/// Percent escapes to what they stand for.
pub(super) fn decode(text: &str) -> Result<String, AddressProblem> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first != b'%' {
            bytes.push(first);
            rest = tail;
            continue;
        }
        let digits = tail.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit)).ok_or(AddressProblem::Escape)?;
        let byte = std::str::from_utf8(digits).ok().and_then(|digits| u8::from_str_radix(digits, 16).ok()).ok_or(AddressProblem::Escape)?;
        bytes.push(byte);
        rest = &tail[2..];
    }
    let text = String::from_utf8(bytes).map_err(|_| AddressProblem::EscapedBytes)?;
    if text.contains('\0') { Err(AddressProblem::EscapedBytes) } else { Ok(text) }
}

/// A text as it may stand in any part of an address: everything escaped but letters, digits and `-._~`.
pub(super) fn encode(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Address, AddressProblem> {
        Address::parse(text, Plus::Plus)
    }

    #[test]
    fn every_part_is_decoded() {
        let address = parse("redis://us%40er:p%3A%2Fs%25@h1:1,[::1]:2,h3/db%2Dx?a=b%20c&d").unwrap();
        assert_eq!(address.user.as_deref(), Some("us@er"));
        assert_eq!(address.password.as_deref(), Some("p:/s%"));
        let hosts: Vec<_> = address.hosts.iter().map(|host| (host.name.as_str(), host.port)).collect();
        assert_eq!(hosts, [("h1", Some(1)), ("::1", Some(2)), ("h3", None)]);
        assert_eq!(address.path, "db-x");
        assert_eq!(address.parameters, [("a".into(), "b c".into()), ("d".into(), String::new())]);
    }

    #[test]
    fn a_raw_at_sign_or_colon_in_a_password_is_taken_as_meant() {
        let address = parse("redis://u:p@ss:word@host").unwrap();
        assert_eq!((address.password.as_deref(), address.hosts[0].name.as_str()), (Some("p@ss:word"), "host"));
    }

    #[test]
    fn a_plus_is_a_space_for_jdbc_only() {
        assert_eq!(parse_parameters("password=a+b", Plus::Plus).unwrap()[0].1, "a+b");
        assert_eq!(parse_parameters("password=a+b", Plus::Space).unwrap()[0].1, "a b");
    }

    #[test]
    fn each_malformed_address_is_told_apart() {
        for (text, problem) in [
            ("localhost:6379", AddressProblem::NoScheme),
            ("redis://:se#cret@h", AddressProblem::Fragment),
            ("redis://u:12/ss@h", AddressProblem::StrayAt),
            ("redis://:100%@h", AddressProblem::Escape),
            ("redis://:%ff@h", AddressProblem::EscapedBytes),
            ("redis://:%00@h", AddressProblem::EscapedBytes),
            ("redis://h:0", AddressProblem::Port),
            ("redis://h:65536", AddressProblem::Port),
            ("redis://u:pa/ss", AddressProblem::Port),
            ("redis://::1", AddressProblem::Brackets),
            ("redis://[::1", AddressProblem::Brackets),
            ("redis://[::1]x", AddressProblem::Port),
            ("redis://a b", AddressProblem::HostName),
        ] {
            assert_eq!(parse(text).map(|_| ()), Err(problem), "{text}");
        }
    }

    #[test]
    fn what_is_encoded_decodes_to_itself() {
        let text = "p@ss:/w?o#r%d +ü";
        assert_eq!(decode(&encode(text)).unwrap(), text);
        assert!(encode(text).bytes().all(|byte| byte.is_ascii_alphanumeric() || b"%-._~".contains(&byte)));
    }
}
