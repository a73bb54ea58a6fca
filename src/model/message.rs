//! One message: judged by itself, and written as the JSON that the 2.x broker parses (contract sections 1 and 2).
//!
//! The broker's parser is strict: an unknown field, a wrong type or an unknown packet type makes the whole session
//! unreadable at every reconnect. So the fields are a fixed struct, absent where the column is NULL, and what would
//! not parse is quarantined here instead of being written.

use std::fmt;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::deadline::{Life, Millis, PacketType, life};
use super::{MessageRow, PacketId, QuarantineReason, Rules, Score, SerialNumber, TopicField};

/// The broker's JSON parser takes strings of up to this many characters.
const PARSER_STRING_CHARACTERS: usize = 20_000_000;

/// A row that can be carried, whatever the clock, the limit and its siblings say.
#[derive(Debug, PartialEq)]
pub struct Carriable<'a> {
    /// The key of the message.
    pub packet_id: PacketId,
    /// Its place in the session.
    pub score: Score,
    /// What the clock says.
    pub life: Life,
    /// The fields of the JSON.
    pub content: Content<'a>,
}

/// What the JSON says beside client and packet id, all of it valid.
#[derive(Debug, PartialEq)]
pub struct Content<'a> {
    pub(super) topic: &'a str,
    pub(super) time: i64,
    pub(super) packet_type: PacketType,
    pub(super) qos: u8,
    pub(super) payload: &'a [u8],
    pub(super) user_properties: Option<UserProperties>,
    pub(super) retained: bool,
    pub(super) msg_expiry_interval: Option<i32>,
    pub(super) payload_format_indicator: Option<i32>,
    pub(super) content_type: Option<&'a str>,
    pub(super) response_topic: Option<&'a str>,
    pub(super) correlation_data: Option<&'a [u8]>,
}

/// MQTT 5 user properties in the broker's form; order and repeated keys are kept.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserProperties {
    props: Vec<Object<UserProperty>>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UserProperty {
    k: String,
    v: String,
}

/// A struct that is read from a JSON object alone: by itself it would be read from an array of its fields' values too.
#[derive(Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub(super) struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

impl<'a> Carriable<'a> {
    /// Checks every column of a row.
    ///
    /// # Errors
    /// The first reason for which the row cannot be carried.
    pub fn from_row(row: &MessageRow<'a>, rules: &Rules, now: Millis) -> Result<Self, QuarantineReason> {
        use QuarantineReason as Reason;
        let serial = SerialNumber::from_column(row.serial_number).ok_or(Reason::SerialNumberOutOfRange)?;
        let packet_id = row.packet_id.and_then(PacketId::from_column).ok_or(Reason::PacketIdOutOfRange)?;
        let packet_type = match row.packet_type {
            None | Some(b"PUBLISH") => PacketType::Publish,
            Some(b"PUBREL") => PacketType::Pubrel,
            Some(_) => return Err(Reason::UnknownPacketType),
        };
        let qos = row.qos.and_then(|qos| u8::try_from(qos).ok()).filter(|qos| *qos <= 2).ok_or(Reason::QosOutOfRange)?;
        let payload = row.payload.ok_or(Reason::PayloadMissing)?;
        if payload.len() > rules.max_payload_bytes {
            return Err(Reason::PayloadTooLarge);
        }
        if row.correlation_data.is_some_and(|data| data.len() > Rules::PAYLOAD_BYTES_CEILING) {
            return Err(Reason::FieldTooLarge);
        }
        let time = row.time.ok_or(Reason::TimeMissing)?;
        let life = life(packet_type, time, row.msg_expiry_interval, rules, now)?;
        let content = Content {
            topic: text(row.topic)?.ok_or(Reason::TopicMissing)?,
            time,
            packet_type,
            qos,
            payload,
            user_properties: UserProperties::parse(text(row.user_properties)?)?,
            retained: row.retain.unwrap_or(false),
            msg_expiry_interval: row.msg_expiry_interval,
            payload_format_indicator: row.payload_format_indicator,
            content_type: text(row.content_type)?,
            response_topic: text(row.response_topic)?,
            correlation_data: row.correlation_data,
        };
        Ok(Self { packet_id, score: serial.score(), life, content })
    }
}

