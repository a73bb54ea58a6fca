insert into device_session_ctx values
    ('c', 0, 2, 3),
    ('null', 0, 2, 3);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('c', 3, 't', {{now-1000}}, 9, 'PUBLISH', 9, 'x'),
    ('c', 2, 't', {{now-1000}}, 3, 'PUBLISH', 1, 'x'),
    ('null', 3, 't', {{now-1000}}, null, 'PUBLISH', 1, 'x'),
    ('null', 1, 't', {{now-1000}}, 2, 'PUBLISH', 1, 'x');
