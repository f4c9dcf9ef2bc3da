-- What may be read with SQL: these views and their columns do not change when the tables do; a new
-- version may add columns at the end and views. They are in every file of the ledger, and each says what
-- is in its file: `X.db` is the open month, `X-2026-10.db` the one of October beside it.
--
-- Money is decimal text, exact to the last of twelve digits, because SQLite's numbers are not: to add it
-- up, add `cost_millionths` and `cost_rest` (10^-12) apart, as `spend_monthly` does. Every other number is
-- a whole number, or decimal text where it says so. Times are UTC, as text that sorts.

-- What each tenant spent in a day, on which model, at which price.
CREATE VIEW spend_daily AS
SELECT
  date(line.day * 86400, 'unixepoch')                   AS day,
  strftime('%Y-%m', line.day * 86400, 'unixepoch')      AS month,
  line.tenant                                           AS tenant,
  nullif(line.principal, '')                            AS principal,
  line.upstream                                         AS upstream,
  line.provider                                         AS provider,
  line.model                                            AS model,
  line.ending                                           AS ending,
  line.class                                            AS class,  -- usage, shed (no rows), correction
  line.input_provenance                                 AS input_provenance,
  line.output_provenance                                AS output_provenance,
  rate.version                                          AS price_version,  -- NULL: no price
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
  CASE WHEN rate.id IS NULL THEN NULL                   -- unknown, not nothing
       WHEN line.cost_high >= 0
       THEN printf('%d.%06d%06d', line.cost_high / 1000000, line.cost_high % 1000000, line.cost_low)
       ELSE printf('-%d.%06d%06d', (-line.cost_high - (line.cost_low > 0)) / 1000000,
                   (-line.cost_high - (line.cost_low > 0)) % 1000000, (1000000 - line.cost_low) % 1000000)
  END                                                   AS cost,
  line.cost_high                                        AS cost_millionths,
  line.cost_low                                         AS cost_rest,
  line.energy_exchanges                                 AS measured_exchanges,
  printf('%d.%03d%06d', line.energy_high / 1000, line.energy_high % 1000, line.energy_low) AS energy_joules,
  printf('%d.%03d%06d', line.gpu_ns_high / 1000, line.gpu_ns_high % 1000, line.gpu_ns_low) AS gpu_seconds,
  printf('%d.%06d%06d', line.gpu_hours_high / 1000000, line.gpu_hours_high % 1000000, line.gpu_hours_low)
                                                        AS gpu_hours_usd,
  printf('%d.%06d%06d', line.gpu_energy_high / 1000000, line.gpu_energy_high % 1000000, line.gpu_energy_low)
                                                        AS gpu_energy_usd
FROM line LEFT JOIN rate ON rate.id = line.rate;

-- The same by month, tenant, model, currency and class, summed exactly. NULL as currency: no price.
CREATE VIEW spend_monthly AS
WITH sums AS (
  SELECT month, tenant, model, currency, class,
         sum(exchanges) AS exchanges, sum(unpriced_exchanges) AS unpriced_exchanges,
         sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
         sum(cost_millionths) + sum(cost_rest) / 1000000 AS high, sum(cost_rest) % 1000000 AS low
  FROM spend_daily GROUP BY month, tenant, model, currency, class
)
SELECT month, tenant, model, currency, exchanges, unpriced_exchanges, input_tokens, output_tokens,
       CASE WHEN currency IS NULL THEN NULL
            WHEN high >= 0 THEN printf('%d.%06d%06d', high / 1000000, high % 1000000, low)
            ELSE printf('-%d.%06d%06d', (-high - (low > 0)) / 1000000, (-high - (low > 0)) % 1000000,
                        (1000000 - low) % 1000000)
       END AS cost,
       class                                            -- usage, shed (no rows), correction
FROM sums;

-- One row for each exchange whose detail is kept.
CREATE VIEW exchanges AS
SELECT
  lower(substr(hex(exchange.id), 1, 8) || '-' || substr(hex(exchange.id), 9, 4) || '-' ||
        substr(hex(exchange.id), 13, 4) || '-' || substr(hex(exchange.id), 17, 4) || '-' ||
        substr(hex(exchange.id), 21))                   AS id,
  strftime('%Y-%m-%dT%H:%M:%S', exchange.started_us / 1000000, 'unixepoch') ||
    printf('.%06dZ', exchange.started_us % 1000000)     AS started,
  strftime('%Y-%m-%dT%H:%M:%S', exchange.ended_us / 1000000, 'unixepoch') ||
    printf('.%06dZ', exchange.ended_us % 1000000)       AS ended,
  date(exchange.ended_us / 1000000, 'unixepoch')        AS day,
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
  -- As it was charged first; what was changed since is in `corrections`.
  CASE WHEN exchange.cost_pico IS NOT NULL
       THEN printf('%d.%012d', exchange.cost_pico / 1000000000000, exchange.cost_pico % 1000000000000) END AS cost,
  exchange.cost_pico                                    AS cost_pico,
  rate.currency                                         AS currency,
  rate.version                                          AS price_version,
  rate.entry                                            AS price_entry,
  rate.tier                                             AS tier,
  exchange.unpriced                                     AS unpriced,  -- why there is no price
  lower(hex(exchange.trace))                            AS trace
FROM exchange LEFT JOIN rate ON rate.id = exchange.rate;

