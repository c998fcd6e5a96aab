#include "request.hpp"

#include <string>

#include <gtest/gtest.h>

namespace normscope::explorer {
namespace {

int status_of(const std::string& text, std::uint16_t port = 8000) { return parse_request(text, port).status; }

std::string get(const std::string& target, const std::string& fields = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: localhost:8000\r\n" + fields + "\r\n";
}

TEST(Request, IsAPathAndATag) {
  const std::string text = get("/a/b.js?x=1", "If-None-Match:  \"abc\" \r\nAccept: */*\r\n");
  const Parsed parsed = parse_request(text, 8000);
  EXPECT_EQ(parsed.status, 200);
  EXPECT_EQ(parsed.request.path, "/a/b.js");
  EXPECT_EQ(parsed.request.if_none_match, "\"abc\"");
  EXPECT_FALSE(parsed.request.head_only);
  EXPECT_TRUE(parse_request("HEAD / HTTP/1.0\r\nhost: 127.0.0.1:8000\r\n\r\n", 8000).request.head_only);
}

TEST(Request, IsWaitedForUpToABound) {
  const std::string text = get("/");
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_EQ(status_of(text.substr(0, size)), 0) << size;
  EXPECT_EQ(status_of(std::string(largest_request - 1, 'x')), 0);
  EXPECT_EQ(status_of(std::string(largest_request, 'x')), 431);
  EXPECT_EQ(status_of(get("/", "a: " + std::string(largest_request, 'x') + "\r\n")), 431);
  std::string many;
  for (int i = 0; i < 120; ++i) many += "a: b\r\n";
  EXPECT_EQ(status_of(get("/", many)), 431);
  EXPECT_EQ(status_of(get("/" + std::string(2048, 'x'))), 414);
}

TEST(Request, ComesFromThisMachine) {
  const auto from = [](const std::string& host, std::uint16_t port = 8000) {
    return status_of("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n", port);
  };
  EXPECT_EQ(from("localhost:8000"), 200);
  EXPECT_EQ(from("LocalHost:8000"), 200);
  EXPECT_EQ(from("127.0.0.1:8000"), 200);
  EXPECT_EQ(from("[::1]:8000"), 200);
  EXPECT_EQ(from("localhost", 80), 200);
  for (const char* host :
       {"localhost", "localhost:8001", "evil.example", "evil.example:8000", "127.0.0.1.evil.example:8000",
        "localhost:8000.evil.example", "user@localhost:8000", "", "0.0.0.0:8000"}) {
    EXPECT_EQ(from(host), 421) << host;
  }
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of(get("/", "Host: localhost:8000\r\n")), 400);
}

TEST(Request, HasNothingElse) {
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: localhost:8000\r\n\r\n"), 405);
  EXPECT_EQ(status_of("OPTIONS * HTTP/1.1\r\nHost: localhost:8000\r\n\r\n"), 405);
  EXPECT_EQ(status_of("get / HTTP/1.1\r\nHost: localhost:8000\r\n\r\n"), 405);
  EXPECT_EQ(status_of(get("/", "Content-Length: 1\r\n")), 413);
  EXPECT_EQ(status_of(get("/", "Transfer-Encoding: chunked\r\n")), 413);
  EXPECT_EQ(status_of(get("/", "Content-Length: 0\r\n")), 200);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\nHost: localhost:8000\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET /\r\nHost: localhost:8000\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET  / HTTP/1.1\r\nHost: localhost:8000\r\n\r\n"), 400);
  EXPECT_EQ(status_of("\r\n\r\n"), 400);
  EXPECT_EQ(status_of(get("http://localhost:8000/")), 400);
  EXPECT_EQ(status_of(get("/\x01")), 400);
  EXPECT_EQ(status_of(get("/\xc3\xa9")), 400);
  // Cookies belong to all ports of this machine; other programs set them.
  EXPECT_EQ(status_of(get("/", "Cookie: name=\xc3\xa9\xe2\x82\xac\r\n")), 200);
  EXPECT_EQ(status_of(get("/", "Cookie: a\x7f\r\n")), 400);
  EXPECT_EQ(status_of(get("/", " folded: yes\r\n")), 400);
  EXPECT_EQ(status_of(get("/", "no colon\r\n")), 400);
  EXPECT_EQ(status_of(get("/", "space : x\r\n")), 400);
  EXPECT_EQ(status_of(get("/", std::string("nul: a\0b\r\n", 10))), 400);
}

}  // namespace
}  // namespace normscope::explorer
