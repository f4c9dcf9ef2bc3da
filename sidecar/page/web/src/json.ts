// The JSON of the admin listener, as in the crate `live`; `null` means not known.

export type Maybe = number | null;

export interface Point {
  output_tokens_per_second: Maybe;
  input_tokens_per_second: Maybe;
  in_flight: Maybe;
  exchanges_per_second: Maybe;
  errors_per_second: Maybe;
  aborts_per_second: Maybe;
  first_token_p50_seconds: Maybe;
  first_token_p99_seconds: Maybe;
  request_tokens_per_second_p50: Maybe;
  spend_per_hour: Maybe;
  watts: Maybe;
}

export type SeriesName = keyof Point;

/** The current rates and counts, of the last 10 or 60 seconds. */
export interface Recent {
  output_tokens_per_second_10s: Maybe;
  input_tokens_per_second_10s: Maybe;
  exchanges_60s: Maybe;
  errors_60s: Maybe;
  aborts_60s: Maybe;
  spend_per_hour_60s: Maybe;
}

export interface Totals {
  exchanges: number;
  errors: number;
  aborts: number;
  tokens: Record<string, number>;
  output_provenance: Record<string, number> | null;
  live_output_tokens: Maybe;
  spend: Maybe;
  unpriced_exchanges: Maybe;
  cost_per_million_tokens: Maybe;
  goodput_ratio: Maybe;
}

export interface Budget {
  period: string;
  limit: number;
  used: number;
  forecast: Maybe;
}

export interface Scope {
  name: string;
  point: Point;
  recent: Recent;
  totals: Totals;
  budget: Budget | null;
}

export interface Engine {
  kind: string | null;
  up: boolean;
  read_unix_ms: Maybe;
  running_requests: Maybe;
  waiting_requests: Maybe;
  kv_cache_usage_ratio: Maybe;
  prefix_cache_hit_ratio: Maybe;
}

export interface Upstream {
  name: string;
  listen: string;
  url: string;
  up: boolean | null;
  /** False if its certificate is not verified; `null` without TLS. */
  verified: boolean | null;
  fault: string | null;
  engine: Engine | null;
}

export interface Objective {
  name: string;
  first_token_seconds: Maybe;
  request_tokens_per_second: Maybe;
  target_ratio: Maybe;
}

export interface Gpu {
  id: string;
  name: string;
  up: boolean;
  utilization_ratio: Maybe;
  memory_used_bytes: Maybe;
  memory_limit_bytes: Maybe;
  power_watts: Maybe;
  power_limit_watts: Maybe;
  temperature_celsius: Maybe;
}

export interface Energy {
  attributed_joules: number;
  idle_joules: number;
  unattributed_joules: number;
  pending_joules: number;
}

export interface MeterCost {
  overhead_p50_seconds: Maybe;
  overhead_p99_seconds: Maybe;
  cpu_cores: Maybe;
  resident_bytes: Maybe;
  connections: number;
  dropped: number;
  passthrough: number;
  refused: number;
}

export interface LedgerState {
  up: boolean;
  rows: number;
  commit_lag_seconds: number;
  lost_rows: number;
}

export type Readiness =
  { state: "ready" } | { state: "impaired"; reasons: string[] } | { state: "not_ready"; reasons: string[] };

export interface Now {
  version: string;
  at_unix_ms: number;
  started_unix_ms: number;
  readiness: Readiness;
  currency: string | null;
  upstreams: Upstream[];
  objectives: Objective[];
  all: Scope;
  models: Scope[];
  tenants: Scope[];
  unlisted: number;
  endings: Record<string, number>;
  gpus: Gpu[];
  energy: Energy | null;
  meter: MeterCost;
  ledger: LedgerState | null;
}

export interface History {
  scope: string;
  step_seconds: number;
  last_unix_s: number;
  series: Partial<Record<SeriesName, Maybe[]>>;
}

export interface Distribution {
  count: number;
  mean: Maybe;
  p50: Maybe;
  p90: Maybe;
  p99: Maybe;
}

export interface ConcurrencyPoint {
  concurrency: string;
  concurrency_least: number;
  concurrency_most: Maybe;
  exchanges: number;
  speed_tokens_per_second: Distribution;
  aggregate_tokens_per_second_estimate: Maybe;
  aggregate_concurrency: number;
  first_token_seconds: Distribution;
  prompt_tokens_per_second: Distribution;
}

export interface PositionSpeed {
  position: string;
  tokens: number;
  seconds: Maybe;
  seconds_per_token: Maybe;
  tokens_per_second: Maybe;
}

export interface Knee {
  objective: string;
  basis: "configured" | "preset";
  tokens_per_second: number;
  kept_up_to: string | null;
  missed_at: string | null;
  kept_again_at: string[];
  words: string;
  judged_exchanges: Maybe;
  met_exchanges: Maybe;
  target_ratio: Maybe;
}

export interface ModelCurves {
  model: string;
  upstream: string | null;
  by_concurrency: ConcurrencyPoint[];
  by_position: PositionSpeed[];
  knees: Knee[];
}

export interface Curves {
  window_seconds: Maybe;
  models: ModelCurves[];
}

export interface TenantSpend {
  name: string;
  cost: string;
  exchanges: number;
  unpriced_exchanges: number;
}

export interface MonthSpend {
  month: string;
  /** The time zone of its days. */
  time_zone: string;
  since_unix_ms: number;
  until_unix_ms: number;
  /** The day on which the ledger was read. */
  today: string;
  currency: string | null;
  cost: string;
  days: { day: string; cost: string; tenants: TenantSpend[] }[];
  /** The spend since the start that the sums include; `null` if it is not known. */
  included: { all: number; tenants: Record<string, number> } | null;
}
