// tokenmeter.h: the meter of LLM inference as a C library. The host passes the bytes of requests and responses and their
// times; the library counts tokens, times them and prices them. It has no thread and no clock, and does no I/O.
//
//   tm_meter_new            once: settings, metrics, prices
//   tm_exchange_begin       the head of a request; then tm_exchange_request_body, tm_exchange_request_complete
//   tm_exchange_response_head, tm_exchange_response_body for each part that was read
//   tm_exchange_end         how it ended; gives a record
//   tm_record_tokens, …     the values of the record; tm_record_json has all of them
//   tm_meter_metrics        the Prometheus page
//
// Handles are numbers, not pointers: a handle that was freed, forged or made for another type gives a status.
// Every function returns a status, unless it says otherwise; tm_error_message explains the last failure of the thread.
// Memory that the caller passes is used during the call only. Strings are UTF-8.
// Any function may be called from any thread; calls on one object wait for each other. A process that forked may use the
// library in the child only if no other thread used it at the time of the fork.
//
// The ABI: later versions add functions, numbers, and fields at the end of structures that begin with their size;
// they change and remove nothing, and a changed call has a new name. An upgrade never breaks a program. Until version
// 1.0 the library is experimental: each minor version may break that promise, and has a soname of its own.
// This file is generated; its source is ffi/src.

#ifndef TOKENMETER_H
#define TOKENMETER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// The number of the ABI: it changes if a program must be compiled again. Later versions of the library add
// functions, fields and numbers without changing it.
#define TM_ABI 0

// The most bytes that `tm_exchange_response_edit` holds back, and thus may write beyond the length of a part.
#define TM_HOLD_MAX 65536

// The value of a count that the host does not know.
#define TM_UNKNOWN UINT64_MAX

// The result of a call. 0 is success, 1 to 99 are results without an object or a change, 100 to 199 are mistakes of the
// caller, 200 to 299 are invalid input, 300 and above are failures of the library. A number is never reused.
enum tm_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The call succeeded.
  TM_STATUS_OK = 0,
  // The value is not known; nothing was written.
  TM_STATUS_ABSENT = 1,
  // The request or the response is not one of inference; there is no object.
  TM_STATUS_NOT_METERED = 2,
  // The bytes stay as they are; nothing was written.
  TM_STATUS_UNCHANGED = 3,
  // A pointer is NULL, or a handle is 0.
  TM_STATUS_NULL = 100,
  // The handle means no object: it was freed, ended, forged, or made for another type.
  TM_STATUS_HANDLE = 101,
  // The call does not fit the state of the object, as a response before its request.
  TM_STATUS_ORDER = 102,
  // A number is not among the defined ones, or out of its bounds.
  TM_STATUS_VALUE = 103,
  // A text is not UTF-8, or contains a character that it may not.
  TM_STATUS_TEXT = 104,
  // The buffer is too small; the needed length was written.
  TM_STATUS_BUFFER = 105,
  // The size of a structure is 0, or the structure is of a newer header and uses a field that this library lacks.
  TM_STATUS_SIZE = 106,
  // A pointer is not aligned for its type.
  TM_STATUS_ALIGNMENT = 107,
  // The price book has errors; see `tm_error_message`.
  TM_STATUS_PRICES = 200,
  // The tenant rules have errors; see `tm_error_message`.
  TM_STATUS_TENANTS = 201,
  // The response body cannot be decoded; its further bytes are not counted.
  TM_STATUS_DECODING = 202,
  // There are as many objects as the library can hold.
  TM_STATUS_LIMIT = 300,
  // The library failed on this object, which can only be freed. Please report it.
  TM_STATUS_PANIC = 301,
  // The library has another ABI than the header the program was compiled with.
  TM_STATUS_ABI = 302,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tm_status tm_status;
