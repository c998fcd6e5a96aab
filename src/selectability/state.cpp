#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/error.hpp>
#include <normscope/core/packed.hpp>

#include "search.hpp"

namespace normscope::selectability {
namespace {

constexpr std::string_view magic = "normscope.select-state/1\n";

std::string refusal(const char* what) {
  return std::string("select: the state ") + what + ", expected what a search left";
}

[[noreturn]] void refuse(const char* what) { throw Error(ErrorCode::Format, refusal(what)); }

std::span<const std::byte> behind_magic(std::string_view state) {
  if (state.substr(0, magic.size()) != magic) refuse("does not begin as one");
  return std::as_bytes(std::span(state.substr(magic.size())));
}

template <typename T>
T next(Unpacker& from) {
  T value{};
  from.get(value);
  return value;
}

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

void write(Packer& to, const Verdict& verdict) {
  to.put(verdict.answer);
  to.put(verdict.proof);
  to.put(verdict.margin);
  to.put(verdict.residual);
  to.put(verdict.query);
  to.put(verdict.weights);
}

Verdict read_verdict(Unpacker& from, MatrixView<const double> keys) {
  Verdict verdict;
  from.get(verdict.answer);
  from.get(verdict.proof);
  from.get(verdict.margin);
  from.get(verdict.residual);
  from.get(verdict.query);
  from.get(verdict.weights);
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
  Packer to;
  to.put(parts.fingerprint);
  const OwnDirection::State own = parts.own.state();
  to.put<std::uint64_t>(own.step);
  to.put(own.outcomes);
  to.put(own.rivals);
  to.put<std::uint64_t>(parts.chunks_done);
  for (std::size_t i = 0; i < parts.searched(); ++i)
    write(to, parts.verdicts[parts.cloud.row(parts.open[i])]);
  to.put(parts.front.places());
  std::string state(magic);
  state.append(reinterpret_cast<const char*>(to.bytes().data()), to.bytes().size());
  return state;
}

void Search::resume(std::string_view state) {
  Unpacker from(behind_magic(state), refusal("ends early"));
  Parts& parts = *parts_;
  if (next<std::uint64_t>(from) != parts.fingerprint) {
    throw Error(ErrorCode::Argument, "select: the state is of other keys or options, expected the same ones");
  }
  OwnDirection::State own;
  own.step = next<std::uint64_t>(from);
  from.get(own.outcomes);
  from.get(own.rivals);
  if (!parts.own.resume(std::move(own))) refuse("is of another number of keys");
  if (parts.own.done()) parts.collect();
  parts.chunks_done = next<std::uint64_t>(from);
  if (parts.chunks_done > parts.chunks()) refuse("holds more answers than there are keys");
  for (std::size_t i = 0; i < parts.searched(); ++i) {
    parts.verdicts[parts.cloud.row(parts.open[i])] = read_verdict(from, parts.cloud.keys());
  }
  for (const std::size_t place : next<std::vector<std::size_t>>(from)) {
    if (place >= parts.cloud.size()) refuse("names a key that is not there");
    parts.front.add(place);
  }
  if (!from.at_end()) refuse("goes on after its end");
}

std::uint64_t Search::Parts::mark() const { return selectability::fingerprint(cloud.keys(), options); }

}  // namespace normscope::selectability
