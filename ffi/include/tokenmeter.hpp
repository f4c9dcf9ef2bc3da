// tokenmeter.hpp: the meter in C++17, over tokenmeter.h, whose comments explain each call.
//
// Objects free themselves. A failed call throws tokenmeter::Error. A std::optional is empty if the call has no result.
// Views that the caller passes are read during the call only.
#ifndef TOKENMETER_HPP
#define TOKENMETER_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenmeter.h"

namespace tokenmeter {

// A call that failed: its status, and the library's message.
class Error : public std::runtime_error {
 public:
  explicit Error(tm_status status) : std::runtime_error(message(status)), status_(status) {}

  tm_status status() const noexcept { return status_; }

 private:
  static std::string message(tm_status status) {
    std::string text(256, '\0');
    tm_text out{text.data(), text.size(), 0};
    tm_status got = tm_error_message(&out);
    if (got == TM_STATUS_BUFFER) {
      text.resize(out.length + 1);
      out = tm_text{text.data(), text.size(), 0};
      got = tm_error_message(&out);
    }
    if (got != TM_STATUS_OK) return tm_status_text(status);
    text.resize(out.length);
    return text;
  }

  tm_status status_;
};

namespace detail {

inline tm_slice slice(std::string_view text) {
  return tm_slice{reinterpret_cast<const std::uint8_t *>(text.data()), text.size()};
}

// Returns true if the call succeeded and false if it has no result; throws if it failed.
inline bool check(tm_status status) {
  if (static_cast<std::int32_t>(status) >= 100) throw Error(status);
  return status == TM_STATUS_OK;
}

// Calls `write` with growing buffers until the text fits.
template <typename Write>
std::optional<std::string> text(Write write) {
  std::string buffer(256, '\0');
  for (;;) {
    tm_text out{buffer.data(), buffer.size(), 0};
    tm_status status = write(&out);
    if (status == TM_STATUS_BUFFER) {
      buffer.resize(out.length + out.length / 8 + 64);
      continue;
    }
    if (!check(status)) return std::nullopt;
    buffer.resize(out.length);
    return buffer;
  }
}

// Owns a handle.
template <typename Handle, tm_status (*Free)(Handle)>
class Owner {
 public:
  Owner() noexcept : handle_{0} {}
  explicit Owner(Handle handle) noexcept : handle_(handle) {}
  Owner(Owner &&other) noexcept : handle_(other.release()) {}
  Owner &operator=(Owner &&other) noexcept {
    if (this != &other) {
      reset();
      handle_ = other.release();
    }
    return *this;
  }
  Owner(const Owner &) = delete;
  Owner &operator=(const Owner &) = delete;
  ~Owner() { reset(); }

  Handle get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_.id != 0; }

  Handle release() noexcept {
    Handle handle = handle_;
    handle_.id = 0;
    return handle;
  }

 private:
  void reset() noexcept {
    if (handle_.id != 0) Free(release());
  }

  Handle handle_;
};

}  // namespace detail

// A header field.
struct Header {
  std::string_view name;
  std::string_view value;
};

namespace detail {

inline std::vector<tm_header> fields(const std::vector<Header> &headers) {
  std::vector<tm_header> fields;
  fields.reserve(headers.size());
  for (const Header &header : headers) fields.push_back(tm_header{slice(header.name), slice(header.value)});
  return fields;
}

}  // namespace detail

// A count and its source.
struct Count {
  std::uint64_t count;
  tm_provenance provenance;
};

// The record of an ended exchange.
class Record {
 public:
  explicit Record(tm_record handle) noexcept : handle_(handle) {}

  std::optional<Count> tokens(tm_token_type type) const {
    std::uint64_t count = 0;
    std::uint32_t provenance = 0;
    if (!detail::check(tm_record_tokens(handle_.get(), type, &count, &provenance))) return std::nullopt;
    return Count{count, static_cast<tm_provenance>(provenance)};
  }

  std::optional<std::uint64_t> number(tm_number which) const {
    std::uint64_t value = 0;
    if (!detail::check(tm_record_number(handle_.get(), which, &value))) return std::nullopt;
    return value;
  }

  std::optional<double> rate(tm_rate which) const {
    double value = 0;
    if (!detail::check(tm_record_rate(handle_.get(), which, &value))) return std::nullopt;
    return value;
  }

