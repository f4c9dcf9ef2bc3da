-- The central store's schema, version 1, for PostgreSQL 15 and later, without its views. `tokenmeter` applies this file
-- itself if its role may create a schema; otherwise an owner of the database applies it once with psql. Times are UTC.
-- Money is in pico-units (10^-12) of the currency of its column or its rate. Sums are numeric and exact.
-- sidecar/ship/postgres.md explains every column, and `comments.sql` has the same texts.

CREATE SCHEMA tokenmeter;

-- The versions that were applied.
CREATE TABLE tokenmeter.version (
  version           integer     NOT NULL PRIMARY KEY,
  applied_at        timestamptz NOT NULL DEFAULT now()
);

-- The ledger files that are shipped here, the cursor of each, and files of late rows and of corrections made here.
CREATE TABLE tokenmeter.file (
  instance          uuid        NOT NULL PRIMARY KEY,
  month             date        NOT NULL,
  host              text        NOT NULL,
  exchange          bigint      NOT NULL,
  energy            bigint      NOT NULL,
  correction        bigint      NOT NULL,
  act               bigint      NOT NULL,
  gap               bigint      NOT NULL,
  seen_at           timestamptz NOT NULL,
  last              uuid,
  owner             name        NOT NULL,
  last_act          timestamptz,
  resend_since      timestamptz,
  held              bigint,
  late_of           uuid,
  is_central        boolean     NOT NULL DEFAULT false,
  previous          uuid,
  ended             boolean     NOT NULL DEFAULT false,
  time_zone         text,
  begins_at         timestamptz,
  ends_at           timestamptz,
  CONSTRAINT file_not_negative CHECK (least(exchange, energy, correction, act, gap) >= 0),
  -- No time zone differs from UTC by two days. Without this bound, a role could prevent the closing of a month.
  CONSTRAINT file_time_zone CHECK (
    time_zone ~ '^[A-Za-z0-9_+/-]{1,64}$'
    AND begins_at >= (month - 2)::timestamp AT TIME ZONE 'UTC' AND begins_at <= (month + 2)::timestamp AT TIME ZONE 'UTC'
    AND ends_at >= (month + interval '1 month' - interval '2 days') AT TIME ZONE 'UTC'
    AND ends_at <= (month + interval '1 month' + interval '2 days') AT TIME ZONE 'UTC')
);

CREATE INDEX file_late_of ON tokenmeter.file (late_of);
CREATE INDEX file_month ON tokenmeter.file (month);

CREATE TABLE tokenmeter.rate (
  id                uuid        NOT NULL PRIMARY KEY,
  version           text        NOT NULL,
  book              text        NOT NULL,
  entry             text        NOT NULL,
  tier              text        NOT NULL,
  above_input_tokens bigint     NOT NULL,
  currency          text        NOT NULL,
  input             bigint,
  input_cached      bigint,
  input_cache_write bigint,
  input_audio       bigint,
  output            bigint,
  output_reasoning  bigint,
  output_audio      bigint,
  per_request       bigint      NOT NULL,
  input_image       bigint,
  input_video       bigint,
  output_image      bigint,
  output_video      bigint,
  input_cache_write_1h bigint,
  input_cached_audio bigint,
  input_cached_image bigint,
  CONSTRAINT rate_not_negative CHECK (
    least(above_input_tokens, input, input_cached, input_cache_write, input_audio, input_image, input_video, output,
          output_reasoning, output_audio, output_image, output_video, per_request, input_cache_write_1h,
          input_cached_audio, input_cached_image) >= 0)
);

-- The price books by which a ledger file has its rates: those of `rate` are of the first file that was shipped.
CREATE TABLE tokenmeter.file_rate (
  instance          uuid        NOT NULL,
  id                uuid        NOT NULL,
  version           text        NOT NULL,
  book              text        NOT NULL,
  PRIMARY KEY (instance, id)
);

