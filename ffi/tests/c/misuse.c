// Every mistake of a caller is a status: NULL, handles that are wrong, forged, freed or of another type, calls out of
// order, lengths and sizes that do not fit.
#include <string.h>

#include "check.h"

static void null_pointers(tm_meter meter) {
  tm_meter_options options = {0};
  tm_slice none = {NULL, 1};
  tm_exchange exchange = new_chat(meter, 1);
  tm_record record = {0};
  uint64_t count = 0;

  options.size = sizeof options;
  CHECK_STATUS(tm_meter_new(NULL, &meter), TM_STATUS_NULL);
  CHECK_STATUS(tm_meter_new(&options, NULL), TM_STATUS_NULL);
  CHECK_STATUS(tm_meter_metrics(meter, NULL), TM_STATUS_NULL);
  CHECK_STATUS(tm_exchange_begin(meter, NULL, &exchange), TM_STATUS_NULL);
  CHECK(exchange.id == 0);
  exchange = new_chat(meter, 1);
  CHECK_STATUS(tm_exchange_request_body(exchange, none), TM_STATUS_NULL);
  CHECK_OK(tm_exchange_request_body(exchange, slice(NULL, 0)));
  CHECK_STATUS(tm_exchange_response_head(exchange, 200, NULL, 3, 1), TM_STATUS_NULL);
  CHECK_STATUS(tm_exchange_request_edit(exchange, slice("{}", 2), NULL), TM_STATUS_NULL);
  open_stream(exchange, 2);
  CHECK_STATUS(tm_exchange_response_body(exchange, none, 3), TM_STATUS_NULL);
  CHECK_OK(tm_exchange_response_body(exchange, tm_text_of(CHAT_RESPONSE), 3));
  CHECK_OK(tm_exchange_end(exchange, TM_CLOSE_CLEAN, 4, &record));
  CHECK_STATUS(tm_record_tokens(record, TM_TOKEN_TYPE_OUTPUT, NULL, NULL), TM_STATUS_NULL);
  CHECK_OK(tm_record_tokens(record, TM_TOKEN_TYPE_OUTPUT, &count, NULL));
  CHECK(count == 2);
  CHECK_STATUS(tm_record_number(record, TM_NUMBER_STATUS, NULL), TM_STATUS_NULL);
  CHECK_STATUS(tm_record_text(record, TM_TEXT_VALUE_MODEL, NULL), TM_STATUS_NULL);
  CHECK_STATUS(tm_record_json(record, NULL), TM_STATUS_NULL);
  CHECK_OK(tm_record_free(record));
  CHECK_STATUS(tm_prices_read(tm_text_of("version: v"), NULL), TM_STATUS_NULL);
}

static void handles(tm_meter meter) {
  tm_exchange exchange = new_chat(meter, 1);
  tm_exchange forged, null = {0};
  tm_record as_record;
  tm_meter as_meter;

  forged.id = exchange.id + 1;
  CHECK_STATUS(tm_exchange_request_body(forged, tm_text_of("{")), TM_STATUS_HANDLE);
  forged.id = ~UINT64_C(0);
  CHECK_STATUS(tm_exchange_request_body(forged, tm_text_of("{")), TM_STATUS_HANDLE);
  CHECK_STATUS(tm_exchange_request_body(null, tm_text_of("{")), TM_STATUS_NULL);
  as_record.id = exchange.id;
  CHECK_STATUS(tm_record_free(as_record), TM_STATUS_HANDLE);
  as_meter.id = exchange.id;
  CHECK_STATUS(tm_meter_free(as_meter), TM_STATUS_HANDLE);
  CHECK_OK(tm_exchange_discard(exchange));
  CHECK_STATUS(tm_exchange_discard(exchange), TM_STATUS_HANDLE);
  CHECK_STATUS(tm_exchange_request_body(exchange, tm_text_of("{")), TM_STATUS_HANDLE);
  CHECK_STATUS(tm_exchange_end(exchange, TM_CLOSE_CLEAN, 9, NULL), TM_STATUS_HANDLE);
}

static void order(tm_meter meter) {
  tm_exchange exchange = new_chat(meter, 1);
  CHECK_STATUS(tm_exchange_response_body(exchange, tm_text_of("data"), 2), TM_STATUS_ORDER);
  CHECK_OK(tm_exchange_request_complete(exchange, 2));
  CHECK_STATUS(tm_exchange_request_complete(exchange, 3), TM_STATUS_ORDER);
  CHECK_STATUS(tm_exchange_request_body(exchange, tm_text_of("{")), TM_STATUS_ORDER);
  CHECK_OK(tm_exchange_response_head(exchange, 200, NULL, 0, 3));
  CHECK_STATUS(tm_exchange_response_head(exchange, 200, NULL, 0, 3), TM_STATUS_ORDER);
  CHECK_STATUS(tm_exchange_end(exchange, 77, 4, NULL), TM_STATUS_VALUE);
  CHECK_OK(tm_exchange_end(exchange, TM_CLOSE_CUT, 4, NULL));
}

