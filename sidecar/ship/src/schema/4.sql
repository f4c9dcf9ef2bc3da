-- The central store's tables, version 4: months that are forgotten, ledger files that are sent again, an owner of
-- each file, bounds of numbers, and partitions that a filter by `day` or `month` prunes. Applied after `3.sql`, by
-- the same rules. A process of an earlier version that is connected fails at its next batch and is refused at its
-- next connection; its rows wait in its ledger.

-- The role that ships the file: the login role of its first batch.
ALTER TABLE tokenmeter.file ADD COLUMN owner name;
-- The time of the audit event with the number `act`; NULL: not known.
ALTER TABLE tokenmeter.file ADD COLUMN last_act timestamptz;
-- The time from which the file waits to be sent again, or is being sent again; NULL: neither.
ALTER TABLE tokenmeter.file ADD COLUMN resend_since timestamptz;
-- The highest number of an exchange that the store had when the file was last requested again; NULL: never.
ALTER TABLE tokenmeter.file ADD COLUMN held bigint;

-- Numbers that cannot be negative. NOT VALID: existing rows are not read for the check.
ALTER TABLE tokenmeter.file ADD CONSTRAINT file_not_negative CHECK (
  least(exchange, energy, correction, act, gap) >= 0) NOT VALID;
ALTER TABLE tokenmeter.rate ADD CONSTRAINT rate_not_negative CHECK (
  least(above_input_tokens, input, input_cached, input_cache_write, input_audio, input_image, input_video, output,
        output_reasoning, output_audio, output_image, output_video, per_request) >= 0) NOT VALID;
ALTER TABLE tokenmeter.exchange ADD CONSTRAINT exchange_not_negative CHECK (
  least(input, input_cached, input_cache_write, input_audio, input_image, input_video, output, output_reasoning,
        output_audio, output_image, output_video, cost_pico, upstream_attempts, cached_excess) >= 0) NOT VALID;
ALTER TABLE tokenmeter.energy ADD CONSTRAINT energy_not_negative CHECK (
  least(energy_nj, gpu_ns, gpu_hours_pico, gpu_energy_pico) >= 0) NOT VALID;
-- Only corrections can be negative.
ALTER TABLE tokenmeter.line ADD CONSTRAINT line_not_negative CHECK (
  least(exchanges, input, input_cached, input_cache_write, input_audio, input_image, input_video, output,
        output_reasoning, output_audio, output_image, output_video, energy_exchanges, energy_nj, gpu_ns,
        gpu_hours_pico, gpu_energy_pico) >= 0 AND (cost_pico >= 0 OR class = 'correction')) NOT VALID;
ALTER TABLE tokenmeter.device ADD CONSTRAINT device_not_negative CHECK (
  least(energy_nj, gpu_ns, gpu_hours_pico, gpu_energy_pico) >= 0) NOT VALID;
ALTER TABLE tokenmeter.gap ADD CONSTRAINT gap_not_negative CHECK (lost_rows >= 0) NOT VALID;

-- Adds a constraint to a partition in the same expressions as the views have, so that the planner leaves it out if a
-- filter by `day` or `month` excludes it.
CREATE FUNCTION tokenmeter.bound_partition(parent text, child text, first date) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('ALTER TABLE tokenmeter.%I ADD CONSTRAINT %I CHECK (%s)', child, child || '_month',
    CASE parent
      WHEN 'line' THEN format(
        'lpad(extract(year FROM day)::text, 4, ''0'') || ''-'' || lpad(extract(month FROM day)::text, 2, ''0'') = %L',
        to_char(first, 'YYYY-MM'))
      ELSE format('(ended_at AT TIME ZONE ''UTC'')::date BETWEEN date %L AND date %L',
        first, (first + interval '1 month')::date - 1)
    END);
END $$;

DO $$
DECLARE
  part record;
BEGIN
  FOR part IN
    SELECT p.relname AS parent, c.relname AS child, to_date(right(c.relname, 7), 'YYYY_MM') AS first
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent
    WHERE i.inhparent IN ('tokenmeter.exchange'::regclass, 'tokenmeter.energy'::regclass, 'tokenmeter.line'::regclass)
  LOOP
    PERFORM tokenmeter.bound_partition(part.parent, part.child, part.first);
  END LOOP;
