insert into device_session_ctx values
    ('c', 0, 1, 2);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, correlation_data) values
    ('c', 0, 'longer than four', {{now-1000}}, 1, 'PUBLISH', 1, '1234', '\x6c6f6e676572207468616e20666f7572'),
    ('c', 1, 't', {{now-1000}}, 2, 'PUBLISH', 1, '12345', null);
