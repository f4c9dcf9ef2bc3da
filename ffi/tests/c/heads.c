// Heads as servers and clients may write them: no spelling keeps an exchange from being metered for its tenant.
#include "check.h"

static tm_meter with_rules(void) {
  static const char RULES[] =
      "rules:\n  - {path: /t/acme, tenant: acme, strip: true}\n  - header: x-team\ndefault: nobody\ntrusted_peers: [\"fe80::/10\", 10.0.0.0/8]\n";
  tm_tenants rules = {0};
  tm_meter_options options = {0};
  tm_meter meter = {0};
  CHECK_OK(tm_tenants_read(tm_text_of(RULES), slice(NULL, 0), NULL, 0, &rules));
  options.size = sizeof options;
  options.tenants = rules;
  CHECK_OK(tm_meter_new(&options, &meter));
  CHECK_OK(tm_tenants_free(rules));
  return meter;
}

static void begins_for(tm_meter meter, const char *method, const char *path, const char *peer, const char *tenant) {
  tm_request request = {0};
  tm_exchange exchange = {0};
  tm_record record = {0};
  tm_header team;
  team.name = tm_text_of("X-Team");
  team.value = tm_text_of("alpha");
  request.size = sizeof request;
  request.method = tm_text_of(method);
  request.path = tm_text_of(path);
  request.headers = &team;
  request.headers_count = 1;
  request.peer = tm_text_of(peer);
  request.at_ns = 1;
  CHECK_OK(tm_exchange_begin(meter, &request, &exchange));
  CHECK_OK(tm_exchange_end(exchange, TM_CLOSE_CLEAN, 2, &record));
  CHECK(has_text(record, TM_TEXT_VALUE_TENANT, tenant));
  CHECK(has_text(record, TM_TEXT_VALUE_DIALECT, "openai_chat"));
  CHECK_OK(tm_record_free(record));
}

static void names_model(tm_meter meter, const char *path, const char *name, const char *value, const char *model) {
  tm_request request = {0};
  tm_exchange exchange = {0};
  tm_record record = {0};
  tm_header field;
  field.name = tm_text_of(name);
  field.value = tm_text_of(value);
  request.size = sizeof request;
  request.method = tm_text_of("POST");
  request.path = tm_text_of(path);
  request.headers = &field;
  request.headers_count = 1;
  request.at_ns = 1;
  CHECK_OK(tm_exchange_begin(meter, &request, &exchange));
  CHECK_OK(tm_exchange_end(exchange, TM_CLOSE_CLEAN, 2, &record));
  CHECK(has_text(record, TM_TEXT_VALUE_MODEL, model));
  CHECK_OK(tm_record_free(record));
}

static void interim(tm_meter meter) {
  tm_exchange exchange = new_chat(meter, 1);
  tm_record record = {0};
  uint64_t status = 0;
  CHECK_OK(tm_exchange_response_head(exchange, 100, NULL, 0, 2));
  CHECK_OK(tm_exchange_response_head(exchange, 103, NULL, 0, 2));
  CHECK_STATUS(tm_exchange_response_head(exchange, 0, NULL, 0, 2), TM_STATUS_VALUE);
  CHECK_STATUS(tm_exchange_response_head(exchange, 1000, NULL, 0, 2), TM_STATUS_VALUE);
  open_stream(exchange, 3);
  CHECK_STATUS(tm_exchange_response_head(exchange, 200, NULL, 0, 4), TM_STATUS_ORDER);
  CHECK_OK(tm_exchange_response_body(exchange, tm_text_of(CHAT_RESPONSE), 5));
  CHECK_OK(tm_exchange_end(exchange, TM_CLOSE_CLEAN, 6, &record));
  CHECK_OK(tm_record_number(record, TM_NUMBER_STATUS, &status));
  CHECK(status == 200);
  CHECK_OK(tm_record_free(record));
  CHECK_STATUS(tm_exchange_response_head(exchange, 103, NULL, 0, 7), TM_STATUS_HANDLE);
}

int main(void) {
  static const char CHAT[] = "/v1/chat/completions";
  static const char *const UNKNOWN_PEERS[] = {"", "unknown", "testclient", "10.0.0.1:80", "unix:", "\xff"};
  tm_meter meter = with_rules();
  size_t at;
  begins_for(meter, "post", CHAT, "10.1.2.3", "alpha");
  begins_for(meter, "POST", CHAT, "fe80::1%eth0", "alpha");
  for (at = 0; at < sizeof UNKNOWN_PEERS / sizeof *UNKNOWN_PEERS; at++) {
    begins_for(meter, "POST", CHAT, UNKNOWN_PEERS[at], "nobody");
  }
  begins_for(meter, "POST", "/t/acme/v1/chat/completions", "", "acme");
  begins_for(meter, "POST", "http://host:80/t/acme/v1/chat/completions?a=b", "", "acme");
  begins_for(meter, "POST", "/t/acme/v1/chat/completions?url=http://host/t/other/", "", "acme");
  names_model(meter, "/v1/chat/completions?model=a%2Fb#model=c", "accept", "d", "a/b");
  names_model(meter, "http://host/t/acme/v1/chat/completions?x=?&model=a", "accept", "d", "a");
  names_model(meter, "/v1/chat/completions", "X-Gateway-Model-Name", "d", "d");
  names_model(meter, "/engines/a/chat/completions", "accept", "d", "a");
  names_model(meter, "/v1/chat/completions#?model=a", "accept", "d", "_unknown");
  interim(meter);
  CHECK_OK(tm_meter_free(meter));
  puts("ok");
  return 0;
}