  std::optional<std::string> text(tm_text_value which) const {
    return detail::text([&](tm_text *out) { return tm_record_text(handle_.get(), which, out); });
  }

  std::string json() const {
    return *detail::text([&](tm_text *out) { return tm_record_json(handle_.get(), out); });
  }

 private:
  detail::Owner<tm_record, tm_record_free> handle_;
};

// The prompt of one generation. All but `input` are parts of it; empty: not known.
struct PromptTokens {
  std::uint64_t input = 0;
  std::optional<std::uint64_t> cached;
  std::optional<std::uint64_t> cache_write;
  std::optional<std::uint64_t> audio;
  std::optional<std::uint64_t> image;
  std::optional<std::uint64_t> video;
};

// A running exchange. Its destructor discards one that did not end: there is no record.
class Exchange {
 public:
  explicit Exchange(tm_exchange handle) noexcept : handle_(handle) {}

  void request_body(std::string_view bytes) {
    detail::check(tm_exchange_request_body(handle_.get(), detail::slice(bytes)));
  }

  void request_complete(std::uint64_t at_ns) { detail::check(tm_exchange_request_complete(handle_.get(), at_ns)); }

  // Returns the body to send in place of `body`, with an option for usage, by the usage policy of the meter. Empty:
  // send it as it is. After an edit, give the response to response_edit.
  std::optional<std::string> request_edit(std::string_view body) {
    std::string edited(body.size() + 1024, '\0');
    for (;;) {
      tm_bytes out{reinterpret_cast<std::uint8_t *>(edited.data()), edited.size(), 0};
      tm_status status = tm_exchange_request_edit(handle_.get(), detail::slice(body), &out);
      edited.resize(out.length);
      if (status == TM_STATUS_BUFFER) continue;
      if (!detail::check(status)) return std::nullopt;
      return edited;
    }
  }

  // Returns false if the response is not that of a model: the exchange is over, and further calls throw.
  bool response_head(std::uint16_t status, const std::vector<Header> &headers, std::uint64_t at_ns) {
    std::vector<tm_header> fields = detail::fields(headers);
    if (detail::check(tm_exchange_response_head(handle_.get(), status, fields.data(), fields.size(), at_ns))) {
      return true;
    }
    handle_.release();
    return false;
  }

  void response_body(std::string_view bytes, std::uint64_t at_ns) {
    detail::check(tm_exchange_response_body(handle_.get(), detail::slice(bytes), at_ns));
  }

  // Returns what the client is to get of the next part of the response to an edited request. An empty part releases
  // what is held back: pass one if no part came for 50 ms, and one before the end. If it throws, send the part as it
  // is. The view is of `part`, or of memory of the exchange that its next call changes.
  std::string_view response_edit(std::string_view part, std::uint64_t at_ns) {
    std::size_t capacity = part.size() + TM_HOLD_MAX;
    for (;;) {
      if (shown_.size() < capacity) shown_.resize(capacity);
      tm_bytes out{shown_.data(), shown_.size(), 0};
      tm_status status = tm_exchange_response_edit(handle_.get(), detail::slice(part), at_ns, &out);
      if (status == TM_STATUS_BUFFER) {
        capacity = out.length;
        continue;
      }
      if (!detail::check(status)) return part;
      return std::string_view(reinterpret_cast<const char *>(shown_.data()), out.length);
    }
  }

  void client_wait(std::uint64_t ns) { detail::check(tm_exchange_client_wait(handle_.get(), ns)); }

  // Takes all counts from the engine.
  void count_by_engine() { detail::check(tm_exchange_count_by_engine(handle_.get())); }

  // Adds a prompt of the engine.
  void prompt_tokens(const PromptTokens &prompt) {
    tm_prompt_tokens tokens{};
    tokens.size = sizeof tokens;
    tokens.input = prompt.input;
    tokens.cached = prompt.cached.value_or(TM_UNKNOWN);
    tokens.cache_write = prompt.cache_write.value_or(TM_UNKNOWN);
    tokens.audio = prompt.audio.value_or(TM_UNKNOWN);
    tokens.image = prompt.image.value_or(TM_UNKNOWN);
    tokens.video = prompt.video.value_or(TM_UNKNOWN);
    detail::check(tm_exchange_prompt_tokens(handle_.get(), &tokens));
  }

