// Tokens that an engine counts reach a record, or none of the sums: on unknown paths, before a response, without one, and
// if the exchange is discarded.
#include "check.h"

#define LIVE(model) "tokenmeter_live_output_tokens_total{model=\"" model "\"}"
#define FLIGHT(model) "tokenmeter_exchanges_in_flight{model=\"" model "\"}"

static tm_exchange at_unknown_path(tm_meter meter) {
  tm_request request = {0};
  tm_exchange exchange = {0};
  request.size = sizeof request;
  request.method = tm_text_of("POST");
  request.path = tm_text_of("/my/own");
  request.at_ns = 1;
  CHECK_OK(tm_exchange_begin(meter, &request, &exchange));
  return exchange;
}

static void add(tm_exchange exchange, uint32_t tokens, uint64_t at_ns) {
  tm_output_tokens step;
  memset(&step, 0, sizeof step);
  step.exchange = exchange;
  step.tokens = tokens;
  CHECK_OK(tm_output_tokens_add(&step, 1, at_ns));
}

static uint64_t output(tm_record record) {
  uint64_t count = 0;
  CHECK_OK(tm_record_number(record, TM_NUMBER_OUTPUT_TOKENS, &count));
  CHECK_OK(tm_record_free(record));
  return count;
}

static void unknown_paths(void) {
  tm_meter meter = new_meter();
  tm_record record = {0};
  tm_exchange exchange = at_unknown_path(meter);
  add(exchange, 7, 2);
  CHECK_OK(tm_exchange_end(exchange, TM_CLOSE_CLIENT_GONE, 3, &record));
  CHECK(output(record) == 7);
  exchange = at_unknown_path(meter);
  add(exchange, 7, 2);
  CHECK_OK(tm_exchange_response_head(exchange, 500, NULL, 0, 3));
  CHECK_OK(tm_exchange_end(exchange, TM_CLOSE_CLEAN, 4, &record));
  CHECK(output(record) == 7);
  // Without tokens, nothing shows that it runs a model.
  exchange = at_unknown_path(meter);
  CHECK_STATUS(tm_exchange_end(exchange, TM_CLOSE_CLEAN, 4, &record), TM_STATUS_NOT_METERED);
  CHECK_SAMPLE(meter, LIVE("_unknown"), 14);
  CHECK_SAMPLE(meter, FLIGHT("_unknown"), 0);
  CHECK_SAMPLE(meter, "tokenmeter_tokens_total{model=\"_unknown\",type=\"output\",provenance=\"engine\"}", 14);
  CHECK_OK(tm_meter_free(meter));
}

// The answer of a request without a stream comes after its last token.
static void tokens_before_the_response(void) {
  tm_meter meter = new_meter();
  tm_record record = {0};
  tm_exchange exchange = new_chat(meter, 1);
  CHECK_OK(tm_exchange_request_body(exchange, tm_text_of(CHAT_REQUEST)));
  CHECK_OK(tm_exchange_request_complete(exchange, 2));
  add(exchange, 5, 3);
  CHECK_SAMPLE(meter, LIVE("tiny"), 5);
  CHECK_SAMPLE(meter, FLIGHT("tiny"), 1);
  CHECK_OK(tm_exchange_response_head(exchange, 200, NULL, 0, 4));
  CHECK_OK(tm_exchange_end(exchange, TM_CLOSE_CLEAN, 5, &record));
  CHECK(output(record) == 5);
  CHECK_SAMPLE(meter, LIVE("tiny"), 5);
  CHECK_SAMPLE(meter, LIVE("_unknown"), -1);
  CHECK_OK(tm_meter_free(meter));
}

