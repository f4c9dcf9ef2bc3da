// tokenmeter.h: the meter of LLM inference as a C library.
//
// The host passes the bytes of requests and responses with their times. The library counts tokens, computes latencies
// and costs, and gives a record of each exchange and a page of metrics of all. An exchange is one request and its
// response.
//
// Order of calls
//
//   start           tm_abi_check, tm_meter_new; before it tm_prices_read and tm_tenants_read, if there are such files
//   request         tm_exchange_begin, tm_exchange_request_body for each part, tm_exchange_request_complete
//   response        tm_exchange_response_head, tm_exchange_response_body for each part
//   end             tm_exchange_end, or tm_exchange_discard
//   record          tm_record_tokens, tm_record_number, tm_record_rate, tm_record_text, tm_record_json; tm_record_free
//   any time        tm_meter_metrics
//   whole process   tm_exporters_start, tm_exporters_shutdown: a listener, a ledger, OTLP (if they were built in)
//
// An engine that counts its own tokens also calls tm_exchange_count_by_engine, tm_exchange_prompt_tokens,
// tm_output_tokens_add and tm_exchange_finish. Without an HTTP request, tm_exchange_begin_described takes its place.
//
// Conventions
//
// Status: every function returns a tm_status, except tm_text_of, tm_status_text and tm_version. 0 is success, 1 to 99
// mean that there is no result, 100 and above are failures; tm_error_message explains the last failure of the thread.
// After a failure the objects are as before, unless the status or the function says otherwise.
//
// Handles: a handle is a number in a structure, and 0 means no object. The library never dereferences it: a handle that
// was freed, invented or made for another type gives TM_STATUS_HANDLE. The caller frees each handle that it received.
// Handles may be freed in any order: an exchange keeps its meter, and a meter its prices and rules.
//
// Memory: the library reads and writes memory of the caller during the call only. Output goes to buffers of the caller
// (tm_text, tm_bytes). Texts are UTF-8.
//
// Structures: set the field `size` to the sizeof of the structure, and every field that you do not use to 0.
//
// Times: `at_ns` is in nanoseconds of a clock that does not go back, as CLOCK_MONOTONIC. All exchanges of a meter use
// the same clock. A difference of times that would be negative is 0. `unix_ns` is in nanoseconds since 1970.
//
// Threads: any function may be called from any thread at any time, but not from a signal handler. Calls on one object
// wait for each other. The order of the calls on an exchange matters: one thread at a time should make them.
//
// Processes: only exporters start threads, open connections and write files. Every time in a record comes from the host.
// For the page of metrics and for exporters alone the library reads the system's clock and, on Linux, /proc. After fork,
// the child may call the library only if no other thread was in a call at the fork and no exporters ran.
//
// Defects: a panic inside the library becomes TM_STATUS_PANIC, and a message on stderr. The object of the call can only
// be freed. Failing memory allocation ends the process.
//
// Versions: later versions add functions, numbers, and fields at the end of structures that have a `size`. They change
// and remove nothing: a changed call has a new name. Until version 1.0 the library is experimental: each minor version
// may break this promise, and has a soname of its own.
//
// This file is generated. Its source is ffi/src and ffi/include/preamble.txt.

#ifndef TOKENMETER_H
#define TOKENMETER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// The number of the ABI. It changes when programs must be compiled again. It does not change when a version adds
// functions, fields or numbers.
#define TM_ABI 0

// The maximum number of bytes that `tm_exchange_response_edit` may write beyond the length of a part of at most 4 MiB:
// half of them for the bytes that it held back, the rest for words that it replaces by longer ones.
#define TM_HOLD_MAX 131072

// The value of a count that the host does not know.
#define TM_UNKNOWN UINT64_MAX

// The result of a call. 0 is success. 1 to 99 are success without a result. 100 to 199 are mistakes of the caller. 200
// to 299 are invalid input. 300 and above are failures of the library. A later version may return a number that this
// header lacks: its range tells its meaning.
enum tm_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The call succeeded.
  TM_STATUS_OK = 0,
  // The value is not known. No value was written.
  TM_STATUS_ABSENT = 1,
  // The request or the response runs no model. There is no exchange, or no record.
  TM_STATUS_NOT_METERED = 2,
  // The bytes stay as they are. Nothing was written.
  TM_STATUS_UNCHANGED = 3,
  // A required pointer is NULL, or a handle is 0.
  TM_STATUS_NULL = 100,
  // The handle has no object: it was freed, its exchange is over, or it is of another type.
  TM_STATUS_HANDLE = 101,
  // The call does not fit the state of the exchange: a response body before its head, a second head.
  TM_STATUS_ORDER = 102,
  // A number or a name is none of the defined ones, or a length is out of its bounds.
  TM_STATUS_VALUE = 103,
  // A text is not UTF-8, or does not have the form that its field requires.
  TM_STATUS_TEXT = 104,
  // The buffer is too small. `tm_text` and `tm_bytes` say what was written.
  TM_STATUS_BUFFER = 105,
  // The field `size` of a structure is not its `sizeof`, or the structure sets a field that this library lacks.
  TM_STATUS_SIZE = 106,
  // A pointer is not aligned for its type.
  TM_STATUS_ALIGNMENT = 107,
  // The price book is invalid, or its currency is not that of the meter.
  TM_STATUS_PRICES = 200,
  // The tenant rules or their keys are invalid, or keys are missing.
  TM_STATUS_TENANTS = 201,
  // The response body cannot be decompressed. The rest of it is not counted. The exchange goes on.
  TM_STATUS_DECODING = 202,
  // The library holds 1,048,576 objects of this type, its maximum.
  TM_STATUS_LIMIT = 300,
  // The call met a defect of the library. Its object, if it has one, can only be freed. Please report the defect.
  TM_STATUS_PANIC = 301,
  // The library has another ABI than the header with which the program was compiled.
  TM_STATUS_ABI = 302,
  // A listener, a ledger or an export cannot start. `tm_error_message` says which and why.
  TM_STATUS_START = 303,
  // The library was built without this function.
  TM_STATUS_UNSUPPORTED = 304,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tm_status tm_status;
