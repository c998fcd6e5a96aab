#include "reach_state.hpp"

#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <sstream>
#include <string>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/numeric/sum.hpp>

namespace normscope::cli {
namespace {

using convex::Share;
using selectability::Logits;
using selectability::TokenReach;

/// The same for the same logits and tolerance, and hardly for others (FNV-1a over their bytes).
std::uint64_t fingerprint(const Logits& logits, double tolerance) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto mix = [&hash](double value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 0x100000001b3U;
    hash ^= hash >> 29U;
  };
  for (const double value : logits.rows) mix(value);
  for (const double value : logits.offsets) mix(value);
  mix(tolerance);
  return hash;
}

std::string header(const Logits& logits, double tolerance) {
  return fmt::format("normscope.reach_state/2 {:016x} {} {}", fingerprint(logits, tolerance), logits.tokens,
                     logits.width);
}

std::string shares_text(const std::vector<Share>& shares) {
  std::string text = fmt::format(" {}", shares.size());
  for (const Share& share : shares) text += fmt::format(" {} {:a}", share.id, share.weight);
  return text;
}

constexpr std::size_t digits = 16;

/// The bits of each number, in as many hexadecimal digits; "-" for none.
std::string point_text(const std::vector<double>& point) {
  if (point.empty()) return " -";
  std::string text = " ";
  for (const double value : point) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    fmt::format_to(std::back_inserter(text), "{:016x}", bits);
  }
  return text;
}

/// Reads one line's numbers in turn.
class Line {
 public:
  Line(const std::string& text, const std::filesystem::path& path, std::size_t number)
      : words_(text), path_(path), number_(number) {}

  std::uint64_t whole(std::uint64_t below) {
    std::uint64_t value = 0;
    if (!(words_ >> value) || value >= below) fail();
    return value;
  }
  double real() {
    std::string word;
    words_ >> word;
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (word.empty() || *end != '\0' || std::isnan(value)) fail();
    return value;
  }
  std::vector<Share> shares(std::uint64_t ids) {
    std::vector<Share> result;
    const std::uint64_t count = whole(ids + 1);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t id = whole(ids);
      result.push_back({id, real()});
    }
    return result;
  }
  /// A point of the unit ball, or none.
  std::vector<double> point(std::size_t width) {
    std::string word;
    words_ >> word;
    if (word == "-") return {};
    if (word.size() != digits * width) fail();
    std::vector<double> result(width);
    for (std::size_t i = 0; i < width; ++i) {
      std::uint64_t bits = 0;
      const char* const begin = word.data() + digits * i;
      const auto [end, failure] = std::from_chars(begin, begin + digits, bits, 16);
      if (failure != std::errc() || end != begin + digits) fail();
      std::memcpy(&result[i], &bits, sizeof bits);
    }
    if (!(euclidean_norm(result) <= 1.0)) fail();
    return result;
  }
  void finish() {
    std::string more;
    if (words_ >> more) fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw Error(ErrorCode::Format,
                fmt::format("{}: line {} is none of a reach in progress", path_.string(), number_));
  }

  std::istringstream words_;
  const std::filesystem::path& path_;
  std::size_t number_;
};

convex::Answer answer(std::uint64_t code) {
  return code == 0 ? convex::Answer::yes : code == 1 ? convex::Answer::no : convex::Answer::undecided;
}

int code(convex::Answer answer) {
  return answer == convex::Answer::yes ? 0 : answer == convex::Answer::no ? 1 : 2;
}

}  // namespace

void save_reach(const std::filesystem::path& path, const Logits& logits, double tolerance,
                const std::vector<TokenReach>& tokens) {
  AtomicFile file(path);
  file.write(header(logits, tolerance) + "\n");
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const TokenReach& token = tokens[i];
    if (!token.done) continue;
    file.write(fmt::format("{} {} {} {:a} {:a} {}", i, code(token.answer), code(token.unbounded), token.lower,
                           token.upper, token.rival) +
               shares_text(token.weights) + shares_text(token.unbounded_weights) +
               point_text(token.answer == convex::Answer::yes ? token.witness : std::vector<double>{}) +
               "\n");
  }
  file.commit();
}

std::vector<TokenReach> load_reach(const std::filesystem::path& path, const Logits& logits,
                                   double tolerance) {
  const MappedFile mapped(path);
  const std::string text(reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size());
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);
  if (line.rfind("normscope.reach_state/", 0) != 0) {
    throw Error(ErrorCode::Format, fmt::format("{}: expected a reach in progress", path.string()));
  }
  if (line != header(logits, tolerance)) {
    throw Error(ErrorCode::Argument,
                fmt::format("{}: belongs to another model or tolerance, expected a reach of this one",
                            path.string()));
  }
  std::vector<TokenReach> tokens(logits.tokens);
  for (std::size_t number = 2; std::getline(lines, line); ++number) {
    Line words(line, path, number);
    TokenReach& token = tokens[words.whole(logits.tokens)];
    token.done = true;
    token.answer = answer(words.whole(3));
    token.unbounded = answer(words.whole(3));
    token.lower = words.real();
    token.upper = words.real();
    token.rival = words.whole(logits.tokens);
    token.weights = words.shares(logits.tokens);
    token.unbounded_weights = words.shares(logits.tokens + 1);
    token.witness = words.point(logits.width);
    words.finish();
  }
  return tokens;
}

}  // namespace normscope::cli