CREATE TABLE tokenmeter.exchange (
  ended_at          timestamptz NOT NULL,
  id                uuid        NOT NULL,
  instance          uuid        NOT NULL,
  started_at        timestamptz NOT NULL,
  tenant            text        NOT NULL,
  principal         text,
  consumer          text,
  upstream          text        NOT NULL,
  provider          text        NOT NULL,
  dialect           text        NOT NULL,
  model             text        NOT NULL,
  response_model    text,
  response_id       text,
  service_tier      text,
  ending            text        NOT NULL,
  status            integer     NOT NULL,
  streamed          boolean     NOT NULL,
  input             bigint      NOT NULL,
  input_cached      bigint      NOT NULL,
  input_cache_write bigint      NOT NULL,
  input_audio       bigint      NOT NULL,
  output            bigint      NOT NULL,
  output_reasoning  bigint      NOT NULL,
  output_audio      bigint      NOT NULL,
  input_provenance  text        NOT NULL,
  output_provenance text        NOT NULL,
  duration_us       bigint      NOT NULL,
  first_token_us    bigint,
  rate              uuid,
  cost_pico         bigint,
  unpriced          text,
  trace             uuid,
  role              text        CHECK (role IN ('prefill', 'decode')),
  request_id        text,
  upstream_attempts integer     NOT NULL DEFAULT 1,
  cached_excess     bigint      NOT NULL DEFAULT 0,
  usage_disagreement text,
  input_image       bigint      NOT NULL DEFAULT 0,
  input_video       bigint      NOT NULL DEFAULT 0,
  output_image      bigint      NOT NULL DEFAULT 0,
  output_video      bigint      NOT NULL DEFAULT 0,
  seq               bigint,
  input_cache_write_1h bigint   NOT NULL DEFAULT 0,
  input_cached_audio bigint     NOT NULL DEFAULT 0,
  input_cached_image bigint     NOT NULL DEFAULT 0,
  day               date,
  PRIMARY KEY (ended_at, id),
  CHECK ((cost_pico IS NULL) = (rate IS NULL) AND (rate IS NULL) <> (unpriced IS NULL)),
  CONSTRAINT exchange_not_negative CHECK (
    least(input, input_cached, input_cache_write, input_audio, input_image, input_video, output, output_reasoning,
          output_audio, output_image, output_video, cost_pico, upstream_attempts, cached_excess, input_cache_write_1h,
          input_cached_audio, input_cached_image) >= 0)
) PARTITION BY RANGE (ended_at);

-- The columns from `tenant` to `role` are the key of the daily total of GPU use whose exchange is not in the same file.
CREATE TABLE tokenmeter.energy (
  ended_at          timestamptz NOT NULL,
  id                uuid        NOT NULL,
  instance          uuid        NOT NULL,
  energy_nj         bigint,
  gpu_ns            bigint,
  gpu_hours_pico    bigint      NOT NULL,
  gpu_energy_pico   bigint      NOT NULL,
  class             text        NOT NULL,
  seq               bigint,
  tenant            text,
  principal         text,
  upstream          text,
  provider          text,
  model             text,
  ending            text,
  input_provenance  text,
  output_provenance text,
  rate              uuid,
  role              text,
  day               date,
  PRIMARY KEY (ended_at, id),
  CONSTRAINT energy_not_negative CHECK (least(energy_nj, gpu_ns, gpu_hours_pico, gpu_energy_pico) >= 0)
) PARTITION BY RANGE (ended_at);

