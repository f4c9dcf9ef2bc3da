-- The ledger's tables, version 1. Times are microseconds since 1970 in UTC, days are days since then;
-- money is in pico-units (10^-12) of the currency its column or its rate names. Whoever reads with SQL
-- reads the views, whose columns do not change; the tables may, with the version in `user_version`.
--
-- Every row ends in a mark: the first eight bytes of a BLAKE3 hash of the table's name and the columns
-- before it. Whoever reads compares; a sum is never made of a row whose mark is wrong. That no row is
-- missing is said by `seal`.

-- One row for each exchange.
CREATE TABLE exchange (
  seq               INTEGER PRIMARY KEY,  -- order of entry in this file; what is shipped goes by it
  id                BLOB    NOT NULL UNIQUE CHECK (length(id) = 16),  -- UUIDv7
  started_us        INTEGER NOT NULL,
  ended_us          INTEGER NOT NULL,
  tenant            TEXT    NOT NULL,
  principal         TEXT,
  consumer          TEXT,
  upstream          TEXT    NOT NULL,
  provider          TEXT    NOT NULL,
  dialect           TEXT    NOT NULL,
  model             TEXT    NOT NULL,
  response_model    TEXT,
  response_id       TEXT,
  service_tier      TEXT,
  ending            TEXT    NOT NULL,
  status            INTEGER NOT NULL,
  streamed          INTEGER NOT NULL CHECK (streamed IN (0, 1)),
  input             INTEGER NOT NULL,  -- types are disjoint: their sum is the total
  input_cached      INTEGER NOT NULL,
  input_cache_write INTEGER NOT NULL,
  input_audio       INTEGER NOT NULL,
  output            INTEGER NOT NULL,
  output_reasoning  INTEGER NOT NULL,
  output_audio      INTEGER NOT NULL,
  input_provenance  TEXT    NOT NULL,
  output_provenance TEXT    NOT NULL,
  duration_us       INTEGER NOT NULL,
  first_token_us    INTEGER,
  rate              BLOB REFERENCES rate (id),
  cost_pico         INTEGER,
  unpriced          TEXT,  -- why there is no rate
  trace             BLOB,
  mark              INTEGER NOT NULL,
  CHECK ((cost_pico IS NULL) = (rate IS NULL) AND (rate IS NULL) <> (unpriced IS NULL))
) STRICT;

