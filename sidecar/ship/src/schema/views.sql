-- What may be read with SQL: the views of a ledger's own files, with the same names and columns, over all
-- that is shipped here. They do not change when the tables do; a new version may add columns at the end and
-- views. Money is numeric and exact, and may simply be added up; the columns that SQLite needs for that are
-- here too.

CREATE VIEW tokenmeter.spend_daily AS
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
  line.input + line.input_cached + line.input_cache_write + line.input_audio AS input_tokens,
  line.output + line.output_reasoning + line.output_audio          AS output_tokens,
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
  line.instance                                         AS instance
FROM tokenmeter.line LEFT JOIN tokenmeter.rate ON rate.id = line.rate;

CREATE VIEW tokenmeter.spend_monthly AS
SELECT month, tenant, model, currency, sum(exchanges) AS exchanges,
       sum(unpriced_exchanges) AS unpriced_exchanges, sum(input_tokens) AS input_tokens,
       sum(output_tokens) AS output_tokens, sum(cost) AS cost, class
FROM tokenmeter.spend_daily GROUP BY month, tenant, model, currency, class;

CREATE VIEW tokenmeter.exchanges AS
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
  exchange.input + exchange.input_cached + exchange.input_cache_write + exchange.input_audio AS input_tokens,
  exchange.output + exchange.output_reasoning + exchange.output_audio AS output_tokens,
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
  exchange.instance                                     AS instance
FROM tokenmeter.exchange LEFT JOIN tokenmeter.rate ON rate.id = exchange.rate;

CREATE VIEW tokenmeter.gpu_use AS
SELECT
  id                                                    AS id,
  (ended_at AT TIME ZONE 'UTC')::date                   AS day,
  energy_nj * 0.000000001                               AS energy_joules,
  gpu_ns * 0.000000001                                  AS gpu_seconds,
  gpu_hours_pico * 0.000000000001                       AS gpu_hours_usd,
  gpu_energy_pico * 0.000000000001                      AS gpu_energy_usd,
  instance                                              AS instance
FROM tokenmeter.energy;

CREATE VIEW tokenmeter.gpu_idle AS
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

CREATE VIEW tokenmeter.prices AS
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
  per_request * 0.000000000001                          AS per_request
FROM tokenmeter.rate;

CREATE VIEW tokenmeter.corrections AS
SELECT
  correction.made_at                                    AS made,
  act.who                                               AS who,
  act.what                                              AS what,
  correction.exchange                                   AS exchange,
  (correction.ended_at AT TIME ZONE 'UTC')::date        AS day,
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

CREATE VIEW tokenmeter.gaps AS
SELECT
  from_at                                               AS since,
  until_at                                              AS until,
  why                                                   AS why,
  lost_rows                                             AS lost_rows,
  totals_kept                                           AS totals_kept,
  instance                                              AS instance
FROM tokenmeter.gap;

CREATE VIEW tokenmeter.audit AS
SELECT
  at                                                    AS at,
  what                                                  AS what,
  who                                                   AS who,
  detail                                                AS detail,
  instance                                              AS instance
FROM tokenmeter.act;
