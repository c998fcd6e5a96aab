#include "request.hpp"

#include <algorithm>
#include <string>

namespace normscope::explorer {
namespace {

constexpr std::size_t longest_target = 2048;
constexpr std::size_t most_fields = 100;

bool is_token(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), allowed);
}

/// Visible ASCII, spaces and, where `any_text` is allowed, bytes from 0x80 on, such as those of cookies in
/// UTF-8.
bool is_printable(std::string_view text, bool any_text) {
  return std::all_of(text.begin(), text.end(), [any_text](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '\t' || (byte >= 0x20 && byte < 0x7f) || (any_text && byte >= 0x80);
  });
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

bool is_this_machine(std::string_view host, std::uint16_t port) {
  const std::string name = lower(host);
  for (const std::string_view own : {"localhost", "127.0.0.1", "[::1]"}) {
    if (name == std::string(own) + ":" + std::to_string(port)) return true;
    if (port == 80 && name == own) return true;
  }
  return false;
}

/// The first part of `text` up to `end`, which both leave it.
std::string_view take(std::string_view& text, std::string_view end) {
  const std::size_t at = text.find(end);
  const std::string_view taken = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + end.size());
  return taken;
}

int parse_line(std::string_view line, Request& request) {
  const std::string_view method = take(line, " ");
  const std::string_view target = take(line, " ");
  if (!is_token(method) || target.empty()) return 400;
  if (line != "HTTP/1.1" && line != "HTTP/1.0") return line.substr(0, 5) == "HTTP/" ? 505 : 400;
  if (method != "GET" && method != "HEAD") return 405;
  if (target.size() > longest_target) return 414;
  if (target.front() != '/' || !is_printable(target, false)) return 400;
  request.head_only = method == "HEAD";
  request.path = target.substr(0, target.find('?'));
  return 200;
}

}  // namespace

Parsed parse_request(std::string_view sent, std::uint16_t port) {
  const std::size_t end = sent.find("\r\n\r\n");
  if (end == std::string_view::npos) return {sent.size() >= largest_request ? 431 : 0};
  if (end > largest_request) return {431};
  std::string_view rest = sent.substr(0, end);
  Request request;
  if (const int status = parse_line(take(rest, "\r\n"), request); status != 200) return {status};

  bool has_host = false;
  for (std::size_t count = 0; !rest.empty(); ++count) {
    if (count == most_fields) return {431};
    std::string_view value = take(rest, "\r\n");
    const std::string_view field = value.substr(0, value.find(':'));
    if (field.size() == value.size() || !is_token(field) || !is_printable(value, true)) return {400};
    value = trimmed(value.substr(field.size() + 1));
    const std::string name = lower(field);
    if (name == "host") {
      if (has_host) return {400};
      has_host = true;
      if (!is_this_machine(value, port)) return {421};
    } else if (name == "transfer-encoding" || (name == "content-length" && value != "0")) {
      return {413};
    } else if (name == "if-none-match") {
      request.if_none_match = value;
    }
  }
  return has_host ? Parsed{200, request} : Parsed{400};
}

std::string_view reason(int status) {
  switch (status) {
    case 200: return "OK";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 421: return "Misdirected Request";
    case 431: return "Request Header Fields Too Large";
    case 505: return "HTTP Version Not Supported";
    default: return "Error";
  }
}

}  // namespace normscope::explorer
