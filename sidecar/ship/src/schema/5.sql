-- The central store's tables, version 5: months that are closed here, what arrives for them later, corrections that are
-- made here, and what the digest of a ledger file's month covers. Applied after `4.sql`, by the same rules. A process of
-- an earlier version that is connected fails at its next batch and is refused at its next connection; its rows wait in
-- its ledger.

-- The ledger file whose rows these are, which arrived after their month was closed; NULL: a ledger file's own.
ALTER TABLE tokenmeter.file ADD COLUMN late_of uuid;
-- True for corrections and adjustments that were entered in the store.
ALTER TABLE tokenmeter.file ADD COLUMN is_central boolean NOT NULL DEFAULT false;
-- The file of the month before in the same ledger; NULL: none, or not known.
ALTER TABLE tokenmeter.file ADD COLUMN previous uuid;
-- True if the store has all of the file, and no process writes it any more: its month is over, or the process ended.
ALTER TABLE tokenmeter.file ADD COLUMN ended boolean NOT NULL DEFAULT false;
CREATE INDEX file_late_of ON tokenmeter.file (late_of);
CREATE INDEX file_month ON tokenmeter.file (month);

-- The number of the row in its ledger file; NULL: a process of an earlier version shipped it.
ALTER TABLE tokenmeter.exchange ADD COLUMN seq bigint;
ALTER TABLE tokenmeter.energy ADD COLUMN seq bigint;
ALTER TABLE tokenmeter.correction ADD COLUMN seq bigint;

-- The key of the daily total of GPU use whose exchange is not in the same ledger file.
ALTER TABLE tokenmeter.energy ADD COLUMN tenant text;
ALTER TABLE tokenmeter.energy ADD COLUMN principal text;
ALTER TABLE tokenmeter.energy ADD COLUMN upstream text;
ALTER TABLE tokenmeter.energy ADD COLUMN provider text;
ALTER TABLE tokenmeter.energy ADD COLUMN model text;
ALTER TABLE tokenmeter.energy ADD COLUMN ending text;
ALTER TABLE tokenmeter.energy ADD COLUMN input_provenance text;
ALTER TABLE tokenmeter.energy ADD COLUMN output_provenance text;
ALTER TABLE tokenmeter.energy ADD COLUMN rate uuid;
ALTER TABLE tokenmeter.energy ADD COLUMN role text;

-- The price books by which a ledger file has its rates: those of `rate` are of the first file that was shipped.
CREATE TABLE tokenmeter.file_rate (
  instance          uuid        NOT NULL,
  id                uuid        NOT NULL,
  version           text        NOT NULL,
  book              text        NOT NULL,
  PRIMARY KEY (instance, id)
);

CREATE TRIGGER check_owner AFTER INSERT ON tokenmeter.file_rate REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION tokenmeter.check_owner();

-- The closed months.
CREATE TABLE tokenmeter.closing (
  month             date        NOT NULL PRIMARY KEY,
  closed_at         timestamptz NOT NULL,
  closed_by         text        NOT NULL,
  role              name        NOT NULL,
  digest            bytea,
  previous          bytea,
  document          jsonb
);

-- The ledger files of closed months.
CREATE TABLE tokenmeter.closed_file (
  instance          uuid        NOT NULL PRIMARY KEY,
  month             date        NOT NULL,
  digest            bytea       NOT NULL,
  rows_since        date        NOT NULL,
  parts             jsonb       NOT NULL
);

-- Returns the file that takes what is entered for a ledger file: itself, or, if its month is closed, the one of its late
-- rows in the first open month. Batches and the closing of a month exclude each other by the lock.
CREATE FUNCTION tokenmeter.open_file(instance uuid) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  closed date;
  f tokenmeter.file;
  first_open date;
  late uuid;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7954884599196870001);
  SELECT max(c.month) INTO closed FROM tokenmeter.closing c;
  IF closed IS NULL THEN
    RETURN $1;
  END IF;
  SELECT * INTO f FROM tokenmeter.file WHERE file.instance = $1 AND file.month <= closed;
  IF NOT FOUND THEN
    RETURN $1;
  END IF;
  first_open := (closed + interval '1 month')::date;
  SELECT file.instance INTO late FROM tokenmeter.file
  WHERE file.late_of = coalesce(f.late_of, f.instance) AND file.month = first_open;
  IF NOT FOUND THEN
    late := gen_random_uuid();
    INSERT INTO tokenmeter.file
      (instance, month, host, exchange, energy, correction, act, gap, seen_at, owner, late_of)
    VALUES (late, first_open, f.host, 0, 0, 0, 0, 0, now(), f.owner, coalesce(f.late_of, f.instance));
  ELSE
    UPDATE tokenmeter.file SET owner = f.owner WHERE file.instance = late AND file.owner IS DISTINCT FROM f.owner;
  END IF;
  RETURN late;
