insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload) values
    ('ss_g_t', 7, 't', {{now-691200000}}, 8, 'PUBLISH', 1, 'x');
