// Feeds recorded exchanges, one byte of a body at a time, and prints each record as a line of JSON. Input, from
// stdin, numbers in the byte order of the machine: per exchange the method, path and request (each a length of 32 bits
// and bytes), the status (32 bits), the response's type and body, the number of reads (32 bits) and for each the
// end in the body (32 bits) and the time (64 bits, ns), the close (32 bits) and the time of the end (64 bits).
#include <string.h>

#include "check.h"

static char *input;
static size_t length, at;

static void take(void *to, size_t count) {
  CHECK(count <= length - at);
  memcpy(to, input + at, count);
  at += count;
}

static uint32_t take_u32(void) {
  uint32_t number;
  take(&number, sizeof number);
  return number;
}

static uint64_t take_u64(void) {
  uint64_t number;
  take(&number, sizeof number);
  return number;
}

static tm_slice take_slice(void) {
  uint32_t count = take_u32();
  tm_slice bytes;
  CHECK(count <= length - at);
  bytes = slice(input + at, count);
  at += count;
  return bytes;
}

static void print_record(tm_record record) {
  tm_text text = {NULL, 0, 0};
  CHECK_STATUS(tm_record_json(record, &text), TM_STATUS_BUFFER);
  text.capacity = text.length + 1;
  text.buffer = (char *)malloc(text.capacity);
  CHECK(text.buffer != NULL);
  CHECK_OK(tm_record_json(record, &text));
  puts(text.buffer);
  free(text.buffer);
}

static void replay(tm_meter meter) {
  tm_request request = {0};
  tm_header type;
  tm_exchange exchange = {0};
  tm_record record = {0};
  tm_slice body, request_body;
  uint32_t status, reads, read, close, from = 0;
  uint64_t ended;
  size_t n;
  request.size = sizeof request;
  request.method = take_slice();
  request.path = take_slice();
  request_body = take_slice();
  status = take_u32();
  type.name = tm_text_of("content-type");
  type.value = take_slice();
  body = take_slice();
  CHECK_OK(tm_exchange_begin(meter, &request, &exchange));
  for (n = 0; n < request_body.length; n++) {
    CHECK_OK(tm_exchange_request_body(exchange, slice(request_body.data + n, 1)));
  }
  CHECK_OK(tm_exchange_request_complete(exchange, 0));
  CHECK_OK(tm_exchange_response_head(exchange, (uint16_t)status, &type, type.value.length > 0 ? 1 : 0, 0));
  reads = take_u32();
  for (read = 0; read < reads; read++) {
    uint32_t to = take_u32();
    uint64_t at_ns = take_u64();
    CHECK(from <= to && to <= body.length);
    for (; from < to; from++) CHECK_OK(tm_exchange_response_body(exchange, slice(body.data + from, 1), at_ns));
  }
  CHECK(from == body.length);
  close = take_u32();
  ended = take_u64();
  CHECK_OK(tm_exchange_end(exchange, close, ended, &record));
  print_record(record);
  CHECK_OK(tm_record_free(record));
}

int main(void) {
  size_t capacity = 1 << 20;
  tm_meter_options options = {0};
  tm_meter meter = {0};
  options.size = sizeof options;
  options.upstream = tm_text_of("recorded");
  options.stall_ns = UINT64_C(60000000000);
  CHECK_OK(tm_meter_new(&options, &meter));
  input = (char *)malloc(capacity);
  CHECK(input != NULL);
  for (;;) {
    size_t got = fread(input + length, 1, capacity - length, stdin);
    if (got == 0) break;
    length += got;
    if (length == capacity) {
      capacity *= 2;
      input = (char *)realloc(input, capacity);
      CHECK(input != NULL);
    }
  }
  while (at < length) replay(meter);
  free(input);
  CHECK_OK(tm_meter_free(meter));
  return 0;
}
