// What the test programs share: checks that print what failed and where.
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenmeter.h"

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) {                                                            \
      fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                     \
    }                                                                              \
  } while (0)

#define CHECK_STATUS(call, expected)                                                        \
  do {                                                                                      \
    int32_t got_ = (int32_t)(call);                                                         \
    if (got_ != (int32_t)(expected)) {                                                      \
      fprintf(stderr, "%s:%d: %s is %d (%s), not %s\n", __FILE__, __LINE__, #call, (int)got_, \
              tm_status_text(got_), #expected);                                             \
      exit(1);                                                                              \
    }                                                                                       \
  } while (0)

#define CHECK_OK(call) CHECK_STATUS(call, TM_STATUS_OK)

static inline tm_slice slice(const void *data, size_t length) {
  tm_slice bytes;
  bytes.data = (const uint8_t *)data;
  bytes.length = length;
  return bytes;
}

// Makes a meter with the default settings.
static inline tm_meter new_meter(void) {
  tm_meter_options options = {0};
  tm_meter meter = {0};
  options.size = sizeof options;
  CHECK_OK(tm_meter_new(&options, &meter));
  return meter;
}

// Begins an exchange of a chat at `at_ns`.
static inline tm_exchange new_chat(tm_meter meter, uint64_t at_ns) {
  tm_request request = {0};
  tm_exchange exchange = {0};
  request.size = sizeof request;
  request.method = tm_text_of("POST");
  request.path = tm_text_of("/v1/chat/completions");
  request.at_ns = at_ns;
  request.unix_ns = UINT64_C(1793448000000000000) + at_ns;
  CHECK_OK(tm_exchange_begin(meter, &request, &exchange));
  return exchange;
}

static const char CHAT_REQUEST[] =
    "{\"model\":\"tiny\",\"stream\":true,\"stream_options\":{\"include_usage\":true},\"messages\":[]}";

static const char CHAT_RESPONSE[] =
    "data: {\"id\":\"c1\",\"model\":\"tiny\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n"
    "data: {\"id\":\"c1\",\"model\":\"tiny\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"},"
    "\"finish_reason\":\"stop\"}]}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7}}\n\n"
    "data: [DONE]\n\n";

// Gives an exchange its request and the head of a stream of events.
static inline void open_stream(tm_exchange exchange, uint64_t at_ns) {
  tm_header type;
  type.name = tm_text_of("content-type");
  type.value = tm_text_of("text/event-stream");
  CHECK_OK(tm_exchange_request_body(exchange, tm_text_of(CHAT_REQUEST)));
  CHECK_OK(tm_exchange_request_complete(exchange, at_ns));
  CHECK_OK(tm_exchange_response_head(exchange, 200, &type, 1, at_ns));
}

// Returns the page of a meter, to be freed.
static inline char *page(tm_meter meter) {
  tm_text text = {NULL, 0, 0};
  for (;;) {
    tm_status status = tm_meter_metrics(meter, &text);
    if (status == TM_STATUS_OK) return text.buffer;
    CHECK_STATUS(status, TM_STATUS_BUFFER);
    text.capacity = text.length + 4096;
    text.buffer = (char *)realloc(text.buffer, text.capacity);
    CHECK(text.buffer != NULL);
  }
}

// Returns the value of a sample on a page, by its name and labels; -1 if it is not there.
static inline double sample(const char *text, const char *name) {
  const char *line = strstr(text, name);
  while (line != NULL && ((line != text && line[-1] != '\n') || line[strlen(name)] != ' ')) line = strstr(line + 1, name);
  return line == NULL ? -1 : atof(line + strlen(name));
}

// Checks the value of a sample of a meter.
#define CHECK_SAMPLE(meter, name, expected)                                                          \
  do {                                                                                               \
    char *page_ = page(meter);                                                                       \
    double got_ = sample(page_, name);                                                               \
    if (got_ != (double)(expected)) {                                                                \
      fprintf(stderr, "%s:%d: %s is %g, not %s\n", __FILE__, __LINE__, name, got_, #expected);       \
      exit(1);                                                                                       \
    }                                                                                                \
    free(page_);                                                                                     \
  } while (0)

// Checks a text of a record.
static inline int has_text(tm_record record, uint32_t value, const char *expected) {
  char buffer[512];
  tm_text text;
  text.buffer = buffer;
  text.capacity = sizeof buffer;
  text.length = 0;
  CHECK_OK(tm_record_text(record, value, &text));
  if (strcmp(buffer, expected) != 0) fprintf(stderr, "text %u is %s, not %s\n", (unsigned)value, buffer, expected);
  return strcmp(buffer, expected) == 0;
}

#endif
