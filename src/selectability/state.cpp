#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include <normscope/core/error.hpp>

#include "search.hpp"

namespace normscope::selectability {
namespace {

constexpr std::string_view magic = "normscope.select-state/1\n";

[[noreturn]] void refuse(const char* what) {
  throw Error(ErrorCode::Format, std::string("select: the state ") + what + ", expected what a search left");
}

/// Numbers one after the other, as this machine holds them.
class Writer {
 public:
  template <typename T>
  void put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    text_.append(bytes, sizeof value);
  }
  template <typename T>
  void put(const std::vector<T>& values) {
    put<std::uint64_t>(values.size());
    for (const T& value : values) put(value);
  }
  void put(std::string_view text) { text_ += text; }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  std::string text_{};
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  template <typename T>
  [[nodiscard]] T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    if (text_.size() < sizeof(T)) refuse("ends early");
    T value;
    std::memcpy(&value, text_.data(), sizeof(T));
    text_.remove_prefix(sizeof(T));
    return value;
  }
  template <typename T>
  [[nodiscard]] std::vector<T> list() {
    const auto count = get<std::uint64_t>();
    if (count > text_.size() / sizeof(T)) refuse("ends early");
    std::vector<T> result(count);
    for (T& value : result) value = get<T>();
    return result;
  }
  void expect(std::string_view text) {
    if (text_.substr(0, text.size()) != text) refuse("does not begin as one");
    text_.remove_prefix(text.size());
  }
  [[nodiscard]] bool at_end() const { return text_.empty(); }

 private:
  std::string_view text_;
};

/// FNV-1a over what the answers depend on.
std::uint64_t fingerprint(MatrixView<const double> keys, const Options& options) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto add = [&](double value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 0x100000001b3U;
    hash ^= hash >> 29U;
  };
  add(static_cast<double>(keys.rows()));
  add(options.tolerance);
  add(options.rank_tolerance);
  for (std::size_t row = 0; row < keys.rows(); ++row) {
    for (const double value : keys.row(row)) add(value);
  }
  return hash;
}

void write(Writer& to, const Verdict& verdict) {
  to.put(verdict.answer);
  to.put(verdict.proof);
  to.put(verdict.margin);
  to.put(verdict.residual);
  to.put(verdict.query);
  to.put(verdict.weights);
}

Verdict read_verdict(Reader& from, MatrixView<const double> keys) {
  Verdict verdict;
  verdict.answer = from.get<Answer>();
  verdict.proof = from.get<Proof>();
  verdict.margin = from.get<double>();
  verdict.residual = from.get<double>();
  verdict.query = from.list<double>();
  verdict.weights = from.list<convex::Share>();
  const bool selectable = verdict.answer == Answer::selectable;
  const bool query = verdict.proof == Proof::query;
  const bool known = selectable                               ? query || verdict.proof == Proof::own_direction
                     : verdict.answer == Answer::unselectable ? verdict.proof == Proof::weights
                     : verdict.answer == Answer::undecided    ? verdict.proof == Proof::none
                                                              : false;
  if (!known || verdict.query.size() != (query ? keys.width() : 0))
    refuse("holds an answer without its proof");
  for (const convex::Share& share : verdict.weights) {
    if (share.id >= keys.rows() || !std::isfinite(share.weight)) refuse("weighs a key that is not there");
  }
  return verdict;
}

}  // namespace

std::string Search::state() const {
  const Parts& parts = *parts_;
  Writer to;
  to.put(magic);
  to.put(parts.fingerprint);
  const OwnDirection::State own = parts.own.state();
  to.put<std::uint64_t>(own.step);
  to.put(own.outcomes);
  to.put(own.rivals);
  to.put<std::uint64_t>(parts.chunks_done);
  for (std::size_t i = 0; i < parts.searched(); ++i)
    write(to, parts.verdicts[parts.cloud.row(parts.open[i])]);
  to.put(parts.front.places());
  return std::move(to).text();
}

void Search::resume(std::string_view state) {
  Reader from(state);
  from.expect(magic);
  Parts& parts = *parts_;
  if (from.get<std::uint64_t>() != parts.fingerprint) {
    throw Error(ErrorCode::Argument, "select: the state is of other keys or options, expected the same ones");
  }
  OwnDirection::State own;
  own.step = from.get<std::uint64_t>();
  own.outcomes = from.list<OwnDirection::Outcome>();
  own.rivals = from.list<double>();
  if (!parts.own.resume(std::move(own))) refuse("is of another number of keys");
  if (parts.own.done()) parts.collect();
  parts.chunks_done = from.get<std::uint64_t>();
  if (parts.chunks_done > parts.chunks()) refuse("holds more answers than there are keys");
  for (std::size_t i = 0; i < parts.searched(); ++i) {
    parts.verdicts[parts.cloud.row(parts.open[i])] = read_verdict(from, parts.cloud.keys());
  }
  for (const std::size_t place : from.list<std::size_t>()) {
    if (place >= parts.cloud.size()) refuse("names a key that is not there");
    parts.front.add(place);
  }
  if (!from.at_end()) refuse("goes on after its end");
}

std::uint64_t Search::Parts::mark() const { return selectability::fingerprint(cloud.keys(), options); }

}  // namespace normscope::selectability
