-- Comparisons keep their progress beside that of copies, and what they found.

drop index if exists tbmq_migrate.run_open;

-- One open copy and one open comparison at a time.
create unique index if not exists run_open_of_command on tbmq_migrate.run (command) where state in ('copying', 'finishing');

alter table tbmq_migrate.chunk
    add column if not exists sessions_compared bigint not null default 0,
    add column if not exists messages_compared bigint not null default 0,
    add column if not exists differing_sessions bigint not null default 0,
    add column if not exists not_checked bigint not null default 0,
    add column if not exists unlisted_findings bigint not null default 0;

-- A comparison has one more kind of chunk: what stands in Redis alone.
alter table tbmq_migrate.chunk drop constraint if exists chunk_part_check;
alter table tbmq_migrate.chunk
    add constraint chunk_part_check check (part in ('all', 'rows_only', 'contexts_only', 'target_only'));

create table if not exists tbmq_migrate.finding (
    run_id bigint not null references tbmq_migrate.run (id) on delete cascade,
    chunk_id bigint not null references tbmq_migrate.chunk (id) on delete cascade,
    client_id text not null,
    kind text not null,
    -- Null where it is about no single message.
    packet_id integer,
    serial_number bigint,
    detail text not null
);

create index if not exists finding_chunk on tbmq_migrate.finding (chunk_id);