static void sizes(tm_meter meter) {
  tm_meter_options options = {0};
  tm_meter other = {0};
  tm_request request = {0};
  tm_exchange exchange = {0};
  struct {
    tm_meter_options known;
    uint64_t later;
  } newer;
  char small[4];
  char large[1024];
  tm_text text;

  CHECK_STATUS(tm_meter_new(&options, &other), TM_STATUS_SIZE);
  CHECK_STATUS(tm_exchange_begin(meter, &request, &exchange), TM_STATUS_SIZE);
  memset(&newer, 0, sizeof newer);
  newer.known.size = sizeof newer;
  CHECK_OK(tm_meter_new(&newer.known, &other));
  CHECK_OK(tm_meter_free(other));
  newer.later = 1;
  CHECK_STATUS(tm_meter_new(&newer.known, &other), TM_STATUS_SIZE);
  options.size = sizeof options;
  options.usage_policy = 9;
  CHECK_STATUS(tm_meter_new(&options, &other), TM_STATUS_VALUE);
  options.usage_policy = 0;
  options.kind = tm_text_of("abacus");
  CHECK_STATUS(tm_meter_new(&options, &other), TM_STATUS_VALUE);
  text.buffer = small;
  text.capacity = sizeof small;
  text.length = 0;
  CHECK_STATUS(tm_error_message(&text), TM_STATUS_BUFFER);
  CHECK(text.length > sizeof small);
  text.buffer = large;
  text.capacity = sizeof large;
  CHECK_OK(tm_error_message(&text));
  CHECK(strstr(large, "abacus") != NULL);
  text.buffer = small;
  text.capacity = sizeof small;
  options.kind = slice("\xff", 1);
  CHECK_STATUS(tm_meter_new(&options, &other), TM_STATUS_TEXT);
  options.kind = slice(NULL, 0);
  options.upstream = slice("a\0b", 3);
  CHECK_STATUS(tm_meter_new(&options, &other), TM_STATUS_TEXT);
  CHECK_STATUS(tm_meter_metrics(meter, &text), TM_STATUS_BUFFER);
}

// The text of a name with a NUL is not that of another name.
static void names(tm_meter meter) {
  static const char BODY[] = "{\"model\":\"tiny\\u0000\\n\"}";
  tm_exchange exchange = new_chat(meter, 1);
  tm_record record = {0};
  CHECK_OK(tm_exchange_request_body(exchange, tm_text_of(BODY)));
  CHECK_OK(tm_exchange_end(exchange, TM_CLOSE_CUT, 2, &record));
  CHECK(has_text(record, TM_TEXT_VALUE_MODEL, "tiny\xef\xbf\xbd\n"));
  CHECK_OK(tm_record_free(record));
}

static void not_metered(tm_meter meter) {
  tm_request request = {0};
  tm_exchange exchange = {7};
  request.size = sizeof request;
  request.method = tm_text_of("GET");
  request.path = tm_text_of("/health");
  CHECK_STATUS(tm_exchange_begin(meter, &request, &exchange), TM_STATUS_NOT_METERED);
  CHECK(exchange.id == 0);
}

static void tenants(void) {
  static const char RULES[] = "rules:\n  - header: x-team\ndefault: nobody\ntrusted_peers: [10.0.0.0/8]\n";
  static const char HASHED[] = "rules:\n  - api_keys: {tenants: {alpha: [0123]}}\n";
  tm_tenants rules = {0};
  tm_meter_options options = {0};
  tm_meter meter = {0};
  tm_request request = {0};
  tm_header team;
  tm_exchange exchange = {0};
  tm_record record = {0};
  char buffer[256];
  tm_text text;
  const char *peers[] = {"10.1.2.3", "192.0.2.1"};
  const char *expected[] = {"alpha", "nobody"};
  int at;

  text.buffer = buffer;
  text.capacity = sizeof buffer;
  text.length = 0;
  CHECK_STATUS(tm_tenants_read(tm_text_of("rules: [{hedaer: x}]"), slice(NULL, 0), NULL, 0, &rules), TM_STATUS_TENANTS);
  CHECK_OK(tm_error_message(&text));
  CHECK(strstr(buffer, "tenants:1") != NULL);
  CHECK_STATUS(tm_tenants_read(tm_text_of(HASHED), slice("short", 5), NULL, 0, &rules), TM_STATUS_TENANTS);
  CHECK_STATUS(tm_tenants_read(tm_text_of(RULES), slice(NULL, 0), NULL, 0, NULL), TM_STATUS_NULL);
  CHECK_OK(tm_tenants_read(tm_text_of(RULES), slice(NULL, 0), NULL, 0, &rules));
  options.size = sizeof options;
  options.tenants = rules;
  CHECK_OK(tm_meter_new(&options, &meter));
  CHECK_OK(tm_meter_set_tenants(meter, rules));
  CHECK_OK(tm_tenants_free(rules));
  CHECK_STATUS(tm_meter_set_tenants(meter, rules), TM_STATUS_HANDLE);
  team.name = tm_text_of("X-Team");
  team.value = tm_text_of("alpha");
  for (at = 0; at < 2; at++) {
    request.size = sizeof request;
    request.method = tm_text_of("POST");
    request.path = tm_text_of("/v1/chat/completions?x=1");
    request.headers = &team;
    request.headers_count = 1;
    request.peer = tm_text_of(peers[at]);
    CHECK_OK(tm_exchange_begin(meter, &request, &exchange));
    open_stream(exchange, 2);
    CHECK_OK(tm_exchange_end(exchange, TM_CLOSE_CLEAN, 3, &record));
    CHECK_OK(tm_record_text(record, TM_TEXT_VALUE_TENANT, &text));
    CHECK(strcmp(buffer, expected[at]) == 0);
    CHECK_OK(tm_record_free(record));
  }
  CHECK_OK(tm_meter_free(meter));
}

