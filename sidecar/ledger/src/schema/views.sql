-- The stable interface for SQL: these views and their columns stay when the tables change. A new version may add views,
-- and columns at the end. Every file of the ledger has them, each for its own contents: `X.db` is the open month,
-- `X-2026-10.db` beside it is October.
--
-- Money is decimal text, exact to twelve digits, because SQLite's numbers are not. To sum it, add `cost_millionths`
-- and `cost_rest` (10^-12) separately, as `spend_monthly` does. Other numbers are whole, or decimal text where noted.
-- Times are UTC, as text that sorts; days and months are those of the ledger's time zone.

-- A migrated file has some of them already.
DROP VIEW IF EXISTS requests;
DROP VIEW IF EXISTS legs;
DROP VIEW IF EXISTS audit;
DROP VIEW IF EXISTS gaps;
DROP VIEW IF EXISTS corrections;
DROP VIEW IF EXISTS prices;
DROP VIEW IF EXISTS gpu_idle;
DROP VIEW IF EXISTS gpu_use;
DROP VIEW IF EXISTS exchanges;
DROP VIEW IF EXISTS spend_monthly;
DROP VIEW IF EXISTS spend_daily;

-- The daily spend by tenant, model and price.
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
                                                        AS gpu_energy_usd,
  line.input_image                                      AS input_image,
  line.input_video                                      AS input_video,
  line.output_image                                     AS output_image,
  line.output_video                                     AS output_video,
  -- Answered at least in part: it ended well, or something was generated.
  CASE WHEN line.class <> 'correction' AND line.input_provenance = 'none' AND (
      line.ending IN ('complete', 'length') OR
      0 < line.output + line.output_reasoning + line.output_audio +
        line.output_image + line.output_video
    ) THEN line.exchanges ELSE 0 END                    AS uncounted_prompts,
  line.input_cache_write_1h                             AS input_cache_write_1h,
  line.input_cached_audio                               AS input_cached_audio,
  line.input_cached_image                               AS input_cached_image
FROM line LEFT JOIN rate ON rate.id = line.rate;

-- The monthly spend by tenant, model, currency and class, summed exactly. NULL as currency: no price.
CREATE VIEW spend_monthly AS
WITH sums AS (
  SELECT month, tenant, model, currency, class,
         sum(exchanges) AS exchanges, sum(unpriced_exchanges) AS unpriced_exchanges,
         sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
         sum(uncounted_prompts) AS uncounted_prompts,
         sum(cost_millionths) + sum(cost_rest) / 1000000 AS high, sum(cost_rest) % 1000000 AS low
  FROM spend_daily GROUP BY month, tenant, model, currency, class
)
SELECT month, tenant, model, currency, exchanges, unpriced_exchanges, input_tokens, output_tokens,
       CASE WHEN currency IS NULL THEN NULL
            WHEN high >= 0 THEN printf('%d.%06d%06d', high / 1000000, high % 1000000, low)
            ELSE printf('-%d.%06d%06d', (-high - (low > 0)) / 1000000, (-high - (low > 0)) % 1000000,
                        (1000000 - low) % 1000000)
       END AS cost,
       class,                                           -- usage, shed (no rows), correction
       uncounted_prompts
FROM sums;

-- The exchanges whose rows are stored.
CREATE VIEW exchanges AS
SELECT
  lower(substr(hex(exchange.id), 1, 8) || '-' || substr(hex(exchange.id), 9, 4) || '-' ||
        substr(hex(exchange.id), 13, 4) || '-' || substr(hex(exchange.id), 17, 4) || '-' ||
        substr(hex(exchange.id), 21))                   AS id,
  strftime('%Y-%m-%dT%H:%M:%S', exchange.started_us / 1000000, 'unixepoch') ||
    printf('.%06dZ', exchange.started_us % 1000000)     AS started,
  strftime('%Y-%m-%dT%H:%M:%S', exchange.ended_us / 1000000, 'unixepoch') ||
    printf('.%06dZ', exchange.ended_us % 1000000)       AS ended,
  date(ifnull(exchange.day * 86400, exchange.ended_us / 1000000), 'unixepoch') AS day,
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
  -- As it was charged first; what was changed since is in `corrections`.
  CASE WHEN exchange.cost_pico IS NOT NULL
       THEN printf('%d.%012d', exchange.cost_pico / 1000000000000, exchange.cost_pico % 1000000000000) END AS cost,
  exchange.cost_pico                                    AS cost_pico,
  rate.currency                                         AS currency,
  rate.version                                          AS price_version,
  rate.entry                                            AS price_entry,
  rate.tier                                             AS tier,
  exchange.unpriced                                     AS unpriced,  -- why there is no price
  lower(hex(exchange.trace))                            AS trace,
  exchange.input_image                                  AS input_image,
  exchange.input_video                                  AS input_video,
  exchange.output_image                                 AS output_image,
  exchange.output_video                                 AS output_video,
  ifnull(exchange.role, 'whole')                        AS role,
  exchange.request_id                                   AS request_id,
  exchange.upstream_attempts                            AS upstream_attempts,
  exchange.cached_excess                                AS cached_excess,  -- cached tokens beyond the prompt
  exchange.usage_disagreement                           AS usage_disagreement,  -- how the server's counts contradict one another
  exchange.input_cache_write_1h                         AS input_cache_write_1h,
  exchange.input_cached_audio                           AS input_cached_audio,
  exchange.input_cached_image                           AS input_cached_image
  /* later columns */