/// A text column that the broker's parser can take.
fn text(column: Option<&[u8]>) -> Result<Option<&str>, QuarantineReason> {
    let Some(bytes) = column else { return Ok(None) };
    if bytes.len() > PARSER_STRING_CHARACTERS {
        return Err(QuarantineReason::FieldTooLarge);
    }
    std::str::from_utf8(bytes).map(Some).map_err(|_| QuarantineReason::NotUtf8)
}

impl UserProperties {
    pub(super) fn is_empty(&self) -> bool {
        self.props.is_empty()
    }

    /// Blank text and an empty list are no properties: a script of the broker would turn `[]` into `{}`, which its own
    /// parser refuses.
    fn parse(column: Option<&str>) -> Result<Option<Self>, QuarantineReason> {
        let Some(json) = column.filter(|json| !json.trim().is_empty()) else { return Ok(None) };
        let Object(parsed) = serde_json::from_str::<Object<Self>>(json).map_err(|_| QuarantineReason::MalformedUserProperties)?;
        Ok(Some(parsed).filter(|properties| !properties.props.is_empty()))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Json<'a> {
    client_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<&'a str>,
    time: i64,
    packet_id: u16,
    packet_type: &'static str,
    qos: u8,
    payload: &'a str,
    retained: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_properties: Option<&'a UserProperties>,
    #[serde(skip_serializing_if = "Option::is_none")]
    msg_expiry_interval: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_format_indicator: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_topic: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_data: Option<&'a str>,
}

/// Writes messages as JSON; keeps its buffers between messages.
#[derive(Debug, Default)]
pub struct Encoder {
    payload: String,
    correlation_data: String,
}

impl Encoder {
    /// A buffer grown by a large message is given back above this many bytes, so that one message does not keep memory.
    const BUFFER_KEPT_BYTES: usize = 64 * 1024;

    /// Appends the JSON of one message to `out`, on one line.
    pub fn encode(&mut self, client: &str, packet_id: PacketId, content: &Content<'_>, field: TopicField, out: &mut Vec<u8>) {
        self.payload.clear();
        BASE64.encode_string(content.payload, &mut self.payload);
        self.correlation_data.clear();
        if let Some(data) = content.correlation_data {
            BASE64.encode_string(data, &mut self.correlation_data);
        }
        let (topic_name, topic) = match field {
            TopicField::TopicName => (Some(content.topic), None),
            TopicField::Topic => (None, Some(content.topic)),
        };
        let json = Json {
            client_id: client,
            topic_name,
            topic,
            time: content.time,
            packet_id: packet_id.get(),
            packet_type: content.packet_type.name(),
            qos: content.qos,
            payload: &self.payload,
            retained: content.retained,
            user_properties: content.user_properties.as_ref(),
            msg_expiry_interval: content.msg_expiry_interval,
            payload_format_indicator: content.payload_format_indicator,
            content_type: content.content_type,
            response_topic: content.response_topic,
            correlation_data: content.correlation_data.map(|_| self.correlation_data.as_str()),
        };
        // Text and numbers into memory: neither the serializer nor the writer has a way to fail.
        serde_json::to_writer(&mut *out, &json).unwrap_or_else(|_| unreachable!("a struct of text and numbers serializes"));
        if self.payload.capacity() > Self::BUFFER_KEPT_BYTES {
            self.payload = String::new();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const NOW: Millis = Millis(1_796_073_271_729);

    fn row() -> MessageRow<'static> {
        MessageRow {
            serial_number: 6,
            topic: Some(b"s/t"),
            time: Some(NOW.0 - 1000),
            packet_id: Some(7),
            packet_type: Some(b"PUBLISH"),
            qos: Some(1),
            payload: Some(b"hello"),
            ..MessageRow::default()
        }
    }

    fn judge<'a>(row: &MessageRow<'a>) -> Result<Carriable<'a>, QuarantineReason> {
        Carriable::from_row(row, &Rules::default(), NOW)
    }

