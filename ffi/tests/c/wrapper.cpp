// The C++ wrapper: objects free themselves, failures throw, and each part of the C interface is there.
#include "tokenmeter.hpp"

#include "token.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(condition)                                                                       \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                            \
    }                                                                                          \
  } while (0)

using namespace tokenmeter;

static const char STREAM[] =
    "data: {\"id\":\"c1\",\"model\":\"tiny\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"},"
    "\"finish_reason\":\"stop\"}]}\n\n"
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";

template <typename Call>
static void throws(tm_status status, Call call) {
  try {
    call();
    CHECK(!"the call throws");
  } catch (const Error &error) {
    CHECK(error.status() == status && std::strlen(error.what()) > 10);
  }
}

static bool has_line(const Meter &meter, const std::string &line) {
  return ("\n" + meter.metrics()).find("\n" + line + "\n") != std::string::npos;
}

static Request chat() {
  Request request;
  request.path = "/v1/chat/completions";
  return request;
}

static void stream_has_a_record() {
  Prices prices = Prices::read("version: v1\ncurrency: USD\nmodels:\n  - {name: tiny, input: 1, output: 2}\n");
  tm_meter_options options{};
  options.prices = prices.get();
  Meter meter(options);
  Request request = chat();
  request.headers = {{"x-request-id", "r-1"}};
  std::optional<Exchange> exchange = meter.begin(request);
  CHECK(exchange);
  exchange->request_body("{\"model\":\"tiny\",\"stream\":true,\"messages\":[]}");
  exchange->request_complete(1000);
  CHECK(exchange->response_head(200, {{"content-type", "text/event-stream"}}, 1500));
  exchange->response_body(STREAM, 2000);
  std::optional<Record> record = exchange->end(TM_CLOSE_CLEAN, 3000);
  CHECK(record);
  CHECK(record->tokens(TM_TOKEN_TYPE_OUTPUT)->count == 2);
  CHECK(record->tokens(TM_TOKEN_TYPE_OUTPUT)->provenance == TM_PROVENANCE_REPORTED);
  CHECK(record->number(TM_NUMBER_FIRST_TOKEN_NS) == 1000u);
  CHECK(!record->number(TM_NUMBER_SERVER_QUEUE_NS));
  CHECK(record->text(TM_TEXT_VALUE_MODEL) == "tiny");
  CHECK(record->text(TM_TEXT_VALUE_REQUEST_ID) == "r-1");
  CHECK(record->text(TM_TEXT_VALUE_COST) == "0.000009");
  CHECK(record->json().find("\"output_tokens\":2") != std::string::npos);
  CHECK(has_line(meter, "tokenmeter_exchanges_in_flight{model=\"tiny\"} 0"));
  throws(TM_STATUS_NULL, [&] { exchange->request_body("x"); });
  throws(TM_STATUS_NULL, [&] { exchange->end(TM_CLOSE_CLEAN, 4000); });
  throws(TM_STATUS_PRICES, [] { Prices::read("models: 7"); });
  Meter moved = std::move(meter);
  CHECK(!moved.metrics().empty());
}

static void exchanges_leave_the_gauge() {
  Meter meter;
  const std::string in_flight = "tokenmeter_exchanges_in_flight{model=\"_unknown\"} ";
  Request health;
  health.method = "GET";
  health.path = "/health";
  CHECK(!meter.begin(health));
  {
    std::optional<Exchange> left = meter.begin(chat());
    CHECK(has_line(meter, in_flight + "1"));
  }
  CHECK(has_line(meter, in_flight + "0"));
  // An end that is none of the defined ones ends nothing.
  std::optional<Exchange> exchange = meter.begin(chat());
  throws(TM_STATUS_VALUE, [&] { exchange->end(static_cast<tm_close>(77), 1); });
  CHECK(has_line(meter, in_flight + "1"));
  CHECK(exchange->end(TM_CLOSE_CUT, 2));
  CHECK(has_line(meter, in_flight + "0"));
  exchange = meter.begin(chat());
  throws(TM_STATUS_VALUE, [&] { exchange->end(static_cast<tm_close>(77), 3); });
  exchange.reset();
  CHECK(has_line(meter, in_flight + "0"));
}