#else
typedef int32_t tm_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The source of a count. Counts of different sources are never mixed.
enum tm_provenance
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // No source: the count is not known.
  TM_PROVENANCE_NONE = 0,
  // One token per frame with content: an estimate.
  TM_PROVENANCE_FRAMES = 1,
  // A local tokenizer's count of the text.
  TM_PROVENANCE_TOKENIZED = 2,
  // Token ids or log-probability entries in the frames.
  TM_PROVENANCE_IDS = 3,
  // The server's own counter, read before the end or covering only some of the choices.
  TM_PROVENANCE_RUNNING = 4,
  // The server's final usage, covering every choice.
  TM_PROVENANCE_REPORTED = 5,
  // The engine's own token ids, counted inside its process.
  TM_PROVENANCE_ENGINE = 6,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tm_provenance tm_provenance;
#else
typedef uint32_t tm_provenance;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// The types of tokens. They are disjoint: the sum of all counts each token once.
enum tm_token_type
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Computed prompt tokens, other than those of audio, images and videos.
  TM_TOKEN_TYPE_INPUT = 0,
  // Prompt tokens served from a cache.
  TM_TOKEN_TYPE_INPUT_CACHED = 1,
  // Prompt tokens computed and written to a cache.
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
  // The client left.
  TM_CLOSE_CLIENT_GONE = 1,
  // The response broke off: the server failed.
  TM_CLOSE_CUT = 2,
  // The host answered itself, without a model.
  TM_CLOSE_LOCAL = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tm_close tm_close;
#else
typedef uint32_t tm_close;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A number of a record. Times are nanoseconds; those without `UNIX` count from the complete request.
enum tm_number
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The HTTP status of the response; 0 if there was none.
  TM_NUMBER_STATUS = 0,
  // All prompt tokens, cached ones included. Absent if nothing counted them.
  TM_NUMBER_INPUT_TOKENS = 1,
  // All generated tokens. Absent if nothing counted them.
  TM_NUMBER_OUTPUT_TOKENS = 2,
  // The start of the request in wall time, nanoseconds since 1970.
  TM_NUMBER_STARTED_UNIX_NS = 3,
  // The end of the exchange in wall time, nanoseconds since 1970.
  TM_NUMBER_ENDED_UNIX_NS = 4,
  // From the start of the request until it was complete.
  TM_NUMBER_UPLOAD_NS = 5,
  // From the complete request to the end.
  TM_NUMBER_DURATION_NS = 6,
  // To the first byte of the response's body.
  TM_NUMBER_FIRST_BYTE_NS = 7,
  // To the first frame that is no keep-alive. Streams only.
  TM_NUMBER_FIRST_CHUNK_NS = 8,
  // To the first token (TTFT). Streams, and engines that count.
  TM_NUMBER_FIRST_TOKEN_NS = 9,
  // To the first visible text. Streams only.
  TM_NUMBER_FIRST_VISIBLE_NS = 10,
  // To the first part of a tool call. Streams only.
  TM_NUMBER_FIRST_TOOL_NS = 11,
  // From the first to the last token, summed over the timed choices.
  TM_NUMBER_GENERATION_NS = 12,
  // The tokens produced in that time: output less the first token of each choice.
  TM_NUMBER_GENERATION_TOKENS = 13,
  // Time per output token: (duration − TTFT) ÷ (output − 1).
  TM_NUMBER_PER_OUTPUT_TOKEN_NS = 14,
  // The longest gap between two frames with tokens.
  TM_NUMBER_LONGEST_GAP_NS = 15,
  // The number of gaps above the stall limit.
  TM_NUMBER_STALLS = 16,
  // The total time of those gaps.
  TM_NUMBER_STALLED_NS = 17,
  // The time for which bytes were ready and the client was not.
  TM_NUMBER_CLIENT_WAIT_NS = 18,
  // The number of requested answers.
  TM_NUMBER_ANSWERS = 19,
  // The number of answers that arrived.
  TM_NUMBER_CHOICES = 20,
  // The characters of visible text.
  TM_NUMBER_VISIBLE_CHARS = 21,
  // Counts of the server that exceeded the limit and were rejected.
  TM_NUMBER_USAGE_REJECTED = 22,
  // Cached prompt tokens that the server reported beyond the prompt itself, and that no count includes.
  TM_NUMBER_CACHED_EXCESS = 23,
  // The server's own report of the time in its queue.
  TM_NUMBER_SERVER_QUEUE_NS = 24,
  // The server's own report of the time of prefill.
  TM_NUMBER_SERVER_PREFILL_NS = 25,
  // The server's own report of the time of decoding.
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
  // (output − 1) ÷ (last token − first token), tokens per second: the speed that a user sees.
  TM_RATE_OUTPUT = 0,
  // (input − cached) ÷ TTFT, tokens per second.
  TM_RATE_INPUT = 1,
  // Visible characters per second between the first and the last token.
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
  // The tenant; `default` where no rule identifies one.
  TM_TEXT_VALUE_TENANT = 1,
  // The API key or account of the request: a configured name, or a keyed hash.
  TM_TEXT_VALUE_PRINCIPAL = 2,
  // The end user of the request, as a keyed hash.
  TM_TEXT_VALUE_CONSUMER = 3,
  // The upstream's name, as given to the meter.
  TM_TEXT_VALUE_UPSTREAM = 4,
  // The provider's name, as given to the meter.
  TM_TEXT_VALUE_PROVIDER = 5,
  // The JSON shape of request and response.
  TM_TEXT_VALUE_DIALECT = 6,
  // The model of the request; else of the response; else `_unknown`.
  TM_TEXT_VALUE_MODEL = 7,
  // The model of the response.
  TM_TEXT_VALUE_RESPONSE_MODEL = 8,
  // The id of the response.
  TM_TEXT_VALUE_RESPONSE_ID = 9,
  // The id that the client gave the request.
  TM_TEXT_VALUE_REQUEST_ID = 10,
  // The service tier of the response, else of the request.
  TM_TEXT_VALUE_SERVICE_TIER = 11,
  // The ending: `complete`, `length`, `client_abort`, `upstream_cut`, `error_in_band`, `error_status`, `no_output`
  // or `proxy_error`.
  TM_TEXT_VALUE_ENDING = 12,
  // The finish reason of the first answer, in the words of the OpenTelemetry convention.
  TM_TEXT_VALUE_FINISH_REASON = 13,
  // The cost as an exact decimal. Absent without a price.
  TM_TEXT_VALUE_COST = 14,
  // The currency of the cost, three letters.
  TM_TEXT_VALUE_CURRENCY = 15,
  // The version of the price book by which the exchange was charged.
  TM_TEXT_VALUE_PRICE_VERSION = 16,
  // The reason why the exchange has no price.
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
  // None: requests stay as they are.
  TM_USAGE_POLICY_OBSERVE = 0,
  // Usage at the end of a stream.
  TM_USAGE_POLICY_INJECT = 1,
  // Running counts, too, where the server's kind supports them.
  TM_USAGE_POLICY_CONTINUOUS = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum tm_usage_policy tm_usage_policy;
