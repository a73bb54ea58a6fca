insert into device_session_ctx values
    ('ss_g_a/#', 0, 0, 1),
    ('ss_}_x', 0, 7, 8);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('ss_g_a/#', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x'),
    ('ss_g_+/b', 3, 't', {{now-1000}}, 4, 'PUBLISH', 1, 'x'),
    ('ss_}_x', 7, 't', {{now-1000}}, 8, 'PUBLISH', 1, 'x');
