#include "request.hpp"

#include "fuzz_target.hpp"

using namespace normscope::explorer;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view sent(reinterpret_cast<const char*>(data), size);
  const Parsed parsed = parse_request(sent, 8000);
  fuzz_require(parsed.status == 0 || reason(parsed.status) != "Error");
  // A request that is long enough to be refused is not waited for.
  fuzz_require(parsed.status != 0 || size < largest_request);
  if (parsed.status != 200) return 0;
  const std::string_view path = parsed.request.path;
  fuzz_require(!path.empty() && path.front() == '/' &&
               path.find_first_of("?\r\n\0 ") == std::string_view::npos);
  fuzz_require(sent.find("8000") != std::string_view::npos);  // it names this server
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      "GET / HTTP/1.1\r\nHost: localhost:8000\r\n\r\n",
      "HEAD /a/b.js?x=1 HTTP/1.0\r\nhost: 127.0.0.1:8000\r\nIf-None-Match: \"abc\"\r\nCookie: "
      "a=\xc3\xa9\r\n\r\n",
      "GET /main.js HTTP/1.1\r\nHost: [::1]:8000\r\nContent-Length: 0\r\nAccept: */*\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: localhost:8000\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  };
}
