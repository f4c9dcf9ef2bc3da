-- The stable interface for SQL: the views of a ledger file, with the same names and columns, over all shipped files.
-- They stay when the tables change; a new version may add views, and columns at the end. Money is numeric and exact,
-- so that sum() is exact; the columns that SQLite needs for that are here too. Applied after the last version's
-- tables.

CREATE OR REPLACE VIEW tokenmeter.spend_daily AS
SELECT
  line.day                                              AS day,
  -- In the words of each partition's constraint: `bound_partition` in `1.sql`.
  lpad(extract(year FROM line.day)::text, 4, '0') || '-' || lpad(extract(month FROM line.day)::text, 2, '0') AS month,
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
  line.input + line.input_cached + line.input_cache_write + line.input_cache_write_1h + line.input_audio +
    line.input_image + line.input_video +
    line.input_cached_audio + line.input_cached_image   AS input_tokens,
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
  line.output_video                                     AS output_video,
  -- Answered at least in part: it ended well, or something was generated.
  CASE WHEN line.class <> 'correction' AND line.input_provenance = 'none' AND (
      line.ending IN ('complete', 'length') OR
      0 < line.output + line.output_reasoning + line.output_audio + line.output_image + line.output_video
    ) THEN line.exchanges ELSE 0 END                    AS uncounted_prompts,
  line.input_cache_write_1h                             AS input_cache_write_1h,
  line.input_cached_audio                               AS input_cached_audio,
  line.input_cached_image                               AS input_cached_image
FROM tokenmeter.line LEFT JOIN tokenmeter.rate ON rate.id = line.rate;

CREATE OR REPLACE VIEW tokenmeter.spend_monthly AS
SELECT month, tenant, model, currency, sum(exchanges) AS exchanges,
       sum(unpriced_exchanges) AS unpriced_exchanges, sum(input_tokens) AS input_tokens,
       sum(output_tokens) AS output_tokens, sum(cost) AS cost, class,
       sum(uncounted_prompts) AS uncounted_prompts
FROM tokenmeter.spend_daily GROUP BY month, tenant, model, currency, class;

CREATE OR REPLACE VIEW tokenmeter.exchanges AS
SELECT
  exchange.id                                           AS id,
  exchange.started_at                                   AS started,
  exchange.ended_at                                     AS ended,
  coalesce(exchange.day, (exchange.ended_at AT TIME ZONE 'UTC')::date) AS day,
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
  exchange.input + exchange.input_cached + exchange.input_cache_write + exchange.input_cache_write_1h +
    exchange.input_audio + exchange.input_image + exchange.input_video +
    exchange.input_cached_audio + exchange.input_cached_image AS input_tokens,
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
  exchange.cached_excess                                AS cached_excess,
  exchange.usage_disagreement                           AS usage_disagreement,
  exchange.input_cache_write_1h                         AS input_cache_write_1h,
  exchange.input_cached_audio                           AS input_cached_audio,
  exchange.input_cached_image                           AS input_cached_image
  -- Later columns, made of sidecar/ledger/src/columns.rs by the tests (UPDATE_GOLDEN=1).
FROM tokenmeter.exchange LEFT JOIN tokenmeter.rate ON rate.id = exchange.rate
WHERE exchange.role IS DISTINCT FROM 'prefill';

