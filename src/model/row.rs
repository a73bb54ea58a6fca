//! Rows as PostgreSQL gives them: every value that a column can hold, nothing judged yet.

/// One row of `device_publish_msg`. Text is bytes here: a `SQL_ASCII` database can hold what is not UTF-8, and then the
/// row is quarantined instead of the run ending. A column that the schema lacks is `None`.
#[derive(Debug, Clone, Copy, Default)]
pub struct MessageRow<'a> {
    /// `serial_number`.
    pub serial_number: i64,
    /// `topic`.
    pub topic: Option<&'a [u8]>,
    /// `time`, ms since the epoch.
    pub time: Option<i64>,
    /// `packet_id`.
    pub packet_id: Option<i32>,
    /// `packet_type`, `PUBLISH` or `PUBREL`; NULL is PUBLISH.
    pub packet_type: Option<&'a [u8]>,
    /// `qos`.
    pub qos: Option<i32>,
    /// `payload`, the bytes themselves.
    pub payload: Option<&'a [u8]>,
    /// `user_properties`, JSON text.
    pub user_properties: Option<&'a [u8]>,
    /// `retain`; NULL is false.
    pub retain: Option<bool>,
    /// `msg_expiry_interval`, seconds.
    pub msg_expiry_interval: Option<i32>,
    /// `payload_format_indicator`.
    pub payload_format_indicator: Option<i32>,
    /// `content_type`.
    pub content_type: Option<&'a [u8]>,
    /// `response_topic`.
    pub response_topic: Option<&'a [u8]>,
    /// `correlation_data`, the bytes themselves.
    pub correlation_data: Option<&'a [u8]>,
}

/// What a row of `device_session_ctx` says of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContextRow {
    /// `last_serial_number`.
    pub last_serial_number: Option<i64>,
    /// `last_packet_id`.
    pub last_packet_id: Option<i32>,
}
