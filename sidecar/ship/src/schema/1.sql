-- The central store's tables, version 1, for PostgreSQL 15 and later. `tokenmeter` applies this file itself if its
-- role may create a schema; otherwise an owner of the database applies it once with psql. Times are UTC. Money is in
-- pico-units (10^-12) of the currency of its column or its rate. Sums are numeric and exact. sidecar/ship/postgres.md
-- explains every column, and `comments.sql` has the same texts.

CREATE SCHEMA tokenmeter;

-- The versions that were applied.
CREATE TABLE tokenmeter.version (
  version           integer     NOT NULL PRIMARY KEY,
  applied_at        timestamptz NOT NULL DEFAULT now()
);

-- The ledger files that are shipped here, and the cursor of each.
CREATE TABLE tokenmeter.file (
  instance          uuid        NOT NULL,
  month             date        NOT NULL,
  host              text        NOT NULL,
  exchange          bigint      NOT NULL,
  energy            bigint      NOT NULL,
  correction        bigint      NOT NULL,
  act               bigint      NOT NULL,
  gap               bigint      NOT NULL,
  seen_at           timestamptz NOT NULL,
  PRIMARY KEY (instance)
);

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
  per_request       bigint      NOT NULL
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
  PRIMARY KEY (ended_at, id),
  CHECK ((cost_pico IS NULL) = (rate IS NULL) AND (rate IS NULL) <> (unpriced IS NULL))
) PARTITION BY RANGE (ended_at);

CREATE TABLE tokenmeter.energy (
  ended_at          timestamptz NOT NULL,
  id                uuid        NOT NULL,
  instance          uuid        NOT NULL,
  energy_nj         bigint,
  gpu_ns            bigint,
  gpu_hours_pico    bigint      NOT NULL,
  gpu_energy_pico   bigint      NOT NULL,
  class             text        NOT NULL,
  PRIMARY KEY (ended_at, id)
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
  PRIMARY KEY (day, instance, tenant, principal, upstream, provider, model, ending,
               input_provenance, output_provenance, rate, class)
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
  PRIMARY KEY (day, instance, hw_id, share)
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
  delta_pico        bigint      NOT NULL
);

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
  PRIMARY KEY (instance, seq)
);