#else
typedef uint32_t tm_usage_policy;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// Bytes of the caller, read during the call only. `data` may be NULL if `length` is 0.
typedef struct {
  // The first byte.
  const uint8_t *data;
  // The number of bytes.
  size_t length;
} tm_slice;

// A buffer of the caller for a text. The call writes the text with a final NUL, which `length` does not count; if it does not
// fit into `capacity`, the call writes nothing but the needed `length` and returns `TM_STATUS_BUFFER`: a capacity of
// `length + 1` then suffices for the same text.
typedef struct {
  // The buffer. May be NULL if `capacity` is 0.
  char *buffer;
  // The bytes of the buffer.
  size_t capacity;
  // The length of the text, bytes. Written by the call.
  size_t length;
} tm_text;

// A price book. Free it with `tm_prices_free`; a meter keeps the book that it was given.
typedef struct {
  // The number; 0 is no object.
  uint64_t id;
} tm_prices;

// The keys of a rule that verifies tokens (`jwt`).
typedef struct {
  // The source of the keys as the rule names it: a file or a URL. The library does not read it.
  tm_slice name;
  // Its content: a JWKS (RFC 7517).
  tm_slice jwks;
} tm_key_source;

// Tenant rules. Free them with `tm_tenants_free`; a meter keeps the rules that it was given.
typedef struct {
  // The number; 0 is no object.
  uint64_t id;
} tm_tenants;

