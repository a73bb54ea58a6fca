insert into device_session_ctx values
    ('c', 0, 1, 2);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, user_properties) values
    ('c', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x', e'{"props":[{"k":"\\u0000","v":"\\u0000z"}]}'),
    ('c', 1, 't', {{now-1000}}, 2, 'PUBLISH', 1, 'x', e'{"props":[{"k":"\\ud83d\\ude00","v":"\\u00e9"}]}');
