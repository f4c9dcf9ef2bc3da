-- A ledger of October 2026 as a program of version 1 wrote it, with that version's tables and views: the rows 0 to 23
-- of `testing::row`, every second with the energy that it used, a gap of two lost rows, and a repricing of model-0.
PRAGMA foreign_keys = OFF;
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA application_id = 1953328231;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE act (
  seq               INTEGER PRIMARY KEY,
  at_us             INTEGER NOT NULL,
  what              TEXT NOT NULL,
  who               TEXT NOT NULL,
  detail            TEXT NOT NULL,  -- JSON
  mark              INTEGER NOT NULL
) STRICT;
INSERT INTO "act" VALUES(1,1792065600000000,'opened','tokenmeter 0.1.0','{}',-4701398663723409673);
INSERT INTO "act" VALUES(2,1792065600000000,'repriced','ann','{"book":"22ffa9a60075e5d6719ee04fcf2b137d5fb57927ec11a1c24312bf227f56fc5d","corrections":12,"currency":"USD","delta_pico":"317999990","model":null,"of_after_pico":"318000000","of_before_pico":"10","of_corrections":12,"old_books":["b00c"],"part":1,"since_us":-9223372036854775808,"until_us":9223372036854775807,"version":"second"}',6471660348748633101);
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
INSERT INTO "correction" VALUES(1,X'01A13F6EFA0070A2B758F7BE1EE910A6',1792065600000000,2,X'01A13F6EFA0070008000000000000000',1792065600000000,'tenant-0','key-1','default','vllm','model-0','complete','reported','frames',X'81DCC1EACBDBCA387C8C707C30007FDC',1,2000000,4695854674320331325);
INSERT INTO "correction" VALUES(2,X'01A13F6EFA007D22BE6BF23E5215EA2D',1792065600000000,2,X'01A13F6EFA0070008000000000000002',1792065600000002,'tenant-2','key-1','default','vllm','model-0','complete','reported','reported',X'81DCC1EACBDBCA387C8C707C30007FDC',0,7999999,-4516940917460909547);
INSERT INTO "correction" VALUES(3,X'01A13F6EFA007815A8B224162119EE79',1792065600000000,2,X'01A13F6EFA0070008000000000000004',1792065600000004,'tenant-1','key-1','default','vllm','model-0','complete','reported','reported',X'81DCC1EACBDBCA387C8C707C30007FDC',0,13999999,-7180635621241391995);
INSERT INTO "correction" VALUES(4,X'01A13F6EFA007C888752E41BF5C5F537',1792065600000000,2,X'01A13F6EFA0070008000000000000006',1792065600000006,'tenant-0','key-1','default','vllm','model-0','complete','reported','reported',X'81DCC1EACBDBCA387C8C707C30007FDC',0,19999999,3142836143610270720);
INSERT INTO "correction" VALUES(5,X'01A13F6EFA007A40BF5FBBB8C98B20FC',1792065600000000,2,X'01A13F6EFA0070008000000000000008',1792065600000008,'tenant-2','key-1','default','vllm','model-0','complete','reported','reported',X'81DCC1EACBDBCA387C8C707C30007FDC',0,25999999,2704267862530811872);
INSERT INTO "correction" VALUES(6,X'01A13F6EFA007BB9911AA8E24B6AF79B',1792065600000000,2,X'01A13F6EFA007000800000000000000A',1792065600000010,'tenant-1','key-1','default','vllm','model-0','complete','reported','frames',X'81DCC1EACBDBCA387C8C707C30007FDC',0,31999999,-7243351130295332743);
INSERT INTO "correction" VALUES(7,X'01A13F6EFA0073219D4C78303A8A0018',1792065600000000,2,X'01A13F6EFA007000800000000000000C',1792065600000012,'tenant-0','key-1','default','vllm','model-0','complete','reported','reported',X'81DCC1EACBDBCA387C8C707C30007FDC',0,37999999,-2072181915402985959);
INSERT INTO "correction" VALUES(8,X'01A13F6EFA007F49ADB740D985B2AEAC',1792065600000000,2,X'01A13F6EFA007000800000000000000E',1792065600000014,'tenant-2','key-1','default','vllm','model-0','complete','reported','reported',X'81DCC1EACBDBCA387C8C707C30007FDC',1,44000000,-8249230269909818243);
INSERT INTO "correction" VALUES(9,X'01A13F6EFA007243916527E1DFFD5408',1792065600000000,2,X'01A13F6EFA0070008000000000000010',1792065600000016,'tenant-1','key-1','default','vllm','model-0','complete','reported','reported',X'81DCC1EACBDBCA387C8C707C30007FDC',0,49999999,7808150782458343);
INSERT INTO "correction" VALUES(10,X'01A13F6EFA007A81BD3D4D791891E8B4',1792065600000000,2,X'01A13F6EFA0070008000000000000012',1792065600000018,'tenant-0','key-1','default','vllm','model-0','complete','reported','reported',X'81DCC1EACBDBCA387C8C707C30007FDC',0,21999999,7074551631451740582);
INSERT INTO "correction" VALUES(11,X'01A13F6EFA0070318A4631E3D3E94DF4',1792065600000000,2,X'01A13F6EFA0070008000000000000014',1792065600000020,'tenant-2','key-1','default','vllm','model-0','complete','reported','frames',X'81DCC1EACBDBCA387C8C707C30007FDC',0,27999999,3387617570761598842);
INSERT INTO "correction" VALUES(12,X'01A13F6EFA007A4CA0F6F4A17C1298DE',1792065600000000,2,X'01A13F6EFA0070008000000000000016',1792065600000022,'tenant-1','key-1','default','vllm','model-0','complete','reported','reported',X'81DCC1EACBDBCA387C8C707C30007FDC',0,33999999,-1079053590951857486);
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
INSERT INTO "energy" VALUES(1,X'01A13F6EFA0070008000000000000000',1792065600000000,0,1,3,4,'usage',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,7275622403755608053);
INSERT INTO "energy" VALUES(2,X'01A13F6EFA0070008000000000000002',1792065600000002,20,3,3,4,'usage',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,565835305485666904);
INSERT INTO "energy" VALUES(3,X'01A13F6EFA0070008000000000000004',1792065600000004,40,5,3,4,'usage',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,7176159225413748012);
INSERT INTO "energy" VALUES(4,X'01A13F6EFA0070008000000000000006',1792065600000006,60,7,3,4,'usage',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,-3456262413680459018);
INSERT INTO "energy" VALUES(5,X'01A13F6EFA0070008000000000000008',1792065600000008,80,9,3,4,'usage',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,-567171180252691244);
INSERT INTO "energy" VALUES(6,X'01A13F6EFA007000800000000000000A',1792065600000010,100,11,3,4,'usage',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,-3295440521828255141);
INSERT INTO "energy" VALUES(7,X'01A13F6EFA007000800000000000000C',1792065600000012,120,13,3,4,'usage',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,-3165360512595569756);
INSERT INTO "energy" VALUES(8,X'01A13F6EFA007000800000000000000E',1792065600000014,140,15,3,4,'usage',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,-5240851520786120497);
INSERT INTO "energy" VALUES(9,X'01A13F6EFA0070008000000000000010',1792065600000016,160,17,3,4,'usage',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,-4037327968089252259);
INSERT INTO "energy" VALUES(10,X'01A13F6EFA0070008000000000000012',1792065600000018,180,19,3,4,'usage',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,2562712237371088352);
INSERT INTO "energy" VALUES(11,X'01A13F6EFA0070008000000000000014',1792065600000020,200,21,3,4,'usage',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,-8286852612433942544);
INSERT INTO "energy" VALUES(12,X'01A13F6EFA0070008000000000000016',1792065600000022,220,23,3,4,'usage',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,-4668599665019428227);
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
INSERT INTO "exchange" VALUES(1,X'01A13F6EFA0070008000000000000000',1792065599995000,1792065600000000,'tenant-0','key-1',NULL,'default','vllm','openai_chat','model-0','m','chatcmpl-0',NULL,'complete',200,1,0,0,0,0,1,0,0,'reported','frames',5000,100,NULL,NULL,'model',NULL,5695894876821542878);
INSERT INTO "exchange" VALUES(2,X'01A13F6EFA0070008000000000000001',1792065599995000,1792065600000001,'tenant-1',NULL,NULL,'default','vllm','openai_chat','model-1','m','chatcmpl-1',NULL,'complete',200,0,1,0,0,0,2,0,0,'reported','reported',5000,100,X'01000000000000000707070707070707',1000002,NULL,NULL,7365660010676655245);
INSERT INTO "exchange" VALUES(3,X'01A13F6EFA0070008000000000000002',1792065599995000,1792065600000002,'tenant-2','key-1',NULL,'default','vllm','openai_chat','model-0','m','chatcmpl-2',NULL,'complete',200,1,2,0,0,0,3,0,0,'reported','reported',5000,100,X'00000000000000000707070707070707',1,NULL,NULL,9130416470783009163);
INSERT INTO "exchange" VALUES(4,X'01A13F6EFA0070008000000000000003',1792065599995000,1792065600000003,'tenant-0',NULL,NULL,'default','vllm','openai_chat','model-1','m','chatcmpl-3',NULL,'complete',200,0,3,0,0,0,4,0,0,'reported','reported',5000,100,X'01000000000000000707070707070707',1000002,NULL,NULL,-8672156241664707335);
INSERT INTO "exchange" VALUES(5,X'01A13F6EFA0070008000000000000004',1792065599995000,1792065600000004,'tenant-1','key-1',NULL,'default','vllm','openai_chat','model-0','m','chatcmpl-4',NULL,'complete',200,1,4,0,0,0,5,0,0,'reported','reported',5000,100,X'00000000000000000707070707070707',1,NULL,NULL,-5267735818197181577);
INSERT INTO "exchange" VALUES(6,X'01A13F6EFA0070008000000000000005',1792065599995000,1792065600000005,'tenant-2',NULL,NULL,'default','vllm','openai_chat','model-1','m','chatcmpl-5',NULL,'complete',200,0,5,0,0,0,6,0,0,'reported','frames',5000,100,X'01000000000000000707070707070707',1000002,NULL,NULL,6230201384612647707);
INSERT INTO "exchange" VALUES(7,X'01A13F6EFA0070008000000000000006',1792065599995000,1792065600000006,'tenant-0','key-1',NULL,'default','vllm','openai_chat','model-0','m','chatcmpl-6',NULL,'complete',200,1,6,0,0,0,7,0,0,'reported','reported',5000,100,X'00000000000000000707070707070707',1,NULL,NULL,207170388785142325);
INSERT INTO "exchange" VALUES(8,X'01A13F6EFA0070008000000000000007',1792065599995000,1792065600000007,'tenant-1',NULL,NULL,'default','vllm','openai_chat','model-1','m','chatcmpl-7',NULL,'complete',200,0,7,0,0,0,8,0,0,'reported','reported',5000,100,NULL,NULL,'model',NULL,7921499430357642055);
INSERT INTO "exchange" VALUES(9,X'01A13F6EFA0070008000000000000008',1792065599995000,1792065600000008,'tenant-2','key-1',NULL,'default','vllm','openai_chat','model-0','m','chatcmpl-8',NULL,'complete',200,1,8,0,0,0,9,0,0,'reported','reported',5000,100,X'00000000000000000707070707070707',1,NULL,NULL,7278482823819494127);
INSERT INTO "exchange" VALUES(10,X'01A13F6EFA0070008000000000000009',1792065599995000,1792065600000009,'tenant-0',NULL,NULL,'default','vllm','openai_chat','model-1','m','chatcmpl-9',NULL,'complete',200,0,9,0,0,0,10,0,0,'reported','reported',5000,100,X'01000000000000000707070707070707',1000002,NULL,NULL,-9169830663119957929);
INSERT INTO "exchange" VALUES(11,X'01A13F6EFA007000800000000000000A',1792065599995000,1792065600000010,'tenant-1','key-1',NULL,'default','vllm','openai_chat','model-0','m','chatcmpl-10',NULL,'complete',200,1,10,0,0,0,11,0,0,'reported','frames',5000,100,X'00000000000000000707070707070707',1,NULL,NULL,523419337193307550);
INSERT INTO "exchange" VALUES(12,X'01A13F6EFA007000800000000000000B',1792065599995000,1792065600000011,'tenant-2',NULL,NULL,'default','vllm','openai_chat','model-1','m','chatcmpl-11',NULL,'complete',200,0,11,0,0,0,12,0,0,'reported','reported',5000,100,X'01000000000000000707070707070707',1000002,NULL,NULL,-3840649734267638814);
INSERT INTO "exchange" VALUES(13,X'01A13F6EFA007000800000000000000C',1792065599995000,1792065600000012,'tenant-0','key-1',NULL,'default','vllm','openai_chat','model-0','m','chatcmpl-12',NULL,'complete',200,1,12,0,0,0,13,0,0,'reported','reported',5000,100,X'00000000000000000707070707070707',1,NULL,NULL,-2515859978765008164);
INSERT INTO "exchange" VALUES(14,X'01A13F6EFA007000800000000000000D',1792065599995000,1792065600000013,'tenant-1',NULL,NULL,'default','vllm','openai_chat','model-1','m','chatcmpl-13',NULL,'complete',200,0,13,0,0,0,14,0,0,'reported','reported',5000,100,X'01000000000000000707070707070707',1000002,NULL,NULL,-2802506144074609398);
INSERT INTO "exchange" VALUES(15,X'01A13F6EFA007000800000000000000E',1792065599995000,1792065600000014,'tenant-2','key-1',NULL,'default','vllm','openai_chat','model-0','m','chatcmpl-14',NULL,'complete',200,1,14,0,0,0,15,0,0,'reported','reported',5000,100,NULL,NULL,'model',NULL,8861238608735092319);
INSERT INTO "exchange" VALUES(16,X'01A13F6EFA007000800000000000000F',1792065599995000,1792065600000015,'tenant-0',NULL,NULL,'default','vllm','openai_chat','model-1','m','chatcmpl-15',NULL,'complete',200,0,15,0,0,0,16,0,0,'reported','frames',5000,100,X'01000000000000000707070707070707',1000002,NULL,NULL,-4762311191692500258);
INSERT INTO "exchange" VALUES(17,X'01A13F6EFA0070008000000000000010',1792065599995000,1792065600000016,'tenant-1','key-1',NULL,'default','vllm','openai_chat','model-0','m','chatcmpl-16',NULL,'complete',200,1,16,0,0,0,17,0,0,'reported','reported',5000,100,X'00000000000000000707070707070707',1,NULL,NULL,-7460067526748699317);
INSERT INTO "exchange" VALUES(18,X'01A13F6EFA0070008000000000000011',1792065599995000,1792065600000017,'tenant-2',NULL,NULL,'default','vllm','openai_chat','model-1','m','chatcmpl-17',NULL,'complete',200,0,17,0,0,0,1,0,0,'reported','reported',5000,100,X'01000000000000000707070707070707',1000002,NULL,NULL,-7455092978642646412);
INSERT INTO "exchange" VALUES(19,X'01A13F6EFA0070008000000000000012',1792065599995000,1792065600000018,'tenant-0','key-1',NULL,'default','vllm','openai_chat','model-0','m','chatcmpl-18',NULL,'complete',200,1,18,0,0,0,2,0,0,'reported','reported',5000,100,X'00000000000000000707070707070707',1,NULL,NULL,4016077033445757389);
INSERT INTO "exchange" VALUES(20,X'01A13F6EFA0070008000000000000013',1792065599995000,1792065600000019,'tenant-1',NULL,NULL,'default','vllm','openai_chat','model-1','m','chatcmpl-19',NULL,'complete',200,0,19,0,0,0,3,0,0,'reported','reported',5000,100,X'01000000000000000707070707070707',1000002,NULL,NULL,7147425790462732029);
INSERT INTO "exchange" VALUES(21,X'01A13F6EFA0070008000000000000014',1792065599995000,1792065600000020,'tenant-2','key-1',NULL,'default','vllm','openai_chat','model-0','m','chatcmpl-20',NULL,'complete',200,1,20,0,0,0,4,0,0,'reported','frames',5000,100,X'00000000000000000707070707070707',1,NULL,NULL,2768281428351045098);
INSERT INTO "exchange" VALUES(22,X'01A13F6EFA0070008000000000000015',1792065599995000,1792065600000021,'tenant-0',NULL,NULL,'default','vllm','openai_chat','model-1','m','chatcmpl-21',NULL,'complete',200,0,21,0,0,0,5,0,0,'reported','reported',5000,100,NULL,NULL,'model',NULL,-1732158545692231321);
INSERT INTO "exchange" VALUES(23,X'01A13F6EFA0070008000000000000016',1792065599995000,1792065600000022,'tenant-1','key-1',NULL,'default','vllm','openai_chat','model-0','m','chatcmpl-22',NULL,'complete',200,1,22,0,0,0,6,0,0,'reported','reported',5000,100,X'00000000000000000707070707070707',1,NULL,NULL,-4276412956851449424);
INSERT INTO "exchange" VALUES(24,X'01A13F6EFA0070008000000000000017',1792065599995000,1792065600000023,'tenant-2',NULL,NULL,'default','vllm','openai_chat','model-1','m','chatcmpl-23',NULL,'complete',200,0,23,0,0,0,7,0,0,'reported','reported',5000,100,X'01000000000000000707070707070707',1000002,NULL,NULL,5300823121594684007);
CREATE TABLE fact (
  name              TEXT    NOT NULL PRIMARY KEY,
  value             ANY,
  mark              INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "fact" VALUES('alive_us',1792065600000000,-3823133749361096478);
INSERT INTO "fact" VALUES('batch',X'02516B097BCA22BC0100000000000000',5779140632150250167);
INSERT INTO "fact" VALUES('clean',1,354558714227546803);
INSERT INTO "fact" VALUES('created_us',1792065600000000,-1408206717481990671);
INSERT INTO "fact" VALUES('instance',X'AD035EEF549002BE559E5CFF05DCD84B',-5137577901674276137);
INSERT INTO "fact" VALUES('month',681,-6965224360112128935);
CREATE TABLE gap (
  seq               INTEGER PRIMARY KEY,
  from_us           INTEGER NOT NULL,  -- the last sign of life
  until_us          INTEGER NOT NULL,
  why               TEXT NOT NULL,
  lost_rows         INTEGER,  -- NULL: nobody can say
  totals_kept       INTEGER NOT NULL CHECK (totals_kept IN (0, 1)),
  mark              INTEGER NOT NULL
) STRICT;
INSERT INTO "gap" VALUES(1,1792065600000000,1792065600000000,'lost',2,0,-4635535707235942895);
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
INSERT INTO "line" VALUES(20741,'tenant-0','','default','vllm','model-1','complete','reported','frames',X'01000000000000000707070707070707','usage',1,15,0,0,0,16,0,0,1,2,0,0,0,0,0,0,0,0,0,8075215494556683650);
INSERT INTO "line" VALUES(20741,'tenant-0','','default','vllm','model-1','complete','reported','reported',X'','usage',1,21,0,0,0,5,0,0,0,0,0,0,0,0,0,0,0,0,0,-5986417452788828095);
INSERT INTO "line" VALUES(20741,'tenant-0','','default','vllm','model-1','complete','reported','reported',X'01000000000000000707070707070707','usage',2,12,0,0,0,14,0,0,2,4,0,0,0,0,0,0,0,0,0,-7218793007345016118);
INSERT INTO "line" VALUES(20741,'tenant-0','key-1','default','vllm','model-0','complete','reported','frames',X'','usage',1,0,0,0,0,1,0,0,0,0,1,0,0,0,1,0,3,0,4,-5437048274190260121);
INSERT INTO "line" VALUES(20741,'tenant-0','key-1','default','vllm','model-0','complete','reported','frames',X'81DCC1EACBDBCA387C8C707C30007FDC','correction',1,0,0,0,0,0,0,0,2,0,0,0,0,0,0,0,0,0,0,8521110952664700813);
INSERT INTO "line" VALUES(20741,'tenant-0','key-1','default','vllm','model-0','complete','reported','reported',X'00000000000000000707070707070707','usage',3,36,0,0,0,22,0,0,0,3,3,0,360,0,39,0,9,0,12,-3480812413173851519);
INSERT INTO "line" VALUES(20741,'tenant-0','key-1','default','vllm','model-0','complete','reported','reported',X'81DCC1EACBDBCA387C8C707C30007FDC','correction',0,0,0,0,0,0,0,0,79,999997,0,0,0,0,0,0,0,0,0,842011975126458856);
INSERT INTO "line" VALUES(20741,'tenant-1','','default','vllm','model-1','complete','reported','reported',X'','usage',1,7,0,0,0,8,0,0,0,0,0,0,0,0,0,0,0,0,0,-7982962566201093088);
INSERT INTO "line" VALUES(20741,'tenant-1','','default','vllm','model-1','complete','reported','reported',X'01000000000000000707070707070707','usage',3,33,0,0,0,19,0,0,3,6,0,0,0,0,0,0,0,0,0,6133945648844016071);
INSERT INTO "line" VALUES(20741,'tenant-1','key-1','default','vllm','model-0','complete','reported','frames',X'00000000000000000707070707070707','usage',1,10,0,0,0,11,0,0,0,1,1,0,100,0,11,0,3,0,4,-3403945081326022610);
INSERT INTO "line" VALUES(20741,'tenant-1','key-1','default','vllm','model-0','complete','reported','frames',X'81DCC1EACBDBCA387C8C707C30007FDC','correction',0,0,0,0,0,0,0,0,31,999999,0,0,0,0,0,0,0,0,0,-5907574633846973256);
INSERT INTO "line" VALUES(20741,'tenant-1','key-1','default','vllm','model-0','complete','reported','reported',X'00000000000000000707070707070707','usage',3,42,0,0,0,28,0,0,0,3,3,0,420,0,45,0,9,0,12,199530696119598777);
INSERT INTO "line" VALUES(20741,'tenant-1','key-1','default','vllm','model-0','complete','reported','reported',X'81DCC1EACBDBCA387C8C707C30007FDC','correction',0,0,0,0,0,0,0,0,97,999997,0,0,0,0,0,0,0,0,0,5509954816527653723);
INSERT INTO "line" VALUES(20741,'tenant-2','','default','vllm','model-1','complete','reported','frames',X'01000000000000000707070707070707','usage',1,5,0,0,0,6,0,0,1,2,0,0,0,0,0,0,0,0,0,6712139863352112777);
INSERT INTO "line" VALUES(20741,'tenant-2','','default','vllm','model-1','complete','reported','reported',X'01000000000000000707070707070707','usage',3,51,0,0,0,20,0,0,3,6,0,0,0,0,0,0,0,0,0,1953356280596366244);
INSERT INTO "line" VALUES(20741,'tenant-2','key-1','default','vllm','model-0','complete','reported','frames',X'00000000000000000707070707070707','usage',1,20,0,0,0,4,0,0,0,1,1,0,200,0,21,0,3,0,4,-5362202613052164193);
INSERT INTO "line" VALUES(20741,'tenant-2','key-1','default','vllm','model-0','complete','reported','frames',X'81DCC1EACBDBCA387C8C707C30007FDC','correction',0,0,0,0,0,0,0,0,27,999999,0,0,0,0,0,0,0,0,0,-2812365986341833910);
INSERT INTO "line" VALUES(20741,'tenant-2','key-1','default','vllm','model-0','complete','reported','reported',X'','usage',1,14,0,0,0,15,0,0,0,0,1,0,140,0,15,0,3,0,4,-5444150863602264220);
INSERT INTO "line" VALUES(20741,'tenant-2','key-1','default','vllm','model-0','complete','reported','reported',X'00000000000000000707070707070707','usage',2,10,0,0,0,12,0,0,0,2,2,0,100,0,12,0,6,0,8,6065949636981570738);
INSERT INTO "line" VALUES(20741,'tenant-2','key-1','default','vllm','model-0','complete','reported','reported',X'81DCC1EACBDBCA387C8C707C30007FDC','correction',1,0,0,0,0,0,0,0,77,999998,0,0,0,0,0,0,0,0,0,-7346755525481623527);
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
INSERT INTO "rate" VALUES(X'00000000000000000707070707070707','2026-10','b00c','model-0','standard',0,'USD',1000000,1000000,1000000,1000000,1000000,1000000,1000000,0,896849996566197828);
INSERT INTO "rate" VALUES(X'01000000000000000707070707070707','2026-10','b00c','model-1','standard',0,'USD',1000000,1000000,1000000,1000000,1000000,1000000,1000000,0,664231757836195421);
INSERT INTO "rate" VALUES(X'81DCC1EACBDBCA387C8C707C30007FDC','second','22ffa9a60075e5d6719ee04fcf2b137d5fb57927ec11a1c24312bf227f56fc5d','model-0','standard',0,'USD',1000000,1000000,1000000,NULL,2000000,2000000,NULL,0,-1495672894212676271);
CREATE TABLE seal (
  name              TEXT    NOT NULL PRIMARY KEY,
  entered           INTEGER NOT NULL,
  digest            BLOB    NOT NULL CHECK (length(digest) = 32),
  mark              INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "seal" VALUES('act',2,X'A29811E17D49AEC3C2C158C4B4EC6074079C48BCEB5DA9992B3A4198F8AF1FCE',-644983682504301111);
INSERT INTO "seal" VALUES('correction',12,X'0CFBDF7216C561A8A5382ADF4FDF351D5AEC49263259F429C84EA6802D33D995',6426415310231311144);
INSERT INTO "seal" VALUES('device',0,X'0000000000000000000000000000000000000000000000000000000000000000',-6148423203907159745);
INSERT INTO "seal" VALUES('energy',12,X'FC3E96B4A755D72B6F51E70CDE94DDEABC04ADED4A8A20F7DC1820BCF37577CD',3343522529917408785);
INSERT INTO "seal" VALUES('exchange',24,X'013DBDE78E766986E74BDF83D14BD5730508A195BA9F72420F278A700CE30BAB',-8772249730545484933);
INSERT INTO "seal" VALUES('gap',1,X'4D9271FF7F3A88342772EF88CF92BE13BF2462EEE4988D16F7D5E3AA96D13F32',-6120201590764695342);
INSERT INTO "seal" VALUES('line',20,X'10D35E79C2BDD21C000000000000000000000000000000000000000000000000',4740666906607680577);
INSERT INTO "seal" VALUES('rate',3,X'F271C5040361E800000000000000000000000000000000000000000000000000',5607726284773695094);
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
CREATE VIEW gaps AS
SELECT
  strftime('%Y-%m-%dT%H:%M:%SZ', from_us / 1000000, 'unixepoch') AS since,
  strftime('%Y-%m-%dT%H:%M:%SZ', until_us / 1000000, 'unixepoch') AS until,
  why                                                   AS why,
  lost_rows                                             AS lost_rows,    -- NULL: nobody can say
  totals_kept                                           AS totals_kept   -- 1: their totals are of class shed
FROM gap;
CREATE VIEW audit AS
SELECT
  strftime('%Y-%m-%dT%H:%M:%SZ', at_us / 1000000, 'unixepoch') AS at,
  what                                                  AS what,
  who                                                   AS who,
  detail                                                AS detail  -- JSON
FROM act;
COMMIT;