FROM exchange LEFT JOIN rate ON rate.id = exchange.rate
WHERE exchange.role IS NOT 'prefill';

-- The prefill legs whose rows are stored. The tokens and the cost are those of the decode leg, which is a row of
-- `exchanges`; the GPU use of the prefill leg is in `gpu_use` under its id.
CREATE VIEW legs AS
SELECT
  lower(substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-' || substr(hex(id), 13, 4) || '-' ||
        substr(hex(id), 17, 4) || '-' || substr(hex(id), 21)) AS id,
  strftime('%Y-%m-%dT%H:%M:%S', ended_us / 1000000, 'unixepoch') || printf('.%06dZ', ended_us % 1000000) AS ended,
  date(ifnull(day * 86400, ended_us / 1000000), 'unixepoch') AS day,
  tenant                                                AS tenant,
  upstream                                              AS upstream,
  model                                                 AS model,
  role                                                  AS role,
  ending                                                AS ending,
  status                                                AS status,
  input + input_cached + input_cache_write + input_cache_write_1h + input_audio +
    input_image + input_video +
    input_cached_audio + input_cached_image             AS prompt_tokens,
  duration_us                                           AS duration_us,
  request_id                                            AS request_id,
  lower(hex(trace))                                     AS trace
FROM exchange WHERE role = 'prefill';

-- The requests of a tenant. A request is the legs and repetitions with one id from the client, or the legs of one trace
-- without an id; any other exchange is a request of its own. `cost_pico` is of all its exchanges, `failed_cost_pico` of
-- those that failed, `repeated_cost_pico` of all but one: the last that succeeded, or else the last. A trace may have
-- several requests, so none of its exchanges counts as repeated.
CREATE VIEW requests AS
WITH part AS (
  SELECT exchange.*, rate.currency,
         CASE WHEN request_id IS NOT NULL THEN 'id:' || request_id
              WHEN trace IS NOT NULL AND role IS NOT NULL THEN 'trace:' || lower(hex(trace))
              ELSE 'exchange:' || lower(hex(exchange.id)) END AS request,
         role IS NOT 'prefill' AS is_counted,
         ending IN ('complete', 'length') AS is_success
  FROM exchange LEFT JOIN rate ON rate.id = exchange.rate
), ranked AS (
  SELECT part.*, row_number() OVER (
           PARTITION BY tenant, request, is_counted ORDER BY is_success DESC, ended_us DESC, seq DESC) AS place
  FROM part
), used AS (
  SELECT ranked.*, ifnull(energy.gpu_hours_pico, 0) + ifnull(energy.gpu_energy_pico, 0) AS gpu_pico,
         energy.energy_nj AS energy_nj
  FROM ranked LEFT JOIN energy ON energy.id = ranked.id
)
SELECT
  date(max(ifnull(day * 86400, ended_us / 1000000)), 'unixepoch') AS day,
  tenant                                                AS tenant,
  request                                               AS request,  -- 'id:', 'trace:' or 'exchange:' and which
  max(model)                                            AS model,
  sum(is_counted)                                       AS exchanges,  -- prefill legs are none
  sum(NOT is_counted)                                   AS prefill_legs,
  sum(role IS 'decode')                                 AS decode_legs,
  sum(is_counted AND NOT is_success)                    AS failed_exchanges,
  sum(upstream_attempts)                                AS upstream_attempts,
  max(is_counted AND is_success)                        AS is_success,
  max(currency)                                         AS currency,
  sum(CASE WHEN is_counted THEN ifnull(cost_pico, 0) ELSE 0 END) AS cost_pico,
  sum(CASE WHEN is_counted AND NOT is_success THEN ifnull(cost_pico, 0) ELSE 0 END) AS failed_cost_pico,
  sum(CASE WHEN is_counted AND place > 1 AND request LIKE 'id:%' THEN ifnull(cost_pico, 0) ELSE 0 END) AS repeated_cost_pico,
  sum(gpu_pico)                                         AS gpu_usd_pico,  -- legs and failures too
  sum(CASE WHEN is_counted THEN 0 ELSE gpu_pico END)    AS prefill_gpu_usd_pico,
  sum(energy_nj)                                        AS energy_nj  -- NULL: not known
