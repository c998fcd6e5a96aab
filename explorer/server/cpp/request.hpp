#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// The part of HTTP that the explorer's server supports: GET and HEAD of an exact path, from this machine,
/// without a body.
namespace normscope::explorer {

/// Largest size of a request in bytes, up to its empty line.
inline constexpr std::size_t largest_request = std::size_t{16} << 10;

struct Request {
  bool head_only = false;
  std::string_view path{};           ///< without the query
  std::string_view if_none_match{};  ///< empty for none
};

/// `status` is 200 for a request to answer, an error status for one to refuse, and 0 for one that is not
/// complete.
struct Parsed {
  int status = 0;
  Request request{};
};

/// Parses what a client has sent so far; `request` points into it. A Host other than this machine at `port`
/// is refused, which prevents DNS rebinding: other sites cannot reach the server under their own names.
[[nodiscard]] Parsed parse_request(std::string_view sent, std::uint16_t port);

/// The reason phrase of a status.
[[nodiscard]] std::string_view reason(int status);

}  // namespace normscope::explorer
