// Plausible numbers of a tokenmeter, as a function of time, for the tests of the page without the program.

export const HOSTILE = [
  '<img src=x onerror="globalThis.pwned=1">',
  '=HYPERLINK("http://evil")',
  'a,"b"\r\nc',
  "\u202Egpj.exe",
  "x".repeat(200),
  '"} or vector(1) or {x="',
  "%2e%2e/#?&",
  "$tenant",
];

/** Returns the name as the page shows it: without characters that cannot be seen. */
export const visible = (name) => name.replace(/[\r\n\u202e]/g, "\ufffd");

const GPU_MEMORY = 80 * 2 ** 30;

const wave = (t, period, low, high, phase = 0) => {
  const noise = Math.sin(t * 12.9898 + phase) * 43758.5453;
  const mix = 0.5 + 0.4 * Math.sin((2 * Math.PI * t) / period + phase) + 0.1 * (2 * (noise - Math.floor(noise)) - 1);
  return low + (high - low) * Math.max(0, Math.min(1, mix));
};

/** Returns the point of a second; `part` scales a scope's share of the traffic. */
export function point(t, part = 1, phase = 0) {
  const inFlight = Math.round(wave(t, 420, 4, 58, phase) * part);
  const speed = 74 / (1 + (inFlight / 34) ** 2) + wave(t, 31, -1, 1, phase);
  return {
    output_tokens_per_second: Math.max(0, inFlight * speed * 0.93),
    input_tokens_per_second: inFlight * wave(t, 90, 120, 260, phase),
    in_flight: inFlight,
    exchanges_per_second: inFlight / 4,
    errors_per_second: Math.floor(t) % 97 === 0 ? 1 : 0,
    aborts_per_second: Math.floor(t) % 41 === 0 ? 2 : 0,
    first_token_p50_seconds: inFlight ? 0.08 + inFlight * 0.004 : null,
    first_token_p99_seconds: inFlight ? 0.16 + inFlight * 0.011 + wave(t, 17, 0, 0.05, phase) : null,
    request_tokens_per_second_p50: inFlight ? speed : null,
    spend_per_hour: inFlight * wave(t, 60, 0.02, 0.05, phase),
    watts: part === 1 ? 240 + inFlight * 7 : null,
  };
}

/** Returns the current numbers: those of the last 10 and 60 seconds. */
export function recent(t, part = 1, phase = 0) {
  const last = (seconds) => Array.from({ length: seconds }, (_, at) => point(t - at, part, phase));
  const sum = (points, name) => points.reduce((all, found) => all + found[name], 0);
  return {
    output_tokens_per_second_10s: sum(last(10), "output_tokens_per_second") / 10,
    input_tokens_per_second_10s: sum(last(10), "input_tokens_per_second") / 10,
    exchanges_60s: Math.round(sum(last(60), "exchanges_per_second")),
    errors_60s: sum(last(60), "errors_per_second"),
    aborts_60s: sum(last(60), "aborts_per_second"),
    spend_per_hour_60s: sum(last(60), "spend_per_hour") / 60,
  };
}

function totals(seconds, part, provenance, currency) {
  const exchanges = Math.floor(seconds * 7 * part);
  return {
    exchanges,
    errors: Math.floor(exchanges / 620),
    aborts: Math.floor(exchanges / 140),
    tokens: {
      input: exchanges * 610,
      input_cached: exchanges * 230,
      output: exchanges * 212,
      output_reasoning: exchanges * 31,
    },
    output_provenance: provenance,
    live_output_tokens: provenance ? exchanges * 243 : null,
    spend: currency ? exchanges * 0.00031 : null,
    unpriced_exchanges: currency && provenance ? 0 : provenance ? exchanges : null,
    cost_per_million_tokens: currency ? 0.286 : null,
    goodput_ratio: exchanges ? 0.9832 : null,
  };
}

const provenanceOf = (n, frames) => ({
  reported: Math.round(n * (0.94 - frames)),
  running: Math.round(n * 0.06),
  frames: Math.round(n * frames),
});
const isTenantSilent = {
  in_flight: null,
  first_token_p50_seconds: null,
  first_token_p99_seconds: null,
  request_tokens_per_second_p50: null,
  watts: null,
};

const SILENT = Object.fromEntries(
  Object.entries(point(0, 0)).map(([name, value]) => [name, value === null ? null : 0]),
);

const SILENT_RECENT = Object.fromEntries(Object.keys(recent(0, 0)).map((name) => [name, 0]));