-- The current charge of each exchange: the cost includes its corrections, and the rate is that of the last one.
CREATE OR REPLACE VIEW tokenmeter.charges AS
SELECT
  x.id                                                  AS id,
  x.ended_at                                            AS ended,
  coalesce(x.day, (x.ended_at AT TIME ZONE 'UTC')::date) AS day,
  x.tenant                                              AS tenant,
  x.principal                                           AS principal,
  x.upstream                                            AS upstream,
  x.provider                                            AS provider,
  x.model                                               AS model,
  x.ending                                              AS ending,
  x.input + x.input_cached + x.input_cache_write + x.input_cache_write_1h + x.input_audio + x.input_image +
    x.input_video +
    x.input_cached_audio + x.input_cached_image         AS input_tokens,
  x.output + x.output_reasoning + x.output_audio + x.output_image + x.output_video AS output_tokens,
  CASE WHEN rate.id IS NOT NULL THEN (coalesce(x.cost_pico, 0) + coalesce(c.delta_pico, 0)) * 0.000000000001 END AS cost,
  CASE WHEN rate.id IS NOT NULL THEN coalesce(x.cost_pico, 0) + coalesce(c.delta_pico, 0) END AS cost_pico,
  rate.currency                                         AS currency,
  rate.version                                          AS price_version,
  rate.entry                                            AS price_entry,
  rate.tier                                             AS tier,
  coalesce(c.corrections, 0)                            AS corrections,
  x.instance                                            AS instance
FROM tokenmeter.exchange x
LEFT JOIN (
  SELECT correction.ended_at, correction.exchange, count(*) AS corrections, sum(correction.delta_pico) AS delta_pico,
         (array_agg(correction.rate ORDER BY file.month DESC, file.is_central DESC, correction.act DESC))[1] AS rate
  FROM tokenmeter.correction LEFT JOIN tokenmeter.file USING (instance)
  GROUP BY correction.ended_at, correction.exchange
) c ON c.ended_at = x.ended_at AND c.exchange = x.id
LEFT JOIN tokenmeter.rate ON rate.id = coalesce(c.rate, x.rate)
WHERE x.role IS DISTINCT FROM 'prefill';

-- The prefill legs. The tokens and the cost are those of the decode leg, which is a row of `exchanges`.
CREATE OR REPLACE VIEW tokenmeter.legs AS
SELECT
  id                                                    AS id,
  ended_at                                              AS ended,
  coalesce(day, (ended_at AT TIME ZONE 'UTC')::date)    AS day,
  tenant                                                AS tenant,
  upstream                                              AS upstream,
  model                                                 AS model,
  role                                                  AS role,
  ending                                                AS ending,
  status                                                AS status,
  input + input_cached + input_cache_write + input_cache_write_1h + input_audio + input_image + input_video +
    input_cached_audio + input_cached_image             AS prompt_tokens,
  duration_us                                           AS duration_us,
  request_id                                            AS request_id,
  replace(trace::text, '-', '')                         AS trace,
  instance                                              AS instance
FROM tokenmeter.exchange WHERE role = 'prefill';

-- The requests of a tenant, whose legs and repetitions may have passed several proxies.
CREATE OR REPLACE VIEW tokenmeter.requests AS
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
  max(coalesce(day, (ended_at AT TIME ZONE 'UTC')::date)) AS day,
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

CREATE OR REPLACE VIEW tokenmeter.gpu_use AS
SELECT
  id                                                    AS id,
  coalesce(day, (ended_at AT TIME ZONE 'UTC')::date)    AS day,
  energy_nj * 0.000000001                               AS energy_joules,
  gpu_ns * 0.000000001                                  AS gpu_seconds,
  gpu_hours_pico * 0.000000000001                       AS gpu_hours_usd,
  gpu_energy_pico * 0.000000000001                      AS gpu_energy_usd,
  instance                                              AS instance
FROM tokenmeter.energy;

CREATE OR REPLACE VIEW tokenmeter.gpu_idle AS
SELECT
  day                                                   AS day,
  hw_id                                                 AS hw_id,
  share                                                 AS share,
  energy_nj * 0.000000001                               AS energy_joules,
  gpu_ns * 0.000000001                                  AS gpu_seconds,
  gpu_hours_pico * 0.000000000001                       AS gpu_hours_usd,
  gpu_energy_pico * 0.000000000001                      AS gpu_energy_usd,
  instance                                              AS instance