END $$;

-- Refuses rows of ledger files that another role ships, or whose month is closed: a batch enters them under the file that
-- `open_file` returns.
CREATE OR REPLACE FUNCTION tokenmeter.check_owner() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  instances uuid[] := ARRAY(SELECT DISTINCT instance FROM inserted);
  closed uuid;
BEGIN
  PERFORM tokenmeter.require_owner(instances);
  PERFORM pg_advisory_xact_lock_shared(7954884599196870001);
  SELECT f.instance INTO closed FROM tokenmeter.file f
  WHERE f.instance = ANY (instances) AND f.month <= (SELECT max(c.month) FROM tokenmeter.closing c) LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'the month of the ledger file % is closed', closed
      USING ERRCODE = 'TM004', HINT = 'Its rows are sent again as late rows';
  END IF;
  RETURN NULL;
END $$;

-- Leaves out a late row that is already in a closed month, under its ledger file or under late rows of that file. The
-- key of these tables is the file and the column that the trigger names.
CREATE FUNCTION tokenmeter.leave_out_known() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  origin uuid := (SELECT f.late_of FROM tokenmeter.file f WHERE f.instance = NEW.instance);
  is_there boolean;
BEGIN
  IF origin IS NOT NULL THEN
    EXECUTE format(
      'SELECT EXISTS (SELECT FROM tokenmeter.%1$I x JOIN tokenmeter.file f USING (instance)
       WHERE (f.instance = $1 OR f.late_of = $1) AND x.%2$I = ($2).%2$I)', TG_TABLE_NAME, TG_ARGV[0])
      INTO is_there USING origin, NEW;
    IF is_there THEN
      RETURN NULL;
    END IF;
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER leave_out_known BEFORE INSERT ON tokenmeter.act
FOR EACH ROW EXECUTE FUNCTION tokenmeter.leave_out_known('seq');
CREATE TRIGGER leave_out_known BEFORE INSERT ON tokenmeter.gap
FOR EACH ROW EXECUTE FUNCTION tokenmeter.leave_out_known('seq');
CREATE TRIGGER leave_out_known BEFORE INSERT ON tokenmeter.file_rate
FOR EACH ROW EXECUTE FUNCTION tokenmeter.leave_out_known('id');

-- A gap with a number below zero is of rows that retention deleted before they were sent; they come after the number
-- -1 - seq. Rows that the store had when the file was requested again are still here, and are no gap.
CREATE OR REPLACE FUNCTION tokenmeter.leave_out_held() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  origin uuid := coalesce((SELECT f.late_of FROM tokenmeter.file f WHERE f.instance = NEW.instance), NEW.instance);
  held bigint := (SELECT f.held FROM tokenmeter.file f WHERE f.instance = origin);
BEGIN
  NEW.lost_rows := NEW.lost_rows - greatest(0, held - (-1 - NEW.seq));
  IF NEW.lost_rows <= 0 THEN
    RETURN NULL;
  END IF;
  RETURN NEW;
END $$;

-- Refuses a correction with the id of another and different content: a ledger file then has two histories, one of them
-- wrong. Where one of the two was made in the store, the first one stays.
CREATE OR REPLACE FUNCTION tokenmeter.check_correction() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  there tokenmeter.correction;
  sent tokenmeter.correction := NEW;
BEGIN
  SELECT * INTO there FROM tokenmeter.correction c WHERE c.id = NEW.id;
  IF NOT FOUND THEN
    RETURN NEW;
  END IF;
  IF EXISTS (SELECT FROM tokenmeter.file f WHERE f.instance IN (there.instance, NEW.instance) AND f.is_central) THEN
    RETURN NULL;
  END IF;
  -- Late or not, it is of the same ledger file.
  there.instance := coalesce((SELECT f.late_of FROM tokenmeter.file f WHERE f.instance = there.instance), there.instance);
  sent.instance := coalesce((SELECT f.late_of FROM tokenmeter.file f WHERE f.instance = NEW.instance), NEW.instance);
  there.seq := sent.seq;
  IF there IS DISTINCT FROM sent THEN
    RAISE EXCEPTION 'the correction % of the ledger file % is here with another content, from the ledger file %',
      NEW.id, sent.instance, there.instance
      USING ERRCODE = 'TM002', HINT = format(
        'If that file was put back from a backup, let the store''s owner run `SELECT tokenmeter.send_again(%L)`; if it '
        'is lost, `SELECT tokenmeter.give_up(%L)`', there.instance, there.instance);
  END IF;
  RETURN NEW;
