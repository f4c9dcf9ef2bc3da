-- A file of version 1 that is only read, as version 2 has its tables: views of the connection that stand
-- before the tables of their names. In memory, because nothing may be writable.
PRAGMA temp_store = MEMORY;
CREATE TEMP VIEW exchange AS
SELECT *, NULL AS role, NULL AS request_id, NULL AS upstream_attempts, NULL AS cached_excess,
       NULL AS input_image, NULL AS input_video, NULL AS output_image, NULL AS output_video
FROM main.exchange;
CREATE TEMP VIEW rate AS
SELECT *, NULL AS input_image, NULL AS input_video, NULL AS output_image, NULL AS output_video FROM main.rate;
CREATE TEMP VIEW energy AS SELECT *, NULL AS role FROM main.energy;
CREATE TEMP VIEW line AS
SELECT *, NULL AS input_image, NULL AS input_video, NULL AS output_image, NULL AS output_video FROM main.line;