#else
typedef int32_t tm_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The source of a count, better with a higher number. All prompt types of a record have one source, and all output
// types have one.
enum tm_provenance
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // No source: the count is not known.
  TM_PROVENANCE_NONE = 0,
  // One token for each event of the stream that has content: an estimate.
  TM_PROVENANCE_FRAMES = 1,
  // A local tokenizer's count of the text. The proxy has this source, the library does not.
  TM_PROVENANCE_TOKENIZED = 2,
  // Token ids or log-probability entries in the response.
  TM_PROVENANCE_IDS = 3,
  // The server's own counter, read before the end or covering only some of the answers.
  TM_PROVENANCE_RUNNING = 4,
  // The server's final usage, covering every answer.
  TM_PROVENANCE_REPORTED = 5,
  // The counts that the engine passed by `tm_exchange_prompt_tokens` or `tm_output_tokens_add`.
  TM_PROVENANCE_ENGINE = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tm_provenance tm_provenance;
#else
typedef uint32_t tm_provenance;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The types of tokens. Those below 100 are disjoint, and `INPUT_ALL` and `OUTPUT_ALL` are their sums.
enum tm_token_type
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Computed prompt tokens, other than those of audio, images and videos.
  TM_TOKEN_TYPE_INPUT = 0,
  // Prompt tokens served from a cache, other than those of audio and images that the server states.
  TM_TOKEN_TYPE_INPUT_CACHED = 1,
  // Prompt tokens computed and written to a cache for five minutes, or for a lifetime that is not stated.
  TM_TOKEN_TYPE_INPUT_CACHE_WRITE = 2,
  // Computed prompt tokens of audio.
  TM_TOKEN_TYPE_INPUT_AUDIO = 3,
  // Computed prompt tokens of images.
  TM_TOKEN_TYPE_INPUT_IMAGE = 4,
  // Computed prompt tokens of videos.
  TM_TOKEN_TYPE_INPUT_VIDEO = 5,
  // Generated tokens, other than those of reasoning, audio, images and videos.
  TM_TOKEN_TYPE_OUTPUT = 6,
  // Generated reasoning tokens.
  TM_TOKEN_TYPE_OUTPUT_REASONING = 7,
  // Generated audio tokens.
  TM_TOKEN_TYPE_OUTPUT_AUDIO = 8,
  // Generated image tokens.
  TM_TOKEN_TYPE_OUTPUT_IMAGE = 9,
  // Generated video tokens.
  TM_TOKEN_TYPE_OUTPUT_VIDEO = 10,
  // Prompt tokens computed and written to a cache for one hour.
  TM_TOKEN_TYPE_INPUT_CACHE_WRITE_1H = 11,
  // Prompt tokens of audio served from a cache.
  TM_TOKEN_TYPE_INPUT_CACHED_AUDIO = 12,
  // Prompt tokens of images served from a cache.
  TM_TOKEN_TYPE_INPUT_CACHED_IMAGE = 13,
  // All prompt tokens: the sum of the types of the prompt.
  TM_TOKEN_TYPE_INPUT_ALL = 100,
  // All generated tokens: the sum of the types of the output.
  TM_TOKEN_TYPE_OUTPUT_ALL = 101,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tm_token_type tm_token_type;
#else
typedef uint32_t tm_token_type;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The end of a response as the host saw it.
enum tm_close
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The response ended as its protocol requires.
  TM_CLOSE_CLEAN = 0,
  // The client left before that.
  TM_CLOSE_CLIENT_GONE = 1,
  // The response broke off: the engine or the connection to it failed.
  TM_CLOSE_CUT = 2,
  // The host itself answered, or failed. The ending is `proxy_error`.
  TM_CLOSE_LOCAL = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tm_close tm_close;
