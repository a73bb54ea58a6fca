//! A stored message as the 2.x broker's parser reads it: strict where that is strict, lenient where that is lenient.
//!
//! This is not the writing of [`super::Encoder`] turned round: it is written from what brokers were seen to read (contract
//! section 2), so that a fault of the one does not hide in the other.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer};

use super::PacketType;
use super::message::{Object, UserProperties};

/// A message that a broker can deliver.
#[derive(Debug, PartialEq)]
pub struct StoredMessage<'a> {
    /// `clientId`.
    pub client_id: Option<Cow<'a, str>>,
    /// `topicName` or `topic`.
    pub topic: Option<Cow<'a, str>>,
    /// `time`.
    pub time: i64,
    /// `packetId`.
    pub packet_id: Option<i32>,
    /// `packetType`.
    pub packet_type: PacketType,
    /// `qos`.
    pub qos: Option<i32>,
    /// `payload`, decoded.
    pub payload: Vec<u8>,
    /// `retained`; absent is false.
    pub retained: bool,
    /// `userProperties`; an empty list is none.
    pub user_properties: Option<UserProperties>,
    /// `msgExpiryInterval`.
    pub msg_expiry_interval: Option<i32>,
    /// `payloadFormatIndicator`.
    pub payload_format_indicator: Option<i32>,
    /// `contentType`.
    pub content_type: Option<Cow<'a, str>>,
    /// `responseTopic`.
    pub response_topic: Option<Cow<'a, str>>,
    /// `correlationData`, decoded.
    pub correlation_data: Option<Vec<u8>>,
}

/// Why a broker could not deliver a stored message, without any of its content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Json<'a> {
    #[serde(borrow, default)]
    client_id: Option<Text<'a>>,
    #[serde(borrow, default, alias = "topic")]
    topic_name: Option<Text<'a>>,
    #[serde(default)]
    time: Option<Integer<i64>>,
    #[serde(default)]
    packet_id: Option<Integer<i32>>,
    #[serde(borrow, default)]
    packet_type: Option<Text<'a>>,
    #[serde(default)]
    qos: Option<Integer<i32>>,
    #[serde(borrow, default)]
    payload: Option<Text<'a>>,
    #[serde(default)]
    retained: Option<bool>,
    #[serde(default)]
    user_properties: Option<Object<UserProperties>>,
    #[serde(default)]
    msg_expiry_interval: Option<Integer<i32>>,
    #[serde(default)]
    payload_format_indicator: Option<Integer<i32>>,
    #[serde(borrow, default)]
    content_type: Option<Text<'a>>,
    #[serde(borrow, default)]
    response_topic: Option<Text<'a>>,
    #[serde(borrow, default)]
    correlation_data: Option<Text<'a>>,
    /// Written by later 2.x brokers for their own messages; nothing in 1.x corresponds to it.
    #[serde(default, rename = "subscriptionIds")]
    _subscription_ids: Option<Vec<Integer<i32>>>,
}

/// A text that is borrowed where it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A whole number, also one written as a text or with an exponent: all are read.
struct Integer<T>(T);

impl<'de, T: TryFrom<i64>> Deserialize<'de> for Integer<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = i64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number")
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<i64, E> {
                Ok(number)
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<i64, E> {
                i64::try_from(number).map_err(|_| E::custom(OUT_OF_RANGE))
            }

            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<i64, E> {
                // Beyond 2^53 a double is not exact.
                #[allow(clippy::cast_possible_truncation)]
                let whole = number as i64;
                if number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0 { Ok(whole) } else { Err(E::custom(OUT_OF_RANGE)) }
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<i64, E> {
                text.parse().map_err(|_| E::custom("a text where a number should be"))
            }
        }
        let number = deserializer.deserialize_any(Number)?;
        T::try_from(number).map(Self).map_err(|_| D::Error::custom(OUT_OF_RANGE))
    }
}

const OUT_OF_RANGE: &str = "a number out of range";