/** The defaults of a world; a test overrides members. */
export const DEFAULTS = {
  models: [
    ["qwen3-8b", 0.55, 0],
    ["llama-3.3-70b-instruct", 0.3, 0.021],
    ["gemma-3-4b", 0.15, 0.24],
  ],
  tenants: [
    ["research", 0.4],
    ["support-bot", 0.25],
    ["trial-7", 0.15],
    ["batch", 0.12],
    ["default", 0.08],
  ],
  currency: "USD",
  isIdle: false,
  gpus: 2,
  readiness: { state: "ready" },
  upstream: {},
  ledger: true,
  objectives: true,
  startedAgo: 5400,
};

export function now(at, world) {
  const t = at / 1000;
  const ago = world.isIdle ? 0 : world.startedAgo + (t % 3600);
  const money = world.currency;
  const silent = { ...SILENT, spend_per_hour: money ? 0 : null };
  const of = (part, phase) => {
    const found = world.isIdle ? silent : point(t, part, phase);
    return money ? found : { ...found, spend_per_hour: null };
  };
  const near = (part, phase) => {
    const found = world.isIdle ? SILENT_RECENT : recent(t, part, phase);
    return money ? found : { ...found, spend_per_hour_60s: null };
  };
  const scope = (name, part, phase, sources) => ({
    name,
    point: of(part, phase),
    recent: near(part, phase),
    totals: totals(ago, part, sources, money),
    budget: null,
  });
  const models = world.isIdle
    ? []
    : world.models.map(([name, part, frames], at) => scope(name, part, at, provenanceOf(ago * part * 1500, frames)));
  const tenants = world.isIdle
    ? []
    : world.tenants.map(([name, part], at) => ({
        ...scope(name, part, at, null),
        point: { ...of(part, at), ...isTenantSilent },
        budget:
          at % 2 || !money
            ? null
            : { period: "month", limit: 40 / (at + 1), used: at === 2 ? 14.4 : 11.3, forecast: at === 0 ? 31.5 : null },
      }));
  const all = scope("", 1, 0, provenanceOf(ago * 1500, 0.04));
  const sum = all.totals.exchanges;
  return {
    version: "1.4.0",
    at_unix_ms: at,
    started_unix_ms: at - world.startedAgo * 1000,
    readiness: world.readiness,
    currency: money,
    upstreams: [
      {
        name: "chat",
        listen: "127.0.0.1:9800",
        url: "http://127.0.0.1:8000",
        up: true,
        verified: null,
        fault: null,
        engine: {
          kind: "vllm",
          up: true,
          read_unix_ms: at - 1000 * ((Math.floor(t) % 15) + 1),
          running_requests: all.point.in_flight ?? 0,
          waiting_requests: Math.max(0, (all.point.in_flight ?? 0) - 40),
          kv_cache_usage_ratio: world.isIdle ? 0 : wave(t, 420, 0.1, 0.93),
          prefix_cache_hit_ratio: 0.27,
        },
        ...world.upstream,
      },
    ],
    objectives: world.objectives
      ? [{ name: "chat", first_token_seconds: 1, request_tokens_per_second: 30, target_ratio: 0.99 }]
      : [],
    all,
    models,
    tenants,
    unlisted: world.unlisted ?? 0,
    endings: world.isIdle
      ? {}
      : {
          complete: Math.floor(sum * 0.93),
          length: Math.floor(sum * 0.06),
          client_abort: all.totals.aborts,
          error_status: Math.floor(all.totals.errors / 2),
          upstream_cut: Math.ceil(all.totals.errors / 2),
        },
    gpus: Array.from({ length: world.gpus }, (_, at) => ({
      id: String(at),
      name: world.hostile ?? "NVIDIA H100 80GB HBM3",
      up: true,
      utilization_ratio: wave(t, 420, 0.2, 0.99, at / 3),
      memory_used_bytes: GPU_MEMORY * 0.87,
      memory_limit_bytes: GPU_MEMORY,
      power_watts: wave(t, 420, 130, 640, at / 3),
      power_limit_watts: 700,
      temperature_celsius: 61 + at,
    })),
    energy: world.gpus
      ? { attributed_joules: 2.1e6, idle_joules: 4.4e5, unattributed_joules: 6e4, pending_joules: 1.1e4 }
      : null,
    meter: {
      overhead_p50_seconds: 0.000041,
      overhead_p99_seconds: 0.00031,
      cpu_cores: 0.021,
      resident_bytes: 27.4 * 2 ** 20,
      connections: (all.point.in_flight ?? 0) + 6,
      dropped: world.dropped ?? 0,
      passthrough: 3,
      refused: 12,
    },
    ledger: world.ledger ? { up: true, rows: sum, commit_lag_seconds: 0.4, lost_rows: 0 } : null,
  };
}

