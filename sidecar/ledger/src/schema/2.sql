-- The ledger's tables, version 2: legs of one request, its repetitions, and tokens of images and videos.
-- Every new column may be NULL, and is part of its row's mark only where it is not: rows of version 1 keep
-- the marks they have.

-- NULL: the whole request. A row of role 'prefill' adds nothing but its GPU use to its line.
ALTER TABLE exchange ADD COLUMN role TEXT CHECK (role IN ('prefill', 'decode'));
-- The id that the client gave the request; legs and repetitions of one request share it.
ALTER TABLE exchange ADD COLUMN request_id TEXT;
-- Times that it was sent to the upstream; NULL: once.
ALTER TABLE exchange ADD COLUMN upstream_attempts INTEGER;
-- Cached tokens that the server reported beyond the prompt; NULL: none.
ALTER TABLE exchange ADD COLUMN cached_excess INTEGER;
-- NULL: none of the type.
ALTER TABLE exchange ADD COLUMN input_image INTEGER;
ALTER TABLE exchange ADD COLUMN input_video INTEGER;
ALTER TABLE exchange ADD COLUMN output_image INTEGER;
ALTER TABLE exchange ADD COLUMN output_video INTEGER;

ALTER TABLE rate ADD COLUMN input_image INTEGER;
ALTER TABLE rate ADD COLUMN input_video INTEGER;
ALTER TABLE rate ADD COLUMN output_image INTEGER;
ALTER TABLE rate ADD COLUMN output_video INTEGER;

-- The exchange's.
ALTER TABLE energy ADD COLUMN role TEXT CHECK (role IN ('prefill', 'decode'));

ALTER TABLE line ADD COLUMN input_image INTEGER;
ALTER TABLE line ADD COLUMN input_video INTEGER;
ALTER TABLE line ADD COLUMN output_image INTEGER;
ALTER TABLE line ADD COLUMN output_video INTEGER;
