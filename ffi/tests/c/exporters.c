// Exporters of a meter: what cannot start, the exchanges of several threads, prices that change, a second start.
// Arguments: `absent`, for a library without exporters; or the path of a ledger and the address of a collector. The program
// then prints the address of the listener, and goes on after a line of input.
#include "check.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define EXCHANGES 25

static tm_exporters_options options(void) {
  tm_exporters_options all = {0};
  all.size = sizeof all;
  return all;
}

static int message_has(const char *part) {
  char buffer[1024];
  tm_text text = {NULL, 0, 0};
  text.buffer = buffer;
  text.capacity = sizeof buffer;
  CHECK_OK(tm_error_message(&text));
  if (strstr(buffer, part) == NULL) fprintf(stderr, "the message is %s\n", buffer);
  return strstr(buffer, part) != NULL;
}

static tm_meter priced(const char *book) {
  tm_prices prices = {0};
  tm_meter_options all = {0};
  tm_meter meter = {0};
  CHECK_OK(tm_prices_read(tm_text_of(book), &prices));
  all.size = sizeof all;
  all.prices = prices;
  CHECK_OK(tm_meter_new(&all, &meter));
  CHECK_OK(tm_prices_free(prices));
  return meter;
}

typedef struct {
  tm_meter meter;
  const char *cost;
} chats_options;

static void *chats(void *argument) {
  const chats_options *all = (const chats_options *)argument;
  struct timespec now;
  int index;
  for (index = 0; index < EXCHANGES; index++) {
    tm_request request = {0};
    tm_exchange exchange = {0};
    tm_record record = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    request.size = sizeof request;
    request.method = tm_text_of("POST");
    request.path = tm_text_of("/v1/chat/completions");
    request.at_ns = 1;
    request.unix_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    CHECK_OK(tm_exchange_begin(all->meter, &request, &exchange));
    open_stream(exchange, 20);
    CHECK_OK(tm_exchange_response_body(exchange, tm_text_of(CHAT_RESPONSE), 30));
    CHECK_OK(tm_exchange_end(exchange, TM_CLOSE_CLEAN, 40, &record));
    CHECK(has_text(record, TM_TEXT_VALUE_COST, all->cost));
    CHECK_OK(tm_record_free(record));
  }
  return NULL;
}

// Five tokens at 1 and two at 3 a million, or twice as much.
static const char CHEAP[] = "0.000011";
static const char DEAR[] = "0.000022";

static void chats_of_threads(tm_meter meter, const char *cost) {
  pthread_t threads[THREADS];
  chats_options all;
  int index;
  all.meter = meter;
  all.cost = cost;
  for (index = 0; index < THREADS; index++) CHECK(pthread_create(&threads[index], NULL, chats, &all) == 0);
  for (index = 0; index < THREADS; index++) CHECK(pthread_join(threads[index], NULL) == 0);
}

static void refused(tm_meter meter, const char *ledger) {
  tm_exporters exporters = {0};
  tm_exporters_options all = options();
  CHECK_STATUS(tm_exporters_start(meter, NULL, &exporters), TM_STATUS_NULL);
  CHECK_STATUS(tm_exporters_start(meter, &all, NULL), TM_STATUS_NULL);
  all.listen = tm_text_of("localhost");
  CHECK_STATUS(tm_exporters_start(meter, &all, &exporters), TM_STATUS_TEXT);
  all.listen = tm_text_of("192.0.2.1:1");
  CHECK_STATUS(tm_exporters_start(meter, &all, &exporters), TM_STATUS_START);
  CHECK(message_has("192.0.2.1:1"));
  all = options();
  all.ledger = tm_text_of("/no/such/folder/ledger.db");
  CHECK_STATUS(tm_exporters_start(meter, &all, &exporters), TM_STATUS_START);
  CHECK(message_has("/no/such/folder"));
  all.ledger = tm_text_of(ledger);
  all.otlp_variables = tm_text_of("OTEL_EXPORTER_OTLP_ENDPOINT");
  CHECK_STATUS(tm_exporters_start(meter, &all, &exporters), TM_STATUS_TEXT);
  all.otlp_variables = tm_text_of("OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:1\nOTEL_EXPORTER_OTLP_PROTOCOL=smtp");
  CHECK_STATUS(tm_exporters_start(meter, &all, &exporters), TM_STATUS_START);
  CHECK(message_has("OTEL_EXPORTER_OTLP_PROTOCOL"));
  all.otlp_variables = tm_text_of("");
  all.ledger_keep_days = UINT64_C(1) << 32;
  CHECK_STATUS(tm_exporters_start(meter, &all, &exporters), TM_STATUS_VALUE);
  CHECK(exporters.id == 0);
}

// A thread opens the file.
static void wait_for_ledger(tm_meter meter) {
  const struct timespec pause = {0, 10000000};
  int left;
  for (left = 2000; left > 0; left--) {
    char *text = page(meter);
    double up = sample(text, "tokenmeter_ledger_up");
    free(text);
    if (up == 1) return;
    nanosleep(&pause, NULL);
  }
  CHECK(!"the ledger is open");
}

static double sample_of(tm_meter meter, const char *name) {
  char *text = page(meter);
  double value = sample(text, name);
  free(text);
  return value;
}

static int has_price_book(tm_meter meter) {
  char *text = page(meter);
  int has = strstr(text, "\ntokenmeter_price_book_info") != NULL;
  free(text);
  return has;
}