    fn json_of(row: &MessageRow<'_>, field: TopicField) -> Value {
        let carried = judge(row).unwrap();
        let mut out = Vec::new();
        Encoder::default().encode("dev", carried.packet_id, &carried.content, field, &mut out);
        assert!(!out.contains(&b'\n'));
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn a_row_of_nulls_has_only_the_fields_that_must_stand() {
        let expected = json!({"clientId": "dev", "topicName": "s/t", "time": NOW.0 - 1000, "packetId": 7, "packetType": "PUBLISH",
            "qos": 1, "payload": "aGVsbG8=", "retained": false});
        assert_eq!(json_of(&row(), TopicField::TopicName), expected);
    }

    #[test]
    fn every_column_has_its_field() {
        let full = MessageRow {
            packet_type: Some(b"PUBREL"),
            qos: Some(2),
            user_properties: Some(br#"{"props":[{"k":"a","v":"1"},{"k":"a","v":"2"},{"k":"","v":"\u0000z"}]}"#),
            retain: Some(true),
            msg_expiry_interval: Some(0),
            payload_format_indicator: Some(1),
            content_type: Some(b""),
            response_topic: Some(b" "),
            correlation_data: Some(&[0xff, 0xfe, 0x00]),
            ..row()
        };
        let expected = json!({"clientId": "dev", "topic": "s/t", "time": NOW.0 - 1000, "packetId": 7, "packetType": "PUBREL", "qos": 2,
            "payload": "aGVsbG8=", "retained": true, "msgExpiryInterval": 0, "payloadFormatIndicator": 1, "contentType": "", "responseTopic": " ",
            "correlationData": "//4A",
            "userProperties": {"props": [{"k": "a", "v": "1"}, {"k": "a", "v": "2"}, {"k": "", "v": "\u{0}z"}]}});
        assert_eq!(json_of(&full, TopicField::Topic), expected);
    }

    #[test]
    fn an_empty_payload_is_an_empty_text_and_null_is_quarantined() {
        assert_eq!(json_of(&MessageRow { payload: Some(b""), ..row() }, TopicField::TopicName)["payload"], json!(""));
        assert_eq!(judge(&MessageRow { payload: None, ..row() }).unwrap_err(), QuarantineReason::PayloadMissing);
    }

    #[test]
    fn empty_correlation_data_differs_from_none() {
        assert_eq!(json_of(&MessageRow { correlation_data: Some(b""), ..row() }, TopicField::TopicName)["correlationData"], json!(""));
        assert_eq!(json_of(&row(), TopicField::TopicName).get("correlationData"), None);
    }

    #[test]
    fn no_pairs_and_blank_text_are_no_user_properties() {
        for text in ["{\"props\":[]}", "", "  \t\n"] {
            let value = json_of(&MessageRow { user_properties: Some(text.as_bytes()), ..row() }, TopicField::TopicName);
            assert_eq!(value.get("userProperties"), None, "{text:?}");
        }
    }

    #[test]
    fn user_properties_of_another_shape_are_quarantined() {
        for text in [
            "[]",
            "{}",
            "\"x\"",
            "{\"props\":null}",
            "{\"props\":{}}",
            "{\"props\":[{\"k\":\"a\"}]}",
            "{\"props\":[{\"k\":\"a\",\"v\":null}]}",
            "{\"props\":[{\"k\":\"a\",\"v\":1}]}",
            "{\"props\":[{\"k\":\"a\",\"v\":\"1\",\"x\":0}]}",
            "{\"props\":[],\"x\":0}",
            "{\"props\":[{\"k\":\"a\",\"v\":\"\\ud800\"}]}",
            "{\"props\":[{\"k\":\"a\",\"v\":\"1\"}]} x",
            "{\"props\":[{\"k\":\"a\"",
            "[[]]",
            "{\"props\":[[\"a\",\"1\"]]}",
        ] {
            let judged = judge(&MessageRow { user_properties: Some(text.as_bytes()), ..row() });
            assert_eq!(judged.unwrap_err(), QuarantineReason::MalformedUserProperties, "{text}");
        }
    }

    #[test]
    fn what_the_broker_could_not_parse_is_quarantined_with_its_reason() {
        use QuarantineReason as Reason;
        let cases: Vec<(MessageRow<'_>, Reason)> = vec![
            (MessageRow { packet_id: None, ..row() }, Reason::PacketIdOutOfRange),
            (MessageRow { packet_id: Some(0), ..row() }, Reason::PacketIdOutOfRange),
            (MessageRow { packet_id: Some(65_536), ..row() }, Reason::PacketIdOutOfRange),
            (MessageRow { serial_number: -1, ..row() }, Reason::SerialNumberOutOfRange),
            (MessageRow { serial_number: (1 << 53) - 1, ..row() }, Reason::SerialNumberOutOfRange),
            (MessageRow { packet_type: Some(b"publish"), ..row() }, Reason::UnknownPacketType),
            (MessageRow { packet_type: Some(b""), ..row() }, Reason::UnknownPacketType),
            (MessageRow { qos: None, ..row() }, Reason::QosOutOfRange),
            (MessageRow { qos: Some(3), ..row() }, Reason::QosOutOfRange),
            (MessageRow { qos: Some(-1), ..row() }, Reason::QosOutOfRange),
            (MessageRow { topic: None, ..row() }, Reason::TopicMissing),
            (MessageRow { topic: Some(b"\xff"), ..row() }, Reason::NotUtf8),
            (MessageRow { content_type: Some(b"\xc3"), ..row() }, Reason::NotUtf8),
            (MessageRow { time: None, ..row() }, Reason::TimeMissing),
            (MessageRow { time: Some(i64::MAX), ..row() }, Reason::TimeTooFarAhead),
        ];
        for (row, reason) in cases {
            assert_eq!(judge(&row).unwrap_err(), reason);
        }
    }

    #[test]
    fn a_null_packet_type_is_a_publish_and_a_null_retain_is_false() {
        let value = json_of(&MessageRow { packet_type: None, retain: None, ..row() }, TopicField::TopicName);
        assert_eq!((&value["packetType"], &value["retained"]), (&json!("PUBLISH"), &json!(false)));
    }

    #[test]
    fn the_payload_limit_is_the_longest_base64_that_the_broker_parses() {
        let largest = vec![0_u8; 15_000_000];
        let carried = MessageRow { payload: Some(&largest), ..row() };
        assert_eq!(json_of(&carried, TopicField::TopicName)["payload"].as_str().unwrap().len(), 20_000_000);
        let larger = vec![0_u8; 15_000_001];
        assert_eq!(judge(&MessageRow { payload: Some(&larger), ..row() }).unwrap_err(), QuarantineReason::PayloadTooLarge);
        let rules = Rules { max_payload_bytes: 4, ..Rules::default() };
        assert_eq!(Carriable::from_row(&row(), &rules, NOW).unwrap_err(), QuarantineReason::PayloadTooLarge);
    }

    #[test]
    fn all_byte_values_survive_as_one_line_of_standard_base64() {
        let bytes: Vec<u8> = (0..=255).collect();
        let value = json_of(&MessageRow { payload: Some(&bytes), ..row() }, TopicField::TopicName);
        let text = value["payload"].as_str().unwrap();
        assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b)) && text.len() == 344);
        assert_eq!(BASE64.decode(text).unwrap(), bytes);
    }
}
