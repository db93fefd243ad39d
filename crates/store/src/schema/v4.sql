-- Format 4.

-- What was told last of a task that a message leads to again.
CREATE INDEX watches_over ON watches (target, agent, task_id) WHERE state = 'done';
