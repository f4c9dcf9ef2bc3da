// tokenmeter.hpp: the meter in C++17, over tokenmeter.h, whose comments explain each call.
//
// Objects free themselves. A failed call throws tokenmeter::Error. A std::optional is empty if the call has no result.
// Views that the caller passes are read during the call only. Tenant rules, the counts of an engine and edited requests
// are in tokenmeter.h only.
#ifndef TOKENMETER_HPP
#define TOKENMETER_HPP

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

// A running exchange. Its destructor discards one that did not end: there is no record.
class Exchange {
 public:
  explicit Exchange(tm_exchange handle) noexcept : handle_(handle) {}

  void request_body(std::string_view bytes) {
    detail::check(tm_exchange_request_body(handle_.get(), detail::slice(bytes)));
  }

  void request_complete(std::uint64_t at_ns) { detail::check(tm_exchange_request_complete(handle_.get(), at_ns)); }

  // Returns false if the response is not that of a model: the exchange is over, and further calls throw.
  bool response_head(std::uint16_t status, const std::vector<Header> &headers, std::uint64_t at_ns) {
    std::vector<tm_header> fields;
    fields.reserve(headers.size());
    for (const Header &header : headers) {
      fields.push_back(tm_header{detail::slice(header.name), detail::slice(header.value)});
    }
    if (detail::check(tm_exchange_response_head(handle_.get(), status, fields.data(), fields.size(), at_ns))) {
      return true;
    }
    handle_.release();
    return false;
  }

  void response_body(std::string_view bytes, std::uint64_t at_ns) {
    detail::check(tm_exchange_response_body(handle_.get(), detail::slice(bytes), at_ns));
  }

  void client_wait(std::uint64_t ns) { detail::check(tm_exchange_client_wait(handle_.get(), ns)); }

  // Ends the exchange, also if the call fails. Empty if nothing of inference was seen.
  std::optional<Record> end(tm_close close, std::uint64_t at_ns) {
    tm_record record{0};
    if (!detail::check(tm_exchange_end(handle_.release(), close, at_ns, &record))) return std::nullopt;
    return Record(record);
  }

 private:
  detail::Owner<tm_exchange, tm_exchange_discard> handle_;
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

// The head of a request. Set path, at_ns and unix_ns.
struct Request {
  std::string_view method = "POST";
  std::string_view path;
  std::vector<Header> headers;
  std::string_view peer;       // the client's IP address; empty if it is not known
  std::uint64_t at_ns = 0;     // of a clock that does not go back
  std::uint64_t unix_ns = 0;   // nanoseconds since 1970
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
    std::vector<tm_header> fields;
    fields.reserve(request.headers.size());
    for (const Header &header : request.headers) {
      fields.push_back(tm_header{detail::slice(header.name), detail::slice(header.value)});
    }
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

  void set_prices(const Prices &prices) { detail::check(tm_meter_set_prices(handle_.get(), prices.get())); }

  // Returns the page of metrics for Prometheus.
  std::string metrics() const {
    return *detail::text([&](tm_text *out) { return tm_meter_metrics(handle_.get(), out); });
  }

 private:
  detail::Owner<tm_meter, tm_meter_free> handle_;
};

}  // namespace tokenmeter

#endif  // TOKENMETER_HPP
