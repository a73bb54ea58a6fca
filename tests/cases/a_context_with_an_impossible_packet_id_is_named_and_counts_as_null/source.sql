insert into device_session_ctx values
    ('alone', 0, 5, 70000),
    ('rows', 0, 9, -1),
    ('good', 0, 0, 1);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('rows', 5, 't', {{now-1000}}, 6, 'PUBLISH', 1, 'x'),
    ('good', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x');