static std::string tenant_of(Meter &meter, std::vector<Header> headers) {
  Request request = chat();
  request.headers = std::move(headers);
  request.peer = "127.0.0.1";
  request.unix_ns = 1800000000ull * 1000000000;
  std::optional<Exchange> exchange = meter.begin(request);
  return exchange->end(TM_CLOSE_CUT, 1)->text(TM_TEXT_VALUE_TENANT).value();
}

static void rules_determine_the_tenant() {
  static const char RULES[] =
      "trusted_peers: [127.0.0.1]\nhash_principals: true\nrules:\n"
      "  - jwt: {keys: \"https://id.example/keys\", issuer: https://id.example, claim: tenant, principal: sub}\n"
      "  - jwt: {keys: local.json, issuer: https://other.example, claim: tenant}\n"
      "  - header: x-tenant\n";
  static const std::string HASH_KEY(32, 'k');
  Meter meter;
  std::vector<std::string> sources = Tenants::key_sources(RULES);
  CHECK((sources == std::vector<std::string>{"https://id.example/keys", "local.json"}));
  CHECK(Tenants::key_sources("default: nobody").empty());
  throws(TM_STATUS_TENANTS, [] { Tenants::key_sources("rules: 7"); });
  throws(TM_STATUS_TENANTS, [] { Tenants::read(RULES, HASH_KEY); });
  throws(TM_STATUS_TENANTS, [&] { Tenants::read(RULES, "", {{sources[0], ""}, {sources[1], ""}}); });
  Tenants before = Tenants::read(RULES, HASH_KEY, {{sources[0], ""}, {sources[1], ""}});
  meter.set_tenants(before);
  CHECK(!before.key_missed(sources[0]));
  CHECK(tenant_of(meter, {{"authorization", BEARER}, {"x-tenant", "blue"}}) == "blue");
  CHECK(before.key_missed(sources[0]) && !before.key_missed(sources[0]));
  Tenants after = Tenants::read(RULES, HASH_KEY, {{sources[0], ISSUER_KEYS}, {sources[1], ISSUER_KEYS}});
  meter.set_tenants(after);
  CHECK(tenant_of(meter, {{"authorization", BEARER}, {"x-tenant", "blue"}}) == "acme");
  throws(TM_STATUS_VALUE, [&] { meter.begin(chat()); });
  {
    tm_meter_options options{};
    options.tenants = after.get();
    Meter other(options);
    before = std::move(after);
    CHECK(tenant_of(other, {{"authorization", BEARER}}) == "acme");
  }
}

static void engine_counts_its_tokens() {
  Meter meter;
  OutputTokens step;
  Description described;
  described.dialect = "openai_chat";
  described.model = "tiny";
  described.tenant = "blue";
  described.principal = "key-1";
  described.request_id = "r-2";
  described.answers = 2;
  described.stream = true;
  described.at_ns = 1000;
  Exchange first = meter.begin_described(described);
  std::optional<Exchange> second = meter.begin(chat());
  second->count_by_engine();
  PromptTokens prompt;
  prompt.input = 10;
  prompt.cached = 4;
  first.prompt_tokens(prompt);
  step.add(first, 0, 3, 1);
  step.add(first, 1, 2);
  step.add(*second, 0, 7);
  CHECK(step.size() == 3);
  step.send(2000);
  CHECK(step.size() == 0);
  // If one fails, the others count.
  CHECK(second->end(TM_CLOSE_CLIENT_GONE, 2500)->tokens(TM_TOKEN_TYPE_OUTPUT_ALL)->count == 7);
  step.add(*second, 0, 1);
  step.add(first, 0, 1);
  throws(TM_STATUS_NULL, [&] { step.send(3000); });
  CHECK(step.size() == 0);
  step.send(3000);
  first.finish(0, "stop");
  throws(TM_STATUS_VALUE, [&] { first.finish(1, ""); });
  first.finish(1, "length");
  std::optional<Record> record = first.end(TM_CLOSE_CLEAN, 4000);
  CHECK(record->tokens(TM_TOKEN_TYPE_INPUT)->count == 6);
  CHECK(record->tokens(TM_TOKEN_TYPE_INPUT_CACHED)->count == 4);
  CHECK(record->tokens(TM_TOKEN_TYPE_OUTPUT_ALL)->count == 6);
  CHECK(record->tokens(TM_TOKEN_TYPE_OUTPUT_REASONING)->count == 1);
  CHECK(record->tokens(TM_TOKEN_TYPE_OUTPUT)->provenance == TM_PROVENANCE_ENGINE);
  CHECK(record->number(TM_NUMBER_ANSWERS) == 2u && record->number(TM_NUMBER_FIRST_TOKEN_NS) == 1000u);
  CHECK(record->text(TM_TEXT_VALUE_TENANT) == "blue" && record->text(TM_TEXT_VALUE_PRINCIPAL) == "key-1");
  CHECK(record->text(TM_TEXT_VALUE_REQUEST_ID) == "r-2" && record->text(TM_TEXT_VALUE_ENDING) == "length");
  described.dialect = "abacus";
  throws(TM_STATUS_VALUE, [&] { meter.begin_described(described); });
}

