-- The central store's tables, version 3: legs of one request, its repetitions, and tokens of images and
-- videos. Applied after `2.sql`, by the same rules.

-- NULL: the whole request. A row of role `prefill` adds only its GPU use to its daily total.
ALTER TABLE tokenmeter.exchange ADD COLUMN role text CHECK (role IN ('prefill', 'decode'));
-- The client's id of the request, which its legs and repetitions share.
ALTER TABLE tokenmeter.exchange ADD COLUMN request_id text;
-- The number of times that the request was sent to the upstream.
ALTER TABLE tokenmeter.exchange ADD COLUMN upstream_attempts integer NOT NULL DEFAULT 1;
-- Cached tokens that the server reported beyond the prompt.
ALTER TABLE tokenmeter.exchange ADD COLUMN cached_excess bigint NOT NULL DEFAULT 0;
ALTER TABLE tokenmeter.exchange ADD COLUMN input_image bigint NOT NULL DEFAULT 0;
ALTER TABLE tokenmeter.exchange ADD COLUMN input_video bigint NOT NULL DEFAULT 0;
ALTER TABLE tokenmeter.exchange ADD COLUMN output_image bigint NOT NULL DEFAULT 0;
ALTER TABLE tokenmeter.exchange ADD COLUMN output_video bigint NOT NULL DEFAULT 0;

ALTER TABLE tokenmeter.rate ADD COLUMN input_image bigint;
ALTER TABLE tokenmeter.rate ADD COLUMN input_video bigint;
ALTER TABLE tokenmeter.rate ADD COLUMN output_image bigint;
ALTER TABLE tokenmeter.rate ADD COLUMN output_video bigint;

ALTER TABLE tokenmeter.line ADD COLUMN input_image bigint NOT NULL DEFAULT 0;
ALTER TABLE tokenmeter.line ADD COLUMN input_video bigint NOT NULL DEFAULT 0;
ALTER TABLE tokenmeter.line ADD COLUMN output_image bigint NOT NULL DEFAULT 0;
ALTER TABLE tokenmeter.line ADD COLUMN output_video bigint NOT NULL DEFAULT 0;

CREATE OR REPLACE FUNCTION tokenmeter.roll_exchange() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET jit = off AS $$
BEGIN
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
         count(e.id) FILTER (WHERE c.is_counted), coalesce(sum(e.energy_nj), 0), coalesce(sum(e.gpu_ns), 0),
         coalesce(sum(e.gpu_hours_pico), 0), coalesce(sum(e.gpu_energy_pico), 0),
         coalesce(sum(n.input_image) FILTER (WHERE c.is_counted), 0),
         coalesce(sum(n.input_video) FILTER (WHERE c.is_counted), 0),
         coalesce(sum(n.output_image) FILTER (WHERE c.is_counted), 0),
         coalesce(sum(n.output_video) FILTER (WHERE c.is_counted), 0)
  FROM inserted n
  CROSS JOIN LATERAL (SELECT n.role IS DISTINCT FROM 'prefill' AS is_counted) c
  LEFT JOIN tokenmeter.energy e ON e.ended_at = n.ended_at AND e.id = n.id AND e.class = 'usage'
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
    gpu_energy_pico = l.gpu_energy_pico + excluded.gpu_energy_pico,
    input_image = l.input_image + excluded.input_image,
    input_video = l.input_video + excluded.input_video,
    output_image = l.output_image + excluded.output_image,
    output_video = l.output_video + excluded.output_video;
  RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION tokenmeter.roll_energy() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET jit = off AS $$
BEGIN
  INSERT INTO tokenmeter.line AS l
  SELECT (n.ended_at AT TIME ZONE 'UTC')::date, n.instance, x.tenant, coalesce(x.principal, ''),
         x.upstream, x.provider, x.model, x.ending, x.input_provenance, x.output_provenance,
         coalesce(x.rate, '00000000-0000-0000-0000-000000000000'), 'usage', 0, 0, 0, 0, 0, 0, 0, 0, 0,
         count(*) FILTER (WHERE x.role IS DISTINCT FROM 'prefill'),
         coalesce(sum(n.energy_nj), 0), coalesce(sum(n.gpu_ns), 0),
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

-- Each is beside the function without the new types, which processes of earlier versions still call.
CREATE FUNCTION tokenmeter.put_shed(
  day integer, instance uuid, tenant text, principal text, upstream text, provider text,
  model text, ending text, input_provenance text, output_provenance text, rate uuid, exchanges bigint,
  input bigint, input_cached bigint, input_cache_write bigint, input_audio bigint, output bigint,
  output_reasoning bigint, output_audio bigint, cost_pico text, energy_exchanges bigint, energy_nj text,
  gpu_ns text, gpu_hours_pico text, gpu_energy_pico text,
  input_image bigint, input_video bigint, output_image bigint, output_video bigint
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT tokenmeter.put_shed($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
                             $19, $20, $21, $22, $23, $24, $25);
  UPDATE tokenmeter.line l SET input_image = $26, input_video = $27, output_image = $28, output_video = $29
  WHERE (l.day, l.instance, l.tenant, l.principal, l.upstream, l.provider, l.model, l.ending,
         l.input_provenance, l.output_provenance, l.rate, l.class)
      = (date '1970-01-01' + $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'shed')
$$;

CREATE FUNCTION tokenmeter.put_usage(
  day integer, instance uuid, tenant text, principal text, upstream text, provider text,
  model text, ending text, input_provenance text, output_provenance text, rate uuid, exchanges bigint,
  input bigint, input_cached bigint, input_cache_write bigint, input_audio bigint, output bigint,
  output_reasoning bigint, output_audio bigint, cost_pico text, energy_exchanges bigint, energy_nj text,
  gpu_ns text, gpu_hours_pico text, gpu_energy_pico text,
  input_image bigint, input_video bigint, output_image bigint, output_video bigint
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT tokenmeter.put_usage($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
                              $19, $20, $21, $22, $23, $24, $25);
  UPDATE tokenmeter.line l SET
    input_image = greatest(l.input_image, $26),
    input_video = greatest(l.input_video, $27),
    output_image = greatest(l.output_image, $28),
    output_video = greatest(l.output_video, $29)
  WHERE (l.day, l.instance, l.tenant, l.principal, l.upstream, l.provider, l.model, l.ending,
         l.input_provenance, l.output_provenance, l.rate, l.class)
      = (date '1970-01-01' + $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'usage')
$$;

-- Roles that may call the former functions may call the new ones.
DO $$
DECLARE
  who oid;
  what text;
BEGIN
  FOR what IN
    SELECT oid::regprocedure::text FROM pg_proc
    WHERE pronamespace = 'tokenmeter'::regnamespace AND proname IN ('put_shed', 'put_usage') AND pronargs = 29
  LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', what);
    FOR who IN
      SELECT DISTINCT a.grantee FROM pg_proc p, aclexplode(p.proacl) a
      WHERE p.pronamespace = 'tokenmeter'::regnamespace AND p.proname = 'put_shed' AND p.pronargs = 25
        AND a.grantee <> 0
    LOOP
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', what, who::regrole);
    END LOOP;
  END LOOP;
END $$;

INSERT INTO tokenmeter.version (version) VALUES (3);
