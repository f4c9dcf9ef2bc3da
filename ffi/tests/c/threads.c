// Threads share a meter, one exchange and one record, and have exchanges of their own. Every exchange is counted once.
#include <pthread.h>
#include <string.h>

#include "check.h"

enum { THREADS = 8 };

static int rounds;
static tm_meter meter;
static tm_exchange shared;

static void *work(void *unused) {
  int round;
  (void)unused;
  for (round = 0; round < rounds; round++) {
    tm_exchange exchange = new_chat(meter, 1);
    tm_record record = {0};
    uint64_t output = 0;
    size_t at;
    open_stream(exchange, 2);
    for (at = 0; at < sizeof CHAT_RESPONSE - 1; at += 50) {
      size_t left = sizeof CHAT_RESPONSE - 1 - at;
      CHECK_OK(tm_exchange_response_body(exchange, slice(CHAT_RESPONSE + at, left < 50 ? left : 50), 3 + at));
      CHECK_OK(tm_exchange_client_wait(shared, 1));
    }
    CHECK_OK(tm_exchange_end(exchange, TM_CLOSE_CLEAN, 1000, &record));
    CHECK_OK(tm_record_number(record, TM_NUMBER_OUTPUT_TOKENS, &output));
    CHECK(output == 2);
    CHECK_OK(tm_record_free(record));
  }
  return NULL;
}

// The sum of all samples of a metric on a page.
static double sum(const char *text, const char *name) {
  double all = 0;
  const char *line;
  for (line = text; line != NULL && *line != 0; line = strchr(line, '\n') + 1) {
    if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == '{') {
      const char *end = strchr(line, '\n');
      const char *value = end;
      CHECK(end != NULL);
      while (value[-1] != ' ') value--;
      all += atof(value);
    }
  }
  return all;
}

int main(int argc, char **argv) {
  pthread_t threads[THREADS];
  char *text;
  int at;
  rounds = argc > 1 ? atoi(argv[1]) : 200;
  meter = new_meter();
  shared = new_chat(meter, 1);
  for (at = 0; at < THREADS; at++) CHECK(pthread_create(&threads[at], NULL, work, NULL) == 0);
  for (at = 0; at < 20; at++) free(page(meter));
  for (at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
  CHECK_OK(tm_exchange_discard(shared));
  text = page(meter);
  CHECK(sum(text, "tokenmeter_exchanges_total") == (double)THREADS * rounds);
  CHECK(sum(text, "tokenmeter_exchanges_in_flight") == 0);
  CHECK(sum(text, "tokenmeter_tokens_total") == 7.0 * THREADS * rounds);
  free(text);
  CHECK_OK(tm_meter_free(meter));
  puts("ok");
  return 0;
}
