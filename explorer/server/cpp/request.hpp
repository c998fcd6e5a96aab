#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// HTTP as the explorer's server takes it: GET and HEAD of an exact path, from this machine, no body.
namespace normscope::explorer {

/// Bytes of a request up to its empty line.
inline constexpr std::size_t largest_request = std::size_t{16} << 10;

struct Request {
  bool head_only = false;
  std::string_view path{};           ///< without its query
  std::string_view if_none_match{};  ///< empty for none
};

/// `status` is 200 for a request to be answered, another one for what is refused, and 0 while its end is
/// missing.
struct Parsed {
  int status = 0;
  Request request{};
};

/// Reads what a client has sent so far; `request` points into it. A Host other than this machine at `port`
/// is refused, so that no other site's name leads here.
[[nodiscard]] Parsed parse_request(std::string_view sent, std::uint16_t port);

/// What a status is called.
[[nodiscard]] std::string_view reason(int status);

}  // namespace normscope::explorer
