-- The central store's tables, version 6: tokens that are written to a cache for one hour. Applied after `5.sql`, by
-- the same rules. A connected process of an earlier version counts them as other tokens written to a cache. It fails
-- at its next totals without rows, and is refused at its next connection.

ALTER TABLE tokenmeter.exchange ADD COLUMN input_cache_write_1h bigint NOT NULL DEFAULT 0;
ALTER TABLE tokenmeter.rate ADD COLUMN input_cache_write_1h bigint;
ALTER TABLE tokenmeter.line ADD COLUMN input_cache_write_1h bigint NOT NULL DEFAULT 0;

-- NOT VALID: existing rows are not read for the check.
ALTER TABLE tokenmeter.exchange ADD CONSTRAINT exchange_1h_not_negative CHECK (input_cache_write_1h >= 0) NOT VALID;
ALTER TABLE tokenmeter.rate ADD CONSTRAINT rate_1h_not_negative CHECK (input_cache_write_1h >= 0) NOT VALID;
ALTER TABLE tokenmeter.line ADD CONSTRAINT line_1h_not_negative CHECK (input_cache_write_1h >= 0) NOT VALID;

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
         coalesce(sum(n.output_video) FILTER (WHERE c.is_counted), 0),
         coalesce(sum(n.input_cache_write_1h) FILTER (WHERE c.is_counted), 0)
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
    output_image = l.output_image + excluded.output_image,
    output_video = l.output_video + excluded.output_video;
  SELECT array_agg(e.ended_at), array_agg(e.id) INTO early_ended_at, early_id
  FROM inserted n JOIN tokenmeter.energy e ON e.ended_at = n.ended_at AND e.id = n.id AND e.class = 'usage';
  PERFORM tokenmeter.add_energy(early_ended_at, early_id);
  RETURN NULL;
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

REVOKE ALL ON FUNCTION tokenmeter.put_line FROM PUBLIC;

CREATE OR REPLACE FUNCTION tokenmeter.put_shed(instance uuid, day integer, totals jsonb) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT tokenmeter.put_line($1, $2, $3, 'shed', '%1$I = excluded.%1$I')
$$;

CREATE OR REPLACE FUNCTION tokenmeter.put_usage(instance uuid, day integer, totals jsonb) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT tokenmeter.put_line($1, $2, $3, 'usage', '%1$I = greatest(l.%1$I, excluded.%1$I)')
$$;

INSERT INTO tokenmeter.version (version) VALUES (6);