/** Returns a history, or `null` for a scope that does not exist. */
export function history(name, step, at, world) {
  const last = Math.floor(at / 1000 / step) * step;
  const [kind, rest] = [name.split(":", 1)[0], name.slice(name.indexOf(":") + 1)];
  const list = { model: world.models, tenant: world.tenants }[kind];
  const index = list ? list.findIndex(([own]) => own === rest) : 0;
  if (name !== "all" && (index < 0 || !list)) return null;
  const part = name === "all" ? 1 : list[index][1];
  const points = Math.min(step === 1 ? 900 : 1440, Math.floor(world.startedAgo / step));
  const series = {};
  for (let i = 0; i < points; i += 1) {
    const t = last - (points - 1 - i) * step;
    const found = world.isIdle ? { ...SILENT } : point(t, part, name === "all" ? 0 : index);
    if (!world.currency) found.spend_per_hour = null;
    if (kind === "tenant") Object.assign(found, isTenantSilent);
    for (const [key, value] of Object.entries(found)) (series[key] ??= []).push(value);
  }
  return { scope: name, step_seconds: step, last_unix_s: last, series };
}

const RANGES = [
  ["1", 1],
  ["2-4", 3],
  ["5-8", 6.5],
  ["9-16", 12],
  ["17-32", 24],
  ["33-64", 47],
];
const POSITIONS = ["1-64", "65-256", "257-1024", "1025-4096"];

export function curve(world) {
  if (world.isIdle) return { window_seconds: null, models: [] };
  const spread = (p50, low, high) => ({ count: 120, mean: p50, p50, p90: p50 * low, p99: p50 * high });
  return {
    window_seconds: null,
    models: world.models.map(([model], at) => ({
      model,
      upstream: "chat",
      by_concurrency: RANGES.slice(0, 6 - at).map(([concurrency, middle]) => {
        const speed = 74 / (1 + (middle / 34) ** 2);
        return {
          concurrency,
          concurrency_least: middle,
          concurrency_most: middle,
          exchanges: Math.round(900 / middle) * (5 - at),
          speed_tokens_per_second: spread(speed, 0.82, 0.64),
          aggregate_tokens_per_second_estimate: speed * middle,
          aggregate_concurrency: middle,
          first_token_seconds: spread(0.08 + middle * 0.004, 1.3, 2.4),
          prompt_tokens_per_second: spread(2000, 0.6, 0.3),
        };
      }),
      by_position: POSITIONS.map((position, i) => ({
        position,
        tokens: 51000 / (i + 1),
        seconds: (800 * (1 + i * 0.06)) / (i + 1),
        seconds_per_token: 0.0157 * (1 + i * 0.06),
        tokens_per_second: 63.7 / (1 + i * 0.06),
      })),
      knees: [
        world.objectives
          ? {
              objective: "chat",
              basis: "configured",
              tokens_per_second: 30,
              kept_up_to: "17-32",
              missed_at: "33-64",
              kept_again_at: [],
              words: "chat (30 tokens/s): kept up to 17-32 at once, no longer at 33-64",
              judged_exchanges: 812,
              met_exchanges: 790,
              target_ratio: 0.99,
            }
          : {
              objective: "chat",
              basis: "preset",
              tokens_per_second: 30,
              kept_up_to: "17-32",
              missed_at: "33-64",
              kept_again_at: [],
              words: "chat (30 tokens/s): kept up to 17-32 at once, no longer at 33-64",
              judged_exchanges: null,
              met_exchanges: null,
              target_ratio: null,
            },
      ],
    })),
  };
}

export function spend(world) {
  if (!world.ledger) return null;
  const days = Array.from({ length: 24 }, (_, at) => {
    const tenants = world.tenants.map(([name, part]) => ({
      name,
      cost: (part * (0.8 + 0.5 * Math.sin(at))).toFixed(9),
      exchanges: 1000,
      unpriced_exchanges: 0,
    }));
    return { day: `2026-11-${String(at + 1).padStart(2, "0")}`, cost: (0.8 + 0.5 * Math.sin(at)).toFixed(9), tenants };
  });
  const cost = days.reduce((sum, day) => sum + Number(day.cost), 0).toFixed(9);
  return {
    month: "2026-11",
    time_zone: "UTC",
    since_unix_ms: Date.UTC(2026, 10, 1),
    until_unix_ms: Date.UTC(2026, 11, 1),
    today: "2026-11-24",
    currency: world.currency,
    cost,
    days: world.currency ? days : [],
    included: null,
  };
}
