// The C++ wrapper: objects free themselves, failures throw, and a stream has its record.
#include "tokenmeter.hpp"

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

int main() {
  Prices prices = Prices::read("version: v1\ncurrency: USD\nmodels:\n  - {name: tiny, input: 1, output: 2}\n");
  tm_meter_options options{};
  options.prices = prices.get();
  Meter meter(options);

  Request request;
  request.path = "/v1/chat/completions";
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
  CHECK(meter.metrics().find("tokenmeter_exchanges_in_flight{model=\"tiny\"} 0\n") != std::string::npos);

  request.method = "GET";
  request.path = "/health";
  CHECK(!meter.begin(request));

  try {
    exchange->request_body("x");
    CHECK(!"an ended exchange is refused");
  } catch (const Error &error) {
    CHECK(error.status() == TM_STATUS_NULL);
  }
  try {
    Prices::read("models: 7");
    CHECK(!"a broken price book is refused");
  } catch (const Error &error) {
    CHECK(error.status() == TM_STATUS_PRICES && std::strlen(error.what()) > 10);
  }
  {
    // One that is destroyed leaves the gauge.
    request.method = "POST";
    request.path = "/v1/chat/completions";
    std::optional<Exchange> left = meter.begin(request);
    CHECK(meter.metrics().find("tokenmeter_exchanges_in_flight{model=\"_unknown\"} 1\n") != std::string::npos);
  }
  CHECK(meter.metrics().find("tokenmeter_exchanges_in_flight{model=\"_unknown\"} 1\n") == std::string::npos);
  Meter moved = std::move(meter);
  CHECK(!moved.metrics().empty());
  std::puts("ok");
  return 0;
}
