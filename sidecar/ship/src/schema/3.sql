-- The central store's tables, version 3: legs of one request, its repetitions, and tokens of images and
-- videos. Applied after `2.sql`, by the same rules.

-- NULL: the whole request. A row of role `prefill` adds nothing but its GPU use to its line.
ALTER TABLE tokenmeter.exchange ADD COLUMN role text CHECK (role IN ('prefill', 'decode'));
-- The id that the client gave the request; legs and repetitions of one request share it.
ALTER TABLE tokenmeter.exchange ADD COLUMN request_id text;
-- Times that it was sent to the upstream.
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

-- Each beside the one without the new types, which a process of an earlier version goes on calling.
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

-- Who may send the old way may send the new way.
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

CREATE OR REPLACE VIEW tokenmeter.spend_daily AS
SELECT
  line.day                                              AS day,
  to_char(line.day, 'YYYY-MM')                          AS month,
  line.tenant                                           AS tenant,
  nullif(line.principal, '')                            AS principal,
  line.upstream                                         AS upstream,
  line.provider                                         AS provider,
  line.model                                            AS model,
  line.ending                                           AS ending,
  line.class                                            AS class,
  line.input_provenance                                 AS input_provenance,
  line.output_provenance                                AS output_provenance,
  rate.version                                          AS price_version,
  rate.entry                                            AS price_entry,
  rate.tier                                             AS tier,
  rate.currency                                         AS currency,
  CASE line.class WHEN 'correction' THEN 0 ELSE line.exchanges END AS exchanges,
  CASE WHEN line.class = 'correction' THEN -line.exchanges
       WHEN rate.id IS NULL THEN line.exchanges ELSE 0 END        AS unpriced_exchanges,
  line.input + line.input_cached + line.input_cache_write + line.input_audio +
    line.input_image + line.input_video                 AS input_tokens,
  line.output + line.output_reasoning + line.output_audio +
    line.output_image + line.output_video               AS output_tokens,
  line.input                                            AS input,
  line.input_cached                                     AS input_cached,
  line.input_cache_write                                AS input_cache_write,
  line.input_audio                                      AS input_audio,
  line.output                                           AS output,
  line.output_reasoning                                 AS output_reasoning,
  line.output_audio                                     AS output_audio,
  CASE WHEN rate.id IS NOT NULL THEN line.cost_pico * 0.000000000001 END AS cost,
  floor(line.cost_pico * 0.000001)                      AS cost_millionths,
  line.cost_pico - floor(line.cost_pico * 0.000001) * 1000000 AS cost_rest,
  line.energy_exchanges                                 AS measured_exchanges,
  line.energy_nj * 0.000000001                          AS energy_joules,
  line.gpu_ns * 0.000000001                             AS gpu_seconds,
  line.gpu_hours_pico * 0.000000000001                  AS gpu_hours_usd,
  line.gpu_energy_pico * 0.000000000001                 AS gpu_energy_usd,
  line.instance                                         AS instance,
  line.input_image                                      AS input_image,
  line.input_video                                      AS input_video,
  line.output_image                                     AS output_image,
  line.output_video                                     AS output_video
FROM tokenmeter.line LEFT JOIN tokenmeter.rate ON rate.id = line.rate;

CREATE OR REPLACE VIEW tokenmeter.exchanges AS
SELECT
  exchange.id                                           AS id,
  exchange.started_at                                   AS started,
  exchange.ended_at                                     AS ended,
  (exchange.ended_at AT TIME ZONE 'UTC')::date          AS day,
  exchange.tenant                                       AS tenant,
  exchange.principal                                    AS principal,
  exchange.consumer                                     AS consumer,
  exchange.upstream                                     AS upstream,
  exchange.provider                                     AS provider,
  exchange.dialect                                      AS dialect,
  exchange.model                                        AS model,
  exchange.response_model                               AS response_model,
  exchange.response_id                                  AS response_id,
  exchange.service_tier                                 AS service_tier,
  exchange.ending                                       AS ending,
  exchange.status                                       AS status,
  exchange.streamed                                     AS streamed,
  exchange.input + exchange.input_cached + exchange.input_cache_write + exchange.input_audio +
    exchange.input_image + exchange.input_video         AS input_tokens,
  exchange.output + exchange.output_reasoning + exchange.output_audio +
    exchange.output_image + exchange.output_video       AS output_tokens,
  exchange.input                                        AS input,
  exchange.input_cached                                 AS input_cached,
  exchange.input_cache_write                            AS input_cache_write,
  exchange.input_audio                                  AS input_audio,
  exchange.output                                       AS output,
  exchange.output_reasoning                             AS output_reasoning,
  exchange.output_audio                                 AS output_audio,
  exchange.input_provenance                             AS input_provenance,
  exchange.output_provenance                            AS output_provenance,
  exchange.duration_us                                  AS duration_us,
  exchange.first_token_us                               AS first_token_us,
  exchange.cost_pico * 0.000000000001                   AS cost,
  exchange.cost_pico                                    AS cost_pico,
  rate.currency                                         AS currency,
  rate.version                                          AS price_version,
  rate.entry                                            AS price_entry,
  rate.tier                                             AS tier,
  exchange.unpriced                                     AS unpriced,
  replace(exchange.trace::text, '-', '')                AS trace,
  exchange.instance                                     AS instance,
  exchange.input_image                                  AS input_image,
  exchange.input_video                                  AS input_video,
  exchange.output_image                                 AS output_image,
  exchange.output_video                                 AS output_video,
  coalesce(exchange.role, 'whole')                      AS role,
  exchange.request_id                                   AS request_id,
  exchange.upstream_attempts                            AS upstream_attempts,
  exchange.cached_excess                                AS cached_excess