-- Creates the missing partitions of these days' months. A table is created by itself and then attached, because
-- creating it as a partition would lock out all inserts. One session at a time does that.
CREATE FUNCTION tokenmeter.ensure_months(days integer[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  first date;
  parent text;
  child text;
  bounds text;
BEGIN
  FOR first IN SELECT DISTINCT date_trunc('month', date '1970-01-01' + d)::date FROM unnest(days) d ORDER BY 1 LOOP
    FOREACH parent IN ARRAY ARRAY['exchange', 'energy', 'line'] LOOP
      child := parent || to_char(first, '_YYYY_MM');
      CONTINUE WHEN to_regclass('tokenmeter.' || quote_ident(child)) IS NOT NULL;
      PERFORM pg_advisory_xact_lock(7954884599196870001);
      -- A look-up by name may use a snapshot from before the lock; a query does not.
      CONTINUE WHEN EXISTS (SELECT FROM pg_class WHERE relnamespace = 'tokenmeter'::regnamespace AND relname = child);
      bounds := CASE parent
        WHEN 'line' THEN format('FROM (%L) TO (%L)', first, (first + interval '1 month')::date)
        ELSE format('FROM (%L) TO (%L)', first || ' 00:00:00+00', (first + interval '1 month')::date || ' 00:00:00+00')
      END;
      EXECUTE format('CREATE TABLE tokenmeter.%I (LIKE tokenmeter.%I INCLUDING ALL)', child, parent);
      EXECUTE format('ALTER TABLE tokenmeter.%I ATTACH PARTITION tokenmeter.%I FOR VALUES %s', parent, child, bounds);
    END LOOP;
  END LOOP;
END $$;

-- Daily totals are the sums of the tables below, whatever the order of inserts: a row that exists is not inserted and
-- so not added again. The planner cannot estimate the inserted rows, so a setting makes it find each by its index.
CREATE FUNCTION tokenmeter.roll_exchange() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET jit = off AS $$
BEGIN
  INSERT INTO tokenmeter.line AS l
  SELECT (n.ended_at AT TIME ZONE 'UTC')::date, n.instance, n.tenant, coalesce(n.principal, ''),
         n.upstream, n.provider, n.model, n.ending, n.input_provenance, n.output_provenance,
         coalesce(n.rate, '00000000-0000-0000-0000-000000000000'), 'usage', count(*),
         sum(n.input), sum(n.input_cached), sum(n.input_cache_write), sum(n.input_audio),
         sum(n.output), sum(n.output_reasoning), sum(n.output_audio), coalesce(sum(n.cost_pico), 0),
         count(e.id), coalesce(sum(e.energy_nj), 0), coalesce(sum(e.gpu_ns), 0),
         coalesce(sum(e.gpu_hours_pico), 0), coalesce(sum(e.gpu_energy_pico), 0)
  FROM inserted n LEFT JOIN tokenmeter.energy e ON e.ended_at = n.ended_at AND e.id = n.id AND e.class = 'usage'
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
    energy_exchanges = l.energy_exchanges + excluded.energy_exchanges,
    energy_nj = l.energy_nj + excluded.energy_nj,
    gpu_ns = l.gpu_ns + excluded.gpu_ns,
    gpu_hours_pico = l.gpu_hours_pico + excluded.gpu_hours_pico,
    gpu_energy_pico = l.gpu_energy_pico + excluded.gpu_energy_pico;
  RETURN NULL;
END $$;

CREATE TRIGGER roll AFTER INSERT ON tokenmeter.exchange REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION tokenmeter.roll_exchange();

CREATE FUNCTION tokenmeter.roll_energy() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET jit = off AS $$
BEGIN
  INSERT INTO tokenmeter.line AS l
  SELECT (n.ended_at AT TIME ZONE 'UTC')::date, n.instance, x.tenant, coalesce(x.principal, ''),
         x.upstream, x.provider, x.model, x.ending, x.input_provenance, x.output_provenance,
         coalesce(x.rate, '00000000-0000-0000-0000-000000000000'), 'usage', 0, 0, 0, 0, 0, 0, 0, 0, 0,
         count(*), coalesce(sum(n.energy_nj), 0), coalesce(sum(n.gpu_ns), 0),
         sum(n.gpu_hours_pico), sum(n.gpu_energy_pico)
  FROM inserted n JOIN tokenmeter.exchange x ON x.ended_at = n.ended_at AND x.id = n.id
  WHERE n.class = 'usage'
  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
  ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
  ON CONFLICT (day, instance, tenant, principal, upstream, provider, model, ending,
               input_provenance, output_provenance, rate, class) DO UPDATE SET
    energy_exchanges = l.energy_exchanges + excluded.energy_exchanges,
    energy_nj = l.energy_nj + excluded.energy_nj,
    gpu_ns = l.gpu_ns + excluded.gpu_ns,
    gpu_hours_pico = l.gpu_hours_pico + excluded.gpu_hours_pico,
    gpu_energy_pico = l.gpu_energy_pico + excluded.gpu_energy_pico;
  RETURN NULL;
END $$;

CREATE TRIGGER roll AFTER INSERT ON tokenmeter.energy REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION tokenmeter.roll_energy();

-- A correction that is a first price counts its exchange once more: once under the new rate, once in the unpriced
-- total.
CREATE FUNCTION tokenmeter.roll_correction() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
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

CREATE TRIGGER roll AFTER INSERT ON tokenmeter.correction REFERENCING NEW TABLE AS inserted
FOR EACH STATEMENT EXECUTE FUNCTION tokenmeter.roll_correction();

-- Totals without rows are sent as the file has them, and replace the stored ones.
CREATE FUNCTION tokenmeter.put_shed(
  day integer, instance uuid, tenant text, principal text, upstream text, provider text,
  model text, ending text, input_provenance text, output_provenance text, rate uuid, exchanges bigint,
  input bigint, input_cached bigint, input_cache_write bigint, input_audio bigint, output bigint,
  output_reasoning bigint, output_audio bigint, cost_pico text, energy_exchanges bigint, energy_nj text,
  gpu_ns text, gpu_hours_pico text, gpu_energy_pico text
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO tokenmeter.line VALUES (
    date '1970-01-01' + $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'shed', $12, $13, $14, $15, $16, $17,
    $18, $19, $20::numeric, $21, $22::numeric, $23::numeric, $24::numeric, $25::numeric)
  ON CONFLICT ON CONSTRAINT line_pkey DO UPDATE SET
    exchanges = excluded.exchanges,
    input = excluded.input,
    input_cached = excluded.input_cached,
    input_cache_write = excluded.input_cache_write,
    input_audio = excluded.input_audio,
    output = excluded.output,
    output_reasoning = excluded.output_reasoning,
    output_audio = excluded.output_audio,
    cost_pico = excluded.cost_pico,
    energy_exchanges = excluded.energy_exchanges,
    energy_nj = excluded.energy_nj,
    gpu_ns = excluded.gpu_ns,
    gpu_hours_pico = excluded.gpu_hours_pico,
    gpu_energy_pico = excluded.gpu_energy_pico
$$;

CREATE FUNCTION tokenmeter.put_device(
  day integer, instance uuid, hw_id text, share text, energy_nj text, gpu_ns text,
  gpu_hours_pico text, gpu_energy_pico text
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO tokenmeter.device VALUES (
    date '1970-01-01' + $1, $2, $3, $4, $5::numeric, $6::numeric, $7::numeric, $8::numeric)
  ON CONFLICT ON CONSTRAINT device_pkey DO UPDATE SET
    energy_nj = excluded.energy_nj,
    gpu_ns = excluded.gpu_ns,
    gpu_hours_pico = excluded.gpu_hours_pico,
    gpu_energy_pico = excluded.gpu_energy_pico
$$;

-- Writes the cursor of a file, which never moves back.
CREATE FUNCTION tokenmeter.progress(
  instance uuid, month integer, host text,
  exchange bigint, energy bigint, correction bigint, act bigint, gap bigint
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO tokenmeter.file AS f VALUES (
    $1, (date '1970-01-01' + make_interval(months => $2))::date, $3, $4, $5, $6, $7, $8, now())
  ON CONFLICT ON CONSTRAINT file_pkey DO UPDATE SET
    month = excluded.month,
    host = excluded.host,
    exchange = greatest(f.exchange, excluded.exchange),
    energy = greatest(f.energy, excluded.energy),
    correction = greatest(f.correction, excluded.correction),
    act = greatest(f.act, excluded.act),
    gap = greatest(f.gap, excluded.gap),
    seen_at = excluded.seen_at
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA tokenmeter FROM PUBLIC;

INSERT INTO tokenmeter.version (version) VALUES (1);
