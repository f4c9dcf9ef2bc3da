// Random calls in any order, with handles that live, were freed, are forged or null, and with random bytes. Nothing
// crashes, and each call returns a known status. Usage: random SEED CALLS.
#include <string.h>

#include "check.h"

enum { KEPT = 64 };

static uint64_t state;

static uint64_t next(void) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * UINT64_C(0x2545f4914f6cdd1d) >> 8;
}

static uint64_t below(uint64_t end) { return next() % end; }

static uint64_t kept[KEPT];

// A handle of any type, mostly one that was handed out.
static uint64_t handle(void) {
  switch (below(16)) {
    case 0: return 0;
    case 1: return next() << 8 | next();
    case 2: return kept[below(KEPT)] ^ UINT64_C(1) << below(64);
    default: return kept[below(KEPT)];
  }
}

static void keep(uint64_t id) {
  if (id != 0) kept[below(KEPT)] = id;
}

static const char *const TEXTS[] = {
    "POST", "GET", "/v1/chat/completions", "/api/chat", "/generate", "/v1/messages", "/health", "content-type",
    "text/event-stream", "application/json", "application/x-ndjson", "gzip", "content-encoding", "authorization",
    "Bearer sk-1", "{\"model\":\"m\",\"stream\":true}", "{\"model\":\"m\",\"n\":3}", "data: [DONE]\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":18446744073709551615}}\n\n",
    "{\"message\":{\"content\":\"x\"},\"done\":true,\"eval_count\":3,\"prompt_eval_count\":1}\n", "{\"usage\":", "\xff\xfe",
    "version: v\ncurrency: USD\nmodels: [{name: m, input: 1, output: 2}]\n", "vllm", "127.0.0.1", "::1", "",
};

static tm_slice any_slice(void) {
  static char noise[512];
  size_t at;
  if (below(40) == 0) return slice(NULL, below(3));
  if (below(4) > 0) return tm_text_of(TEXTS[below(sizeof TEXTS / sizeof *TEXTS)]);
  for (at = 0; at < sizeof noise; at++) noise[at] = (char)next();
  return slice(noise, below(sizeof noise));
}

static uint64_t any_time(void) { return below(8) == 0 ? next() << 8 : below(1000000); }

static void check_known(tm_status status) {
  if (strcmp(tm_status_text(status), "unknown status") == 0 || status == TM_STATUS_PANIC) {
    fprintf(stderr, "status %d\n", (int)status);
    exit(1);
  }
}

static tm_status call(void) {
  static uint8_t bytes_buffer[128 * 1024];
  static char text_buffer[4096];
  tm_meter meter;
  tm_exchange exchange;
  tm_record record;
  tm_prices prices;
  tm_header headers[3];
  tm_text text;
  tm_bytes bytes;
  uint64_t number = 0;
  double rate = 0;
  uint32_t provenance = 0;
  size_t at;
  tm_status status;
  meter.id = exchange.id = record.id = prices.id = handle();
  text.buffer = text_buffer;
  text.capacity = below(2) ? sizeof text_buffer : below(64);
  text.length = 0;
  bytes.buffer = bytes_buffer;
  bytes.capacity = below(2) ? sizeof bytes_buffer : below(64);
  bytes.length = 0;
  for (at = 0; at < 3; at++) {
    headers[at].name = any_slice();
    headers[at].value = any_slice();
  }
  switch (below(25)) {
    case 0: {
      tm_meter_options options;
      memset(&options, 0, sizeof options);
      options.size = below(8) ? sizeof options : below(2 * sizeof options);
      if (options.size > sizeof options) options.size = sizeof options;
      options.upstream = any_slice();
      options.usage_policy = (uint32_t)below(4);
      options.max_models = (uint32_t)below(4);
      if (below(2)) options.prices.id = handle();
      status = tm_meter_new(&options, &meter);
      if (status == TM_STATUS_OK) keep(meter.id);
      return status;
    }
    case 1: return below(20) ? TM_STATUS_OK : tm_meter_free(meter);
    case 2: return tm_meter_metrics(meter, &text);
    case 3: return tm_meter_set_prices(meter, prices);
    case 4:
      status = tm_prices_read(any_slice(), &prices);
      if (status == TM_STATUS_OK) keep(prices.id);
      return status;
    case 5: return below(20) ? TM_STATUS_OK : tm_prices_free(prices);
    case 6:
    case 7:
    case 8:
    case 9: {
      tm_request request;
      memset(&request, 0, sizeof request);
      request.size = sizeof request;
      request.method = below(4) ? tm_text_of("POST") : any_slice();
      request.path = below(4) ? tm_text_of("/v1/chat/completions") : any_slice();
      request.headers = headers;
      request.headers_count = below(4);
      request.peer = below(4) ? tm_text_of("") : any_slice();
      request.at_ns = any_time();
      request.unix_ns = any_time();
      status = tm_exchange_begin(meter, &request, &exchange);
      if (status == TM_STATUS_OK) keep(exchange.id);
      return status;
    }
    case 10: return tm_exchange_request_body(exchange, any_slice());
    case 11: return tm_exchange_request_complete(exchange, any_time());
    case 12: return tm_exchange_request_edit(exchange, any_slice(), &bytes);
    case 13: return tm_exchange_response_head(exchange, (uint16_t)below(600), headers, below(4), any_time());
    case 14:
    case 15:
    case 16: return tm_exchange_response_body(exchange, any_slice(), any_time());
    case 17: return tm_exchange_response_edit(exchange, any_slice(), any_time(), &bytes);
    case 18: return tm_exchange_client_wait(exchange, any_time());
    case 19:
      status = tm_exchange_end(exchange, (uint32_t)below(5), any_time(), below(4) ? &record : NULL);
      if (status == TM_STATUS_OK) keep(record.id);
      return status;
    case 20: return below(4) ? TM_STATUS_OK : tm_exchange_discard(exchange);
    case 21: return tm_record_tokens(record, (uint32_t)below(120), &number, below(2) ? &provenance : NULL);
    case 22:
      check_known(tm_record_number(record, (uint32_t)below(40), &number));
      check_known(tm_record_rate(record, (uint32_t)below(6), &rate));
      check_known(tm_record_text(record, (uint32_t)below(30), &text));
      return tm_record_json(record, &text);
    case 23: return tm_tenants_key_sources(any_slice(), &text);
    default:
      check_known(tm_error_message(&text));
      return below(4) ? TM_STATUS_OK : tm_record_free(record);
  }
}

int main(int argc, char **argv) {
  long calls = argc > 2 ? atol(argv[2]) : 20000;
  long done = 0;
  long n;
  state = (argc > 1 ? strtoull(argv[1], NULL, 10) : 7) * UINT64_C(0x9e3779b97f4a7c15) | 1;
  for (n = 0; n < calls; n++) {
    tm_status status = call();
    check_known(status);
    if (status == TM_STATUS_OK) done++;
  }
  printf("ok: %ld of %ld calls succeeded\n", done, calls);
  // Calls that all fail would show nothing.
  CHECK(done > calls / 10);
  return 0;
}
