insert into device_session_ctx values
    ('ss_g_t', 0, 3, 4);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('ss_g_t', 2, 't', {{now-2000}}, 3, 'PUBLISH', 1, 'same'),
    ('ss_g_t', 3, 't', {{now-1000}}, 4, 'PUBLISH', 1, 'same'),
    ('other', 2, 't', {{now-2000}}, 3, 'PUBLISH', 1, 'same');