FROM used GROUP BY tenant, request;

-- The GPU use of exchanges.
CREATE VIEW gpu_use AS
SELECT
  lower(substr(hex(id), 1, 8) || '-' || substr(hex(id), 9, 4) || '-' || substr(hex(id), 13, 4) || '-' ||
        substr(hex(id), 17, 4) || '-' || substr(hex(id), 21)) AS id,  -- the exchange's
  date(ifnull(day * 86400, ended_us / 1000000), 'unixepoch') AS day,
  CASE WHEN energy_nj IS NOT NULL THEN printf('%d.%09d', energy_nj / 1000000000, energy_nj % 1000000000) END
                                                        AS energy_joules,  -- NULL: not known
  CASE WHEN gpu_ns IS NOT NULL THEN printf('%d.%09d', gpu_ns / 1000000000, gpu_ns % 1000000000) END
                                                        AS gpu_seconds,
  printf('%d.%012d', gpu_hours_pico / 1000000000000, gpu_hours_pico % 1000000000000) AS gpu_hours_usd,
  printf('%d.%012d', gpu_energy_pico / 1000000000000, gpu_energy_pico % 1000000000000) AS gpu_energy_usd
FROM energy;

-- The daily GPU use without an exchange: idle, or unattributed because the exchange is not known.
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

-- The unit prices by which exchanges were charged, for a million tokens and for one request. NULL: the price book has
-- none.
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
  printf('%d.%012d', per_request / 1000000000000, per_request % 1000000000000) AS per_request,
  CASE WHEN input_image IS NOT NULL THEN printf('%d.%06d', input_image / 1000000, input_image % 1000000) END
                                                        AS input_image,
  CASE WHEN input_video IS NOT NULL THEN printf('%d.%06d', input_video / 1000000, input_video % 1000000) END
                                                        AS input_video,
  CASE WHEN output_image IS NOT NULL THEN printf('%d.%06d', output_image / 1000000, output_image % 1000000) END
                                                        AS output_image,
  CASE WHEN output_video IS NOT NULL THEN printf('%d.%06d', output_video / 1000000, output_video % 1000000) END
                                                        AS output_video,
  CASE WHEN input_cache_write_1h IS NOT NULL
       THEN printf('%d.%06d', input_cache_write_1h / 1000000, input_cache_write_1h % 1000000) END
                                                        AS input_cache_write_1h,
  CASE WHEN input_cached_audio IS NOT NULL
       THEN printf('%d.%06d', input_cached_audio / 1000000, input_cached_audio % 1000000) END
                                                        AS input_cached_audio,
  CASE WHEN input_cached_image IS NOT NULL
       THEN printf('%d.%06d', input_cached_image / 1000000, input_cached_image % 1000000) END
                                                        AS input_cached_image
FROM rate;

-- Later corrections of charges, with the actor.
CREATE VIEW corrections AS
SELECT
  strftime('%Y-%m-%dT%H:%M:%S', correction.made_us / 1000000, 'unixepoch') ||
    printf('.%06dZ', correction.made_us % 1000000)      AS made,
  act.who                                               AS who,
  act.what                                              AS what,
  lower(substr(hex(correction.exchange), 1, 8) || '-' || substr(hex(correction.exchange), 9, 4) || '-' ||
        substr(hex(correction.exchange), 13, 4) || '-' || substr(hex(correction.exchange), 17, 4) || '-' ||
        substr(hex(correction.exchange), 21))           AS exchange,
  date(ifnull(correction.day * 86400, correction.ended_us / 1000000), 'unixepoch') AS day,  -- of the exchange: the period of the charge
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

-- Times of which rows may be missing.
CREATE VIEW gaps AS
SELECT
  strftime('%Y-%m-%dT%H:%M:%SZ', from_us / 1000000, 'unixepoch') AS since,
  strftime('%Y-%m-%dT%H:%M:%SZ', until_us / 1000000, 'unixepoch') AS until,
  why                                                   AS why,
  lost_rows                                             AS lost_rows,    -- NULL: not known
  totals_kept                                           AS totals_kept,  -- 1: their totals are of class shed
  unpriced_rows                                         AS unpriced_rows, -- lost rows without a price
  CASE WHEN cost_high IS NOT NULL                       -- of the other lost rows; NULL: not known, or in the totals
       THEN printf('%d.%06d%06d', cost_high / 1000000, cost_high % 1000000, cost_low)
  END                                                   AS cost,
  currency                                              AS currency      -- NULL: not known, or the cost is 0
FROM gap;

-- The audit trail of the ledger.
CREATE VIEW audit AS
SELECT
  strftime('%Y-%m-%dT%H:%M:%SZ', at_us / 1000000, 'unixepoch') AS at,
  what                                                  AS what,
  who                                                   AS who,
  detail                                                AS detail  -- JSON
FROM act;