// A ledger has one writer, by whatever name; and a group that does not start leaves nothing.
static void second_meter(const char *ledger) {
  char other[4200], folder[4096];
  const char *name = strrchr(ledger, '/');
  tm_meter meter = new_meter();
  tm_exporters exporters = {0};
  tm_exporters_options all = options();
  all.ledger = tm_text_of(ledger);
  CHECK_STATUS(tm_exporters_start(meter, &all, &exporters), TM_STATUS_START);
  CHECK(message_has("other exporters of this process"));
  snprintf(other, sizeof other, "%.*s/./%s", (int)(name - ledger), ledger, name + 1);
  all.ledger = tm_text_of(other);
  CHECK_STATUS(tm_exporters_start(meter, &all, &exporters), TM_STATUS_START);
  snprintf(other, sizeof other, "%.*s/link.db", (int)(name - ledger), ledger);
  CHECK(symlink(ledger, other) == 0);
  CHECK_STATUS(tm_exporters_start(meter, &all, &exporters), TM_STATUS_START);
  CHECK(getcwd(folder, sizeof folder) != NULL);
  snprintf(other, sizeof other, "%.*s", (int)(name - ledger), ledger);
  CHECK(chdir(other) == 0);
  all.ledger = tm_text_of(name + 1);
  CHECK_STATUS(tm_exporters_start(meter, &all, &exporters), TM_STATUS_START);
  // Its file is where the process was at the start.
  all.ledger = tm_text_of("relative.db");
  CHECK_OK(tm_exporters_start(meter, &all, &exporters));
  CHECK(chdir(folder) == 0);
  wait_for_ledger(meter);
  CHECK_OK(tm_exporters_shutdown(exporters));
  snprintf(other, sizeof other, "%.*s/relative.db", (int)(name - ledger), ledger);
  CHECK(access(other, F_OK) == 0);
  all.ledger = slice("x\0.db", 5);
  CHECK_STATUS(tm_exporters_start(meter, &all, &exporters), TM_STATUS_START);
  CHECK_OK(tm_meter_free(meter));
}

static void absent(void) {
  tm_meter meter = new_meter();
  tm_exporters exporters = {0};
  tm_exporters_options all = options();
  CHECK_STATUS(tm_exporters_start(meter, &all, &exporters), TM_STATUS_UNSUPPORTED);
  CHECK(exporters.id == 0);
  CHECK_STATUS(tm_exporters_shutdown(exporters), TM_STATUS_NULL);
  CHECK_OK(tm_meter_free(meter));
}

int main(int count, char **arguments) {
  static const char BOOK[] = "version: v1\ncurrency: USD\nmodels:\n  - {name: tiny, input: 1, output: 3}\n";
  static const char DEARER[] = "version: v2\ncurrency: USD\nmodels:\n  - {name: tiny, input: 2, output: 6}\n";
  tm_meter meter;
  tm_prices dearer = {0};
  tm_exporters exporters = {0}, second = {0};
  tm_exporters_options all = options();
  char buffer[64], variables[256];
  tm_text text = {NULL, 0, 0};

  if (count == 2 && strcmp(arguments[1], "absent") == 0) {
    absent();
    puts("ok");
    return 0;
  }
  CHECK(count == 3);
  meter = priced(BOOK);
  refused(meter, arguments[1]);
  CHECK(sample_of(meter, "tokenmeter_ledger_up") == -1 && !has_price_book(meter));

  all.listen = tm_text_of("127.0.0.1:0");
  all.ledger = tm_text_of(arguments[1]);
  snprintf(variables, sizeof variables, "OTEL_EXPORTER_OTLP_ENDPOINT=%s\nOTEL_LOGS_EXPORTER=otlp\n", arguments[2]);
  all.otlp_variables = tm_text_of(variables);
  CHECK_OK(tm_exporters_start(meter, &all, &exporters));
  CHECK_STATUS(tm_exporters_start(meter, &all, &second), TM_STATUS_ORDER);
  CHECK_STATUS(tm_exporters_problems(exporters, &text), TM_STATUS_ABSENT);
  text.buffer = buffer;
  text.capacity = sizeof buffer;
  CHECK_OK(tm_exporters_address(exporters, &text));

  second_meter(arguments[1]);
  CHECK(has_price_book(meter));
  chats_of_threads(meter, CHEAP);
  CHECK_OK(tm_prices_read(tm_text_of(DEARER), &dearer));
  CHECK_OK(tm_meter_set_prices(meter, dearer));
  CHECK_OK(tm_prices_free(dearer));
  chats_of_threads(meter, DEAR);
  wait_for_ledger(meter);

  puts(buffer);
  fflush(stdout);
  CHECK(getchar() == '\n');

  CHECK_OK(tm_exporters_shutdown(exporters));
  CHECK_STATUS(tm_exporters_shutdown(exporters), TM_STATUS_HANDLE);
  CHECK_STATUS(tm_exporters_address(exporters, &text), TM_STATUS_HANDLE);
  // Counts stay; there is no ledger, and the book of the metrics may be another one by now.
  CHECK(sample_of(meter, "tokenmeter_ledger_up") == -1 && !has_price_book(meter));
  CHECK(sample_of(meter, "tokenmeter_ledger_rows_total") == 200);
  // These are in the metrics only.
  chats_of_threads(meter, DEAR);

  // The ledger goes on, also if the meter is freed meanwhile.
  all.listen = tm_text_of("");
  CHECK_OK(tm_exporters_start(meter, &all, &exporters));
  CHECK_STATUS(tm_exporters_address(exporters, &text), TM_STATUS_ABSENT);
  chats_of_threads(meter, DEAR);
  CHECK_OK(tm_meter_free(meter));
  CHECK_OK(tm_exporters_shutdown(exporters));
  puts("ok");
  return 0;
}
