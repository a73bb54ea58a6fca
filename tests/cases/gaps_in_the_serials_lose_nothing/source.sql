insert into device_session_ctx values
    ('c', 0, 10, 11);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('c', 1, 't', {{now-3000}}, 2, 'PUBLISH', 1, 'one'),
    ('c', 2, 't', {{now-2000}}, 3, 'PUBLISH', 1, 'two'),
    ('c', 9, 't', {{now-1000}}, 10, 'PUBLISH', 1, 'nine');