// A counter cannot fall: the next tokens make up for those of a discarded exchange.
static void discarded_tokens(void) {
  tm_meter meter = new_meter();
  int n;
  tm_exchange exchange = new_chat(meter, 1);
  open_stream(exchange, 2);
  add(exchange, 5, 3);
  CHECK_OK(tm_exchange_discard(exchange));
  CHECK_SAMPLE(meter, FLIGHT("tiny"), 0);
  // An overcount belongs to one of the meter's shards, so enough exchanges follow to use each.
  for (n = 0; n < 64; n++) {
    exchange = new_chat(meter, 1);
    open_stream(exchange, 2);
    add(exchange, 5, 3);
    CHECK_OK(tm_exchange_end(exchange, TM_CLOSE_CLEAN, 4, NULL));
  }
  CHECK_SAMPLE(meter, LIVE("tiny"), 64 * 5);
  CHECK_OK(tm_meter_free(meter));
}

// A client cannot fill the labels with names by requests that run no model.
static void names_of_no_model(void) {
  tm_meter meter = new_meter();
  tm_exchange exchange = at_unknown_path(meter);
  tm_header type;
  type.name = tm_text_of("content-type");
  type.value = tm_text_of("application/json");
  CHECK_OK(tm_exchange_request_body(exchange, tm_text_of("{\"model\":\"noise\"}")));
  CHECK_OK(tm_exchange_request_complete(exchange, 2));
  CHECK_OK(tm_exchange_response_head(exchange, 200, &type, 1, 3));
  CHECK_OK(tm_exchange_response_body(exchange, tm_text_of("{}"), 4));
  CHECK_STATUS(tm_exchange_end(exchange, TM_CLOSE_CLEAN, 5, NULL), TM_STATUS_NOT_METERED);
  CHECK_SAMPLE(meter, FLIGHT("noise"), -1);
  CHECK_SAMPLE(meter, FLIGHT("_unknown"), 0);
  CHECK_OK(tm_meter_free(meter));
}

static void described(void) {
  static const struct {
    uint32_t stream;
    int is_finished;
    tm_close close;
    const char *ending;
  } ROWS[] = {
      {1, 1, TM_CLOSE_CLEAN, "complete"},        {0, 1, TM_CLOSE_CLEAN, "complete"},
      {1, 0, TM_CLOSE_CLEAN, "upstream_cut"},    {0, 0, TM_CLOSE_CLEAN, "upstream_cut"},
      {1, 0, TM_CLOSE_CLIENT_GONE, "client_abort"}, {0, 0, TM_CLOSE_CUT, "upstream_cut"},
  };
  tm_meter meter = new_meter();
  size_t at;
  for (at = 0; at < sizeof ROWS / sizeof *ROWS; at++) {
    tm_begin begin = {0};
    tm_exchange exchange = {0};
    tm_record record = {0};
    uint64_t first = 0;
    begin.size = sizeof begin;
    begin.dialect = tm_text_of("openai_chat");
    begin.model = tm_text_of("tiny");
    begin.request_id = ROWS[at].stream ? tm_text_of("a\nb") : slice("\xff", 1);
    begin.stream = ROWS[at].stream;
    begin.at_ns = 10;
    CHECK_OK(tm_exchange_begin_described(meter, &begin, &exchange));
    add(exchange, 1, 30);
    add(exchange, 1, 40);
    if (ROWS[at].is_finished) CHECK_OK(tm_exchange_finish(exchange, 0, tm_text_of("stop")));
    CHECK_OK(tm_exchange_end(exchange, (uint32_t)ROWS[at].close, 50, &record));
    CHECK(has_text(record, TM_TEXT_VALUE_ENDING, ROWS[at].ending));
    if (ROWS[at].stream) {
      CHECK_OK(tm_record_number(record, TM_NUMBER_FIRST_TOKEN_NS, &first));
      CHECK(first == 20);
    } else {
      CHECK_STATUS(tm_record_number(record, TM_NUMBER_FIRST_TOKEN_NS, &first), TM_STATUS_ABSENT);
    }
    // An id of other characters is none.
    CHECK_STATUS(tm_record_text(record, TM_TEXT_VALUE_REQUEST_ID, NULL), TM_STATUS_ABSENT);
    CHECK(output(record) == 2);
  }
  CHECK_OK(tm_meter_free(meter));
}

int main(void) {
  unknown_paths();
  tokens_before_the_response();
  discarded_tokens();
  names_of_no_model();
  described();
  puts("ok");
  return 0;
}