#else
typedef uint32_t tm_close;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A number of a record. Names that end in `_NS` are nanoseconds. A time "to" an event counts from the complete
// request. "Streams only": absent or 0 if the response is not a stream.
enum tm_number
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The HTTP status of the response; 0 without a response.
  TM_NUMBER_STATUS = 0,
  // All prompt tokens, cached ones included. Absent if nothing counted them.
  TM_NUMBER_INPUT_TOKENS = 1,
  // All generated tokens. Absent if nothing counted them.
  TM_NUMBER_OUTPUT_TOKENS = 2,
  // The start of the request, since 1970: the `unix_ns` of the host.
  TM_NUMBER_STARTED_UNIX_NS = 3,
  // The end of the exchange, since 1970: the start plus `UPLOAD` and `DURATION`.
  TM_NUMBER_ENDED_UNIX_NS = 4,
  // From the start of the request until it was complete.
  TM_NUMBER_UPLOAD_NS = 5,
  // From the complete request to the end.
  TM_NUMBER_DURATION_NS = 6,
  // To the first byte of the response's body.
  TM_NUMBER_FIRST_BYTE_NS = 7,
  // To the first event that is not a keep-alive. Streams only.
  TM_NUMBER_FIRST_CHUNK_NS = 8,
  // To the first token (TTFT), of the body or of the engine's steps. Streams only.
  TM_NUMBER_FIRST_TOKEN_NS = 9,
  // To the first visible text. Streams only.
  TM_NUMBER_FIRST_VISIBLE_NS = 10,
  // To the first part of a tool call. Streams only.
  TM_NUMBER_FIRST_TOOL_NS = 11,
  // From the first to the last token, summed over the first eight answers. Streams only.
  TM_NUMBER_GENERATION_NS = 12,
  // The tokens produced in `GENERATION_NS`: the output without the first token of each answer. Streams only.
  TM_NUMBER_GENERATION_TOKENS = 13,
  // The time per output token: (duration − TTFT) ÷ (output − 1). Streams only.
  TM_NUMBER_PER_OUTPUT_TOKEN_NS = 14,
  // The longest gap between two events, or steps of the engine, with tokens. Streams only.
  TM_NUMBER_LONGEST_GAP_NS = 15,
  // The number of gaps above `stall_ns` of the meter. Streams only.
  TM_NUMBER_STALLS = 16,
  // The total time of those gaps. Streams only.
  TM_NUMBER_STALLED_NS = 17,
  // The time that `tm_exchange_client_wait` added.
  TM_NUMBER_CLIENT_WAIT_NS = 18,
  // The number of requested answers.
  TM_NUMBER_ANSWERS = 19,
  // The number of answers that arrived.
  TM_NUMBER_CHOICES = 20,
  // The characters of visible text.
  TM_NUMBER_VISIBLE_CHARS = 21,
  // The number of counts above `max_tokens` of the meter, which were rejected.
  TM_NUMBER_USAGE_REJECTED = 22,
  // Cached prompt tokens in excess of the prompt. No count includes them.
  TM_NUMBER_CACHED_EXCESS = 23,
  // The time in the server's queue, as its response reports it.
  TM_NUMBER_SERVER_QUEUE_NS = 24,
  // The time of the prefill, as the response reports it.
  TM_NUMBER_SERVER_PREFILL_NS = 25,
  // The time of decoding, as the response reports it.
  TM_NUMBER_SERVER_DECODE_NS = 26,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tm_number tm_number;
#else
typedef uint32_t tm_number;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A rate of a record.
enum tm_rate
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // (output − 1) ÷ (last token − first token), in tokens per second: the speed that a user sees. Streams only.
  TM_RATE_OUTPUT = 0,
  // (input − cached) ÷ TTFT, in tokens per second. Streams only.
  TM_RATE_INPUT = 1,
  // Visible characters per second, between the first and the last of them. Streams only.
  TM_RATE_VISIBLE_CHARS = 2,
  // The mean number of exchanges of the meter in flight during this one.
  TM_RATE_CONCURRENCY = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tm_rate tm_rate;
#else
typedef uint32_t tm_rate;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A text of a record.
enum tm_text_value
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The id of the exchange, a UUID of version 7.
  TM_TEXT_VALUE_ID = 0,
  // The tenant; `default` if no rule identifies one.
  TM_TEXT_VALUE_TENANT = 1,
  // The API key or account of the request: a name of the rules or of the host, or a keyed hash.
  TM_TEXT_VALUE_PRINCIPAL = 2,
  // The end user that the request names: a keyed hash, unless the rules have `hash_end_users: false`.
  TM_TEXT_VALUE_CONSUMER = 3,
  // The upstream's name, as given to the meter.
  TM_TEXT_VALUE_UPSTREAM = 4,
  // The provider's name, as given to the meter.
  TM_TEXT_VALUE_PROVIDER = 5,
  // The JSON shape of the endpoint: `anthropic`, `bedrock_converse`, `cohere`, `embeddings`, `gemini`,
  // `gemini_interactions`, `llamacpp_completion`, `lmdeploy_generate`, `ollama_chat`, `ollama_generate`,
  // `openai_chat`, `openai_completions`, `openai_responses`, `realtime`, `rerank`, `sglang_generate`, `tgi`,
  // `transcription`, `triton_generate`, `vllm_generate` or `unknown`.
  TM_TEXT_VALUE_DIALECT = 6,
  // The model of the request, else of the response, else `_unknown`.
  TM_TEXT_VALUE_MODEL = 7,
  // The model of the response.
  TM_TEXT_VALUE_RESPONSE_MODEL = 8,
  // The id of the response.
  TM_TEXT_VALUE_RESPONSE_ID = 9,
  // The id that the client gave the request: `X-Request-Id`, else `Idempotency-Key`.
  TM_TEXT_VALUE_REQUEST_ID = 10,
  // The service tier of the response, else of the request.
  TM_TEXT_VALUE_SERVICE_TIER = 11,
  // The ending: `complete`; `length` (the limit of the output was reached); `client_abort` (the client left before the
  // end); `upstream_cut` (the response ended before its end mark); `error_in_band` (an error under the status 200);
  // `error_status` (a status of 400 or above); `no_output` (a clean end without output); `detached` (accepted
  // work whose result is fetched later); or `proxy_error` (`TM_CLOSE_LOCAL`).
  TM_TEXT_VALUE_ENDING = 12,
  // The finish reason of the first answer by the OpenTelemetry convention: `stop`, `length`, `tool_call`,
  // `content_filter`, `error` or `other`.
  TM_TEXT_VALUE_FINISH_REASON = 13,
  // The cost as an exact decimal, as `0.0125`. Absent without a price.
  TM_TEXT_VALUE_COST = 14,
  // The currency of the cost, three letters. Absent without a price.
  TM_TEXT_VALUE_CURRENCY = 15,
  // The version of the price book by which the exchange was charged. Absent without a price.
  TM_TEXT_VALUE_PRICE_VERSION = 16,
  // The reason why the exchange has no price: `no_book`, `model`, `token_type`, `uncounted` or `overflow`. Absent
  // with a price.
  TM_TEXT_VALUE_UNPRICED = 17,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tm_text_value tm_text_value;
