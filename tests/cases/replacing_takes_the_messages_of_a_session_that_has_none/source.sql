insert into device_session_ctx values
    ('c', 0, 499, 500);
