-- What must come out, counted by the rules and not by the tool: each row gets the first outcome that fits. Variable: message_limit.
-- One line: name, tab, figure. `keys` is what Redis holds afterwards: the messages, a set for each session that has one,
-- and the last packet id of each session.
with carriable as (
    select *,
        case
            when coalesce(packet_type, 'PUBLISH') not in ('PUBLISH', 'PUBREL') or qos not between 0 and 2
                or packet_id is null or packet_id not between 1 and 65535 then 'quarantined'
        end as quarantined,
        coalesce(packet_type, 'PUBLISH') = 'PUBREL' as is_pubrel,
        (extract(epoch from now()) * 1000)::bigint - time as age_ms
    from device_publish_msg
), identified as (
    select *,
        coalesce(quarantined, case
            when serial_number < max(serial_number) filter (where quarantined is null) over (partition by client_id, packet_id)
            then 'superseded'
        end) as settled
    from carriable
), ranked as (
    select *, row_number() over (partition by client_id, settled is null order by serial_number desc) as newest
    from identified
), judged as (
    select *, coalesce(settled, case
        when newest > :message_limit then 'trimmed'
        when not is_pubrel and (msg_expiry_interval < 0 or msg_expiry_interval > 0 and age_ms >= msg_expiry_interval * 1000::bigint)
            then 'expired_by_interval'
        when (is_pubrel or coalesce(msg_expiry_interval, 0) = 0) and age_ms >= 604800000 then 'expired_by_ttl'
        else 'messages_migrated'
    end) as outcome
    from ranked
), sessions as (
    select client_id from device_session_ctx union select client_id from device_publish_msg
)
select 'sessions', (select count(*) from sessions)
union all select 'rows_read', (select count(*) from judged)
union all select name, (select count(*) from judged where outcome = name)
    from unnest(array['messages_migrated', 'expired_by_interval', 'expired_by_ttl', 'superseded', 'trimmed', 'quarantined']) name
union all select 'orphan_messages', (select count(*) from judged where client_id not in (select client_id from device_session_ctx))
union all select 'keys',
    (select count(*) + count(distinct client_id) from judged where outcome = 'messages_migrated') + (select count(*) from sessions);
