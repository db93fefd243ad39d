-- Format 5.

-- Workspaces that anything was ever kept for. An index of all sends and one of all watches told that, and each row had a page
-- of its own in them, which its commit had to write.
CREATE TABLE workspaces (
    path BLOB NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;
INSERT INTO workspaces (path) SELECT workspace FROM sends UNION SELECT workspace FROM watches;
DROP INDEX sends_workspace;
DROP INDEX watches_workspace;
-- Which questions were answered was found by the first of them, too.
CREATE INDEX sends_answered ON sends (task_id) WHERE answered IS NOT NULL;

-- The index of the tasks that are followed finds the watches that live as well; this one was written with every change of a
-- state.
DROP INDEX watches_live;
