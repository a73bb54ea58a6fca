insert into device_session_ctx values
    ('no packet id', 0, 3, null),
    ('empty', 0, null, null);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('no packet id', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x'),
    ('no packet id', 3, 't', {{now-1000}}, 4, 'PUBLISH', 1, 'x'),
    ('orphan', 2, 't', {{now-1000}}, 3, 'PUBLISH', 1, 'x');