// The settings of a meter. A field of 0 has its default.
typedef struct {
  // `sizeof(tm_meter_options)`.
  size_t size;
  // The name of the server in records and metrics; default `embedded`.
  tm_slice upstream;
  // The provider in records and metrics, `gen_ai.provider.name`; default: the kind, else the upstream.
  tm_slice provider;
  // The kind of the server: `vllm`, `sglang`, `llama.cpp`, `ollama`, `tgi`, …; empty if it is not known.
  tm_slice kind;
  // A longer gap between two tokens is a stall, nanoseconds; default one second.
  uint64_t stall_ns;
  // The maximum of each token count; a higher count of a server is rejected. Default ten million.
  uint64_t max_tokens;
  // The maximum number of models with metrics of their own; default 50.
  uint32_t max_models;
  // A `tm_usage_policy`.
  uint32_t usage_policy;
  // The price book. Its currency is part of the metrics' names.
  tm_prices prices;
  // The tenant rules; without them every exchange belongs to the tenant `default`.
  tm_tenants tenants;
} tm_meter_options;

// A meter: the settings, metrics and prices of the exchanges that begin in it. Free it with `tm_meter_free`.
typedef struct {
  // The number; 0 is no object.
  uint64_t id;
} tm_meter;

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
  // The method, `POST`.
  tm_slice method;
  // The path, with or without a query.
  tm_slice path;
  // The header fields. A field that HTTP does not allow is ignored.
  const tm_header *headers;
  // The number of header fields.
  size_t headers_count;
  // The IP address of the client's connection, for tenant rules with trusted peers; empty if it is not known.
  tm_slice peer;
  // The time at which the request began, nanoseconds of any clock that does not go back. All times of an exchange
  // are of one clock.
  uint64_t at_ns;
  // The same time, nanoseconds since 1970.
  uint64_t unix_ns;
} tm_request;

// A running exchange. `tm_exchange_end` and `tm_exchange_discard` free it.
typedef struct {
  // The number; 0 is no object.
  uint64_t id;
} tm_exchange;

// A buffer of the caller for bytes. If they do not fit into `capacity`, the call writes nothing but the needed `length`
// and returns `TM_STATUS_BUFFER`.
typedef struct {
  // The buffer. May be NULL if `capacity` is 0.
  uint8_t *buffer;
  // The bytes of the buffer.
  size_t capacity;
  // The number of bytes written. Written by the call.
  size_t length;
} tm_bytes;

// The record of an ended exchange. Free it with `tm_record_free`.
typedef struct {
  // The number; 0 is no object.
  uint64_t id;
} tm_record;

// A request that the host describes itself, in place of its head and body.
typedef struct {
  // `sizeof(tm_begin)`.
  size_t size;
  // The JSON shape of request and response, as `openai_chat`; `tm_record_text` returns these names. Required.
  tm_slice dialect;
  // The model.
  tm_slice model;
  // The tenant; empty for `default`.
  tm_slice tenant;
  // The account of the request within the tenant. Never a secret: records show it.
  tm_slice principal;
  // The id that the client gave the request.
  tm_slice request_id;
  // The number of requested answers; 0 means 1.
  uint32_t answers;
  // 1 if the client asked for a stream.
  uint32_t stream;
  // The time at which the request was complete, as in `tm_request`.
  uint64_t at_ns;
  // The same time, nanoseconds since 1970.
  uint64_t unix_ns;
} tm_begin;

// The prompt of one generation. All but `input` are parts of it.
typedef struct {
  // `sizeof(tm_prompt_tokens)`.
  size_t size;
  // All prompt tokens, cached ones included.
  uint64_t input;
  // Those served from a cache, or `TM_UNKNOWN`.
  uint64_t cached;
  // Those computed and written to a cache, or `TM_UNKNOWN`.
  uint64_t cache_write;
  // Those of audio, or `TM_UNKNOWN`.
  uint64_t audio;
  // Those of images, or `TM_UNKNOWN`.
  uint64_t image;
  // Those of videos, or `TM_UNKNOWN`.
  uint64_t video;
} tm_prompt_tokens;

