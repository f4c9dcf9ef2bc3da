// The editing of a request and its response by a caller that asks for the size first, changes its mind, or passes parts
// of the response without it.
#include "check.h"

#define STEP(name) "tokenmeter_usage_steps_total{step=\"" name "\"}"

static const char REQUEST[] = "{\"model\":\"tiny\",\"stream\":true,\"messages\":[]}";
static const char FRAME[] =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}],"
    "\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1,\"total_tokens\":6}}\n\n";
static const char SHOWN[] = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";

static const char VERBOSE[] =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}],\"__verbose\":{\"p\":\"";

static uint8_t buffer[2 * TM_HOLD_MAX];

static tm_bytes bytes(size_t capacity) {
  tm_bytes bytes;
  bytes.buffer = buffer;
  bytes.capacity = capacity;
  bytes.length = 0;
  return bytes;
}

static tm_meter continuous(void) {
  tm_meter_options options = {0};
  tm_meter meter = {0};
  options.size = sizeof options;
  options.kind = tm_text_of("vllm");
  options.usage_policy = TM_USAGE_POLICY_CONTINUOUS;
  CHECK_OK(tm_meter_new(&options, &meter));
  return meter;
}

static tm_exchange requested(tm_meter meter) {
  tm_exchange exchange = new_chat(meter, 1);
  CHECK_OK(tm_exchange_request_body(exchange, tm_text_of(REQUEST)));
  CHECK_OK(tm_exchange_request_complete(exchange, 2));
  return exchange;
}

static void open_response(tm_exchange exchange) {
  tm_header type;
  type.name = tm_text_of("content-type");
  type.value = tm_text_of("text/event-stream");
  CHECK_OK(tm_exchange_response_head(exchange, 200, &type, 1, 3));
}

static void size_first(void) {
  tm_meter meter = continuous();
  tm_exchange exchange = requested(meter);
  tm_bytes edited = bytes(0);
  size_t needed;
  CHECK_STATUS(tm_exchange_request_edit(exchange, tm_text_of(REQUEST), &edited), TM_STATUS_BUFFER);
  CHECK_SAMPLE(meter, STEP("continuous"), 0);
  needed = edited.length;
  edited = bytes(needed);
  CHECK_OK(tm_exchange_request_edit(exchange, tm_text_of(REQUEST), &edited));
  CHECK(edited.length == needed);
  CHECK_OK(tm_exchange_request_edit(exchange, tm_text_of(REQUEST), &edited));
  CHECK_SAMPLE(meter, STEP("continuous"), 1);
  open_response(exchange);
  edited = bytes(7);
  CHECK_STATUS(tm_exchange_response_edit(exchange, tm_text_of(FRAME), 4, &edited), TM_STATUS_BUFFER);
  CHECK(edited.length == strlen(FRAME) + TM_HOLD_MAX);
  edited = bytes(edited.length);
  CHECK_OK(tm_exchange_response_edit(exchange, tm_text_of(FRAME), 4, &edited));
  CHECK(edited.length == strlen(SHOWN) && memcmp(buffer, SHOWN, strlen(SHOWN)) == 0);
  CHECK_OK(tm_exchange_discard(exchange));
  CHECK_OK(tm_meter_free(meter));
}

// The buffer may be that of the body, with some more bytes.
static void in_place(void) {
  tm_meter meter = continuous();
  tm_exchange exchange = requested(meter);
  tm_bytes edited = bytes(sizeof buffer);
  static char expected[512];
  CHECK_OK(tm_exchange_request_edit(exchange, tm_text_of(REQUEST), &edited));
  memcpy(expected, buffer, edited.length);
  memcpy(buffer, REQUEST, strlen(REQUEST));
  CHECK_OK(tm_exchange_request_edit(exchange, slice(buffer, strlen(REQUEST)), &edited));
  CHECK(edited.length == strlen(expected) && memcmp(buffer, expected, edited.length) == 0);
  CHECK_OK(tm_exchange_discard(exchange));
  CHECK_OK(tm_meter_free(meter));
}

// A caller that sent the client's own request gets the server's own response.
static void not_sent(void) {
  tm_meter meter = continuous();
  tm_exchange exchange = requested(meter);
  tm_bytes edited = bytes(0);
  CHECK_STATUS(tm_exchange_request_edit(exchange, tm_text_of(REQUEST), &edited), TM_STATUS_BUFFER);
  open_response(exchange);
  edited = bytes(sizeof buffer);
  CHECK_STATUS(tm_exchange_response_edit(exchange, tm_text_of(FRAME), 4, &edited), TM_STATUS_UNCHANGED);
  CHECK_OK(tm_exchange_discard(exchange));
  CHECK_OK(tm_meter_free(meter));
}

