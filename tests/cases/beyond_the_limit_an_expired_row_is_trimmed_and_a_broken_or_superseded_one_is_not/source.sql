insert into device_session_ctx values
    ('c', 0, 9, 10);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, msg_expiry_interval) values
    ('c', 9, 't', {{now-1000}}, 10, 'PUBLISH', 1, 'x', null),
    ('c', 8, 't', {{now-1000}}, 9, 'PUBLISH', 1, 'x', null),
    ('c', 7, 't', {{now-691200000}}, 8, 'PUBLISH', 1, 'x', null),
    ('c', 6, 't', {{now-1000}}, 7, 'PUBLISH', 1, 'x', -1),
    ('c', 5, 't', {{now-1000}}, 6, 'PUBLISH', 3, 'x', null),
    ('c', 4, 't', {{now-1000}}, 9, 'PUBLISH', 1, 'x', null),
    ('c', 3, 't', {{now-1000}}, 4, 'PUBLISH', 1, 'x', null);