// The new tokens of one answer in one step of the engine.
typedef struct {
  // The exchange.
  tm_exchange exchange;
  // The answer's index, from 0.
  uint32_t choice;
  // New tokens, hidden ones included.
  uint32_t tokens;
  // Those of them in reasoning.
  uint32_t reasoning;
  // The result for this exchange, a `tm_status`. Written by the call.
  int32_t status;
} tm_output_tokens;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the bytes of a text that ends with a NUL, without it; no bytes for NULL.
//
// Thread safety: any thread, at any time.
//
// # Safety
// `text` is NULL or points to a text that ends with a NUL.
tm_slice tm_text_of(const char *text);

// Returns the meaning of a status, a text that is never freed; of a number that is no status: "unknown status".
//
// Thread safety: any thread, at any time.
const char *tm_status_text(int32_t status);

// Writes the message of the last call of this thread that failed (a status of 100 and above): which argument or which
// line is wrong, and what to do. `TM_STATUS_ABSENT` if none failed yet.
//
// Thread safety: any thread, at any time; each thread has its own message.
//
// # Safety
// `text` is NULL or points to a `tm_text` whose buffer has its capacity.
tm_status tm_error_message(tm_text *text);

// Returns the version of the library, `MAJOR.MINOR.PATCH`, a text that is never freed.
//
// Thread safety: any thread, at any time.
const char *tm_version(void);

// Checks that the library fits the header the program was compiled with: call it once, with `TM_ABI`.
// `TM_STATUS_ABI` if it does not.
//
// Thread safety: any thread, at any time.
tm_status tm_abi_check(uint32_t abi);

// Reads a price book: the YAML of a price file. `TM_STATUS_PRICES` if it has errors; the message lists them.
//
// Thread safety: any thread, at any time.
//
// # Safety
// `yaml` points to its bytes; `prices` is NULL or points to a handle, which is written.
tm_status tm_prices_read(tm_slice yaml, tm_prices *prices);

// Frees a price book. Meters that have it keep it.
//
// Thread safety: any thread, at any time.
tm_status tm_prices_free(tm_prices prices);

// Reads tenant rules: the YAML of a tenants file. `hash_key` is the content of the hash key file, or no bytes; rules
// that hash need it. `keys` has the content of each source of keys that the rules name. `TM_STATUS_TENANTS` if anything is
// wrong; the message lists all errors with their lines.
//
// Thread safety: any thread, at any time.
//
// # Safety
// `yaml` and `hash_key` point to their bytes, `keys` to `keys_count` elements and each to its bytes; `tenants` is NULL or
// points to a handle, which is written.
tm_status tm_tenants_read(tm_slice yaml,
                          tm_slice hash_key,
                          const tm_key_source *keys,
                          size_t keys_count,
                          tm_tenants *tenants);

// Frees tenant rules. Meters that have them keep them.
//
// Thread safety: any thread, at any time.
tm_status tm_tenants_free(tm_tenants tenants);

// Makes a meter.
//
// Thread safety: any thread, at any time.
//
// # Safety
// `options` points to a structure of the size in it; `meter` is NULL or points to a handle, which is written.
tm_status tm_meter_new(const tm_meter_options *options, tm_meter *meter);

// Replaces the price book of a meter, for exchanges that end from now on. The book must have the same currency.
//
// Thread safety: any thread, at any time.
tm_status tm_meter_set_prices(tm_meter meter,
                              tm_prices prices);

// Replaces the tenant rules of a meter, for exchanges that begin from now on.
//
// Thread safety: any thread, at any time.
tm_status tm_meter_set_tenants(tm_meter meter, tm_tenants tenants);

// Writes the page of the meter's metrics in the Prometheus text format, for a `/metrics` endpoint of the host. The page
// grows with models and tenants: if the buffer is too small, call again with the needed length and some more.
//
// Thread safety: any thread, at any time.
//
// # Safety
// `text` is NULL or points to a `tm_text` whose buffer has its capacity.
tm_status tm_meter_metrics(tm_meter meter,
                           tm_text *text);