END $$;

-- The months whose rows were dropped, by their first day: those with a partition of `line` and not both of
-- `exchange` and `energy`, which are created together.
CREATE FUNCTION tokenmeter.forgotten() RETURNS SETOF date
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT to_date(right(l.relname, 7), 'YYYY_MM')
  FROM pg_inherits i JOIN pg_class l ON l.oid = i.inhrelid
  WHERE i.inhparent = 'tokenmeter.line'::regclass AND 2 > (
    SELECT count(*) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent IN ('tokenmeter.exchange'::regclass, 'tokenmeter.energy'::regclass)
      AND right(c.relname, 7) = right(l.relname, 7))
$$;

-- Refuses the statements of the store's owner to other roles. The functions that call this run with the caller's rights
-- and would fail anyway; this error names the owner.
CREATE FUNCTION tokenmeter.require_schema_owner(called text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  owner regrole := (SELECT nspowner FROM pg_namespace WHERE nspname = 'tokenmeter');
BEGIN
  IF NOT pg_has_role(owner, 'USAGE') THEN
    RAISE EXCEPTION 'role % may not call tokenmeter.%: only %, the owner of the schema tokenmeter, may',
      quote_ident(current_user), called, owner
      USING ERRCODE = 'insufficient_privilege',
        HINT = format('Connect as %s, or as a role that is a member of it, and run the statement there.', owner);
  END IF;
END $$;

-- Drops the rows of a past month, as in '2026-10'. Its daily totals stay. No partition for its rows is created again: a
-- row of it that is sent later adds nothing, and the totals of its ledger file are sent instead.
CREATE FUNCTION tokenmeter.forget(month text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  first date;
  suffix text;
BEGIN
  PERFORM tokenmeter.require_schema_owner('forget');
  IF month !~ '^[0-9]{4}-(0[1-9]|1[0-2])$' THEN
    RAISE EXCEPTION 'no month: %', month USING HINT = 'Write it as 2026-10.';
  END IF;
  first := to_date(month, 'YYYY-MM');
  suffix := to_char(first, '_YYYY_MM');
  -- Waits for running batches, and blocks new ones.
  PERFORM pg_advisory_xact_lock(7954884599196870001);
  IF to_regclass('tokenmeter.line' || suffix) IS NULL THEN
    RAISE EXCEPTION 'the store has nothing of %', month;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = 'tokenmeter'::regnamespace AND relkind = 'r'
                 AND relname ~ '^line_[0-9]{4}_[0-9]{2}$' AND relname > 'line' || suffix)
     OR first + interval '1 month' > now() AT TIME ZONE 'UTC' THEN
    RAISE EXCEPTION '% is the last month of the store, which may not be over', month
      USING HINT = 'Forget it once a later month has begun here.';
  END IF;
  EXECUTE format('DROP TABLE IF EXISTS tokenmeter.%I, tokenmeter.%I', 'exchange' || suffix, 'energy' || suffix);
END $$;

-- Creates the missing partitions of these days' months. A table is created by itself and then attached, because
-- creating it as a partition would lock out all inserts. One session at a time does that.
CREATE OR REPLACE FUNCTION tokenmeter.ensure_months(days integer[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  first date;
  parent text;
  child text;
  bounds text;
BEGIN
  FOR first IN SELECT DISTINCT date_trunc('month', date '1970-01-01' + d)::date FROM unnest(days) d ORDER BY 1 LOOP
    child := 'line' || to_char(first, '_YYYY_MM');
    CONTINUE WHEN to_regclass('tokenmeter.' || quote_ident(child)) IS NOT NULL;
    PERFORM pg_advisory_xact_lock(7954884599196870001);
    -- A look-up by name may use a snapshot from before the lock; a query does not.
    CONTINUE WHEN EXISTS (SELECT FROM pg_class WHERE relnamespace = 'tokenmeter'::regnamespace AND relname = child);
    FOREACH parent IN ARRAY ARRAY['exchange', 'energy', 'line'] LOOP
      child := parent || to_char(first, '_YYYY_MM');
      bounds := CASE parent
        WHEN 'line' THEN format('FROM (%L) TO (%L)', first, (first + interval '1 month')::date)
        ELSE format('FROM (%L) TO (%L)', first || ' 00:00:00+00', (first + interval '1 month')::date || ' 00:00:00+00')
      END;
      EXECUTE format('CREATE TABLE tokenmeter.%I (LIKE tokenmeter.%I INCLUDING ALL)', child, parent);
      PERFORM tokenmeter.bound_partition(parent, child, first);
      EXECUTE format('ALTER TABLE tokenmeter.%I ATTACH PARTITION tokenmeter.%I FOR VALUES %s', parent, child, bounds);
    END LOOP;
  END LOOP;
END $$;

-- Refuses rows of ledger files that another role ships.
CREATE FUNCTION tokenmeter.require_owner(instances uuid[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  other record;
BEGIN
  SELECT i.instance, f.owner INTO other
  FROM unnest(instances) i (instance) LEFT JOIN tokenmeter.file f ON f.instance = i.instance
  WHERE f.owner IS DISTINCT FROM session_user LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'the ledger file % is shipped by %, and this is the role %', other.instance,
      coalesce('the role ' || other.owner, 'no role'), session_user
      USING ERRCODE = 'TM001', HINT = format(
        'If its role has changed: UPDATE tokenmeter.file SET owner = %L WHERE instance = %L',
        session_user, other.instance);
  END IF;
END $$;

CREATE FUNCTION tokenmeter.check_owner() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM tokenmeter.require_owner(ARRAY(SELECT DISTINCT instance FROM inserted));
  RETURN NULL;
END $$;

CREATE TRIGGER check_owner AFTER INSERT ON tokenmeter.exchange REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION tokenmeter.check_owner();
CREATE TRIGGER check_owner AFTER INSERT ON tokenmeter.energy REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION tokenmeter.check_owner();
CREATE TRIGGER check_owner AFTER INSERT ON tokenmeter.correction REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION tokenmeter.check_owner();
CREATE TRIGGER check_owner AFTER INSERT ON tokenmeter.act REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION tokenmeter.check_owner();
CREATE TRIGGER check_owner AFTER INSERT ON tokenmeter.gap REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION tokenmeter.check_owner();

-- Adds the GPU use of exchanges to the daily totals of the files from which it came. Only the triggers have the rights
-- for that.
CREATE FUNCTION tokenmeter.add_energy(ended_at timestamptz[], id uuid[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET jit = off AS $$
BEGIN
  INSERT INTO tokenmeter.line AS l
  SELECT (n.ended_at AT TIME ZONE 'UTC')::date, n.instance, x.tenant, coalesce(x.principal, ''),
         x.upstream, x.provider, x.model, x.ending, x.input_provenance, x.output_provenance,
         coalesce(x.rate, '00000000-0000-0000-0000-000000000000'), 'usage', 0, 0, 0, 0, 0, 0, 0, 0, 0,
         count(*) FILTER (WHERE x.role IS DISTINCT FROM 'prefill'),
         coalesce(sum(n.energy_nj), 0), coalesce(sum(n.gpu_ns), 0),
         sum(n.gpu_hours_pico), sum(n.gpu_energy_pico)
  FROM unnest($1, $2) e (ended_at, id)
  JOIN tokenmeter.energy n ON n.ended_at = e.ended_at AND n.id = e.id
  JOIN tokenmeter.exchange x ON x.ended_at = e.ended_at AND x.id = e.id
  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
  ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
  ON CONFLICT (day, instance, tenant, principal, upstream, provider, model, ending,
               input_provenance, output_provenance, rate, class) DO UPDATE SET
    energy_exchanges = l.energy_exchanges + excluded.energy_exchanges,
    energy_nj = l.energy_nj + excluded.energy_nj,
    gpu_ns = l.gpu_ns + excluded.gpu_ns,
    gpu_hours_pico = l.gpu_hours_pico + excluded.gpu_hours_pico,
    gpu_energy_pico = l.gpu_energy_pico + excluded.gpu_energy_pico;
END $$;

-- Lets a trigger function that writes totals run only for the store's own table, and not for a table that a role
-- created to call it.
CREATE FUNCTION tokenmeter.require_table(is_of oid, wanted text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF is_of <> to_regclass('tokenmeter.' || quote_ident(wanted)) THEN
    RAISE EXCEPTION 'this function is for the table tokenmeter.%', wanted USING ERRCODE = 'insufficient_privilege';
  END IF;
END $$;

-- GPU use that arrived before its exchange is added with the exchange.
CREATE OR REPLACE FUNCTION tokenmeter.roll_exchange() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET jit = off AS $$
DECLARE
  early_ended_at timestamptz[];
  early_id uuid[];
BEGIN
  PERFORM tokenmeter.require_table(TG_RELID, 'exchange');
  INSERT INTO tokenmeter.line AS l
  SELECT (n.ended_at AT TIME ZONE 'UTC')::date, n.instance, n.tenant, coalesce(n.principal, ''),
         n.upstream, n.provider, n.model, n.ending, n.input_provenance, n.output_provenance,
         coalesce(n.rate, '00000000-0000-0000-0000-000000000000'), 'usage', count(*) FILTER (WHERE c.is_counted),
         coalesce(sum(n.input) FILTER (WHERE c.is_counted), 0),
         coalesce(sum(n.input_cached) FILTER (WHERE c.is_counted), 0),
         coalesce(sum(n.input_cache_write) FILTER (WHERE c.is_counted), 0),
         coalesce(sum(n.input_audio) FILTER (WHERE c.is_counted), 0),
         coalesce(sum(n.output) FILTER (WHERE c.is_counted), 0),
         coalesce(sum(n.output_reasoning) FILTER (WHERE c.is_counted), 0),
         coalesce(sum(n.output_audio) FILTER (WHERE c.is_counted), 0),
         coalesce(sum(n.cost_pico), 0),
         0, 0, 0, 0, 0,
         coalesce(sum(n.input_image) FILTER (WHERE c.is_counted), 0),
         coalesce(sum(n.input_video) FILTER (WHERE c.is_counted), 0),
         coalesce(sum(n.output_image) FILTER (WHERE c.is_counted), 0),
         coalesce(sum(n.output_video) FILTER (WHERE c.is_counted), 0)
  FROM inserted n
  CROSS JOIN LATERAL (SELECT n.role IS DISTINCT FROM 'prefill' AS is_counted) c
  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
  ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
  ON CONFLICT (day, instance, tenant, principal, upstream, provider, model, ending,
               input_provenance, output_provenance, rate, class) DO UPDATE SET
    exchanges = l.exchanges + excluded.exchanges,
    input = l.input + excluded.input,
    input_cached = l.input_cached + excluded.input_cached,
    input_cache_write = l.input_cache_write + excluded.input_cache_write,
    input_audio = l.input_audio + excluded.input_audio,
    output = l.output + excluded.output,
    output_reasoning = l.output_reasoning + excluded.output_reasoning,
    output_audio = l.output_audio + excluded.output_audio,
    cost_pico = l.cost_pico + excluded.cost_pico,
    input_image = l.input_image + excluded.input_image,
    input_video = l.input_video + excluded.input_video,
    output_image = l.output_image + excluded.output_image,
    output_video = l.output_video + excluded.output_video;
  SELECT array_agg(e.ended_at), array_agg(e.id) INTO early_ended_at, early_id
  FROM inserted n JOIN tokenmeter.energy e ON e.ended_at = n.ended_at AND e.id = n.id AND e.class = 'usage';
  PERFORM tokenmeter.add_energy(early_ended_at, early_id);
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tokenmeter.roll_energy() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  new_ended_at timestamptz[];
  new_id uuid[];
BEGIN
  PERFORM tokenmeter.require_table(TG_RELID, 'energy');
  SELECT array_agg(n.ended_at), array_agg(n.id) INTO new_ended_at, new_id FROM inserted n WHERE n.class = 'usage';
  PERFORM tokenmeter.add_energy(new_ended_at, new_id);
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tokenmeter.roll_correction() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM tokenmeter.require_table(TG_RELID, 'correction');
  INSERT INTO tokenmeter.line AS l
  SELECT (n.ended_at AT TIME ZONE 'UTC')::date, n.instance, n.tenant, coalesce(n.principal, ''),
         n.upstream, n.provider, n.model, n.ending, n.input_provenance, n.output_provenance,
         n.rate, 'correction', count(*) FILTER (WHERE n.unpriced), 0, 0, 0, 0, 0, 0, 0,
         sum(n.delta_pico), 0, 0, 0, 0, 0
  FROM inserted n
  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
  ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
  ON CONFLICT (day, instance, tenant, principal, upstream, provider, model, ending,
               input_provenance, output_provenance, rate, class) DO UPDATE SET
    exchanges = l.exchanges + excluded.exchanges,
    cost_pico = l.cost_pico + excluded.cost_pico;
  RETURN NULL;
END $$;

-- Refuses a correction with the id of another and different content: a ledger file then has two histories, one of them
-- wrong.
CREATE FUNCTION tokenmeter.check_correction() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  other uuid;
BEGIN
  SELECT c.instance INTO other FROM tokenmeter.correction c WHERE c.id = NEW.id AND c IS DISTINCT FROM NEW;
  IF FOUND THEN
    RAISE EXCEPTION 'the correction % of the ledger file % is here with another content, from the ledger file %',
      NEW.id, NEW.instance, other
      USING ERRCODE = 'TM002', HINT = format(
        'If that file was put back from a backup, let the store''s owner run `SELECT tokenmeter.send_again(%L)`; if it '
        'is lost, `SELECT tokenmeter.give_up(%L)`', other, other);
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER check_content BEFORE INSERT ON tokenmeter.correction
FOR EACH ROW EXECUTE FUNCTION tokenmeter.check_correction();

-- Requests a ledger file again from its beginning. Until it arrives, reports use what the store has of it. Then rows
-- that the store has are kept once, and everything else of it is replaced.
CREATE FUNCTION tokenmeter.send_again(instance uuid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM tokenmeter.require_schema_owner('send_again');
  UPDATE tokenmeter.file f
  SET exchange = 0, energy = 0, correction = 0, act = 0, gap = 0, last = NULL, last_act = NULL, resend_since = now(),
      held = greatest(f.held, f.exchange)
  WHERE f.instance = $1;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no ledger file % is shipped here', $1 USING HINT = 'The table tokenmeter.file lists them.';
  END IF;
END $$;

-- Gives up a lost ledger file. Its corrections are deleted, with their effect on the daily totals, because a later
-- repricing cannot know of them. Its exchanges stay.
CREATE FUNCTION tokenmeter.give_up(instance uuid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM tokenmeter.require_schema_owner('give_up');
  UPDATE tokenmeter.file f SET resend_since = NULL WHERE f.instance = $1;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no ledger file % is shipped here', $1 USING HINT = 'The table tokenmeter.file lists them.';
  END IF;
  DELETE FROM tokenmeter.correction c WHERE c.instance = $1;
  DELETE FROM tokenmeter.line l WHERE l.instance = $1 AND l.class = 'correction';
END $$;

-- A gap with a number below zero is of rows that retention deleted before they were sent; they come after the number
-- -1 - seq. Rows that the store had when the file was requested again are still here, and are no gap.
CREATE FUNCTION tokenmeter.leave_out_held() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  held bigint := (SELECT f.held FROM tokenmeter.file f WHERE f.instance = NEW.instance);
BEGIN
  NEW.lost_rows := NEW.lost_rows - greatest(0, held - (-1 - NEW.seq));
  IF NEW.lost_rows <= 0 THEN
    RETURN NULL;
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER leave_out_held BEFORE INSERT ON tokenmeter.gap
FOR EACH ROW WHEN (NEW.seq < 0) EXECUTE FUNCTION tokenmeter.leave_out_held();

-- Begins a batch of a ledger file: locks the file's row, creating it if necessary, and returns it. `is_rest`: all
-- exchanges of the file are in this batch or earlier ones. In the first such batch of a file that is
-- sent again, all that is not a row of `exchange` or `energy` is deleted, because the file sends it again.
CREATE FUNCTION tokenmeter.begin(instance uuid, month integer, host text, is_rest boolean) RETURNS tokenmeter.file
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  f tokenmeter.file;
BEGIN
  INSERT INTO tokenmeter.file (instance, month, host, exchange, energy, correction, act, gap, seen_at, owner)
  VALUES ($1, (date '1970-01-01' + make_interval(months => $2))::date, $3, 0, 0, 0, 0, 0, now(), session_user)
  ON CONFLICT ON CONSTRAINT file_pkey DO NOTHING;
  SELECT * INTO f FROM tokenmeter.file WHERE file.instance = $1 FOR UPDATE;
  -- A file from before version 4 has no owner: the next role that ships it becomes its owner.
  IF f.owner IS NULL THEN
    UPDATE tokenmeter.file SET owner = session_user WHERE file.instance = $1;
  END IF;
  PERFORM tokenmeter.require_owner(ARRAY[$1]);
  IF is_rest AND f.resend_since IS NOT NULL AND (f.correction, f.act, f.gap) = (0, 0, 0) THEN
    DELETE FROM tokenmeter.correction c WHERE c.instance = $1;
    DELETE FROM tokenmeter.act a WHERE a.instance = $1;
    -- Gaps below zero were found while it was shipped.
    DELETE FROM tokenmeter.gap g WHERE g.instance = $1 AND g.seq > 0;
    DELETE FROM tokenmeter.device d WHERE d.instance = $1;
    DELETE FROM tokenmeter.line l WHERE l.instance = $1 AND l.class IN ('correction', 'shed');
  END IF;
  RETURN f;
END $$;

-- Writes the cursor of a file, which never moves back. `is_end`: the store has all of the file.
CREATE FUNCTION tokenmeter.progress(
  instance uuid, month integer, host text, exchange bigint, energy bigint, correction bigint, act bigint,
  gap bigint, last uuid, last_act timestamptz, is_end boolean
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM tokenmeter.require_owner(ARRAY[$1]);
  UPDATE tokenmeter.file f SET
    month = (date '1970-01-01' + make_interval(months => $2))::date,
    host = $3,
    exchange = greatest(f.exchange, $4),
    energy = greatest(f.energy, $5),
    correction = greatest(f.correction, $6),
    act = greatest(f.act, $7),
    gap = greatest(f.gap, $8),
    seen_at = now(),
    last = CASE WHEN $4 > f.exchange THEN $9 WHEN $4 = f.exchange THEN coalesce(f.last, $9) ELSE f.last END,
    last_act = CASE WHEN $7 > f.act THEN $10 WHEN $7 = f.act THEN coalesce(f.last_act, $10) ELSE f.last_act END,
    resend_since = CASE WHEN NOT $11 THEN f.resend_since END
  WHERE f.instance = $1;
END $$;

-- Writes totals without rows as the file has them, in place of the stored ones. `totals` has the columns of `line`.
CREATE FUNCTION tokenmeter.put_shed(instance uuid, day integer, totals jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM tokenmeter.require_owner(ARRAY[$1]);
  INSERT INTO tokenmeter.line SELECT * FROM jsonb_populate_record(NULL::tokenmeter.line, $3 ||
    jsonb_build_object('instance', $1, 'day', date '1970-01-01' + $2, 'class', 'shed'))
  ON CONFLICT ON CONSTRAINT line_pkey DO UPDATE SET
    exchanges = excluded.exchanges,
    input = excluded.input,
    input_cached = excluded.input_cached,
    input_cache_write = excluded.input_cache_write,
    input_audio = excluded.input_audio,
    input_image = excluded.input_image,
    input_video = excluded.input_video,
    output = excluded.output,
    output_reasoning = excluded.output_reasoning,
    output_audio = excluded.output_audio,
    output_image = excluded.output_image,
    output_video = excluded.output_video,
    cost_pico = excluded.cost_pico,
    energy_exchanges = excluded.energy_exchanges,
    energy_nj = excluded.energy_nj,
    gpu_ns = excluded.gpu_ns,
    gpu_hours_pico = excluded.gpu_hours_pico,
    gpu_energy_pico = excluded.gpu_energy_pico;
END $$;

-- Writes the totals of a file some of whose rows are not sent, because they were deleted before, or are of a forgotten
-- month. They are the sums of all its rows, sent or not, so they can raise a stored total and never lower it. `totals`
-- has the columns of `line`.
CREATE FUNCTION tokenmeter.put_usage(instance uuid, day integer, totals jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM tokenmeter.require_owner(ARRAY[$1]);
  INSERT INTO tokenmeter.line AS l SELECT * FROM jsonb_populate_record(NULL::tokenmeter.line, $3 ||
    jsonb_build_object('instance', $1, 'day', date '1970-01-01' + $2, 'class', 'usage'))
  ON CONFLICT ON CONSTRAINT line_pkey DO UPDATE SET
    exchanges = greatest(l.exchanges, excluded.exchanges),
    input = greatest(l.input, excluded.input),
    input_cached = greatest(l.input_cached, excluded.input_cached),
    input_cache_write = greatest(l.input_cache_write, excluded.input_cache_write),
    input_audio = greatest(l.input_audio, excluded.input_audio),
    input_image = greatest(l.input_image, excluded.input_image),
    input_video = greatest(l.input_video, excluded.input_video),
    output = greatest(l.output, excluded.output),
    output_reasoning = greatest(l.output_reasoning, excluded.output_reasoning),
    output_audio = greatest(l.output_audio, excluded.output_audio),
    output_image = greatest(l.output_image, excluded.output_image),
    output_video = greatest(l.output_video, excluded.output_video),
    cost_pico = greatest(l.cost_pico, excluded.cost_pico),
    energy_exchanges = greatest(l.energy_exchanges, excluded.energy_exchanges),
    energy_nj = greatest(l.energy_nj, excluded.energy_nj),
    gpu_ns = greatest(l.gpu_ns, excluded.gpu_ns),
    gpu_hours_pico = greatest(l.gpu_hours_pico, excluded.gpu_hours_pico),
    gpu_energy_pico = greatest(l.gpu_energy_pico, excluded.gpu_energy_pico);
END $$;

-- Writes the GPU use without an exchange. `totals` has the columns of `device`.
CREATE FUNCTION tokenmeter.put_device(instance uuid, day integer, totals jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM tokenmeter.require_owner(ARRAY[$1]);
  INSERT INTO tokenmeter.device SELECT * FROM jsonb_populate_record(NULL::tokenmeter.device, $3 ||
    jsonb_build_object('instance', $1, 'day', date '1970-01-01' + $2))
  ON CONFLICT ON CONSTRAINT device_pkey DO UPDATE SET
    energy_nj = excluded.energy_nj,
    gpu_ns = excluded.gpu_ns,
    gpu_hours_pico = excluded.gpu_hours_pico,
    gpu_energy_pico = excluded.gpu_energy_pico;
END $$;

-- Roles that may ship may call the functions for that. Any role may call `forget`, `send_again` and `give_up`, which
-- run with the caller's rights and refuse all but the schema's owner.
DO $$
DECLARE
  who oid;
  what oid;
BEGIN
  FOR what IN
    SELECT oid FROM pg_proc WHERE pronamespace = 'tokenmeter'::regnamespace AND prorettype <> 'trigger'::regtype
  LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', what::regprocedure);
    FOR who IN
      SELECT DISTINCT a.grantee FROM pg_proc p, aclexplode(p.proacl) a
      WHERE p.pronamespace = 'tokenmeter'::regnamespace AND p.proname = 'ensure_months' AND a.grantee <> 0
    LOOP
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', what::regprocedure, who::regrole);
    END LOOP;
  END LOOP;
  GRANT EXECUTE ON FUNCTION tokenmeter.forgotten(), tokenmeter.require_schema_owner(text), tokenmeter.forget(text),
    tokenmeter.send_again(uuid), tokenmeter.give_up(uuid) TO PUBLIC;
  -- Drops the functions that those above replace.
  FOR what IN
    SELECT oid FROM pg_proc WHERE pronamespace = 'tokenmeter'::regnamespace
      AND (proname IN ('put_shed', 'put_usage', 'put_device') AND pronargs > 3 OR proname = 'progress' AND pronargs < 11)
  LOOP
    EXECUTE format('DROP FUNCTION %s', what::regprocedure);
  END LOOP;
END $$;

INSERT INTO tokenmeter.version (version) VALUES (4);