-- What exchanges used of the GPUs.
CREATE VIEW gpu_use AS
SELECT
  lower(substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-' || substr(hex(id), 13, 4) || '-' ||
        substr(hex(id), 17, 4) || '-' || substr(hex(id), 21)) AS id,  -- the exchange's
  date(ended_us / 1000000, 'unixepoch')                 AS day,
  CASE WHEN energy_nj IS NOT NULL THEN printf('%d.%09d', energy_nj / 1000000000, energy_nj % 1000000000) END
                                                        AS energy_joules,  -- NULL: not known
  CASE WHEN gpu_ns IS NOT NULL THEN printf('%d.%09d', gpu_ns / 1000000000, gpu_ns % 1000000000) END
                                                        AS gpu_seconds,
  printf('%d.%012d', gpu_hours_pico / 1000000000000, gpu_hours_pico % 1000000000000) AS gpu_hours_usd,
  printf('%d.%012d', gpu_energy_pico / 1000000000000, gpu_energy_pico % 1000000000000) AS gpu_energy_usd
FROM energy;

-- What GPUs did for nobody (idle), or for nobody known (unattributed), by day.
CREATE VIEW gpu_idle AS
SELECT
  date(day * 86400, 'unixepoch')                        AS day,
  hw_id                                                 AS hw_id,
  share                                                 AS share,
  printf('%d.%03d%06d', energy_high / 1000, energy_high % 1000, energy_low) AS energy_joules,
  printf('%d.%03d%06d', gpu_ns_high / 1000, gpu_ns_high % 1000, gpu_ns_low) AS gpu_seconds,
  printf('%d.%06d%06d', gpu_hours_high / 1000000, gpu_hours_high % 1000000, gpu_hours_low) AS gpu_hours_usd,
  printf('%d.%06d%06d', gpu_energy_high / 1000000, gpu_energy_high % 1000000, gpu_energy_low) AS gpu_energy_usd
FROM device;

-- The unit prices that exchanges were charged by, for a million tokens and for one request. NULL: the
-- price book names none.
CREATE VIEW prices AS
SELECT
  version                                               AS price_version,
  book                                                  AS price_book,  -- its content hash
  entry                                                 AS price_entry,
  tier                                                  AS tier,
  above_input_tokens                                    AS above_input_tokens,
  currency                                              AS currency,
  CASE WHEN input IS NOT NULL THEN printf('%d.%06d', input / 1000000, input % 1000000) END AS input,
  CASE WHEN input_cached IS NOT NULL THEN printf('%d.%06d', input_cached / 1000000, input_cached % 1000000) END
                                                        AS input_cached,
  CASE WHEN input_cache_write IS NOT NULL
       THEN printf('%d.%06d', input_cache_write / 1000000, input_cache_write % 1000000) END AS input_cache_write,
  CASE WHEN input_audio IS NOT NULL THEN printf('%d.%06d', input_audio / 1000000, input_audio % 1000000) END
                                                        AS input_audio,
  CASE WHEN output IS NOT NULL THEN printf('%d.%06d', output / 1000000, output % 1000000) END AS output,
  CASE WHEN output_reasoning IS NOT NULL
       THEN printf('%d.%06d', output_reasoning / 1000000, output_reasoning % 1000000) END AS output_reasoning,
  CASE WHEN output_audio IS NOT NULL THEN printf('%d.%06d', output_audio / 1000000, output_audio % 1000000) END
                                                        AS output_audio,
  printf('%d.%012d', per_request / 1000000000000, per_request % 1000000000000) AS per_request
FROM rate;

-- What was changed after the fact, with who did it.
CREATE VIEW corrections AS
SELECT
  strftime('%Y-%m-%dT%H:%M:%S', correction.made_us / 1000000, 'unixepoch') ||
    printf('.%06dZ', correction.made_us % 1000000)      AS made,
  act.who                                               AS who,
  act.what                                              AS what,
  lower(substr(hex(correction.exchange), 1, 8) || '-' || substr(hex(correction.exchange), 9, 4) || '-' ||
        substr(hex(correction.exchange), 13, 4) || '-' || substr(hex(correction.exchange), 17, 4) || '-' ||
        substr(hex(correction.exchange), 21))           AS exchange,
  date(correction.ended_us / 1000000, 'unixepoch')      AS day,  -- of the exchange: the period of the charge
  correction.tenant                                     AS tenant,
  correction.model                                      AS model,
  rate.version                                          AS price_version,
  rate.currency                                         AS currency,
  correction.unpriced                                   AS was_unpriced,
  CASE WHEN correction.delta_pico >= 0
       THEN printf('%d.%012d', correction.delta_pico / 1000000000000, correction.delta_pico % 1000000000000)
       ELSE printf('-%d.%012d', -(correction.delta_pico / 1000000000000), -(correction.delta_pico % 1000000000000))
  END                                                   AS cost,
  correction.delta_pico                                 AS cost_pico
FROM correction JOIN act ON act.seq = correction.act JOIN rate ON rate.id = correction.rate;

-- Times of which something is missing.
CREATE VIEW gaps AS
SELECT
  strftime('%Y-%m-%dT%H:%M:%SZ', from_us / 1000000, 'unixepoch') AS since,
  strftime('%Y-%m-%dT%H:%M:%SZ', until_us / 1000000, 'unixepoch') AS until,
  why                                                   AS why,
  lost_rows                                             AS lost_rows,    -- NULL: nobody can say
  totals_kept                                           AS totals_kept   -- 1: their totals are of class shed
FROM gap;

-- Who did what to the ledger.
CREATE VIEW audit AS
SELECT
  strftime('%Y-%m-%dT%H:%M:%SZ', at_us / 1000000, 'unixepoch') AS at,
  what                                                  AS what,
  who                                                   AS who,
  detail                                                AS detail  -- JSON
FROM act;
