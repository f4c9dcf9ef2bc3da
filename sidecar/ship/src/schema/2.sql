-- The central store's tables, version 2: the last exchange of each file, by which a file restored from a backup is
-- recognised also after it has grown past the store's cursor; and totals of rows that were deleted before they were
-- sent. Applied after `1.sql`, by the same rules.

-- The exchange with the number `file.exchange`; NULL: not known.
ALTER TABLE tokenmeter.file ADD COLUMN last uuid;

-- Writes the cursor of a file, which never moves back.
CREATE FUNCTION tokenmeter.progress(
  instance uuid, month integer, host text,
  exchange bigint, energy bigint, correction bigint, act bigint, gap bigint, last uuid
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO tokenmeter.file AS f (instance, month, host, exchange, energy, correction, act, gap, seen_at, last)
  VALUES ($1, (date '1970-01-01' + make_interval(months => $2))::date, $3, $4, $5, $6, $7, $8, now(), $9)
  ON CONFLICT ON CONSTRAINT file_pkey DO UPDATE SET
    month = excluded.month,
    host = excluded.host,
    exchange = greatest(f.exchange, excluded.exchange),
    energy = greatest(f.energy, excluded.energy),
    correction = greatest(f.correction, excluded.correction),
    act = greatest(f.act, excluded.act),
    gap = greatest(f.gap, excluded.gap),
    seen_at = excluded.seen_at,
    last = CASE
      WHEN excluded.exchange > f.exchange THEN excluded.last
      WHEN excluded.exchange = f.exchange THEN coalesce(f.last, excluded.last)
      ELSE f.last
    END
$$;

-- A process of version 1 that is still connected sends only its cursor.
CREATE OR REPLACE FUNCTION tokenmeter.progress(
  instance uuid, month integer, host text,
  exchange bigint, energy bigint, correction bigint, act bigint, gap bigint
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT tokenmeter.progress($1, $2, $3, $4, $5, $6, $7, $8, NULL::uuid)
$$;

-- Writes the totals of a file some of whose rows were deleted before they were sent. They are the sums of all its rows,
-- sent or not, so they can raise a stored total and never lower it.
CREATE FUNCTION tokenmeter.put_usage(
  day integer, instance uuid, tenant text, principal text, upstream text, provider text,
  model text, ending text, input_provenance text, output_provenance text, rate uuid, exchanges bigint,
  input bigint, input_cached bigint, input_cache_write bigint, input_audio bigint, output bigint,
  output_reasoning bigint, output_audio bigint, cost_pico text, energy_exchanges bigint, energy_nj text,
  gpu_ns text, gpu_hours_pico text, gpu_energy_pico text
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO tokenmeter.line AS l VALUES (
    date '1970-01-01' + $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'usage', $12, $13, $14, $15, $16, $17,
    $18, $19, $20::numeric, $21, $22::numeric, $23::numeric, $24::numeric, $25::numeric)
  ON CONFLICT ON CONSTRAINT line_pkey DO UPDATE SET
    exchanges = greatest(l.exchanges, excluded.exchanges),
    input = greatest(l.input, excluded.input),
    input_cached = greatest(l.input_cached, excluded.input_cached),
    input_cache_write = greatest(l.input_cache_write, excluded.input_cache_write),
    input_audio = greatest(l.input_audio, excluded.input_audio),
    output = greatest(l.output, excluded.output),
    output_reasoning = greatest(l.output_reasoning, excluded.output_reasoning),
    output_audio = greatest(l.output_audio, excluded.output_audio),
    cost_pico = greatest(l.cost_pico, excluded.cost_pico),
    energy_exchanges = greatest(l.energy_exchanges, excluded.energy_exchanges),
    energy_nj = greatest(l.energy_nj, excluded.energy_nj),
    gpu_ns = greatest(l.gpu_ns, excluded.gpu_ns),
    gpu_hours_pico = greatest(l.gpu_hours_pico, excluded.gpu_hours_pico),
    gpu_energy_pico = greatest(l.gpu_energy_pico, excluded.gpu_energy_pico)
$$;

-- Roles that may call the former functions may call the new ones.
DO $$
DECLARE
  who oid;
  what text;
BEGIN
  FOREACH what IN ARRAY ARRAY[
    'tokenmeter.progress(uuid, integer, text, bigint, bigint, bigint, bigint, bigint, uuid)'::regprocedure::text,
    (SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'tokenmeter'::regnamespace AND proname = 'put_usage')
  ] LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', what);
    FOR who IN
      SELECT DISTINCT a.grantee FROM pg_proc p, aclexplode(p.proacl) a
      WHERE p.pronamespace = 'tokenmeter'::regnamespace AND p.proname = 'put_shed' AND a.grantee <> 0
    LOOP
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', what, who::regrole);
    END LOOP;
  END LOOP;
END $$;

INSERT INTO tokenmeter.version (version) VALUES (2);
