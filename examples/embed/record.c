// Meters one streamed answer: reads the body of a response from stdin and prints its record as JSON.
//
//   cc record.c $(pkg-config --cflags --libs tokenmeter) -o record
//   REQUEST='{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}'
//   curl -sN http://localhost:8000/v1/chat/completions -H 'content-type: application/json' -d "$REQUEST" |
//     ./record "$REQUEST"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <tokenmeter.h>

static uint64_t now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Stops the program if a call failed, with the library's message.
static void check(tm_status status) {
  char buffer[1024] = "";
  tm_text text = {buffer, sizeof buffer, 0};
  if (status == TM_STATUS_OK) return;
  tm_error_message(&text);
  fprintf(stderr, "tokenmeter: %s: %s\n", tm_status_text(status), buffer);
  exit(1);
}

int main(int argc, char **argv) {
  char buffer[16384];
  char *json;
  ssize_t got;
  tm_meter_options options = {.size = sizeof options};
  tm_request request = {.size = sizeof request};
  tm_header type = {tm_text_of("content-type"), tm_text_of("text/event-stream")};
  tm_meter meter;
  tm_exchange exchange;
  tm_record record;
  tm_text text = {NULL, 0, 0};

  check(tm_abi_check(TM_ABI));
  check(tm_meter_new(&options, &meter));

  // The request: its head, its body, and the time at which it was complete.
  request.method = tm_text_of("POST");
  request.path = tm_text_of("/v1/chat/completions");
  request.at_ns = now_ns(CLOCK_MONOTONIC);
  request.unix_ns = now_ns(CLOCK_REALTIME);
  check(tm_exchange_begin(meter, &request, &exchange));
  check(tm_exchange_request_body(exchange, tm_text_of(argc > 1 ? argv[1] : "{\"stream\":true}")));
  check(tm_exchange_request_complete(exchange, now_ns(CLOCK_MONOTONIC)));

  // The response: its head, and each part of its body when it was read.
  check(tm_exchange_response_head(exchange, 200, &type, 1, now_ns(CLOCK_MONOTONIC)));
  while ((got = read(STDIN_FILENO, buffer, sizeof buffer)) > 0) {
    tm_slice part = {(const uint8_t *)buffer, (size_t)got};
    check(tm_exchange_response_body(exchange, part, now_ns(CLOCK_MONOTONIC)));
  }

  // The end, and the record.
  check(tm_exchange_end(exchange, TM_CLOSE_CLEAN, now_ns(CLOCK_MONOTONIC), &record));
  if (tm_record_json(record, &text) != TM_STATUS_BUFFER) abort();
  text.capacity = text.length + 1;
  json = malloc(text.capacity);
  if (json == NULL) abort();
  text.buffer = json;
  check(tm_record_json(record, &text));
  puts(json);
  free(json);
  check(tm_record_free(record));
  check(tm_meter_free(meter));
  return 0;
}