#else
typedef uint32_t tm_text_value;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The usage that `tm_exchange_request_edit` may request for a client.
enum tm_usage_policy
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // None. Requests stay as they are.
  TM_USAGE_POLICY_OBSERVE = 0,
  // The usage at the end of a stream.
  TM_USAGE_POLICY_INJECT = 1,
  // The same, and running counts if the server's kind supports them.
  TM_USAGE_POLICY_CONTINUOUS = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tm_usage_policy tm_usage_policy;
#else
typedef uint32_t tm_usage_policy;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Bytes of the caller, read during the call only. A text is UTF-8 without a final NUL: `tm_text_of` makes a slice of a
// C string. `data` may be NULL if `length` is 0.
typedef struct {
  // The first byte.
  const uint8_t *data;
  // The number of bytes.
  size_t length;
} tm_slice;

// A buffer of the caller for a text in UTF-8. The call writes the text, a final NUL, and the `length` without the NUL.
// If the capacity is less than `length + 1`, the call writes the `length` only and returns `TM_STATUS_BUFFER`: call
// again with a capacity of `length + 1` or more.
typedef struct {
  // The buffer. May be NULL if `capacity` is 0.
  char *buffer;
  // The size of the buffer in bytes.
  size_t capacity;
  // The length of the text in bytes. Written by the call.
  size_t length;
} tm_text;

// A price book. Free it with `tm_prices_free`, also while a meter uses it.
typedef struct {
  // The number; 0 means no object.
  uint64_t id;
} tm_prices;

// The keys by which a `jwt` rule verifies tokens.
typedef struct {
  // The source of the keys, a file or a URL, as the rule names it. The library does not read it.
  tm_slice name;
  // The content of the source: a JWKS (RFC 7517). Empty: not known yet, and the rule matches no token.
  tm_slice jwks;
} tm_key_source;

// Tenant rules. Free them with `tm_tenants_free`, also while a meter uses them.
typedef struct {
  // The number; 0 means no object.
  uint64_t id;
} tm_tenants;

// The settings of a meter. A field that is 0 or empty has its default. The call copies the texts.
typedef struct {
  // `sizeof(tm_meter_options)`.
  size_t size;
  // The name of the server in records and metrics. Default: `embedded`.
  tm_slice upstream;
  // The provider in records and metrics (`gen_ai.provider.name`). Default: the kind, else the upstream.
  tm_slice provider;
  // The kind of the server: `vllm`, `sglang`, `llama_cpp`, `ollama`, `tgi`, `tensorrt_llm`, `triton`, `lmdeploy`,
  // `mistral_rs`, `dynamo`, `openai`, `anthropic`, `gemini`, `azure_openai` or `openrouter`. Default: not known.
  tm_slice kind;
  // A gap between two tokens of more nanoseconds is a stall. Default: one second.
  uint64_t stall_ns;
  // The maximum of each token count. A higher count is rejected, and `TM_NUMBER_USAGE_REJECTED` counts it. Default:
  // ten million.
  uint64_t max_tokens;
  // The maximum number of models with metrics of their own. The others share the label `_other`. Default: 50.
  uint32_t max_models;
  // A `tm_usage_policy`. Default: `TM_USAGE_POLICY_OBSERVE`.
  uint32_t usage_policy;
  // The price book. Its currency is part of the names of metrics. Default: none, and no exchange has a cost.
  tm_prices prices;
  // The tenant rules. Default: none, and every exchange belongs to the tenant `default`.
  tm_tenants tenants;
} tm_meter_options;

// A meter: the settings and metrics of the exchanges that begin in it. Free it with `tm_meter_free`.
typedef struct {
  // The number; 0 means no object.
  uint64_t id;
} tm_meter;