impl<'a> StoredMessage<'a> {
    /// Reads the JSON of a message.
    ///
    /// # Errors
    /// What would make the broker refuse the session, or end the delivery at this message.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let missing = |name: &str| Unreadable(format!("{name} is missing: a delivery ends there"));
        let Object(json) = serde_json::from_slice::<Object<Json<'a>>>(bytes).map_err(|error| Unreadable(without_content(&error)))?;
        let packet_type = match json.packet_type.as_ref().map(|text| &*text.0) {
            Some("PUBLISH") => PacketType::Publish,
            Some("PUBREL") => PacketType::Pubrel,
            Some(_) => return Err(Unreadable("packetType is neither PUBLISH nor PUBREL".to_owned())),
            None => return Err(missing("packetType")),
        };
        Ok(Self {
            client_id: json.client_id.map(|text| text.0),
            topic: json.topic_name.map(|text| text.0),
            time: json.time.ok_or_else(|| missing("time"))?.0,
            packet_id: json.packet_id.map(|number| number.0),
            packet_type,
            qos: json.qos.map(|number| number.0),
            payload: decoded("payload", json.payload.ok_or_else(|| missing("payload"))?)?,
            retained: json.retained.unwrap_or(false),
            user_properties: json.user_properties.map(|object| object.0).filter(|properties| !properties.is_empty()),
            msg_expiry_interval: json.msg_expiry_interval.map(|number| number.0),
            payload_format_indicator: json.payload_format_indicator.map(|number| number.0),
            content_type: json.content_type.map(|text| text.0),
            response_topic: json.response_topic.map(|text| text.0),
            correlation_data: json.correlation_data.map(|text| decoded("correlationData", text)).transpose()?,
        })
    }
}

fn decoded(name: &str, text: Text<'_>) -> Result<Vec<u8>, Unreadable> {
    BASE64.decode(text.0.as_bytes()).map_err(|_| Unreadable(format!("{name} is not base64 of the standard alphabet with its padding")))
}

