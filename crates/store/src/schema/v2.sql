-- Format 2.

-- What counts against the bound of messages without a word of the owner: the key of what the owner wrote last, for
-- messages of runs that a delivery started and that left. And since when the end of a lost message is looked for.
ALTER TABLE sends ADD COLUMN unattended   TEXT;
ALTER TABLE sends ADD COLUMN sought_since TEXT;
CREATE INDEX sends_unattended ON sends (target, unattended) WHERE unattended IS NOT NULL;

-- Messages that led to a task beside its watch, counted in the commit that marks the message; and how many of them the
-- watch's rounds cover.
ALTER TABLE watches ADD COLUMN continuations INTEGER NOT NULL DEFAULT 0 CHECK (continuations >= 0);
ALTER TABLE watches ADD COLUMN followed      INTEGER NOT NULL DEFAULT 0 CHECK (followed >= 0);
CREATE INDEX watches_unfollowed ON watches (place) WHERE state = 'done' AND continuations > followed;
