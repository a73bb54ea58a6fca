insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('ss_g_t', 3, 't', {{now-3000}}, 4, 'PUBLISH', 1, 'x'),
    ('ss_g_t', 5, 't', {{now-2000}}, 6, 'PUBLISH', 1, 'x'),
    ('ss_g_t', 8, 't', {{now-1000}}, 9, 'PUBREL', 2, 'x');
