-- Format 1. Times are RFC 3339 text in UTC; nothing is sorted by them.

-- How often the state was opened for writing: the number tells this process's marks from an earlier one's.
CREATE TABLE starts (
    id    INTEGER PRIMARY KEY CHECK (id = 1),
    count INTEGER NOT NULL
) STRICT;
INSERT INTO starts (id, count) VALUES (1, 0);

-- Conversations, append-only. `seq` runs from 1 without gaps per target.
CREATE TABLE entries (
    target   TEXT    NOT NULL,
    seq      INTEGER NOT NULL CHECK (seq > 0),
    at       TEXT    NOT NULL,
    ends_run INTEGER NOT NULL CHECK (ends_run IN (0, 1)),
    resets   INTEGER NOT NULL CHECK (resets IN (0, 1)),
    body     TEXT    NOT NULL,
    PRIMARY KEY (target, seq)
) STRICT;
CREATE INDEX entries_resets ON entries (target, seq) WHERE resets = 1;

-- Accepted prompts, and the keys of outcomes that a tool's result settled. Keys are kept for ever.
CREATE TABLE inbound (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    target      TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    origin      TEXT    NOT NULL CHECK (origin IN ('owner', 'delivery')),
    hops        INTEGER NOT NULL CHECK (hops >= 0),
    source_ref  TEXT,
    text        TEXT    NOT NULL,
    accepted_at TEXT    NOT NULL,
    consumed_by INTEGER,
    UNIQUE (target, key),
    FOREIGN KEY (target, consumed_by) REFERENCES entries (target, seq)
) STRICT;
CREATE INDEX inbound_waiting ON inbound (target, id) WHERE consumed_by IS NULL;

-- What goes to the screen. `may_repeat` stays once an attempt ended without a known end.
CREATE TABLE outbox (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    target     TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    source_ref TEXT,
    state      TEXT    NOT NULL CHECK (state IN ('queued', 'sending', 'sent', 'failed')),
    attempts   INTEGER NOT NULL CHECK (attempts >= 0),
    may_repeat INTEGER NOT NULL CHECK (may_repeat IN (0, 1)),
    taken_by   INTEGER,
    message_id TEXT,
    reason     TEXT,
    created_at TEXT    NOT NULL,
    UNIQUE (target, key)
) STRICT;
CREATE INDEX outbox_unsent ON outbox (target, id) WHERE state IN ('queued', 'sending');

-- Messages on their way to remote agents: on disk before the first byte leaves. Workspaces are paths as bytes.
CREATE TABLE sends (
    place      INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id TEXT    NOT NULL UNIQUE,
    target     TEXT    NOT NULL,
    workspace  BLOB    NOT NULL,
    agent      TEXT    NOT NULL,
    origin     TEXT    NOT NULL,
    context_id TEXT,
    task_id    TEXT,
    hops       INTEGER NOT NULL CHECK (hops >= 0),
    source_ref TEXT,
    started_at TEXT    NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('sending', 'known', 'ended')),
    end_reason TEXT
) STRICT;
CREATE INDEX sends_open ON sends (place) WHERE state = 'sending';
CREATE INDEX sends_workspace ON sends (workspace);

-- Followed tasks. Every write after the first is conditional on `epoch`. A conversation follows a task once at a time.
CREATE TABLE watches (
    place           INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT    NOT NULL UNIQUE,
    target          TEXT    NOT NULL,
    workspace       BLOB    NOT NULL,
    agent           TEXT    NOT NULL,
    origin          TEXT    NOT NULL,
    task_id         TEXT    NOT NULL,
    context_id      TEXT,
    push_token      TEXT,
    source          TEXT    NOT NULL CHECK (source IN ('push', 'subscribe', 'poll')),
    started_at      TEXT    NOT NULL,
    state           TEXT    NOT NULL CHECK (state IN ('attended', 'watching', 'claimed', 'done')),
    epoch           INTEGER NOT NULL CHECK (epoch >= 0),
    round           INTEGER NOT NULL CHECK (round >= 0),
    told            TEXT    NOT NULL,
    text            TEXT,
    delivery_key    TEXT    NOT NULL,
    goes_on         INTEGER NOT NULL CHECK (goes_on IN (0, 1)),
    failures        INTEGER NOT NULL CHECK (failures >= 0),
    not_found       INTEGER NOT NULL CHECK (not_found >= 0),
    not_found_since TEXT,
    next_check_at   TEXT,
    last_seen       TEXT,
    hops            INTEGER NOT NULL CHECK (hops >= 0),
    source_ref      TEXT,
    message_id      TEXT
) STRICT;
CREATE UNIQUE INDEX watches_live_task ON watches (target, agent, origin, task_id) WHERE state <> 'done';
CREATE INDEX watches_live ON watches (place) WHERE state <> 'done';
CREATE INDEX watches_workspace ON watches (workspace);

-- Telegram updates as they were received; `raw` goes once they are handled.
CREATE TABLE telegram_updates (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    update_id   INTEGER NOT NULL UNIQUE,
    raw         TEXT,
    received_at TEXT    NOT NULL,
    handled     INTEGER NOT NULL CHECK (handled IN (0, 1)),
    CHECK (handled = 1 OR raw IS NOT NULL)
) STRICT;
CREATE INDEX telegram_updates_open ON telegram_updates (id) WHERE handled = 0;

CREATE TABLE telegram_state (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    next_offset INTEGER NOT NULL
) STRICT;