/// The parser's complaint; where it would repeat a value, only its place.
fn without_content(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if let Some(name) = text.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next()) {
        // A name may be as long as the message.
        return format!("an unknown field: {:.60}", super::EscapedText(name).to_string());
    }
    let place = format!("at byte {}", error.column());
    match error.classify() {
        serde_json::error::Category::Data if text.starts_with("duplicate field") => format!("a field stands there twice, {place}"),
        serde_json::error::Category::Data if text.starts_with(OUT_OF_RANGE) => format!("{OUT_OF_RANGE}, {place}"),
        serde_json::error::Category::Data => format!("a value of a wrong type, {place}"),
        _ => format!("not JSON, {place}"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{"clientId":"dev","topicName":"s/t","time":1796073271729,"packetId":7,"packetType":"PUBREL","qos":2,"payload":"aGVsbG8=",
        "retained":true,"userProperties":{"props":[{"k":"a","v":"1"}]},"msgExpiryInterval":0,"payloadFormatIndicator":1,"contentType":"",
        "responseTopic":" ","correlationData":"//4A"}"#;

    fn with(from: &str, to: &str) -> String {
        let changed = WHOLE.replace(from, to);
        assert_ne!(changed, WHOLE, "{from}");
        changed
    }

    fn problem(json: &str) -> String {
        StoredMessage::parse(json.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn every_field_is_read() {
        let message = StoredMessage::parse(WHOLE.as_bytes()).unwrap();
        assert_eq!((message.client_id.as_deref(), message.topic.as_deref()), (Some("dev"), Some("s/t")));
        assert_eq!((message.time, message.packet_id, message.packet_type), (1_796_073_271_729, Some(7), PacketType::Pubrel));
        assert_eq!((message.qos, message.payload.as_slice(), message.retained), (Some(2), b"hello".as_slice(), true));
        assert_eq!((message.msg_expiry_interval, message.payload_format_indicator), (Some(0), Some(1)));
        assert_eq!((message.content_type.as_deref(), message.response_topic.as_deref()), (Some(""), Some(" ")));
        assert_eq!(message.correlation_data.as_deref(), Some([0xff, 0xfe, 0x00].as_slice()));
        assert!(message.user_properties.is_some());
    }

    // What brokers from 2.0.1 to 2.3.0 were seen to read.
    #[test]
    fn what_brokers_read_is_read() {
        let whole = StoredMessage::parse(WHOLE.as_bytes()).unwrap();
        for (from, to) in [
            ("\"topicName\"", "\"topic\""),
            ("\"packetId\":7", "\"packetId\":\"7\""),
            ("\"qos\":2", "\"qos\":\"2\""),
            ("1796073271729", "1.796073271729e+12"),
            ("\"s/t\"", "\"s\\/t\""),
            ("\"correlationData\"", "\"subscriptionIds\":[1],\"correlationData\""),
        ] {
            assert_eq!(StoredMessage::parse(with(from, to).as_bytes()).unwrap(), whole, "{to}");
        }
        let bare =
            r#"{"time":1,"packetType":"PUBLISH","payload":"","userProperties":null,"contentType":null,"retained":null,"msgExpiryInterval":null}"#;
        let bare = StoredMessage::parse(bare.as_bytes()).unwrap();
        assert_eq!((bare.retained, bare.content_type, bare.user_properties, bare.payload.len()), (false, None, None, 0));
        let empty = with(r#"[{"k":"a","v":"1"}]"#, "[]");
        assert_eq!(StoredMessage::parse(empty.as_bytes()).unwrap().user_properties, None);
    }

    #[test]
    fn what_ends_a_delivery_is_unreadable() {
        for name in ["payload", "packetType", "time"] {
            let gone = with(&format!("\"{name}\""), "\"contentType\"");
            let gone = if name == "payload" { gone.replace("\"contentType\":\"\",", "") } else { gone.replace(",\"contentType\":\"\"", "") };
            assert!(StoredMessage::parse(gone.as_bytes()).is_err(), "{name}");
        }
        assert_eq!(problem(r#"{"time":1,"packetType":"PUBLISH"}"#), "payload is missing: a delivery ends there");
        assert_eq!(problem(r#"{"time":1,"packetType":null,"payload":""}"#), "packetType is missing: a delivery ends there");
        assert_eq!(problem(r#"{"packetType":"PUBLISH","payload":""}"#), "time is missing: a delivery ends there");
    }

    #[test]
    fn what_locks_a_session_out_is_unreadable_and_no_value_is_told() {
        for (from, to, expected) in [
            ("\"retained\":true", "\"retained\":\"t\"", "a value of a wrong type"),
            ("\"PUBREL\"", "\"publish\"", "packetType is neither PUBLISH nor PUBREL"),
            ("\"clientId\"", "\"serialNumber\":5,\"clientId\"", "an unknown field: serialNumber"),
            ("\"msgExpiryInterval\":0", "\"msgExpiryInterval\":4294967295", "a number out of range"),
            ("aGVsbG8=", "aGVsbG8", "payload is not base64"),
            ("//4A", "__4A", "correlationData is not base64"),
            (r#"[{"k":"a","v":"1"}]"#, "{}", "a value of a wrong type"),
            (r#"{"props":[{"k":"a","v":"1"}]}"#, r#"[{"k":"a","v":"1"}]"#, "a value of a wrong type"),
            ("\"contentType\":\"\"", "\"contentType\":\"\\ud800\"", "not JSON"),
            ("\"clientId\"", "\"qos\":1,\"clientId\"", "a field stands there twice"),
            ("\"aGVsbG8=\"", "[\"aGVsbG8=\"]", "a value of a wrong type"),
        ] {
            let problem = problem(&with(from, to));
            assert!(problem.starts_with(expected), "{to}: {problem}");
            assert!(!problem.contains("aGVsbG8"), "{problem}");
        }
        assert!(problem("[]").starts_with("a value of a wrong type"));
        assert!(problem("").starts_with("not JSON"));
        assert!(problem(&format!("{WHOLE} x")).starts_with("not JSON"));
    }
}
