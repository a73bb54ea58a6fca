insert into device_session_ctx values
    ('c', 0, 5, null);
