insert into device_session_ctx values
    ('behind', 0, 1, 2),
    ('no serial', 0, null, 40),
    ('no packet id', 0, 9, null),
    ('fresh', 0, -1, 0);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('behind', 5, 't', {{now-1000}}, 6, 'PUBLISH', 1, 'x'),
    ('behind', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x'),
    ('no serial', 5, 't', {{now-1000}}, 6, 'PUBLISH', 1, 'x'),
    ('no packet id', 5, 't', {{now-1000}}, 6, 'PUBLISH', 1, 'x'),
    ('fresh', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x');