CREATE TABLE tokenmeter.line (
  day               date        NOT NULL,
  instance          uuid        NOT NULL,
  tenant            text        NOT NULL,
  principal         text        NOT NULL,
  upstream          text        NOT NULL,
  provider          text        NOT NULL,
  model             text        NOT NULL,
  ending            text        NOT NULL,
  input_provenance  text        NOT NULL,
  output_provenance text        NOT NULL,
  rate              uuid        NOT NULL,
  class             text        NOT NULL CHECK (class IN ('usage', 'shed', 'correction')),
  exchanges         bigint      NOT NULL,
  input             bigint      NOT NULL,
  input_cached      bigint      NOT NULL,
  input_cache_write bigint      NOT NULL,
  input_audio       bigint      NOT NULL,
  output            bigint      NOT NULL,
  output_reasoning  bigint      NOT NULL,
  output_audio      bigint      NOT NULL,
  cost_pico         numeric     NOT NULL,
  energy_exchanges  bigint      NOT NULL,
  energy_nj         numeric     NOT NULL,
  gpu_ns            numeric     NOT NULL,
  gpu_hours_pico    numeric     NOT NULL,
  gpu_energy_pico   numeric     NOT NULL,
  input_image       bigint      NOT NULL DEFAULT 0,
  input_video       bigint      NOT NULL DEFAULT 0,
  output_image      bigint      NOT NULL DEFAULT 0,
  output_video      bigint      NOT NULL DEFAULT 0,
  input_cache_write_1h bigint   NOT NULL DEFAULT 0,
  input_cached_audio bigint     NOT NULL DEFAULT 0,
  input_cached_image bigint     NOT NULL DEFAULT 0,
  PRIMARY KEY (day, instance, tenant, principal, upstream, provider, model, ending,
               input_provenance, output_provenance, rate, class),
  -- Only corrections can be negative.
  CONSTRAINT line_not_negative CHECK (
    least(exchanges, input, input_cached, input_cache_write, input_audio, input_image, input_video, output,
          output_reasoning, output_audio, output_image, output_video, energy_exchanges, energy_nj, gpu_ns,
          gpu_hours_pico, gpu_energy_pico, input_cache_write_1h,
          input_cached_audio, input_cached_image) >= 0 AND (cost_pico >= 0 OR class = 'correction'))
) PARTITION BY RANGE (day);

CREATE TABLE tokenmeter.device (
  day               date        NOT NULL,
  instance          uuid        NOT NULL,
  hw_id             text        NOT NULL,
  share             text        NOT NULL CHECK (share IN ('idle', 'unattributed')),
  energy_nj         numeric     NOT NULL,
  gpu_ns            numeric     NOT NULL,
  gpu_hours_pico    numeric     NOT NULL,
  gpu_energy_pico   numeric     NOT NULL,
  PRIMARY KEY (day, instance, hw_id, share),
  CONSTRAINT device_not_negative CHECK (least(energy_nj, gpu_ns, gpu_hours_pico, gpu_energy_pico) >= 0)
);

CREATE TABLE tokenmeter.correction (
  id                uuid        NOT NULL PRIMARY KEY,
  instance          uuid        NOT NULL,
  made_at           timestamptz NOT NULL,
  act               bigint      NOT NULL,
  exchange          uuid        NOT NULL,
  ended_at          timestamptz NOT NULL,
  tenant            text        NOT NULL,
  principal         text,
  upstream          text        NOT NULL,
  provider          text        NOT NULL,
  model             text        NOT NULL,
  ending            text        NOT NULL,
  input_provenance  text        NOT NULL,
  output_provenance text        NOT NULL,
  unpriced          boolean     NOT NULL,
  rate              uuid        NOT NULL,
  delta_pico        bigint      NOT NULL,
  seq               bigint,
  day               date
);

CREATE INDEX exchange_disagreement ON tokenmeter.exchange (ended_at) WHERE usage_disagreement IS NOT NULL;
CREATE INDEX correction_ended_at ON tokenmeter.correction (ended_at);

CREATE TABLE tokenmeter.act (
  instance          uuid        NOT NULL,
  seq               bigint      NOT NULL,
  at                timestamptz NOT NULL,
  what              text        NOT NULL,
  who               text        NOT NULL,
  detail            text        NOT NULL,
  PRIMARY KEY (instance, seq)
);