// The settings of exporters. A field that is 0 or empty has its default. The call copies the texts.
typedef struct {
  // `sizeof(tm_exporters_options)`.
  size_t size;
  // The address of the admin listener, as in `127.0.0.1:9464` or `[::1]:9464`; with port 0 the system chooses one. The
  // listener serves `/metrics` (OpenMetrics, Prometheus' protobuf or text), `/readyz`, `/livez` and the live page, without
  // authentication. Default: no listener.
  tm_slice listen;
  // The host names by which clients address the listener, separated by commas. It rejects other names, but not
  // addresses and `localhost`. Default: none.
  tm_slice hosts;
  // The path of the ledger file, which ends in `.db`, in a folder that exists. One meter at a time writes it. Default: no
  // ledger.
  tm_slice ledger;
  // The number of days for which the rows of a month are kept after its end. Default: for ever.
  uint64_t ledger_keep_days;
  // The export to an OpenTelemetry collector, as the standard variables in lines of `NAME=VALUE`:
  // `OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318` exports metrics, `OTEL_LOGS_EXPORTER=otlp` adds a log record for each
  // exchange; sidecar/otlp/otlp.md has all. There are no spans. The library does not read the environment; a host may pass
  // all of it. Default: no export.
  tm_slice otlp_variables;
} tm_exporters_options;

// The exporters of a meter. `tm_exporters_shutdown` frees them.
typedef struct {
  // The number; 0 means no object.
  uint64_t id;
} tm_exporters;

// A header field of a request or of a response.
typedef struct {
  // The name, in any letter case.
  tm_slice name;
  // The value.
  tm_slice value;
} tm_header;

// The head of a request.
typedef struct {
  // `sizeof(tm_request)`.
  size_t size;
  // The method, as `POST`.
  tm_slice method;
  // The path with its query, as the client sent it: both may name a model.
  tm_slice path;
  // All header fields: tenant rules, the usage policy and the model depend on some. A field that HTTP does not allow
  // is ignored. The library keeps a copy until the exchange is over.
  const tm_header *headers;
  // The number of header fields.
  size_t headers_count;
  // The IP address of the client's connection, for tenant rules that depend on it. Empty: not known, which rules see
  // as 0.0.0.0.
  tm_slice peer;
  // The time at which the request began, by the host's monotonic clock.
  uint64_t at_ns;
  // The same time in nanoseconds since 1970. The validity of tokens (`jwt` rules) and of prices depends on it. 0 is
  // not known, and rejected if there are `jwt` rules.
  uint64_t unix_ns;
} tm_request;

// A running exchange: a request and its response. `tm_exchange_end` and `tm_exchange_discard` free it.
typedef struct {
  // The number; 0 means no object.
  uint64_t id;
} tm_exchange;

// A buffer of the caller for bytes. The call writes the bytes and their number. If the capacity is less than their
// number, the call writes nothing but `length` and returns `TM_STATUS_BUFFER`.
typedef struct {
  // The buffer. May be NULL if `capacity` is 0.
  uint8_t *buffer;
  // The size of the buffer in bytes.
  size_t capacity;
  // The number of the bytes. Written by the call.
  size_t length;
} tm_bytes;

// The record of an ended exchange. Free it with `tm_record_free`.
typedef struct {
  // The number; 0 means no object.
  uint64_t id;
} tm_record;

// A request as the host describes it, in place of its head and body.
typedef struct {
  // `sizeof(tm_begin)`.
  size_t size;
  // The kind of request, one of the names of `TM_TEXT_VALUE_DIALECT`. Required.
  tm_slice dialect;
  // The model.
  tm_slice model;
  // The tenant: a name without control characters that does not begin with `_`. Empty: `default`.
  tm_slice tenant;
  // The account of the request within the tenant. Records show it: it is not a secret.
  tm_slice principal;
  // The id that the client gave the request.
  tm_slice request_id;
  // The number of requested answers; 0 means 1.
  uint32_t answers;
  // 1 if the client asked for a stream.
  uint32_t stream;
  // The time at which the request was complete, by the host's monotonic clock.
  uint64_t at_ns;
  // The same time in nanoseconds since 1970.
  uint64_t unix_ns;
} tm_begin;

// The prompt of one generation. `input` counts all its tokens; the other counts are parts of it. 0 is a count:
// `TM_UNKNOWN` stands for one that the engine does not know.
typedef struct {
  // `sizeof(tm_prompt_tokens)`.
  size_t size;
  // All prompt tokens. `TM_UNKNOWN` is rejected.
  uint64_t input;
  // Those served from a cache.
  uint64_t cached;
  // Those computed and written to a cache.
  uint64_t cache_write;
  // Those of audio.
  uint64_t audio;
  // Those of images.
  uint64_t image;
  // Those of videos.
  uint64_t video;
} tm_prompt_tokens;