FROM tokenmeter.exchange LEFT JOIN tokenmeter.rate ON rate.id = exchange.rate
WHERE exchange.role IS DISTINCT FROM 'prefill';

CREATE OR REPLACE VIEW tokenmeter.prices AS
SELECT
  version                                               AS price_version,
  book                                                  AS price_book,
  entry                                                 AS price_entry,
  tier                                                  AS tier,
  above_input_tokens                                    AS above_input_tokens,
  currency                                              AS currency,
  input * 0.000001                                      AS input,
  input_cached * 0.000001                               AS input_cached,
  input_cache_write * 0.000001                          AS input_cache_write,
  input_audio * 0.000001                                AS input_audio,
  output * 0.000001                                     AS output,
  output_reasoning * 0.000001                           AS output_reasoning,
  output_audio * 0.000001                               AS output_audio,
  per_request * 0.000000000001                          AS per_request,
  input_image * 0.000001                                AS input_image,
  input_video * 0.000001                                AS input_video,
  output_image * 0.000001                               AS output_image,
  output_video * 0.000001                               AS output_video
FROM tokenmeter.rate;

-- One row for each prefill leg. Its tokens and its cost are the decode leg's, which is a row of `exchanges`.
CREATE VIEW tokenmeter.legs AS
SELECT
  id                                                    AS id,
  ended_at                                              AS ended,
  (ended_at AT TIME ZONE 'UTC')::date                   AS day,
  tenant                                                AS tenant,
  upstream                                              AS upstream,
  model                                                 AS model,
  role                                                  AS role,
  ending                                                AS ending,
  status                                                AS status,
  input + input_cached + input_cache_write + input_audio + input_image + input_video AS prompt_tokens,
  duration_us                                           AS duration_us,
  request_id                                            AS request_id,
  replace(trace::text, '-', '')                         AS trace,
  instance                                              AS instance
FROM tokenmeter.exchange WHERE role = 'prefill';

-- One row for each request of a tenant, whose legs and repetitions may have met several meters.
CREATE VIEW tokenmeter.requests AS
WITH part AS (
  SELECT x.*, rate.currency,
         CASE WHEN x.request_id IS NOT NULL THEN 'id:' || x.request_id
              WHEN x.trace IS NOT NULL AND x.role IS NOT NULL THEN 'trace:' || replace(x.trace::text, '-', '')
              ELSE 'exchange:' || replace(x.id::text, '-', '') END AS request,
         x.role IS DISTINCT FROM 'prefill' AS is_counted,
         x.ending IN ('complete', 'length') AS is_success
  FROM tokenmeter.exchange x LEFT JOIN tokenmeter.rate ON rate.id = x.rate
), ranked AS (
  SELECT part.*, row_number() OVER (
           PARTITION BY tenant, request, is_counted ORDER BY is_success DESC, ended_at DESC, id DESC) AS place
  FROM part
), used AS (
  SELECT ranked.*, coalesce(e.gpu_hours_pico, 0) + coalesce(e.gpu_energy_pico, 0) AS gpu_pico, e.energy_nj
  FROM ranked LEFT JOIN tokenmeter.energy e ON e.ended_at = ranked.ended_at AND e.id = ranked.id
)
SELECT
  (max(ended_at) AT TIME ZONE 'UTC')::date              AS day,
  tenant                                                AS tenant,
  request                                               AS request,
  max(model)                                            AS model,
  count(*) FILTER (WHERE is_counted)                    AS exchanges,
  count(*) FILTER (WHERE NOT is_counted)                AS prefill_legs,
  count(*) FILTER (WHERE role = 'decode')               AS decode_legs,
  count(*) FILTER (WHERE is_counted AND NOT is_success) AS failed_exchanges,
  sum(upstream_attempts)                                AS upstream_attempts,
  bool_or(is_counted AND is_success)                    AS is_success,
  max(currency)                                         AS currency,
  coalesce(sum(cost_pico) FILTER (WHERE is_counted), 0) AS cost_pico,
  coalesce(sum(cost_pico) FILTER (WHERE is_counted AND NOT is_success), 0) AS failed_cost_pico,
  coalesce(sum(cost_pico) FILTER (WHERE is_counted AND place > 1 AND request LIKE 'id:%'), 0) AS repeated_cost_pico,
  sum(gpu_pico)                                         AS gpu_usd_pico,
  coalesce(sum(gpu_pico) FILTER (WHERE NOT is_counted), 0) AS prefill_gpu_usd_pico,
  sum(energy_nj)                                        AS energy_nj
FROM used GROUP BY tenant, request;

-- Who may read the other views may read these.
DO $$
DECLARE
  who oid;
BEGIN
  FOR who IN
    SELECT DISTINCT a.grantee FROM pg_class c, aclexplode(c.relacl) a
    WHERE c.oid = 'tokenmeter.exchanges'::regclass AND a.privilege_type = 'SELECT' AND a.grantee <> 0
  LOOP
    EXECUTE format('GRANT SELECT ON tokenmeter.legs, tokenmeter.requests TO %s', who::regrole);
  END LOOP;
END $$;

INSERT INTO tokenmeter.version (version) VALUES (3);
