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