// The new tokens of one answer in one step of the engine.
typedef struct {
  // The exchange.
  tm_exchange exchange;
  // The answer's index, from 0.
  uint32_t choice;
  // The new tokens, hidden ones included.
  uint32_t tokens;
  // Those of them in reasoning. A number above `tokens` counts as `tokens`.
  uint32_t reasoning;
  // The result for this exchange, a `tm_status`. Written by the call.
  int32_t status;
} tm_output_tokens;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns a slice of a C string without its final NUL, and an empty slice for NULL. The slice is valid as long as the
// string.
//
// # Safety
// `text` is NULL or points to a C string.
tm_slice tm_text_of(const char *text);

// Returns the meaning of a status in a few words, or "unknown status". The text is static: it is never freed.
const char *tm_status_text(int32_t status);

// Writes the message of the last failed call of this thread, one with a status of 100 or above. It lists the errors of
// a price book or of tenant rules; of other failures it says at least what the status means. A call that succeeds does
// not change it. `TM_STATUS_ABSENT` if no call of this thread failed.
//
// # Safety
// `text` is NULL or points to a `tm_text` whose buffer has its capacity.
tm_status tm_error_message(tm_text *text);

// Returns the version of the library, as `0.1.0`. The text is static: it is never freed.
const char *tm_version(void);

// Checks that the library fits the header with which the program was compiled. Call it before any other function, with
// `TM_ABI`. `TM_STATUS_ABI` if the library does not fit.
tm_status tm_abi_check(uint32_t abi);

// Reads a price book from the content of a price file, in YAML (sidecar/price/prices.md describes it; `tokenmeter
// prices init` writes one). `TM_STATUS_PRICES` if it is invalid: the message lists all errors.
//
// # Safety
// `yaml` points to its bytes; `prices` is NULL or points to a handle, which is written.
tm_status tm_prices_read(tm_slice yaml,
                         tm_prices *prices);

// Frees a price book. A meter that uses it keeps it.
tm_status tm_prices_free(tm_prices prices);

// Writes the names of the sources of keys that `jwt` rules need, one on each line: files and URLs as the rules name
// them. A name with `://` is a URL. `yaml` is the content of a tenants file. `TM_STATUS_ABSENT` if no rule needs keys,
// `TM_STATUS_TENANTS` if the rules are invalid.
//
// # Safety
// `yaml` points to its bytes; `names` is NULL or points to a `tm_text` whose buffer has its capacity.
tm_status tm_tenants_key_sources(tm_slice yaml,
                                 tm_text *names);

// Reads tenant rules from the content of a tenants file, in YAML (proxy/tenant/tenants.md describes it). `hash_key` is
// the content of the hash key file, at least 32 bytes, for rules that hash; it may be empty for others. `keys` has the
// content of each source of keys that the rules name. `TM_STATUS_TENANTS` if anything is invalid or missing: the
// message lists all errors of the rules with their lines, or the first error of the keys.
//
// # Safety
// `yaml` and `hash_key` point to their bytes, `keys` to `keys_count` elements and each to its bytes; `tenants` is NULL
// or points to a handle, which is written.
tm_status tm_tenants_read(tm_slice yaml,
                          tm_slice hash_key,
                          const tm_key_source *keys,
                          size_t keys_count,
                          tm_tenants *tenants);

// Returns `TM_STATUS_OK` if a token needed a key that the source lacks, since the last such call: the source may have
// changed. `TM_STATUS_ABSENT` if none did. Anyone can send such tokens: read the source again at most once a minute.
//
// # Safety
// `source` points to its bytes.
tm_status tm_tenants_key_missed(tm_tenants tenants,
                                tm_slice source);

// Frees tenant rules. A meter that uses them keeps them.
tm_status tm_tenants_free(tm_tenants tenants);

// Makes a meter: one for each server, at the start of the process. `TM_STATUS_VALUE` if the kind or the policy is none
// of the listed ones.
//
// # Safety
// `options` points to a structure of the size in it; `meter` is NULL or points to a handle, which is written.
tm_status tm_meter_new(const tm_meter_options *options,
                       tm_meter *meter);

// Replaces the price book of a meter for exchanges that end from now on. `TM_STATUS_PRICES` if its currency is not
// that of the book before; a meter without a book has USD.
tm_status tm_meter_set_prices(tm_meter meter,
                              tm_prices prices);

// Replaces the tenant rules of a meter for exchanges that begin from now on.
tm_status tm_meter_set_tenants(tm_meter meter, tm_tenants tenants);

// Writes the page of the meter's metrics in the Prometheus text format 0.0.4, for a `/metrics` endpoint of the host, alone
// or behind the host's own metrics: their names begin with `tokenmeter_` or `gen_ai_`. The page grows with models and
// tenants: if the buffer is too small, call again with the needed length and some more.
//
// Thread safety: any thread, at any time.
//
// # Safety
// `text` is NULL or points to a `tm_text` whose buffer has its capacity.
tm_status tm_meter_metrics(tm_meter meter,
                           tm_text *text);

// Frees a meter. Its running exchanges go on and end as before.
tm_status tm_meter_free(tm_meter meter);