  // Ends an answer of the engine, as by "stop" or "length".
  void finish(std::uint32_t choice, std::string_view reason) {
    detail::check(tm_exchange_finish(handle_.get(), choice, detail::slice(reason)));
  }

  // Ends the exchange. Empty if nothing of inference was seen. If it throws TM_STATUS_VALUE, because `close` is none of
  // the defined ones, the exchange goes on; after any other status it is over.
  std::optional<Record> end(tm_close close, std::uint64_t at_ns) {
    tm_record record{0};
    tm_status status = tm_exchange_end(handle_.get(), close, at_ns, &record);
    if (status != TM_STATUS_VALUE) handle_.release();
    if (!detail::check(status)) return std::nullopt;
    return Record(record);
  }

  tm_exchange get() const noexcept { return handle_.get(); }

 private:
  detail::Owner<tm_exchange, tm_exchange_discard> handle_;
  std::vector<std::uint8_t> shown_;
};

// The new tokens of one step of an engine, for any number of exchanges. One thread at a time may use it.
class OutputTokens {
 public:
  void add(const Exchange &exchange, std::uint32_t choice, std::uint32_t tokens, std::uint32_t reasoning = 0) {
    steps_.push_back(tm_output_tokens{exchange.get(), choice, tokens, reasoning, 0});
  }

  std::size_t size() const noexcept { return steps_.size(); }

  // Adds all tokens to their exchanges and empties the list. If some fail, the others count, and it throws.
  void send(std::uint64_t at_ns) {
    tm_status status = tm_output_tokens_add(steps_.data(), steps_.size(), at_ns);
    steps_.clear();
    detail::check(status);
  }

 private:
  std::vector<tm_output_tokens> steps_;
};

// A price book.
class Prices {
 public:
  static Prices read(std::string_view yaml) {
    tm_prices handle{0};
    detail::check(tm_prices_read(detail::slice(yaml), &handle));
    return Prices(handle);
  }

  tm_prices get() const noexcept { return handle_.get(); }

 private:
  explicit Prices(tm_prices handle) noexcept : handle_(handle) {}

  detail::Owner<tm_prices, tm_prices_free> handle_;
};

// The content of a source of keys, a JWKS, by the name that the rules give the source. Empty: not known yet.
struct KeySource {
  std::string_view name;
  std::string_view jwks;
};

// Tenant rules.
class Tenants {
 public:
  // Reads the content of a tenants file. `hash_key` is for rules that hash; `keys` has each source of key_sources.
  static Tenants read(std::string_view yaml, std::string_view hash_key = {}, const std::vector<KeySource> &keys = {}) {
    std::vector<tm_key_source> sources;
    sources.reserve(keys.size());
    for (const KeySource &key : keys) {
      sources.push_back(tm_key_source{detail::slice(key.name), detail::slice(key.jwks)});
    }
    tm_tenants handle{0};
    detail::check(
        tm_tenants_read(detail::slice(yaml), detail::slice(hash_key), sources.data(), sources.size(), &handle));
    return Tenants(handle);
  }

  // Returns the names of the sources of keys that the rules need: files, and URLs with "://".
  static std::vector<std::string> key_sources(std::string_view yaml) {
    std::vector<std::string> names;
    auto text = detail::text([&](tm_text *out) { return tm_tenants_key_sources(detail::slice(yaml), out); });
    for (std::size_t start = 0; text && start <= text->size();) {
      std::size_t end = std::min(text->find('\n', start), text->size());
      names.push_back(text->substr(start, end - start));
      start = end + 1;
    }
    return names;
  }

  // Returns true if a token needed a key that the source lacks, since the last call.
  bool key_missed(std::string_view source) {
    return detail::check(tm_tenants_key_missed(handle_.get(), detail::slice(source)));
  }

  tm_tenants get() const noexcept { return handle_.get(); }

 private:
  explicit Tenants(tm_tenants handle) noexcept : handle_(handle) {}

  detail::Owner<tm_tenants, tm_tenants_free> handle_;
};

