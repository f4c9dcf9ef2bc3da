-- The table digests, by which an absent or added row is found. For a table of numbered rows: the number of rows ever
-- entered, and a hash chain, in which the hash of each row is hashed with the digest before it, from 32 zero bytes.
-- For a table whose rows have a key: the number of rows, and the sum of their marks (mod 2^64, in the first eight
-- bytes, little-endian; the others are zero). A mark is a row's checksum.
CREATE TABLE seal (
  name              TEXT    NOT NULL PRIMARY KEY,
  entered           INTEGER NOT NULL,
  digest            BLOB    NOT NULL CHECK (length(digest) = 32),
  mark              INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Facts about this file, such as its id, its month, its last write, and the time at which it was closed.
CREATE TABLE fact (
  name              TEXT    NOT NULL PRIMARY KEY,
  value             ANY,
  mark              INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The rows whose server's counts contradict one another, which a report notes.
CREATE INDEX exchange_disagreement ON exchange (ended_us) WHERE usage_disagreement IS NOT NULL;