// Starts exporters of a meter, which take the exchanges that end from now on. This is the only function that starts
// threads, opens connections and writes files. A meter has at most one group of exporters: `TM_STATUS_ORDER` if it has one
// already. `TM_STATUS_START` if an address, the ledger's path or a variable of the export cannot be used; nothing runs then.
// `TM_STATUS_UNSUPPORTED` if the library was built without the feature `exporters`.
//
// A ledger whose disk fails later, and a collector that does not answer, affect no exchange: the metrics report both, and
// `tm_exporters_problems` the ledger. Calls of `tm_exchange_end` wait for no disk and no network. This call waits for a
// shutdown of the meter's exporters before. The threads block all signals but those of faults.
//
// # Safety
// `options` points to a structure of the size in it; `exporters` is NULL or points to a handle, which is written.
tm_status tm_exporters_start(tm_meter meter,
                             const tm_exporters_options *options,
                             tm_exporters *exporters);

// Writes the address of the listener, with the port that the system chose. `TM_STATUS_ABSENT` if there is no listener.
//
// # Safety
// `text` is NULL or points to a `tm_text` whose buffer has its capacity.
tm_status tm_exporters_address(tm_exporters exporters,
                               tm_text *text);

// Writes the current problems, one a line, such as a ledger that waits for its disk. `TM_STATUS_ABSENT` if there is none.
//
// # Safety
// `text` is NULL or points to a `tm_text` whose buffer has its capacity.
tm_status tm_exporters_problems(tm_exporters exporters,
                                tm_text *text);

// Stops the exporters and frees them: commits the queue of the ledger, sends the last telemetry and closes the listener.
// Returns within some 15 seconds, usually at once. Call it before the process ends: rows of the last seconds may otherwise
// not be in the ledger. Exchanges that end later are in the metrics only; new exporters may be started. Final counts stay in
// the metrics.
tm_status tm_exporters_shutdown(tm_exporters exporters);

// Begins an exchange when the head of its request is known. `TM_STATUS_NOT_METERED` if the request runs no model, as
// `GET /health`. A POST to an unknown path begins an exchange, and its response decides. `exchange` is 0 unless the
// call returns `TM_STATUS_OK`. `TM_STATUS_VALUE` if a tenant rule needs `unix_ns` and it is 0.
//
// # Safety
// `request` points to a structure of the size in it, with the header fields; `exchange` is NULL or points to a handle,
// which is written.
tm_status tm_exchange_begin(tm_meter meter,
                            const tm_request *request,
                            tm_exchange *exchange);

// Reads the next part of the request body, as the client sent it. `TM_STATUS_ORDER` if the request is complete.
//
// # Safety
// `bytes` points to its bytes.
tm_status tm_exchange_request_body(tm_exchange exchange,
                                   tm_slice bytes);

// Records that the request is complete. Call it also for a request without a body. The times of the record count from
// `at_ns`.
tm_status tm_exchange_request_complete(tm_exchange exchange,
                                       uint64_t at_ns);

// Writes the request body with an option for usage, so that the server reports its counts in a stream. The usage
// policy of the meter, the server's kind and the request decide. Call it once, between `tm_exchange_request_complete`
// and `tm_exchange_response_head`, with the whole body.
//
// `TM_STATUS_OK`: send `edited` in place of the body, with its length as `content-length`, and pass the response to
// `tm_exchange_response_edit`. `TM_STATUS_UNCHANGED`: send the body as it is. `TM_STATUS_BUFFER`: call again with a
// larger buffer.
//
// # Safety
// `body` points to its bytes; `edited` is NULL or points to a `tm_bytes` whose buffer has its capacity.
tm_status tm_exchange_request_edit(tm_exchange exchange,
                                   tm_slice body,
                                   tm_bytes *edited);

// Reads the head of the response that the client gets. It completes a request that is not complete, because a server
// may answer before it has read the whole request. `TM_STATUS_NOT_METERED` if the response is not that of a model: the
// exchange is over without a record, and its handle is freed.
//
// # Safety
// `headers` points to `headers_count` fields, and each to its bytes.
tm_status tm_exchange_response_head(tm_exchange exchange,
                                    uint16_t status,
                                    const tm_header *headers,
                                    size_t headers_count,
                                    uint64_t at_ns);

// Reads the next part of the response body, as the server sent it. `at_ns` is the time at which the host read it.
//
// # Safety
// `bytes` points to its bytes.
tm_status tm_exchange_response_body(tm_exchange exchange,
                                    tm_slice bytes,
                                    uint64_t at_ns);

// Reads the next part of the response body, in place of `tm_exchange_response_body`, and removes the usage that only
// `tm_exchange_request_edit` asked for. Call it for every part of the response to an edited request. The capacity of
// `shown` is at least the length of the part and `TM_HOLD_MAX`.
//
// `TM_STATUS_OK`: send `shown` to the client; it may be empty, because the start of an event is held until its rest
// comes. `TM_STATUS_UNCHANGED`: send the part as it is. `TM_STATUS_BUFFER`: the part was not read; call again with a
// larger buffer. After any other failure, send the part as it is.
//
// An empty part releases the held bytes. Pass one if no part came for 50 ms, and one before `tm_exchange_end`: bytes
// that are still held then do not reach the client.
//
// # Safety
// `bytes` points to its bytes; `shown` is NULL or points to a `tm_bytes` whose buffer has its capacity.
tm_status tm_exchange_response_edit(tm_exchange exchange,
                                    tm_slice bytes,
                                    uint64_t at_ns,
                                    tm_bytes *shown);