static void mixed_calls(void) {
  tm_meter meter = continuous();
  tm_exchange exchange = requested(meter);
  tm_bytes edited = bytes(sizeof buffer);
  tm_record record = {0};
  uint64_t count = 0;
  CHECK_OK(tm_exchange_request_edit(exchange, tm_text_of(REQUEST), &edited));
  open_response(exchange);
  edited = bytes(sizeof buffer);
  CHECK_OK(tm_exchange_response_edit(exchange, tm_text_of(FRAME), 4, &edited));
  CHECK(edited.length == strlen(SHOWN));
  CHECK_OK(tm_exchange_response_body(exchange, tm_text_of(FRAME), 5));
  // The editor does not know that part.
  CHECK_STATUS(tm_exchange_response_edit(exchange, tm_text_of(FRAME), 6, &edited), TM_STATUS_UNCHANGED);
  CHECK_OK(tm_exchange_end(exchange, TM_CLOSE_CLIENT_GONE, 7, &record));
  CHECK_OK(tm_record_number(record, TM_NUMBER_INPUT_TOKENS, &count));
  CHECK(count == 5);
  CHECK_OK(tm_record_free(record));
  CHECK_OK(tm_meter_free(meter));
}

// The longest event that may wait grows by a byte: what it promises to write at most still has room for it.
static void longest_event(void) {
  static const char REST[] =
      "\",\"generation_settings\":{\"timings_per_token\":true}},\"timings\":{\"prompt_n\":1,\"predicted_n\":1}}\n\n";
  static char event[TM_HOLD_MAX / 2];
  tm_meter_options options = {0};
  tm_meter meter = {0};
  tm_exchange exchange;
  tm_bytes edited = bytes(sizeof buffer);
  options.size = sizeof options;
  options.kind = tm_text_of("llama_cpp");
  options.usage_policy = TM_USAGE_POLICY_CONTINUOUS;
  CHECK_OK(tm_meter_new(&options, &meter));
  exchange = requested(meter);
  CHECK_OK(tm_exchange_request_edit(exchange, tm_text_of(REQUEST), &edited));
  open_response(exchange);
  memset(event, 'x', sizeof event);
  memcpy(event, VERBOSE, strlen(VERBOSE));
  edited = bytes(sizeof event + TM_HOLD_MAX);
  CHECK_OK(tm_exchange_response_edit(exchange, slice(event, sizeof event), 4, &edited));
  CHECK(edited.length == 0);
  edited = bytes(strlen(REST) + TM_HOLD_MAX);
  CHECK_OK(tm_exchange_response_edit(exchange, tm_text_of(REST), 5, &edited));
  CHECK(edited.length == sizeof event + strlen(REST) + 1);
  CHECK_OK(tm_exchange_discard(exchange));
  CHECK_OK(tm_meter_free(meter));
}

// Of a response that cannot be edited, the client sees what was added to its request: that is counted.
static void compressed_response(void) {
  tm_meter meter = continuous();
  tm_exchange exchange = requested(meter);
  tm_bytes edited = bytes(sizeof buffer);
  tm_header fields[2];
  CHECK_OK(tm_exchange_request_edit(exchange, tm_text_of(REQUEST), &edited));
  fields[0].name = tm_text_of("content-type");
  fields[0].value = tm_text_of("text/event-stream");
  fields[1].name = tm_text_of("content-encoding");
  fields[1].value = tm_text_of("gzip");
  CHECK_OK(tm_exchange_response_head(exchange, 200, fields, 2, 3));
  CHECK_SAMPLE(meter, "tokenmeter_dropped_total{what=\"usage_edit\"}", 1);
  CHECK_STATUS(tm_exchange_response_edit(exchange, tm_text_of("no gzip"), 4, &edited), TM_STATUS_DECODING);
  CHECK_STATUS(tm_exchange_response_edit(exchange, tm_text_of("no gzip"), 4, &edited), TM_STATUS_UNCHANGED);
  CHECK_OK(tm_exchange_end(exchange, TM_CLOSE_CLEAN, 5, NULL));
  CHECK_OK(tm_meter_free(meter));
}

int main(void) {
  size_first();
  in_place();
  not_sent();
  mixed_calls();
  longest_event();
  compressed_response();
  puts("ok");
  return 0;
}
