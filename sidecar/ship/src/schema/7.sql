-- The central store's tables, version 7: days by the time zone of each ledger. Applied after `6.sql`, by the same
-- rules. Rows are in the partition of their UTC month, whatever their day. Existing rows are read once for the new
-- constraints of their partitions, and not rewritten. A process of an earlier version that is connected keeps shipping;
-- its next connection is refused.

-- The day by the time zone of the ledger; NULL: the UTC day of `ended_at`.
ALTER TABLE tokenmeter.exchange ADD COLUMN day date;
ALTER TABLE tokenmeter.energy ADD COLUMN day date;
ALTER TABLE tokenmeter.correction ADD COLUMN day date;

-- The time zone of the file's month, and the instants at which the month begins and ends; NULL: UTC.
ALTER TABLE tokenmeter.file ADD COLUMN time_zone text;
ALTER TABLE tokenmeter.file ADD COLUMN begins_at timestamptz;
ALTER TABLE tokenmeter.file ADD COLUMN ends_at timestamptz;
-- No time zone differs from UTC by two days. Without this bound, a role could prevent the closing of a month.
ALTER TABLE tokenmeter.file ADD CONSTRAINT file_time_zone CHECK (
  time_zone ~ '^[A-Za-z0-9_+/-]{1,64}$'
  AND begins_at >= (month - 2)::timestamp AT TIME ZONE 'UTC' AND begins_at <= (month + 2)::timestamp AT TIME ZONE 'UTC'
  AND ends_at >= (month + interval '1 month' - interval '2 days') AT TIME ZONE 'UTC'
  AND ends_at <= (month + interval '1 month' + interval '2 days') AT TIME ZONE 'UTC');

-- The months whose rows were deleted, by their first day.
CREATE TABLE tokenmeter.forgotten_month (
  month             date        NOT NULL PRIMARY KEY
);
INSERT INTO tokenmeter.forgotten_month SELECT tokenmeter.forgotten();

CREATE OR REPLACE FUNCTION tokenmeter.forgotten() RETURNS SETOF date
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT month FROM tokenmeter.forgotten_month
$$;

-- Returns the instant at which a month has ended in the time zones of all its ledger files.
CREATE FUNCTION tokenmeter.month_end(first date) RETURNS timestamptz
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(max(coalesce(f.ends_at, u.ends_at)), min(u.ends_at))
  FROM (SELECT ($1 + interval '1 month') AT TIME ZONE 'UTC' AS ends_at) u
  LEFT JOIN tokenmeter.file f ON f.month = $1 AND f.late_of IS NULL AND NOT f.is_central
$$;

-- Writes the time zone of a file's month.
CREATE FUNCTION tokenmeter.set_time_zone(instance uuid, time_zone text, begins_at timestamptz, ends_at timestamptz)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM tokenmeter.require_owner(ARRAY[$1]);
  UPDATE tokenmeter.file f SET time_zone = $2, begins_at = $3, ends_at = $4
  WHERE f.instance = $1 AND (f.time_zone, f.begins_at, f.ends_at) IS DISTINCT FROM ($2, $3, $4);
END $$;

-- Adds a constraint to a partition, with the expressions of the views, so that the planner skips the partition if a
-- filter by `day` or `month` excludes it. A row's day may be the one before or after its UTC day.
CREATE OR REPLACE FUNCTION tokenmeter.bound_partition(parent text, child text, first date) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('ALTER TABLE tokenmeter.%I ADD CONSTRAINT %I CHECK (%s)', child, child || '_month',
    CASE parent
      WHEN 'line' THEN format(
        'lpad(extract(year FROM day)::text, 4, ''0'') || ''-'' || lpad(extract(month FROM day)::text, 2, ''0'') = %L',
        to_char(first, 'YYYY-MM'))
      ELSE format('coalesce(day, (ended_at AT TIME ZONE ''UTC'')::date) BETWEEN date %L AND date %L',
        first - 1, (first + interval '1 month')::date)
    END);
END $$;

DO $$
DECLARE
  part record;
BEGIN
  FOR part IN
    SELECT p.relname AS parent, c.relname AS child, to_date(right(c.relname, 7), 'YYYY_MM') AS first
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent
    WHERE i.inhparent IN ('tokenmeter.exchange'::regclass, 'tokenmeter.energy'::regclass)
  LOOP
    EXECUTE format('ALTER TABLE tokenmeter.%I DROP CONSTRAINT %I', part.child, part.child || '_month');
    PERFORM tokenmeter.bound_partition(part.parent, part.child, part.first);
  END LOOP;