// Adds nanoseconds for which bytes of the response were ready and the client's connection was not.
tm_status tm_exchange_client_wait(tm_exchange exchange, uint64_t ns);

// Ends an exchange and frees its handle. `close` is a `tm_close`. Writes the record, unless `record` is NULL; the
// metrics have the exchange in either case. `TM_STATUS_NOT_METERED` if nothing of inference was seen: there is no
// record, and `record` is 0. After `TM_STATUS_VALUE` and `TM_STATUS_ALIGNMENT` the exchange goes on; after any other
// status it is over.
//
// # Safety
// `record` is NULL or points to a handle, which is written.
tm_status tm_exchange_end(tm_exchange exchange,
                          uint32_t close,
                          uint64_t at_ns,
                          tm_record *record);

// Ends an exchange without a record, as for a request that was not sent to a model, and frees its handle.
tm_status tm_exchange_discard(tm_exchange exchange);

// Begins an exchange without an HTTP request, whose tokens the host counts. The request is complete. For the times of
// tokens, give it a response head with the status 200 and the field `content-type: text/event-stream`. End each answer
// by `tm_exchange_finish`. `exchange` is 0 unless the call returns `TM_STATUS_OK`.
//
// # Safety
// `begin` points to a structure of the size in it; `exchange` is NULL or points to a handle, which is written.
tm_status tm_exchange_begin_described(tm_meter meter,
                                      const tm_begin *begin,
                                      tm_exchange *exchange);

// Makes the host the source of the token counts and of their times: their provenance is `TM_PROVENANCE_ENGINE`. Counts
// that the body gave before are discarded. The prompt is counted by the body as long as no prompt was added. The three
// functions below do the same at their first call; without this call, an exchange that ends before a token is counted
// by its body. Call it for an engine that counts each exchange.
tm_status tm_exchange_count_by_engine(tm_exchange exchange);

// Adds a prompt that the engine processed. The prompts of an exchange add up. Call it once for all answers to one
// prompt, and once for each prompt of a list and for each round of a tool loop.
//
// # Safety
// `prompt` points to a structure of the size in it.
tm_status tm_exchange_prompt_tokens(tm_exchange exchange,
                                    const tm_prompt_tokens *prompt);

// Adds the tokens of one step of the engine to any number of exchanges. `at_ns` is the time of the step. An exchange
// may occur several times. The call writes the status of each element. It returns the first failure among them, and
// the tokens of the others count.
//
// # Safety
// `steps` points to `count` elements, which are read and whose status is written.
tm_status tm_output_tokens_add(tm_output_tokens *steps,
                               size_t count,
                               uint64_t at_ns);

// Ends an answer. `reason` is the engine's word: `stop`, `length`, `tool_calls`, `content_filter`, `abort`, or the
// word of a known API; any other word counts as `other`. Without a body, the ending of the exchange is `complete` or
// `length` only if every answer ended. `TM_STATUS_VALUE` if the word is empty.
//
// # Safety
// `reason` points to its bytes.
tm_status tm_exchange_finish(tm_exchange exchange,
                             uint32_t choice,
                             tm_slice reason);

// Writes the count of one type of tokens, a `tm_token_type`, and its source, a `tm_provenance`. `provenance` may be
// NULL. `TM_STATUS_ABSENT` if nothing counted the tokens: `provenance` is `TM_PROVENANCE_NONE`, and `count` is not
// written.
//
// # Safety
// `count` and `provenance` are NULL or point to a number, which is written.
tm_status tm_record_tokens(tm_record record,
                           uint32_t token_type,
                           uint64_t *count,
                           uint32_t *provenance);

// Writes a number of the record, a `tm_number`. `TM_STATUS_ABSENT` if it is not known.
//
// # Safety
// `value` is NULL or points to a number, which is written.
tm_status tm_record_number(tm_record record, uint32_t number, uint64_t *value);

// Writes a rate of the record, a `tm_rate`. `TM_STATUS_ABSENT` if it is not known.
//
// # Safety
// `value` is NULL or points to a number, which is written.
tm_status tm_record_rate(tm_record record, uint32_t rate, double *value);

// Writes a text of the record, a `tm_text_value`. `TM_STATUS_ABSENT` if it is not known.
//
// # Safety
// `text` is NULL or points to a `tm_text` whose buffer has its capacity.
tm_status tm_record_text(tm_record record, uint32_t value, tm_text *text);

// Writes the record as one JSON object. Values that are not known are left out. The members:
//
// - the values of `tm_text_value` and `tm_number` by their names in lower case: `model`, `first_token_ns`, …
// - `output_rate`, `input_rate`, `visible_chars_rate` and `concurrency`: the values of `tm_rate`
// - `tokens`: an object with the counts above 0, by the names of `tm_token_type` in lower case
// - `input_provenance` and `output_provenance`: the names of `tm_provenance` in lower case
// - `streamed`: true if the response was a stream
//
// # Safety
// `text` is NULL or points to a `tm_text` whose buffer has its capacity.
tm_status tm_record_json(tm_record record,
                         tm_text *text);

// Frees a record.
tm_status tm_record_free(tm_record record);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TOKENMETER_H */