CREATE TABLE tokenmeter.gap (
  instance          uuid        NOT NULL,
  seq               bigint      NOT NULL,
  from_at           timestamptz NOT NULL,
  until_at          timestamptz NOT NULL,
  why               text        NOT NULL,
  lost_rows         bigint,
  totals_kept       boolean     NOT NULL,
  unpriced_rows     bigint,
  cost_pico         numeric,
  currency          text,
  PRIMARY KEY (instance, seq),
  CONSTRAINT gap_not_negative CHECK (least(lost_rows, unpriced_rows, cost_pico) >= 0)
);

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

-- The months whose rows were deleted, by their first day.
CREATE TABLE tokenmeter.forgotten_month (
  month             date        NOT NULL PRIMARY KEY
);

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

-- Lets a trigger function that writes totals run only for the store's own table, and not for a table that a role
-- created to call it.
CREATE FUNCTION tokenmeter.require_table(is_of oid, wanted text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF is_of <> to_regclass('tokenmeter.' || quote_ident(wanted)) THEN
    RAISE EXCEPTION 'this function is for the table tokenmeter.%', wanted USING ERRCODE = 'insufficient_privilege';
  END IF;
END $$;

-- Returns the instant at which a month has ended in the time zones of all its ledger files.
CREATE FUNCTION tokenmeter.month_end(first date) RETURNS timestamptz
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(max(coalesce(f.ends_at, u.ends_at)), min(u.ends_at))
  FROM (SELECT ($1 + interval '1 month') AT TIME ZONE 'UTC' AS ends_at) u
  LEFT JOIN tokenmeter.file f ON f.month = $1 AND f.late_of IS NULL AND NOT f.is_central
$$;

-- Returns the months whose rows were deleted, by their first day.
CREATE FUNCTION tokenmeter.forgotten() RETURNS SETOF date
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT month FROM tokenmeter.forgotten_month
$$;

-- Adds a constraint to a partition, with the expressions of the views, so that the planner skips the partition if a
-- filter by `day` or `month` excludes it. A row's day may be the one before or after its UTC day.
CREATE FUNCTION tokenmeter.bound_partition(parent text, child text, first date) RETURNS void
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

-- Attaches a table as the partition of a month.
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
CREATE FUNCTION tokenmeter.ensure_months(days integer[]) RETURNS void
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

-- Adds the GPU use of exchanges to the daily totals of the files from which it came. Only the triggers have the rights
-- for that.
CREATE FUNCTION tokenmeter.add_energy(ended_at timestamptz[], id uuid[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET jit = off AS $$
BEGIN
  INSERT INTO tokenmeter.line AS l
  SELECT coalesce(n.day, (n.ended_at AT TIME ZONE 'UTC')::date), n.instance, x.tenant, coalesce(x.principal, ''),
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

-- Daily totals are the sums of the rows, whatever the order of inserts: a row that exists is not inserted and so not
-- added again. The planner cannot estimate the inserted rows, so a setting makes it find each by its index. A row of
-- role `prefill` adds only its GPU use. GPU use that arrived before its exchange is added with the exchange.
CREATE FUNCTION tokenmeter.roll_exchange() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET jit = off AS $$
DECLARE
  early_ended_at timestamptz[];
  early_id uuid[];
BEGIN
  PERFORM tokenmeter.require_table(TG_RELID, 'exchange');
  INSERT INTO tokenmeter.line AS l
  SELECT coalesce(n.day, (n.ended_at AT TIME ZONE 'UTC')::date), n.instance, n.tenant, coalesce(n.principal, ''),
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
         coalesce(sum(n.output_video) FILTER (WHERE c.is_counted), 0),
         coalesce(sum(n.input_cache_write_1h) FILTER (WHERE c.is_counted), 0),
         coalesce(sum(n.input_cached_audio) FILTER (WHERE c.is_counted), 0),
         coalesce(sum(n.input_cached_image) FILTER (WHERE c.is_counted), 0)
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
    input_cache_write_1h = l.input_cache_write_1h + excluded.input_cache_write_1h,
    input_audio = l.input_audio + excluded.input_audio,
    output = l.output + excluded.output,
    output_reasoning = l.output_reasoning + excluded.output_reasoning,
    output_audio = l.output_audio + excluded.output_audio,
    cost_pico = l.cost_pico + excluded.cost_pico,
    input_image = l.input_image + excluded.input_image,
    input_video = l.input_video + excluded.input_video,
    input_cached_audio = l.input_cached_audio + excluded.input_cached_audio,
    input_cached_image = l.input_cached_image + excluded.input_cached_image,
    output_image = l.output_image + excluded.output_image,
    output_video = l.output_video + excluded.output_video;
  SELECT array_agg(e.ended_at), array_agg(e.id) INTO early_ended_at, early_id
  FROM inserted n JOIN tokenmeter.energy e ON e.ended_at = n.ended_at AND e.id = n.id AND e.class = 'usage';
  PERFORM tokenmeter.add_energy(early_ended_at, early_id);
  RETURN NULL;
END $$;

CREATE TRIGGER roll AFTER INSERT ON tokenmeter.exchange REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION tokenmeter.roll_exchange();

-- GPU use that arrives before its exchange is added with the exchange.
CREATE FUNCTION tokenmeter.roll_energy() RETURNS trigger
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

CREATE TRIGGER roll AFTER INSERT ON tokenmeter.energy REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION tokenmeter.roll_energy();

-- A correction that is a first price counts its exchange once more: once under the new rate, once in the unpriced
-- total.
CREATE FUNCTION tokenmeter.roll_correction() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
  PERFORM tokenmeter.require_table(TG_RELID, 'correction');
  INSERT INTO tokenmeter.line AS l
  SELECT coalesce(n.day, (n.ended_at AT TIME ZONE 'UTC')::date), n.instance, n.tenant, coalesce(n.principal, ''),
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

CREATE TRIGGER roll AFTER INSERT ON tokenmeter.correction REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION tokenmeter.roll_correction();

-- Refuses rows of ledger files that another role ships, or whose month is closed: a batch enters them under the file that
-- `open_file` returns.
CREATE FUNCTION tokenmeter.check_owner() RETURNS trigger
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
CREATE TRIGGER check_owner AFTER INSERT ON tokenmeter.file_rate REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION tokenmeter.check_owner();

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

-- Refuses a correction with the id of another and different content: a ledger file then has two histories, one of them
-- wrong. Where one of the two was made in the store, the first one stays.
CREATE FUNCTION tokenmeter.check_correction() RETURNS trigger
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

CREATE TRIGGER check_content BEFORE INSERT ON tokenmeter.correction
FOR EACH ROW EXECUTE FUNCTION tokenmeter.check_correction();

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
CREATE FUNCTION tokenmeter.leave_out_held() RETURNS trigger
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

CREATE TRIGGER leave_out_held BEFORE INSERT ON tokenmeter.gap
FOR EACH ROW WHEN (NEW.seq < 0) EXECUTE FUNCTION tokenmeter.leave_out_held();

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

-- Enters a total of a file under its key. If the store has the key, each other column is set by `assignment`, a string
-- for `format`. The columns are read from the catalog, so that those of later versions are among them.
CREATE FUNCTION tokenmeter.put_line(instance uuid, day integer, totals jsonb, class text, assignment text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own uuid;
  n tokenmeter.line;
  of_day date := date '1970-01-01' + $2;
  assignments text := (
    SELECT string_agg(format($5, a.attname), ', ')
    FROM pg_attribute a JOIN pg_constraint k ON k.conrelid = a.attrelid AND k.contype = 'p'
    WHERE a.attrelid = 'tokenmeter.line'::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attnum <> ALL (k.conkey));
BEGIN
  PERFORM tokenmeter.require_owner(ARRAY[$1]);
  own := tokenmeter.open_file($1);
  n := jsonb_populate_record(NULL::tokenmeter.line,
    CASE WHEN own = $1 THEN $3 ELSE tokenmeter.late_line($1, own, of_day, $4, $3) END ||
    jsonb_build_object('instance', own, 'day', of_day, 'class', $4));
  IF own <> $1 AND greatest(n.exchanges, n.cost_pico, n.energy_exchanges, n.energy_nj, n.gpu_ns, n.gpu_hours_pico,
                            n.gpu_energy_pico) = 0 THEN
    RETURN;
  END IF;
  EXECUTE 'INSERT INTO tokenmeter.line AS l SELECT ($1).* ON CONFLICT ON CONSTRAINT line_pkey DO UPDATE SET ' ||
    assignments USING n;
END $$;

-- Writes totals without rows as the file has them, in place of the stored ones. `totals` has the columns of `line`.
CREATE FUNCTION tokenmeter.put_shed(instance uuid, day integer, totals jsonb) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT tokenmeter.put_line($1, $2, $3, 'shed', '%1$I = excluded.%1$I')
$$;

-- Writes the totals of a file some of whose rows are not sent, because they were deleted before, or are of a forgotten
-- month. They are the sums of all its rows, sent or not, so they can raise a stored total and never lower it. `totals`
-- has the columns of `line`.
CREATE FUNCTION tokenmeter.put_usage(instance uuid, day integer, totals jsonb) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT tokenmeter.put_line($1, $2, $3, 'usage', '%1$I = greatest(l.%1$I, excluded.%1$I)')
$$;

-- Writes the GPU use without an exchange. `totals` has the columns of `device`.
CREATE FUNCTION tokenmeter.put_device(instance uuid, day integer, totals jsonb) RETURNS void
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

-- Begins a batch of a ledger file: locks the file's row, creating it if necessary, and returns it. `is_rest`: all
-- exchanges of the file are in this batch or earlier ones. In the first such batch of a file that is
-- sent again, all that is not a row of `exchange` or `energy`, nor of a closed month, is deleted, because the file sends
-- it again. `previous`: the file of the month before in the same ledger, if it is known.
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

-- Writes the time zone of a file's month.
CREATE FUNCTION tokenmeter.set_time_zone(instance uuid, time_zone text, begins_at timestamptz, ends_at timestamptz)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM tokenmeter.require_owner(ARRAY[$1]);
  UPDATE tokenmeter.file f SET time_zone = $2, begins_at = $3, ends_at = $4
  WHERE f.instance = $1 AND (f.time_zone, f.begins_at, f.ends_at) IS DISTINCT FROM ($2, $3, $4);
END $$;

-- Writes the cursor of a file, which never moves back. `is_end`: the store has all of the file. `is_ended`: and no process
-- writes it. A file's month never changes.
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

-- Deletes the rows of a past month, as in '2026-10'. Its daily totals stay. A row of it that is sent later is refused,
-- and the totals of its ledger file are sent instead.
CREATE FUNCTION tokenmeter.forget(month text) RETURNS void
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

-- Requests a ledger file again from its beginning. Until it arrives, reports use what the store has of it. Then rows
-- that the store has are kept once, and everything else of it that is not of a closed month is replaced.
CREATE FUNCTION tokenmeter.send_again(instance uuid) RETURNS void
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
CREATE FUNCTION tokenmeter.give_up(instance uuid) RETURNS void
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
  IF tokenmeter.month_end(first) > now() THEN
    RAISE EXCEPTION '% cannot be closed: it is not over', month
      USING ERRCODE = 'TM003', HINT = format('It can be closed from %s on', to_char(tokenmeter.month_end(first) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'));
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
  billed := least(billed, date_trunc('month', ($2 + interval '14 hours') AT TIME ZONE 'UTC')::date);
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

-- Roles that may ship are granted the functions for that. Any role may call those that are granted to PUBLIC, which run
-- with the caller's rights and refuse all but the schema's owner, or only read.
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA tokenmeter FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tokenmeter.require_schema_owner, tokenmeter.month_end, tokenmeter.forgotten, tokenmeter.forget,
  tokenmeter.send_again, tokenmeter.give_up, tokenmeter.close, tokenmeter.begin_amendment TO PUBLIC;

INSERT INTO tokenmeter.version (version) VALUES (1);