static void usage_is_requested_and_removed() {
  static const std::string BODY = "{\"model\":\"tiny\",\"stream\":true,\"messages\":[]}";
  static const std::string USAGE =
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\n";
  static const std::string TEXT = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
  tm_meter_options options{};
  options.kind = tm_text_of("vllm");
  options.usage_policy = TM_USAGE_POLICY_INJECT;
  Meter meter(options);
  std::optional<Exchange> exchange = meter.begin(chat());
  throws(TM_STATUS_ORDER, [&] { exchange->request_edit(BODY); });
  exchange->request_body(BODY);
  exchange->request_complete(1);
  std::optional<std::string> edited = exchange->request_edit(BODY);
  CHECK(edited && edited->find("\"include_usage\":true") != std::string::npos && edited->back() == '}');
  CHECK(exchange->response_head(200, {{"content-type", "text/event-stream"}}, 2));
  Exchange moved = std::move(*exchange);
  // The last parts split an event: its start is held back.
  std::string shown;
  const std::string parts[] = {TEXT, USAGE, TEXT.substr(0, 9), TEXT.substr(9), "data: [DO", ""};
  for (const std::string &part : parts) shown += moved.response_edit(part, 3);
  CHECK(shown == TEXT + TEXT + "data: [DO");
  // A part that is larger than any before.
  std::string large = TEXT;
  large.insert(large.find("\"a\"") + 1, 8 << 20, 'x');
  CHECK(moved.response_edit("NE]\n\n" + large, 4).size() == large.size() + 5);
  CHECK(moved.end(TM_CLOSE_CLEAN, 5)->tokens(TM_TOKEN_TYPE_INPUT_ALL)->count == 5);

  // A body that stays as it is, and the response to it.
  exchange = meter.begin(chat());
  exchange->request_complete(1);
  CHECK(!exchange->request_edit("{}"));
  CHECK(exchange->response_head(200, {{"content-type", "text/event-stream"}}, 2));
  std::string_view same = exchange->response_edit(TEXT, 3);
  CHECK(same.data() == TEXT.data() && same.size() == TEXT.size());
  // A large body.
  exchange = meter.begin(chat());
  std::string body = "{\"stream\":true,\"messages\":[{\"content\":\"" + std::string(1 << 20, 'x') + "\"}]}";
  exchange->request_body(body);
  exchange->request_complete(1);
  CHECK(exchange->request_edit(body)->size() > body.size());
}

static void exporters_start_if_they_are_built_in() {
  Meter meter;
  tm_exporters_options options{};
  options.listen = tm_text_of("127.0.0.1:0");
  std::optional<Exporters> exporters;
  try {
    exporters = meter.start_exporters(options);
  } catch (const Error &error) {
    CHECK(error.status() == TM_STATUS_UNSUPPORTED);
    return;
  }
  CHECK(exporters->address()->rfind("127.0.0.1:", 0) == 0);
  CHECK(!exporters->problems());
  // Only one group at a time; after its end, another.
  try {
    Exporters second = meter.start_exporters(options);
    CHECK(!"it fails");
  } catch (const Error &error) {
    CHECK(error.status() == TM_STATUS_ORDER);
  }
  exporters.reset();
  exporters = meter.start_exporters(options);
}

int main() {
  stream_has_a_record();
  exchanges_leave_the_gauge();
  rules_determine_the_tenant();
  engine_counts_its_tokens();
  usage_is_requested_and_removed();
  exporters_start_if_they_are_built_in();
  std::puts("ok");
  return 0;
}
