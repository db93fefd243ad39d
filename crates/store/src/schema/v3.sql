-- Format 3.

-- How the question stood that a message answers: an agent that still shows it has not said anything to the answer.
ALTER TABLE sends ADD COLUMN answered TEXT;