END $$;

-- Subtracts the sums of a stored total from those of another one with its keys.
CREATE FUNCTION tokenmeter.without(totals jsonb, stored jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT jsonb_object_agg(t.key, CASE jsonb_typeof(stored -> t.key)
    WHEN 'number' THEN to_jsonb(greatest(0, (t.value #>> '{}')::numeric - (stored ->> t.key)::numeric))
    ELSE t.value END)
  FROM jsonb_each(totals) t
$$;

-- Returns the totals of a file without those that the store has of closed months. `totals` has the columns of `line`.
CREATE FUNCTION tokenmeter.late_line(instance uuid, late uuid, day date, class text, totals jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  rest jsonb := totals;
  stored jsonb;
  key jsonb := (SELECT jsonb_object_agg(k, $5 -> k) FROM unnest(ARRAY['tenant', 'principal', 'upstream', 'provider',
                  'model', 'ending', 'input_provenance', 'output_provenance', 'rate']) k);
BEGIN
  FOR stored IN
    SELECT to_jsonb(l) FROM tokenmeter.line l JOIN tokenmeter.file f ON f.instance = l.instance
    WHERE (f.instance = $1 OR f.late_of = $1) AND f.instance <> $2 AND l.day = $3 AND l.class = $4
      AND to_jsonb(l) @> key
  LOOP
    rest := tokenmeter.without(rest, stored);
  END LOOP;
  RETURN rest;
END $$;

CREATE OR REPLACE FUNCTION tokenmeter.put_shed(instance uuid, day integer, totals jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own uuid;
  l tokenmeter.line;
  of_day date := date '1970-01-01' + $2;
BEGIN
  PERFORM tokenmeter.require_owner(ARRAY[$1]);
  own := tokenmeter.open_file($1);
  l := jsonb_populate_record(NULL::tokenmeter.line,
    CASE WHEN own = $1 THEN $3 ELSE tokenmeter.late_line($1, own, of_day, 'shed', $3) END ||
    jsonb_build_object('instance', own, 'day', of_day, 'class', 'shed'));
  IF own <> $1 AND greatest(l.exchanges, l.cost_pico, l.energy_exchanges, l.energy_nj, l.gpu_ns, l.gpu_hours_pico,
                            l.gpu_energy_pico) = 0 THEN
    RETURN;
  END IF;
  INSERT INTO tokenmeter.line SELECT l.*
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

CREATE OR REPLACE FUNCTION tokenmeter.put_usage(instance uuid, day integer, totals jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own uuid;
  n tokenmeter.line;
  of_day date := date '1970-01-01' + $2;
BEGIN
  PERFORM tokenmeter.require_owner(ARRAY[$1]);
  own := tokenmeter.open_file($1);
  n := jsonb_populate_record(NULL::tokenmeter.line,
    CASE WHEN own = $1 THEN $3 ELSE tokenmeter.late_line($1, own, of_day, 'usage', $3) END ||
    jsonb_build_object('instance', own, 'day', of_day, 'class', 'usage'));
  IF own <> $1 AND greatest(n.exchanges, n.cost_pico, n.energy_exchanges, n.energy_nj, n.gpu_ns, n.gpu_hours_pico,
                            n.gpu_energy_pico) = 0 THEN
    RETURN;
  END IF;
  INSERT INTO tokenmeter.line AS l SELECT n.*
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

CREATE OR REPLACE FUNCTION tokenmeter.put_device(instance uuid, day integer, totals jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own uuid;
  d tokenmeter.device;
  of_day date := date '1970-01-01' + $2;
  rest jsonb := $3;
  stored jsonb;
BEGIN
  PERFORM tokenmeter.require_owner(ARRAY[$1]);
  own := tokenmeter.open_file($1);
  IF own <> $1 THEN
    FOR stored IN
      SELECT to_jsonb(x) FROM tokenmeter.device x JOIN tokenmeter.file f ON f.instance = x.instance
      WHERE (f.instance = $1 OR f.late_of = $1) AND f.instance <> own
        AND (x.day, x.hw_id, x.share) = (of_day, $3 ->> 'hw_id', $3 ->> 'share')
    LOOP
      rest := tokenmeter.without(rest, stored);
    END LOOP;
  END IF;
  d := jsonb_populate_record(NULL::tokenmeter.device, rest || jsonb_build_object('instance', own, 'day', of_day));
  IF own <> $1 AND greatest(d.energy_nj, d.gpu_ns, d.gpu_hours_pico, d.gpu_energy_pico) = 0 THEN
    RETURN;
  END IF;
  INSERT INTO tokenmeter.device SELECT d.*
  ON CONFLICT ON CONSTRAINT device_pkey DO UPDATE SET
    energy_nj = excluded.energy_nj,
    gpu_ns = excluded.gpu_ns,
    gpu_hours_pico = excluded.gpu_hours_pico,
    gpu_energy_pico = excluded.gpu_energy_pico;
END $$;

-- Requests a ledger file again from its beginning. Until it arrives, reports use what the store has of it. Then rows
-- that the store has are kept once, and everything else of it that is not of a closed month is replaced.
CREATE OR REPLACE FUNCTION tokenmeter.send_again(instance uuid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM tokenmeter.require_schema_owner('send_again');
  UPDATE tokenmeter.file f
  SET exchange = 0, energy = 0, correction = 0, act = 0, gap = 0, last = NULL, last_act = NULL, resend_since = now(),
      held = greatest(f.held, f.exchange)
  WHERE f.instance = $1 AND f.late_of IS NULL AND NOT f.is_central;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no ledger file % is shipped here', $1 USING HINT = 'The table tokenmeter.file lists them.';
  END IF;
END $$;

-- Gives up a lost ledger file. Its corrections are deleted, with their effect on the daily totals, because a later
-- repricing cannot know of them. Its exchanges stay, and so does everything of a closed month.
CREATE OR REPLACE FUNCTION tokenmeter.give_up(instance uuid) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own uuid;
BEGIN
  PERFORM tokenmeter.require_schema_owner('give_up');
  UPDATE tokenmeter.file f SET resend_since = NULL
  WHERE f.instance = $1 AND f.late_of IS NULL AND NOT f.is_central;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no ledger file % is shipped here', $1 USING HINT = 'The table tokenmeter.file lists them.';
  END IF;
  own := tokenmeter.open_file($1);
  DELETE FROM tokenmeter.correction c WHERE c.instance = own;
  DELETE FROM tokenmeter.line l WHERE l.instance = own AND l.class = 'correction';
END $$;

-- Begins a batch of a ledger file: locks the file's row, creating it if necessary, and returns it. `is_rest`: all
-- exchanges of the file are in this batch or earlier ones. In the first such batch of a file that is
-- sent again, all that is not a row of `exchange` or `energy`, nor of a closed month, is deleted, because the file sends
-- it again. `previous`: the file of the month before in the same ledger, if it is known.
DROP FUNCTION tokenmeter.begin(uuid, integer, text, boolean);
CREATE FUNCTION tokenmeter.begin(instance uuid, month integer, host text, is_rest boolean, previous uuid)
RETURNS tokenmeter.file
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  f tokenmeter.file;
  own uuid;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7954884599196870001);
  INSERT INTO tokenmeter.file (instance, month, host, exchange, energy, correction, act, gap, seen_at, owner)
  VALUES ($1, (date '1970-01-01' + make_interval(months => $2))::date, $3, 0, 0, 0, 0, 0, now(), session_user)
  ON CONFLICT ON CONSTRAINT file_pkey DO NOTHING;
  SELECT * INTO f FROM tokenmeter.file WHERE file.instance = $1 FOR UPDATE;
  -- A file from before version 4 has no owner: the next role that ships it becomes its owner.
  IF f.owner IS NULL THEN
    UPDATE tokenmeter.file SET owner = session_user WHERE file.instance = $1;
  END IF;
  PERFORM tokenmeter.require_owner(ARRAY[$1]);
  -- A signed digest covers that of the file before.
  IF f.previous IS NULL AND $5 IS NOT NULL AND NOT EXISTS (SELECT FROM tokenmeter.closing c WHERE c.month >= f.month) THEN
    UPDATE tokenmeter.file SET previous = $5 WHERE file.instance = $1;
  END IF;
  IF is_rest AND f.resend_since IS NOT NULL AND (f.correction, f.act, f.gap) = (0, 0, 0) THEN
    own := tokenmeter.open_file($1);
    DELETE FROM tokenmeter.correction c WHERE c.instance = own;
    DELETE FROM tokenmeter.act a WHERE a.instance = own;
    -- Gaps below zero were found while it was shipped.
    DELETE FROM tokenmeter.gap g WHERE g.instance = own AND g.seq > 0;
    DELETE FROM tokenmeter.device d WHERE d.instance = own;
    DELETE FROM tokenmeter.line l WHERE l.instance = own AND l.class IN ('correction', 'shed');
  END IF;
  RETURN f;
END $$;

-- Writes the cursor of a file, which never moves back. `is_end`: the store has all of the file. `is_ended`: and no process
-- writes it. A file's month never changes.
DROP FUNCTION tokenmeter.progress(uuid, integer, text, bigint, bigint, bigint, bigint, bigint, uuid, timestamptz, boolean);
CREATE FUNCTION tokenmeter.progress(
  instance uuid, month integer, host text, exchange bigint, energy bigint, correction bigint, act bigint,
  gap bigint, last uuid, last_act timestamptz, is_end boolean, is_ended boolean
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM tokenmeter.require_owner(ARRAY[$1]);
  UPDATE tokenmeter.file f SET
    host = $3,
    exchange = greatest(f.exchange, $4),
    energy = greatest(f.energy, $5),
    correction = greatest(f.correction, $6),
    act = greatest(f.act, $7),
    gap = greatest(f.gap, $8),
    seen_at = now(),
    last = CASE WHEN $4 > f.exchange THEN $9 WHEN $4 = f.exchange THEN coalesce(f.last, $9) ELSE f.last END,
    last_act = CASE WHEN $7 > f.act THEN $10 WHEN $7 = f.act THEN coalesce(f.last_act, $10) ELSE f.last_act END,
    resend_since = CASE WHEN NOT $11 THEN f.resend_since END,
    ended = $11 AND $12
  WHERE f.instance = $1;
END $$;

-- Closes a month, as in '2026-10': from now on nothing is entered in it. Returns its row; if it is closed already, the
-- existing one. `tokenmeter ledger close` then computes the digest and completes the row.
CREATE FUNCTION tokenmeter.close(month text, who text) RETURNS tokenmeter.closing
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  first date;
  closed date;
  other date;
  waiting uuid;
  c tokenmeter.closing;
BEGIN
  PERFORM tokenmeter.require_schema_owner('close');
  IF month !~ '^[0-9]{4}-(0[1-9]|1[0-2])$' THEN
    RAISE EXCEPTION 'not a month: %', month USING ERRCODE = 'TM003', HINT = 'Write it as 2026-10.';
  END IF;
  first := to_date(month, 'YYYY-MM');
  -- Waits for running batches, and blocks new ones: each batch is entered before the closing, or is late.
  PERFORM pg_advisory_xact_lock(7954884599196870001);
  SELECT * INTO c FROM tokenmeter.closing x WHERE x.month = first;
  IF FOUND THEN
    RETURN c;
  END IF;
  IF first + interval '1 month' > now() AT TIME ZONE 'UTC' THEN
    RAISE EXCEPTION '% cannot be closed: it is not over', month
      USING ERRCODE = 'TM003', HINT = format('It can be closed from %s on', (first + interval '1 month')::date);
  END IF;
  closed := (SELECT max(x.month) FROM tokenmeter.closing x);
  IF closed > first THEN
    RAISE EXCEPTION '% cannot be closed: % is closed, and what arrives for an earlier month is billed later', month,
      to_char(closed, 'YYYY-MM')
      USING ERRCODE = 'TM003', HINT = 'Nothing has to be done';
  END IF;
  other := (SELECT min(f.month) FROM tokenmeter.file f
            WHERE f.month < first AND f.month > coalesce(closed, '-infinity'::date));
  IF other IS NOT NULL THEN
    RAISE EXCEPTION '% cannot be closed: % is not closed', month, to_char(other, 'YYYY-MM')
      USING ERRCODE = 'TM003', HINT = 'Close it first';
  END IF;
  IF NOT EXISTS (SELECT FROM tokenmeter.file f WHERE f.month = first) THEN
    RAISE EXCEPTION '% cannot be closed: the store has no ledger file of it', month
      USING ERRCODE = 'TM003', HINT = 'The table tokenmeter.file lists them';
  END IF;
  SELECT f.instance INTO waiting FROM tokenmeter.file f
  WHERE f.month <= first AND f.month > coalesce(closed, '-infinity'::date) AND f.resend_since IS NOT NULL LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION '% cannot be closed: the ledger file % is being sent again', month, waiting
      USING ERRCODE = 'TM003', HINT = format(
        'Wait until it has arrived; if it is lost, run `SELECT tokenmeter.give_up(%L)`', waiting);
  END IF;
  INSERT INTO tokenmeter.closing (month, closed_at, closed_by, role)
  VALUES (first, date_trunc('microseconds', clock_timestamp()), who, session_user) RETURNING * INTO c;
  RETURN c;
END $$;

-- Begins the entry of corrections in the store: creates an audit event in the file of corrections made here, and returns
-- that file, the event's number and the number of corrections so far. They are billed in the given month, counted from
-- January 1970, or in the first open one if it is closed, and never in one that has not begun. A month before the first
-- ledger file is never billed: no bill of it is made, and every month after it would have to be closed. The lock excludes
-- batches and the closing of a month until the transaction ends.
CREATE FUNCTION tokenmeter.begin_amendment(
  month integer, at timestamptz, what text, who text, detail text,
  OUT instance uuid, OUT act bigint, OUT corrections bigint
)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  closed date;
  billed date;
BEGIN
  PERFORM tokenmeter.require_schema_owner('begin_amendment');
  PERFORM pg_advisory_xact_lock(7954884599196870001);
  closed := (SELECT max(c.month) FROM tokenmeter.closing c);
  billed := greatest((date '1970-01-01' + make_interval(months => $1))::date,
                     (SELECT min(f.month) FROM tokenmeter.file f));
  billed := least(billed, date_trunc('month', $2 AT TIME ZONE 'UTC')::date);
  IF billed <= closed THEN
    billed := (closed + interval '1 month')::date;
  END IF;
  UPDATE tokenmeter.file f SET act = f.act + 1, seen_at = now(), owner = session_user
  WHERE f.is_central AND f.month = billed
  RETURNING f.instance, f.act, f.correction INTO instance, act, corrections;
  IF NOT FOUND THEN
    INSERT INTO tokenmeter.file AS f
      (instance, month, host, exchange, energy, correction, act, gap, seen_at, owner, is_central)
    VALUES (gen_random_uuid(), billed, 'central store', 0, 0, 0, 1, 0, now(), session_user, true)
    RETURNING f.instance, f.act, f.correction INTO instance, act, corrections;
  END IF;
  INSERT INTO tokenmeter.act VALUES (instance, act, $2, $3, $4, $5);
END $$;

-- Roles that may ship may call the functions for that and enter the rates of their files; roles that may read all rows
-- may read the new tables. Any role may call `close` and `begin_amendment`, which run with the caller's rights and refuse
-- all but the schema's owner.
DO $$
DECLARE
  who oid;
  what oid;
BEGIN
  FOR what IN
    SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'tokenmeter'::regnamespace
      AND p.proname IN ('open_file', 'without', 'late_line', 'begin', 'progress', 'close', 'begin_amendment', 'leave_out_known')
  LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', what::regprocedure);
  END LOOP;
  FOR who IN
    SELECT DISTINCT a.grantee FROM pg_proc p, aclexplode(p.proacl) a
    WHERE p.pronamespace = 'tokenmeter'::regnamespace AND p.proname = 'ensure_months' AND a.grantee <> 0
  LOOP
    FOR what IN
      SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'tokenmeter'::regnamespace
        AND p.proname IN ('open_file', 'without', 'late_line', 'begin', 'progress')
    LOOP
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', what::regprocedure, who::regrole);
    END LOOP;
  END LOOP;
  FOR who IN
    SELECT DISTINCT a.grantee FROM pg_class c, aclexplode(c.relacl) a
    WHERE c.oid = 'tokenmeter.rate'::regclass AND a.privilege_type = 'INSERT' AND a.grantee <> 0
  LOOP
    EXECUTE format('GRANT INSERT ON tokenmeter.file_rate TO %s', who::regrole);
  END LOOP;
  FOR who IN
    SELECT DISTINCT a.grantee FROM pg_class c, aclexplode(c.relacl) a
    WHERE c.oid = 'tokenmeter.exchange'::regclass AND a.privilege_type = 'SELECT' AND a.grantee <> 0
  LOOP
    EXECUTE format('GRANT SELECT ON tokenmeter.file_rate, tokenmeter.closing, tokenmeter.closed_file TO %s', who::regrole);
  END LOOP;
  GRANT EXECUTE ON FUNCTION tokenmeter.close(text, text),
    tokenmeter.begin_amendment(integer, timestamptz, text, text, text) TO PUBLIC;
END $$;

INSERT INTO tokenmeter.version (version) VALUES (5);