// Frees a meter. Its running exchanges may still be used, and end.
//
// Thread safety: any thread, at any time.
tm_status tm_meter_free(tm_meter meter);

// Begins an exchange when the head of its request is known. `TM_STATUS_NOT_METERED` if the request runs no model, as
// `GET /health`: there is no exchange then, and `exchange` is 0.
//
// Thread safety: any thread, at any time.
//
// # Safety
// `request` points to a structure of the size in it, with the header fields; `exchange` is NULL or points to a handle,
// which is written.
tm_status tm_exchange_begin(tm_meter meter,
                            const tm_request *request,
                            tm_exchange *exchange);

// Reads the next part of the request body, as the client sent it.
//
// Thread safety: any thread, at any time; calls on one exchange wait for each other.
//
// # Safety
// `bytes` points to its bytes.
tm_status tm_exchange_request_body(tm_exchange exchange, tm_slice bytes);

// Records that the request is complete, also one without a body. All times of the record count from here.
//
// Thread safety: any thread, at any time; calls on one exchange wait for each other.
tm_status tm_exchange_request_complete(tm_exchange exchange, uint64_t at_ns);

// Adds the request for usage to the body of a complete request, if the usage policy, the server's kind and the request call
// for it: the server then reports its counts in a stream. Give the whole body and send `edited` in its place, and
// pass the response through `tm_exchange_response_edit`. `TM_STATUS_UNCHANGED` if the body stays as it is.
//
// Thread safety: any thread, at any time; calls on one exchange wait for each other.
//
// # Safety
// `body` points to its bytes; `edited` is NULL or points to a `tm_bytes` whose buffer has its capacity.
tm_status tm_exchange_request_edit(tm_exchange exchange,
                                   tm_slice body,
                                   tm_bytes *edited);

// Reads the head of the response that the client gets. `TM_STATUS_NOT_METERED` if it is not the answer of a model: the
// exchange is over then, and its handle is freed.
//
// Thread safety: any thread, at any time; calls on one exchange wait for each other.
//
// # Safety
// `headers` points to `headers_count` fields, and each to its bytes.
tm_status tm_exchange_response_head(tm_exchange exchange,
                                    uint16_t status,
                                    const tm_header *headers,
                                    size_t headers_count,
                                    uint64_t at_ns);

// Reads the next part of the response body, as the server sent it. `at_ns` is the time at which it was read.
//
// Thread safety: any thread, at any time; calls on one exchange wait for each other.
//
// # Safety
// `bytes` points to its bytes.
tm_status tm_exchange_response_body(tm_exchange exchange, tm_slice bytes, uint64_t at_ns);

// Reads the next part of the response body and writes what the client is to see of it: without the answer to what
// `tm_exchange_request_edit` added. `TM_STATUS_UNCHANGED` if it is the part itself. The start of an event may wait
// for its rest; an empty part releases it. The buffer needs the length of the part and `TM_HOLD_MAX`.
//
// Thread safety: any thread, at any time; calls on one exchange wait for each other.
//
// # Safety
// `bytes` points to its bytes; `shown` is NULL or points to a `tm_bytes` whose buffer has its capacity.
tm_status tm_exchange_response_edit(tm_exchange exchange,
                                    tm_slice bytes,
                                    uint64_t at_ns,
                                    tm_bytes *shown);

// Adds time for which bytes were ready and the client's connection was not, nanoseconds.
//
// Thread safety: any thread, at any time; calls on one exchange wait for each other.
tm_status tm_exchange_client_wait(tm_exchange exchange, uint64_t ns);

// Ends an exchange in this way, a `tm_close`, and frees its handle. Writes the record, unless `record` is NULL: the
// metrics have the exchange in either case. `TM_STATUS_NOT_METERED` if nothing of inference was seen: there is no
// record then, and `record` is 0.
//
// Thread safety: any thread, at any time; calls on one exchange wait for each other.
//
// # Safety
// `record` is NULL or points to a handle, which is written.
tm_status tm_exchange_end(tm_exchange exchange,
                          uint32_t close,
                          uint64_t at_ns,
                          tm_record *record);