-- The unit prices that rows were charged by; the id is a hash of all else.
CREATE TABLE rate (
  id                BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
  version           TEXT NOT NULL,
  book              TEXT NOT NULL,
  entry             TEXT NOT NULL,
  tier              TEXT NOT NULL,
  above_input_tokens INTEGER NOT NULL,
  currency          TEXT NOT NULL CHECK (length(currency) = 3),
  input             INTEGER,  -- pico-units for one token of the type
  input_cached      INTEGER,
  input_cache_write INTEGER,
  input_audio       INTEGER,
  output            INTEGER,
  output_reasoning  INTEGER,
  output_audio      INTEGER,
  per_request       INTEGER NOT NULL,
  mark              INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What an exchange used of the GPUs, known once the sample that covers its end has closed. Where the
-- exchange itself is not in this file, its line's keys are said here; else they are NULL.
CREATE TABLE energy (
  seq               INTEGER PRIMARY KEY,
  id                BLOB    NOT NULL UNIQUE CHECK (length(id) = 16),  -- the exchange's
  ended_us          INTEGER NOT NULL,
  energy_nj         INTEGER,
  gpu_ns            INTEGER,
  gpu_hours_pico    INTEGER NOT NULL,  -- pico-dollars
  gpu_energy_pico   INTEGER NOT NULL,
  class             TEXT    NOT NULL,  -- of the line it was added to
  tenant            TEXT,
  principal         TEXT,
  upstream          TEXT,
  provider          TEXT,
  model             TEXT,
  ending            TEXT,
  input_provenance  TEXT,
  output_provenance TEXT,
  rate              BLOB,
  mark              INTEGER NOT NULL
) STRICT;

-- Totals of a day's exchanges that have every key in common; written with the rows they sum, in one
-- transaction. A sum is high * 10^6 + low, 0 <= low < 10^6, because SQLite's integers end at 9.2 million
-- units of money.
CREATE TABLE line (
  day               INTEGER NOT NULL,
  tenant            TEXT NOT NULL,
  principal         TEXT NOT NULL,  -- '' for none: keys of a primary key are not null
  upstream          TEXT NOT NULL,
  provider          TEXT NOT NULL,
  model             TEXT NOT NULL,
  ending            TEXT NOT NULL,
  input_provenance  TEXT NOT NULL,
  output_provenance TEXT NOT NULL,
  rate              BLOB NOT NULL,  -- x'' for unpriced
  class             TEXT NOT NULL CHECK (class IN ('usage', 'shed', 'correction')),
  exchanges         INTEGER NOT NULL,
  input             INTEGER NOT NULL,
  input_cached      INTEGER NOT NULL,
  input_cache_write INTEGER NOT NULL,
  input_audio       INTEGER NOT NULL,
  output            INTEGER NOT NULL,
  output_reasoning  INTEGER NOT NULL,
  output_audio      INTEGER NOT NULL,
  cost_high         INTEGER NOT NULL,
  cost_low          INTEGER NOT NULL,
  energy_exchanges  INTEGER NOT NULL,
  energy_high       INTEGER NOT NULL,  -- nanojoules
  energy_low        INTEGER NOT NULL,
  gpu_ns_high       INTEGER NOT NULL,
  gpu_ns_low        INTEGER NOT NULL,
  gpu_hours_high    INTEGER NOT NULL,
  gpu_hours_low     INTEGER NOT NULL,
  gpu_energy_high   INTEGER NOT NULL,
  gpu_energy_low    INTEGER NOT NULL,
  mark              INTEGER NOT NULL,
  PRIMARY KEY (day, tenant, principal, upstream, provider, model, ending, input_provenance,
               output_provenance, rate, class)
) STRICT, WITHOUT ROWID;

-- What GPUs did for nobody, or for nobody known, by day.
CREATE TABLE device (
  day               INTEGER NOT NULL,
  hw_id             TEXT NOT NULL,
  share             TEXT NOT NULL CHECK (share IN ('idle', 'unattributed')),
  energy_high       INTEGER NOT NULL,
  energy_low        INTEGER NOT NULL,
  gpu_ns_high       INTEGER NOT NULL,
  gpu_ns_low        INTEGER NOT NULL,
  gpu_hours_high    INTEGER NOT NULL,
  gpu_hours_low     INTEGER NOT NULL,
  gpu_energy_high   INTEGER NOT NULL,
  gpu_energy_low    INTEGER NOT NULL,
  mark              INTEGER NOT NULL,
  PRIMARY KEY (day, hw_id, share)
) STRICT, WITHOUT ROWID;

-- What was changed after the fact. A row is never changed; a correction stands beside it.
CREATE TABLE correction (
  seq               INTEGER PRIMARY KEY,
  id                BLOB NOT NULL UNIQUE CHECK (length(id) = 16),  -- UUIDv7
  made_us           INTEGER NOT NULL,
  act               INTEGER NOT NULL REFERENCES act (seq),
  exchange          BLOB NOT NULL,  -- whose charge is corrected
  ended_us          INTEGER NOT NULL,  -- the exchange's: the period of the charge
  tenant            TEXT NOT NULL,
  principal         TEXT,
  upstream          TEXT NOT NULL,
  provider          TEXT NOT NULL,
  model             TEXT NOT NULL,
  ending            TEXT NOT NULL,
  input_provenance  TEXT NOT NULL,
  output_provenance TEXT NOT NULL,
  rate              BLOB NOT NULL REFERENCES rate (id),  -- the rate that holds from now on
  unpriced          INTEGER NOT NULL CHECK (unpriced IN (0, 1)),  -- whether it had no price before
  delta_pico        INTEGER NOT NULL,
  mark              INTEGER NOT NULL
) STRICT;

-- Who did what to the ledger: opened, closed, repriced, compacted.
CREATE TABLE act (
  seq               INTEGER PRIMARY KEY,
  at_us             INTEGER NOT NULL,
  what              TEXT NOT NULL,
  who               TEXT NOT NULL,
  detail            TEXT NOT NULL,  -- JSON
  mark              INTEGER NOT NULL
) STRICT;

-- Times of which nothing is known, because the process or the disk was gone.
CREATE TABLE gap (
  seq               INTEGER PRIMARY KEY,
  from_us           INTEGER NOT NULL,  -- the last sign of life
  until_us          INTEGER NOT NULL,
  why               TEXT NOT NULL,
  lost_rows         INTEGER,  -- NULL: nobody can say
  totals_kept       INTEGER NOT NULL CHECK (totals_kept IN (0, 1)),
  mark              INTEGER NOT NULL
) STRICT;

-- What makes a missing row show. Of a table whose rows are numbered: how many were ever entered, and a
-- chain in which each row's hash is hashed with the digest before it, begun with 32 zero bytes. Of one
-- whose rows have a key: how many there are, and the sum of their marks (mod 2^64, the first eight bytes,
-- little-endian; the rest is zero).
CREATE TABLE seal (
  name              TEXT    NOT NULL PRIMARY KEY,
  entered           INTEGER NOT NULL,
  digest            BLOB    NOT NULL CHECK (length(digest) = 32),
  mark              INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Facts about this file: the month that it is of, when it was last alive, whether it is closed.
CREATE TABLE fact (
  name              TEXT    NOT NULL PRIMARY KEY,
  value             ANY,
  mark              INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
