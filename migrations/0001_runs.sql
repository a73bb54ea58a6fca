-- What survives a crash of a copy: the run, its chunks, the processes that work on it, and the rows it could not carry.

create schema if not exists tbmq_migrate;

create table if not exists tbmq_migrate.run (
    id bigint generated always as identity primary key,
    command text not null,
    -- Everything that decides what is written where: a run goes on only with the same.
    settings text not null,
    -- copying: set at the start; finishing: by the process that found every chunk done; finished: at the end;
    -- forgotten: by --restart.
    state text not null default 'copying' check (state in ('copying', 'finishing', 'finished', 'forgotten')),
    -- Rows written to the two tables so far, as the server counted at the start; null where it does not count.
    writes_at_start bigint,
    -- Whether somebody was seen to write during the run.
    writers_seen boolean not null default false,
    -- Redis keys in which each shard notes the finished chunks.
    journal text[] not null default '{}',
    sessions_removed bigint not null default 0,
    -- The worker that takes the last steps.
    finisher_id bigint,
    started_at timestamptz not null default clock_timestamp(),
    finished_at timestamptz
);

-- One run at a time.
create unique index if not exists run_open on tbmq_migrate.run ((true)) where state in ('copying', 'finishing');

create table if not exists tbmq_migrate.worker (
    id bigint generated always as identity primary key,
    run_id bigint not null references tbmq_migrate.run (id) on delete cascade,
    host text not null,
    pid integer not null,
    -- A worker that does not renew in time has stopped writing before this moment.
    expires_at timestamptz not null
);

create table if not exists tbmq_migrate.chunk (
    id bigint generated always as identity primary key,
    run_id bigint not null references tbmq_migrate.run (id) on delete cascade,
    -- Client ids from lower_id (inclusive) to upper_id (exclusive) in the order of the tables; null is open.
    lower_id text,
    upper_id text,
    -- Instead of a range: exactly these.
    clients text[],
    -- Sessions with rows, contexts without rows, or both.
    part text not null default 'all' check (part in ('all', 'rows_only', 'contexts_only')),
    estimated_rows bigint,
    state text not null default 'open' check (state in ('open', 'claimed', 'done')),
    worker_id bigint references tbmq_migrate.worker (id) on delete set null,
    -- Above 1 something of it may stand in Redis already.
    attempts integer not null default 0,
    sessions bigint not null default 0,
    rows_read bigint not null default 0,
    messages_migrated bigint not null default 0,
    expired_by_interval bigint not null default 0,
    expired_by_ttl bigint not null default 0,
    superseded bigint not null default 0,
    trimmed bigint not null default 0,
    quarantined bigint not null default 0,
    orphan_messages bigint not null default 0,
    invalid_contexts bigint not null default 0,
    done_at timestamptz
);

create index if not exists chunk_run on tbmq_migrate.chunk (run_id, state);

create table if not exists tbmq_migrate.quarantine (
    run_id bigint not null references tbmq_migrate.run (id) on delete cascade,
    chunk_id bigint not null references tbmq_migrate.chunk (id) on delete cascade,
    client_id text not null,
    -- Null where the row is a context.
    serial_number bigint,
    reason text not null
);

create index if not exists quarantine_chunk on tbmq_migrate.quarantine (chunk_id);