// Ends an exchange without a record, as one that was never sent to a model, and frees its handle.
//
// Thread safety: any thread, at any time; calls on one exchange wait for each other.
tm_status tm_exchange_discard(tm_exchange exchange);

// Begins an exchange that the host describes itself, and whose tokens it counts: for hosts that have no HTTP request. The
// request is complete.
//
// Thread safety: any thread, at any time.
//
// # Safety
// `begin` points to a structure of the size in it; `exchange` is NULL or points to a handle, which is written.
tm_status tm_exchange_begin_described(tm_meter meter,
                                      const tm_begin *begin,
                                      tm_exchange *exchange);

// Takes the counts of an exchange from the host from now on, as `TM_PROVENANCE_ENGINE`, and none from the body. The other
// functions of this group do so, too.
//
// Thread safety: any thread, at any time; calls on one exchange wait for each other.
tm_status tm_exchange_count_by_engine(tm_exchange exchange);

// Adds a prompt that the engine processed. Answers to one prompt share it: give it once. Each prompt of a list, and each
// round of a tool loop, is one more.
//
// Thread safety: any thread, at any time; calls on one exchange wait for each other.
//
// # Safety
// `prompt` points to a structure of the size in it.
tm_status tm_exchange_prompt_tokens(tm_exchange exchange,
                                    const tm_prompt_tokens *prompt);

// Adds the tokens of one step of the engine, for any number of exchanges in one call. `at_ns` is the time of the step. The
// call succeeds if it succeeds for every exchange; otherwise it returns the first failure, and the others count.
//
// Thread safety: any thread, at any time; calls on one exchange wait for each other.
//
// # Safety
// `steps` points to `count` elements, which are read and whose status is written.
tm_status tm_output_tokens_add(tm_output_tokens *steps,
                               size_t count,
                               uint64_t at_ns);

// Ends an answer with the engine's word for the reason: `stop`, `length`, `tool_calls`, `content_filter`, `abort`. An
// unknown word is another reason.
//
// Thread safety: any thread, at any time; calls on one exchange wait for each other.
//
// # Safety
// `reason` points to its bytes.
tm_status tm_exchange_finish(tm_exchange exchange,
                             uint32_t choice,
                             tm_slice reason);

// Writes the count of one type of tokens, a `tm_token_type`, and its source, a `tm_provenance`. `TM_STATUS_ABSENT` if
// nothing counted them: `count` is not written then.
//
// Thread safety: any thread, at any time.
//
// # Safety
// `count` and `provenance` are NULL or point to a number, which is written.
tm_status tm_record_tokens(tm_record record,
                           uint32_t token_type,
                           uint64_t *count,
                           uint32_t *provenance);

// Writes a number of the record, a `tm_number`. `TM_STATUS_ABSENT` if it is not known: nothing is written then.
//
// Thread safety: any thread, at any time.
//
// # Safety
// `value` is NULL or points to a number, which is written.
tm_status tm_record_number(tm_record record,
                           uint32_t number,
                           uint64_t *value);

// Writes a rate of the record, a `tm_rate`. `TM_STATUS_ABSENT` if it is not known: nothing is written then.
//
// Thread safety: any thread, at any time.
//
// # Safety
// `value` is NULL or points to a number, which is written.
tm_status tm_record_rate(tm_record record, uint32_t rate, double *value);

// Writes a text of the record, a `tm_text_value`. `TM_STATUS_ABSENT` if it is not known: nothing is written then.
//
// Thread safety: any thread, at any time.
//
// # Safety
// `text` is NULL or points to a `tm_text` whose buffer has its capacity.
tm_status tm_record_text(tm_record record,
                         uint32_t value,
                         tm_text *text);

// Writes all known values of the record as one JSON object. README.md lists its members.
//
// Thread safety: any thread, at any time.
//
// # Safety
// `text` is NULL or points to a `tm_text` whose buffer has its capacity.
tm_status tm_record_json(tm_record record, tm_text *text);

// Frees a record.
//
// Thread safety: any thread, at any time.
tm_status tm_record_free(tm_record record);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TOKENMETER_H */
