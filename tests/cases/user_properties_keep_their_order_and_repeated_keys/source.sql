insert into device_session_ctx values
    ('c', 0, 1, 2);
insert into device_publish_msg (client_id, serial_number, topic, time, packet_id, packet_type, qos, payload, user_properties) values
    ('c', 0, 't', {{now-1000}}, 1, 'PUBLISH', 1, 'x', e'{"props":[{"k":"a","v":"1"},{"k":"a","v":"2"},{"k":"a","v":"1"},{"k":"","v":""},{"k":"<script>","v":"/\\\\\\"\\n"},{"k":"ключ","v":"😀"}]}'),
    ('c', 1, 't', {{now-1000}}, 2, 'PUBLISH', 1, 'x', e' {\n "props" : [ {"v":"first","k":"second"} ] } ');
