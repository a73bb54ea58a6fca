insert into device_session_ctx values
    ('c', 0, 2, 3);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, content_type, response_topic, correlation_data) values
    ('c', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x', null, null, null),
    ('c', 1, 't', {{now-1000}}, 2, 'PUBLISH', 1, 'x', '', '', '\x'),
    ('c', 2, 't', {{now-1000}}, 3, 'PUBLISH', 1, 'x', ' ', ' ', '\x20');