static void prices_and_meters(void) {
  static const char BOOK[] = "version: v1\ncurrency: EUR\nmodels:\n  - {name: tiny, input: 1000000, output: 3000000}\n";
  tm_prices prices = {0}, dollars = {0};
  tm_meter_options options = {0};
  tm_meter meter = {0};
  tm_exchange exchange;
  tm_record record = {0};
  char buffer[64];
  tm_text text;

  CHECK_STATUS(tm_prices_read(tm_text_of("models: [{name: 3, inptu: 1}]"), &prices), TM_STATUS_PRICES);
  CHECK_OK(tm_prices_read(tm_text_of(BOOK), &prices));
  CHECK_OK(tm_prices_read(tm_text_of("version: v\ncurrency: USD\nmodels: []\n"), &dollars));
  options.size = sizeof options;
  options.prices = prices;
  CHECK_OK(tm_meter_new(&options, &meter));
  CHECK_STATUS(tm_meter_set_prices(meter, dollars), TM_STATUS_PRICES);
  CHECK_OK(tm_prices_free(dollars));
  CHECK_OK(tm_prices_free(prices));
  CHECK_STATUS(tm_prices_free(prices), TM_STATUS_HANDLE);
  exchange = new_chat(meter, 10);
  CHECK_OK(tm_meter_free(meter));
  CHECK_STATUS(tm_meter_free(meter), TM_STATUS_HANDLE);
  // The exchange holds its meter, and the meter its prices.
  open_stream(exchange, 20);
  CHECK_OK(tm_exchange_response_body(exchange, tm_text_of(CHAT_RESPONSE), 30));
  CHECK_OK(tm_exchange_end(exchange, TM_CLOSE_CLEAN, 40, &record));
  text.buffer = buffer;
  text.capacity = sizeof buffer;
  text.length = 0;
  CHECK_OK(tm_record_text(record, TM_TEXT_VALUE_COST, &text));
  CHECK(strcmp(buffer, "11.00") == 0);
  CHECK_OK(tm_record_text(record, TM_TEXT_VALUE_CURRENCY, &text));
  CHECK(strcmp(buffer, "EUR") == 0);
  CHECK_STATUS(tm_record_text(record, TM_TEXT_VALUE_UNPRICED, &text), TM_STATUS_ABSENT);
  CHECK_STATUS(tm_record_text(record, 999, &text), TM_STATUS_VALUE);
  CHECK_STATUS(tm_record_number(record, 999, NULL), TM_STATUS_VALUE);
  CHECK_OK(tm_record_free(record));
  CHECK_STATUS(tm_record_free(record), TM_STATUS_HANDLE);
}

int main(void) {
  tm_meter meter;
  tm_text text = {NULL, 0, 0};
  CHECK_STATUS(tm_error_message(&text), TM_STATUS_ABSENT);
  CHECK_OK(tm_abi_check(TM_ABI));
  CHECK_STATUS(tm_abi_check(TM_ABI + 1), TM_STATUS_ABI);
  CHECK(strlen(tm_version()) >= 5);
  CHECK(strcmp(tm_status_text(TM_STATUS_OK), "success") == 0);
  CHECK(strcmp(tm_status_text(-7), "unknown status") == 0);
  meter = new_meter();
  null_pointers(meter);
  handles(meter);
  order(meter);
  sizes(meter);
  names(meter);
  not_metered(meter);
  tenants();
  prices_and_meters();
  CHECK_OK(tm_meter_free(meter));
  puts("ok");
  return 0;
}