// The head of a request. Set path, at_ns and unix_ns.
struct Request {
  std::string_view method = "POST";
  std::string_view path;
  std::vector<Header> headers;
  std::string_view peer;       // the client's IP address; empty if it is not known
  std::uint64_t at_ns = 0;     // of a clock that does not go back
  std::uint64_t unix_ns = 0;   // nanoseconds since 1970
};

// A request without HTTP, whose tokens the host counts. Set dialect, at_ns and unix_ns.
struct Description {
  std::string_view dialect;    // a name of TM_TEXT_VALUE_DIALECT
  std::string_view model;
  std::string_view tenant;     // empty: "default"
  std::string_view principal;
  std::string_view request_id;
  std::uint32_t answers = 1;
  bool stream = false;
  std::uint64_t at_ns = 0;     // of a clock that does not go back
  std::uint64_t unix_ns = 0;   // nanoseconds since 1970
};

// The exporters of a meter: a listener, a ledger, OTLP. The destructor stops them and waits for the ledger's last rows.
class Exporters {
 public:
  explicit Exporters(tm_exporters handle) noexcept : handle_(handle) {}

  // Returns the address of the listener. Empty if there is none.
  std::optional<std::string> address() const {
    return detail::text([&](tm_text *out) { return tm_exporters_address(handle_.get(), out); });
  }

  // Returns the current problems, one a line. Empty if there is none.
  std::optional<std::string> problems() const {
    return detail::text([&](tm_text *out) { return tm_exporters_problems(handle_.get(), out); });
  }

 private:
  detail::Owner<tm_exporters, tm_exporters_shutdown> handle_;
};

// A meter: one for the process and the server. Its destructor leaves running exchanges as they are.
class Meter {
 public:
  // Sets `options.size`, and checks that the library fits the header.
  explicit Meter(tm_meter_options options = tm_meter_options{}) {
    tm_meter handle{0};
    options.size = sizeof options;
    detail::check(tm_abi_check(TM_ABI));
    detail::check(tm_meter_new(&options, &handle));
    handle_ = detail::Owner<tm_meter, tm_meter_free>(handle);
  }

  // Begins an exchange. Empty if the request runs no model.
  std::optional<Exchange> begin(const Request &request) {
    std::vector<tm_header> fields = detail::fields(request.headers);
    tm_request info{};
    info.size = sizeof info;
    info.method = detail::slice(request.method);
    info.path = detail::slice(request.path);
    info.headers = fields.data();
    info.headers_count = fields.size();
    info.peer = detail::slice(request.peer);
    info.at_ns = request.at_ns;
    info.unix_ns = request.unix_ns;
    tm_exchange exchange{0};
    if (!detail::check(tm_exchange_begin(handle_.get(), &info, &exchange))) return std::nullopt;
    return Exchange(exchange);
  }

  // Begins an exchange without HTTP.
  Exchange begin_described(const Description &described) {
    tm_begin begin{};
    begin.size = sizeof begin;
    begin.dialect = detail::slice(described.dialect);
    begin.model = detail::slice(described.model);
    begin.tenant = detail::slice(described.tenant);
    begin.principal = detail::slice(described.principal);
    begin.request_id = detail::slice(described.request_id);
    begin.answers = described.answers;
    begin.stream = described.stream;
    begin.at_ns = described.at_ns;
    begin.unix_ns = described.unix_ns;
    tm_exchange exchange{0};
    detail::check(tm_exchange_begin_described(handle_.get(), &begin, &exchange));
    return Exchange(exchange);
  }

  void set_prices(const Prices &prices) { detail::check(tm_meter_set_prices(handle_.get(), prices.get())); }

  void set_tenants(const Tenants &tenants) { detail::check(tm_meter_set_tenants(handle_.get(), tenants.get())); }

  // Starts exporters, if the library was built with them. Sets `options.size`.
  [[nodiscard]] Exporters start_exporters(tm_exporters_options options) {
    tm_exporters exporters{0};
    options.size = sizeof options;
    detail::check(tm_exporters_start(handle_.get(), &options, &exporters));
    return Exporters(exporters);
  }

  // Returns the page of metrics for Prometheus.
  std::string metrics() const {
    return *detail::text([&](tm_text *out) { return tm_meter_metrics(handle_.get(), out); });
  }

 private:
  detail::Owner<tm_meter, tm_meter_free> handle_;
};

}  // namespace tokenmeter

#endif  // TOKENMETER_HPP
