// `jwt` rules: their sources of keys, keys that come later, and the time that tokens need.
#include "check.h"
#include "token.h"

#define URL "https://id.example/keys?code=hunter2"
#define SECONDS UINT64_C(1000000000)
#define NOW (UINT64_C(1800000000) * SECONDS)

static const char RULES[] =
    "rules:\n"
    "  - jwt: {keys: \"" URL "\", issuer: https://id.example, audience: tokenmeter, claim: tenant}\n"
    "  - jwt: {keys: local.json, issuer: https://other.example, audience: tokenmeter, claim: tenant}\n"
    "  - jwt: {keys: local.json, issuer: https://third.example, audience: tokenmeter, claim: tenant}\n";

static char buffer[4096];

static tm_text text(size_t capacity) {
  tm_text text;
  text.buffer = buffer;
  text.capacity = capacity;
  text.length = 0;
  return text;
}

static void sources(void) {
  tm_text names = text(3);
  CHECK_STATUS(tm_tenants_key_sources(tm_text_of(RULES), NULL), TM_STATUS_NULL);
  CHECK_STATUS(tm_tenants_key_sources(tm_text_of(RULES), &names), TM_STATUS_BUFFER);
  names = text(names.length + 1);
  CHECK_OK(tm_tenants_key_sources(tm_text_of(RULES), &names));
  CHECK(strcmp(buffer, URL "\nlocal.json") == 0);
  CHECK_STATUS(tm_tenants_key_sources(tm_text_of("default: nobody"), &names), TM_STATUS_ABSENT);
  CHECK_STATUS(tm_tenants_key_sources(tm_text_of("rules: 7"), &names), TM_STATUS_TENANTS);
  // The name has a line break, which would make it two.
  CHECK_STATUS(tm_tenants_key_sources(tm_text_of("rules: [{jwt: {keys: \"a\\nb\", issuer: i, claim: c}}]"), &names),
               TM_STATUS_TENANTS);
}

// Reads the rules with the keys of the URL, and makes them those of the meter.
static tm_tenants read_rules(tm_meter meter, const char *jwks) {
  tm_tenants tenants = {0};
  tm_key_source keys[2];
  keys[0].name = tm_text_of("local.json");
  keys[0].jwks = tm_text_of("");
  keys[1].name = tm_text_of(URL);
  keys[1].jwks = tm_text_of(jwks);
  CHECK_OK(tm_tenants_read(tm_text_of(RULES), slice(NULL, 0), keys, 2, &tenants));
  CHECK_OK(tm_meter_set_tenants(meter, tenants));
  return tenants;
}

static tm_status begin(tm_meter meter, const char *token, uint64_t unix_ns, tm_exchange *exchange) {
  tm_request request = {0};
  tm_header field;
  field.name = tm_text_of("authorization");
  field.value = tm_text_of(token);
  request.size = sizeof request;
  request.method = tm_text_of("POST");
  request.path = tm_text_of("/v1/chat/completions");
  request.headers = &field;
  request.headers_count = 1;
  request.at_ns = 1;
  request.unix_ns = unix_ns;
  return tm_exchange_begin(meter, &request, exchange);
}

static int is_tenant(tm_meter meter, uint64_t unix_ns, const char *tenant) {
  tm_exchange exchange = {0};
  tm_record record = {0};
  int found;
  CHECK_OK(begin(meter, BEARER, unix_ns, &exchange));
  CHECK_OK(tm_exchange_end(exchange, TM_CLOSE_CUT, 2, &record));
  found = has_text(record, TM_TEXT_VALUE_TENANT, tenant);
  CHECK_OK(tm_record_free(record));
  return found;
}

static void keys_come_later(void) {
  tm_meter meter = new_meter();
  tm_tenants before = read_rules(meter, ""), after;
  CHECK_STATUS(tm_tenants_key_missed(before, tm_text_of(URL)), TM_STATUS_ABSENT);
  CHECK(is_tenant(meter, NOW, "default"));
  CHECK_OK(tm_tenants_key_missed(before, tm_text_of(URL)));
  CHECK_STATUS(tm_tenants_key_missed(before, tm_text_of(URL)), TM_STATUS_ABSENT);
  CHECK_STATUS(tm_tenants_key_missed(before, tm_text_of("none.json")), TM_STATUS_ABSENT);
  after = read_rules(meter, ISSUER_KEYS);
  CHECK(is_tenant(meter, NOW, "acme"));
  CHECK_STATUS(tm_tenants_key_missed(after, tm_text_of(URL)), TM_STATUS_ABSENT);
  CHECK_OK(tm_tenants_free(before));
  CHECK_STATUS(tm_tenants_key_missed(before, tm_text_of(URL)), TM_STATUS_HANDLE);
  CHECK_OK(tm_tenants_free(after));
  CHECK_OK(tm_meter_free(meter));
}

// A URL may have a secret in its query.
static void errors_have_no_query(void) {
  tm_tenants tenants = {0};
  tm_key_source source;
  tm_text message = text(sizeof buffer);
  source.name = tm_text_of(URL);
  source.jwks = tm_text_of("{}");
  CHECK_STATUS(tm_tenants_read(tm_text_of(RULES), slice(NULL, 0), &source, 1, &tenants), TM_STATUS_TENANTS);
  CHECK_OK(tm_error_message(&message));
  CHECK(strstr(buffer, "the keys of `https://id.example/keys`") != NULL && strstr(buffer, "hunter2") == NULL);
}

static void tokens_need_the_time(void) {
  tm_meter meter = new_meter();
  tm_exchange exchange = {7};
  tm_tenants tenants;
  CHECK_OK(begin(meter, BEARER, 0, &exchange));
  CHECK_OK(tm_exchange_discard(exchange));
  tenants = read_rules(meter, ISSUER_KEYS);
  // Also without a token: the host's mistake is found at its first request, and not only at one with a token.
  CHECK_STATUS(begin(meter, BEARER, 0, &exchange), TM_STATUS_VALUE);
  CHECK(exchange.id == 0);
  CHECK_STATUS(begin(meter, "Basic YTpi", 0, &exchange), TM_STATUS_VALUE);
  CHECK_STATUS(begin(meter, BEARER, SECONDS - 1, &exchange), TM_STATUS_VALUE);
  CHECK_SAMPLE(meter, "tokenmeter_exchanges_in_flight{model=\"_unknown\"}", 0);
  // The leeway for clocks is 60 seconds.
  CHECK(is_tenant(meter, UINT64_C(1699999939) * SECONDS, "default"));
  CHECK(is_tenant(meter, UINT64_C(1699999940) * SECONDS, "acme"));
  CHECK(is_tenant(meter, UINT64_C(2000000059) * SECONDS, "acme"));
  CHECK(is_tenant(meter, UINT64_C(2000000060) * SECONDS, "default"));
  CHECK_OK(tm_tenants_free(tenants));
  CHECK_OK(tm_meter_free(meter));
}

int main(void) {
  sources();
  keys_come_later();
  errors_have_no_query();
  tokens_need_the_time();
  puts("ok");
  return 0;
}
