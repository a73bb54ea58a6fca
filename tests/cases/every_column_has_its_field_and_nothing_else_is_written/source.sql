insert into device_session_ctx values
    ('c', 0, 6, 7);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, user_properties, retain, msg_expiry_interval, payload_format_indicator, content_type, response_topic, correlation_data) values
    ('c', 6, 's/t', {{now-2000}}, 7, 'PUBLISH', 2, '\x00ff', '{"props":[{"k":"a","v":"1"}]}', true, 3600, 1, 'text/plain', 'r/t', '\x0102fe');
