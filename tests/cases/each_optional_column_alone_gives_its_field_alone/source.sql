insert into device_session_ctx values
    ('c', 0, 6, 7);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, user_properties, retain, msg_expiry_interval, payload_format_indicator, content_type, response_topic, correlation_data) values
    ('c', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x', '{"props":[{"k":"a","v":"1"}]}', null, null, null, null, null, null),
    ('c', 1, 't', {{now-1000}}, 2, 'PUBLISH', 1, 'x', null, true, null, null, null, null, null),
    ('c', 2, 't', {{now-1000}}, 3, 'PUBLISH', 1, 'x', null, null, 86400, null, null, null, null),
    ('c', 3, 't', {{now-1000}}, 4, 'PUBLISH', 1, 'x', null, null, null, 0, null, null, null),
    ('c', 4, 't', {{now-1000}}, 5, 'PUBLISH', 1, 'x', null, null, null, null, 'ct', null, null),
    ('c', 5, 't', {{now-1000}}, 6, 'PUBLISH', 1, 'x', null, null, null, null, null, 'rt', null),
    ('c', 6, 't', {{now-1000}}, 7, 'PUBLISH', 1, 'x', null, null, null, null, null, null, '\x6364');