FROM tokenmeter.device;

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
  output_video * 0.000001                               AS output_video,
  input_cache_write_1h * 0.000001                       AS input_cache_write_1h,
  input_cached_audio * 0.000001                         AS input_cached_audio,
  input_cached_image * 0.000001                         AS input_cached_image
FROM tokenmeter.rate;

CREATE OR REPLACE VIEW tokenmeter.corrections AS
SELECT
  correction.made_at                                    AS made,
  act.who                                               AS who,
  act.what                                              AS what,
  correction.exchange                                   AS exchange,
  coalesce(correction.day, (correction.ended_at AT TIME ZONE 'UTC')::date) AS day,
  correction.tenant                                     AS tenant,
  correction.model                                      AS model,
  rate.version                                          AS price_version,
  rate.currency                                         AS currency,
  correction.unpriced                                   AS was_unpriced,
  correction.delta_pico * 0.000000000001                AS cost,
  correction.delta_pico                                 AS cost_pico,
  correction.instance                                   AS instance
FROM tokenmeter.correction
LEFT JOIN tokenmeter.act ON act.instance = correction.instance AND act.seq = correction.act
JOIN tokenmeter.rate ON rate.id = correction.rate;

-- A file that is requested again, or did not arrive to its end, may have rows that the store lacks.
CREATE OR REPLACE VIEW tokenmeter.gaps AS
SELECT
  from_at                                               AS since,
  until_at                                              AS until,
  why                                                   AS why,
  lost_rows                                             AS lost_rows,
  totals_kept                                           AS totals_kept,
  instance                                              AS instance,
  unpriced_rows                                         AS unpriced_rows,
  cost_pico * 0.000000000001                            AS cost,
  currency                                              AS currency
FROM tokenmeter.gap
UNION ALL
SELECT
  coalesce(begins_at, month::timestamp AT TIME ZONE 'UTC'),
  coalesce(ends_at, (month + interval '1 month') AT TIME ZONE 'UTC') - interval '1 microsecond',
  'file to be sent again',
  NULL,
  false,
  instance,
  NULL,
  NULL,
  NULL
FROM tokenmeter.file WHERE resend_since IS NOT NULL
UNION ALL
-- A file of a closed month that did not arrive to its end: after the exchange whose id has the time of the last one.
SELECT
  coalesce(least(to_timestamp(('x' || left(replace(last::text, '-', ''), 12))::bit(48)::bigint / 1000.0),
                 coalesce(ends_at, (month + interval '1 month') AT TIME ZONE 'UTC')),
           begins_at, month::timestamp AT TIME ZONE 'UTC'),
  coalesce(ends_at, (month + interval '1 month') AT TIME ZONE 'UTC') - interval '1 microsecond',
  'unshipped',
  NULL,
  false,
  instance,
  NULL,
  NULL,
  NULL
FROM tokenmeter.file
WHERE NOT ended AND late_of IS NULL AND NOT is_central AND month <= (SELECT max(month) FROM tokenmeter.closing);

CREATE OR REPLACE VIEW tokenmeter.audit AS
SELECT
  at                                                    AS at,
  what                                                  AS what,
  who                                                   AS who,
  detail                                                AS detail,
  instance                                              AS instance
FROM tokenmeter.act;

-- Roles that may read the tables or were granted an earlier version's views may read all views.
DO $$
DECLARE
  who oid;
  what oid;
BEGIN
  FOR who IN
    SELECT DISTINCT a.grantee FROM pg_class c, aclexplode(c.relacl) a
    WHERE c.oid IN ('tokenmeter.exchange'::regclass, 'tokenmeter.exchanges'::regclass)
      AND a.privilege_type = 'SELECT' AND a.grantee <> 0
  LOOP
    FOR what IN SELECT oid FROM pg_class WHERE relnamespace = 'tokenmeter'::regnamespace AND relkind = 'v' LOOP
      EXECUTE format('GRANT SELECT ON %s TO %s', what::regclass, who::regrole);
    END LOOP;
  END LOOP;
END $$;