END $$;

CREATE FUNCTION tokenmeter.attach_partition(parent text, child text, first date) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  until date := first + interval '1 month';
BEGIN
  EXECUTE format('ALTER TABLE tokenmeter.%I ATTACH PARTITION tokenmeter.%I FOR VALUES FROM (%L) TO (%L)', parent, child,
    CASE parent WHEN 'line' THEN first::text ELSE first || ' 00:00:00+00' END,
    CASE parent WHEN 'line' THEN until::text ELSE until || ' 00:00:00+00' END);
END $$;

-- Creates the missing partitions of these days' months. A table is created by itself and then attached, because
-- creating it as a partition would lock out all inserts. One session at a time does that.
CREATE OR REPLACE FUNCTION tokenmeter.ensure_months(days integer[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  first date;
  parent text;
  child text;
BEGIN
  FOR first IN SELECT DISTINCT date_trunc('month', date '1970-01-01' + d)::date FROM unnest(days) d ORDER BY 1 LOOP
    FOREACH parent IN ARRAY ARRAY['exchange', 'energy', 'line'] LOOP
      child := parent || to_char(first, '_YYYY_MM');
      CONTINUE WHEN to_regclass('tokenmeter.' || quote_ident(child)) IS NOT NULL;
      PERFORM pg_advisory_xact_lock(7954884599196870001);
      -- A look-up by name may use a snapshot from before the lock; a query does not.
      CONTINUE WHEN EXISTS (SELECT FROM pg_class WHERE relnamespace = 'tokenmeter'::regnamespace AND relname = child);
      EXECUTE format('CREATE TABLE tokenmeter.%I (LIKE tokenmeter.%I INCLUDING ALL)', child, parent);
      PERFORM tokenmeter.bound_partition(parent, child, first);
      PERFORM tokenmeter.attach_partition(parent, child, first);
    END LOOP;
  END LOOP;
END $$;

-- Deletes the rows of a past month, as in '2026-10'. Its daily totals stay. A row of it that is sent later is refused,
-- and the totals of its ledger file are sent instead.
CREATE OR REPLACE FUNCTION tokenmeter.forget(month text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  first date;
  until date;
  parent text;
  child text;
  rest text;
  kept bigint;
BEGIN
  PERFORM tokenmeter.require_schema_owner('forget');
  IF month !~ '^[0-9]{4}-(0[1-9]|1[0-2])$' THEN
    RAISE EXCEPTION 'no month: %', month USING HINT = 'Write it as 2026-10.';
  END IF;
  first := to_date(month, 'YYYY-MM');
  until := first + interval '1 month';
  -- Waits for running batches, and blocks new ones.
  PERFORM pg_advisory_xact_lock(7954884599196870001);
  IF to_regclass('tokenmeter.line' || to_char(first, '_YYYY_MM')) IS NULL THEN
    RAISE EXCEPTION 'the store has nothing of %', month;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = 'tokenmeter'::regnamespace AND relkind = 'r'
                 AND relname ~ '^line_[0-9]{4}_[0-9]{2}$' AND relname > 'line' || to_char(first, '_YYYY_MM'))
     OR tokenmeter.month_end(first) > now() THEN
    RAISE EXCEPTION '% is the last month of the store, which may not be over', month
      USING HINT = 'Forget it once a later month has begun here.';
  END IF;
  INSERT INTO tokenmeter.forgotten_month VALUES (first) ON CONFLICT DO NOTHING;
  FOREACH parent IN ARRAY ARRAY['exchange', 'energy'] LOOP
    -- Rows of the month, by their ledgers' time zones, in the neighbouring partitions.
    EXECUTE format(
      'DELETE FROM tokenmeter.%I WHERE day >= $1 AND day < $2 AND
         (ended_at >= ($1 - 2)::timestamp AT TIME ZONE ''UTC'' AND ended_at < $1::timestamp AT TIME ZONE ''UTC''
          OR ended_at >= $2::timestamp AT TIME ZONE ''UTC'' AND ended_at < ($2 + 2)::timestamp AT TIME ZONE ''UTC'')', parent)
      USING first, until;
    -- Rows of the neighbouring months move to a new partition.
    child := parent || to_char(first, '_YYYY_MM');
    rest := child || '_rest';
    CONTINUE WHEN to_regclass('tokenmeter.' || child) IS NULL;
    EXECUTE format('CREATE TABLE tokenmeter.%I (LIKE tokenmeter.%I INCLUDING ALL)', rest, child);
    EXECUTE format(
      'INSERT INTO tokenmeter.%I SELECT * FROM tokenmeter.%I WHERE (day < $1 OR day >= $2) AND
         (ended_at < ($1 + 2)::timestamp AT TIME ZONE ''UTC'' OR ended_at >= ($2 - 2)::timestamp AT TIME ZONE ''UTC'')', rest, child)
      USING first, until;
    GET DIAGNOSTICS kept = ROW_COUNT;
    EXECUTE format('DROP TABLE tokenmeter.%I', child);
    IF kept = 0 THEN
      EXECUTE format('DROP TABLE tokenmeter.%I', rest);
    ELSE
      EXECUTE format('ALTER TABLE tokenmeter.%I RENAME TO %I', rest, child);
      PERFORM tokenmeter.attach_partition(parent, child, first);
    END IF;
  END LOOP;
END $$;

-- Refuses rows of a month whose rows were deleted.
CREATE FUNCTION tokenmeter.check_forgotten() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  forgotten date;
BEGIN
  SELECT m.month INTO forgotten FROM tokenmeter.forgotten_month m JOIN inserted n
    ON m.month = date_trunc('month', coalesce(n.day, (n.ended_at AT TIME ZONE 'UTC')::date))::date LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'the rows of % were deleted here', to_char(forgotten, 'YYYY-MM')
      USING ERRCODE = 'TM005', HINT = 'The next attempt sends its totals instead';
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER check_forgotten AFTER INSERT ON tokenmeter.exchange REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION tokenmeter.check_forgotten();
CREATE TRIGGER check_forgotten AFTER INSERT ON tokenmeter.energy REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION tokenmeter.check_forgotten();

-- In functions of earlier versions, replaces the UTC day by the day of the ledger, the end of the UTC month by the end
-- in all time zones, and the current month of UTC by that of the easternmost zone. `tokenmeter` passes no month to
-- `begin_amendment` that has not begun by the time zone of the ledgers.
DO $$
DECLARE
  change record;
  definition text;
BEGIN
  FOR change IN
    SELECT p.oid, p.proname, c.old, c.new FROM pg_proc p JOIN (VALUES
      (ARRAY['roll_exchange', 'add_energy', 'roll_correction'],
       '(n.ended_at AT TIME ZONE ''UTC'')::date', 'coalesce(n.day, (n.ended_at AT TIME ZONE ''UTC'')::date)'),
      (ARRAY['close'], 'first + interval ''1 month'' > now() AT TIME ZONE ''UTC''', 'tokenmeter.month_end(first) > now()'),
      (ARRAY['close'], '(first + interval ''1 month'')::date',
       'to_char(tokenmeter.month_end(first) AT TIME ZONE ''UTC'', ''YYYY-MM-DD"T"HH24:MI:SS"Z"'')'),
      (ARRAY['begin_amendment'], '$2 AT TIME ZONE ''UTC''', '($2 + interval ''14 hours'') AT TIME ZONE ''UTC''')
    ) c (names, old, new) ON p.proname = ANY (c.names)
    WHERE p.pronamespace = 'tokenmeter'::regnamespace
  LOOP
    definition := pg_get_functiondef(change.oid);
    IF position(change.old IN definition) = 0 THEN
      RAISE EXCEPTION 'the function tokenmeter.% is not that of version 6', change.proname
        USING HINT = 'It was changed by hand: restore it from `sidecar/ship/src/schema`.';
    END IF;
    EXECUTE replace(definition, change.old, change.new);
  END LOOP;
END $$;

-- Roles that may ship may call `set_time_zone`. Any role may call `month_end`.
DO $$
DECLARE
  who oid;
BEGIN
  REVOKE ALL ON FUNCTION tokenmeter.set_time_zone, tokenmeter.attach_partition,
    tokenmeter.check_forgotten FROM PUBLIC;
  FOR who IN
    SELECT DISTINCT a.grantee FROM pg_proc p, aclexplode(p.proacl) a
    WHERE p.pronamespace = 'tokenmeter'::regnamespace AND p.proname = 'ensure_months' AND a.grantee <> 0
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION tokenmeter.set_time_zone TO %s', who::regrole);
  END LOOP;
END $$;

INSERT INTO tokenmeter.version (version) VALUES (7);
