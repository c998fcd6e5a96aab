#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/core/text.hpp>
#include <normscope/verify/verify.hpp>

#include "arithmetic.hpp"
#include "document.hpp"
#include "heads.hpp"

namespace normscope::verify {
namespace {

bool is_at_most(double bound, double stated) { return bound <= stated + last_bits * std::abs(stated); }
bool is_at_least(double bound, double stated) { return bound >= stated - last_bits * std::abs(stated); }

/// Multiplications that the enumeration of distances may take for each byte of the result: checking a result
/// takes a time in proportion to its size.
constexpr double operations_per_byte = 0x1p21;

/// Sizes of maps between which products neither overflow nor lose more than their rounding to underflow.
bool is_ordinary(double size) { return size == 0.0 || (size > 0x1p-300 && size < 0x1p300); }

Ends ends_of(const Field& field) {
  const std::vector<double> ends = field.numbers(2);
  return {ends[0], ends[1]};
}

/// Scores of two keys under one query.
struct Pair {
  double low = 0.0;
  double high = 0.0;
};

class HeadCheck {
 public:
  HeadCheck(const Field& entry, const AttentionHead& head, double most_operations)
      : entry_(entry), head_(head), name_(head.head.place()), most_operations_(most_operations) {
    if (!head.pass.empty()) name_ += fmt::format(", {} pass", head.pass);
  }

  Verification run() {
    const std::string differing = differing_facts(entry_, head_);
    check(differing.empty(), differing.c_str(), "differ from the model");
    if (entry_.has("refused")) return std::move(found_);
    if (!head_.refused.empty()) {
      check(false, "bounds", ("cannot be: " + head_.refused).c_str());
      return std::move(found_);
    }
    for (const char* bounds : {"uniform_bounds", "sharp_bounds"}) {
      if (!entry_.has(bounds)) {
        check(false, bounds, "are missing, and the entry is not refused");
        return std::move(found_);
      }
    }
    if (!entry_.has("certificates")) {
      found_.not_checkable.push_back(
          {name_, "its bounds have no certificates in the result; make it with certificates"});
      return std::move(found_);
    }
    check_bounds();
    return std::move(found_);
  }

 private:
  void check(bool holds, const char* what, const char* reason) {
    found_.check(holds, fmt::format("{}: {}", name_, what), reason);
  }

  void check_bounds() {
    const Field certificates = entry_["certificates"];
    const bool turning = entry_.has("distances");
    const HeadScores scores = scores_of(head_, true);
    if (!is_ordinary(scores.query.size()) || !is_ordinary(scores.key.size())) {
      found_.not_checkable.push_back(
          {name_, "its weights are too large or too small for products of float64"});
      return;
    }
    check_without_scaling(scores);
    const bool turns = scores.pairs() > 0;
    check(turning == turns, "distances", "are present without a rotation, or missing with one");
    if (turning != turns) return;
    const std::string norms = differing_norms(certificates, head_);
    check(norms.empty(), norms.c_str(), "are not those of the model");
    check_fills(certificates, scores,
                entry_.has("own_norms") ? std::optional(entry_["own_norms"]) : std::nullopt);
    if (turning) {
      check_over_distances(scores);
      check_equal_distance(certificates["at_distance_zero"], entry_["distances"]["at_distance_zero"], scores,
                           fills_, "at_distance_zero");
    } else {
      check_equal_distance(certificates, entry_, scores, fills_, "");
      check_capped_context(scores);
    }
    const Field outer = turning ? entry_["distances"]["at_distance_zero"] : entry_;
    if (outer.has("without_projection")) {
      const Field proof = certificates["without_projection"];
      const HeadScores without = scores_of(head_, false, &scores);
      const Fills inner = fills_;
      check_fills(proof, without, proof.has("queries_fill") ? std::optional(proof) : std::nullopt);
      check_equal_distance(proof, outer["without_projection"], without, fills_, "without_projection");
      fills_ = inner;
    }
    check_narrow();
  }

  /// A query of 0 gives all keys one score. Without scaling it is attained where queries have no constant, or
  /// where their map has full rank.
  void check_without_scaling(const HeadScores& scores) {
    const std::string item = fmt::format("{}: uniform_without_scaling", name_);
    const Field stated = entry_["uniform_without_scaling"];
    const bool proved = stated.flag() && !scores.query.has_own_norm && !scores.key.has_own_norm &&
                        (scores.query.constant_size == 0.0 || scores.query.has_full_rank());
    if (proved) {
      found_.check(true, item, "");
    } else {
      found_.not_checkable.push_back({item, "the result has no proof of it"});
    }
  }

  /// The fractions of the balls that rows are known to reach.
  struct Fills {
    double queries = 1.0;
    double keys = 1.0;
  };

  void check_fills(const Field& radii, const HeadScores& scores, const std::optional<Field>& stated) {
    fills_ = {};
    if (!stated) {
      check(!scores.query.has_own_norm && !scores.key.has_own_norm, "own_norms",
            "is missing for a head whose queries or keys have norms of their own");
      return;
    }
    if (stated->has("query")) {
      check(is_null_or((*stated)["query"], head_.query.own_name) &&
                is_null_or((*stated)["key"], head_.key.own_name),
            "own_norms", "are not those of the model");
    }
    const auto fill_of = [&](const HeadSide& side, const char* fill, const char* radius) {
      const double part = (*stated)[fill].number();
      if (!side.has_own_norm || part == 0.0) {
        check(part == (side.has_own_norm ? 0.0 : 1.0), fill, "is not that of the norm");
        return part;
      }
      const double sigma = radii[radius].number();
      const double root = std::hypot(sigma, std::sqrt(side.input_eps));
      const bool holds = sigma > 0.0 && part > 0.0 && side.fills(sigma) && is_at_least(sigma / root, part);
      check(holds, fill, "is larger than its radius proves");
      return holds ? part : 0.0;
    };
    fills_.queries = fill_of(scores.query, "queries_fill", "queries_radius");
    fills_.keys = fill_of(scores.key, "keys_fill", "keys_radius");
  }

  /// A point u with |u| <= part; empty if the list is empty.
  [[nodiscard]] static std::optional<std::vector<double>> point_of(const Field& field, const HeadSide& side,
                                                                   double part) {
    if (field.size() == 0) return std::nullopt;
    std::vector<double> point = field.numbers(side.map.columns);
    const Column exact = to_column(point);
    if (!(sqrt(square_of(exact)).high <= part) || part == 0.0) return std::nullopt;
    return point;
  }

  [[nodiscard]] std::vector<Context> contexts_of(const Field& list, const HeadSide& key, bool turning) const {
    std::vector<Context> contexts;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Field item = list[i];
      Context context{.share = item["share"].number(),
                      .high = item["high"].numbers(key.map.columns),
                      .low = item["low"].numbers(key.map.columns)};
      if (turning) {
        context.high_distance = item["high_distance"].count();
        context.low_distance = item["low_distance"].count();
        if (!are_of_a_context(context.high_distance, context.low_distance)) context.share = -1.0;
      }
      contexts.push_back(std::move(context));
    }
    return contexts;
  }
  /// Two keys behind a query have different distances, both at least 1.
  [[nodiscard]] bool are_of_a_context(std::size_t high, std::size_t low) const {
    return high != low && high > 0 && low > 0 && (within_ == 0 || std::max(high, low) < within_);
  }

  [[nodiscard]] static bool are_ends(const Ends& ends) { return ends.lower <= ends.upper; }

  /// Bounds for two keys at distance 0, or for a head without rotation.
  void check_equal_distance(const Field& proof, const Field& stated, const HeadScores& scores,
                            const Fills& fills, const char* where) {
    const Cap cap(head_.head.soft_cap, scores);
    const auto say = [&](bool holds, const char* what, const char* reason) {
      const std::string item = *where == '\0' ? what : fmt::format("{} {}", where, what);
      check(holds, item.c_str(), reason);
    };
    const Ends uniform = ends_of(stated["uniform_bounds"]);
    const Ends sharp = ends_of(stated["sharp_bounds"]);
    say(are_ends(uniform) && are_ends(sharp), "bounds", "are not a lower and an upper end");
    const double sharpest = cap.upper(spread_at_zero_at_most(scores, proof["sharp"]["multiplier"].number()));
    say(is_at_most(sharpest, sharp.upper), "sharp_bounds", "its multiplier does not bound spreads as stated");
    const auto at = [&](const Field& point) {
      const auto found = point_of(point, scores.query, fills.queries);
      return found ? spread_at_zero(scores, *found) : Enclosure{{}, infinity};
    };
    const double attained = at(proof["sharp"]["query"]).low() * fills.keys;
    const bool by_context = *where == '\0' && is_capped_context_enough(scores, sharp.lower);
    say(sharp.lower <= 0.0 || by_context || is_at_least(cap.lower(attained), sharp.lower), "sharp_bounds",
        "its query does not attain the lower end");
    const double uniform_at_most = std::min(cap.upper(at(proof["uniform"]["query"]).high()), sharpest);
    say(is_at_most(uniform_at_most, uniform.upper), "uniform_bounds",
        "its query has a larger spread than stated");
    const double least = unavoidable_spread(
        scores, contexts_of(proof["uniform"]["unavoidable"], scores.key, false), fills.keys);
    say(uniform.lower <= 0.0 || is_at_least(cap.lower(least), uniform.lower), "uniform_bounds",
        "its contexts do not prove the lower end");
  }

  /// The difference of the two keys' scores of sharp_bounds after the soft cap.
  [[nodiscard]] bool is_capped_context_enough(const HeadScores& scores, double stated) const {
    const Cap cap(head_.head.soft_cap, scores);
    const std::optional<Pair> context = context_scores(scores);
    if (!(head_.head.soft_cap > 0.0) || !context) return false;
    return is_at_least(cap.score(context->high) - cap.score(context->low) - elementary * head_.head.soft_cap,
                       stated);
  }
  void check_capped_context(const HeadScores& scores) {
    const Field keys = entry_["certificates"]["sharp"]["keys"];
    // If all scores are equal, no keys are stated.
    if (keys.is_null() || keys["high"].size() == 0) return;
    check(context_scores(scores).has_value() || fills_.queries == 0.0 || fills_.keys == 0.0, "sharp keys",
          "are not points of the ball");
  }

  /// Scores of the two keys that attain sharp_bounds, rounded so that they differ less.
  [[nodiscard]] std::optional<Pair> context_scores(const HeadScores& scores) const {
    const Field sharp = entry_["certificates"]["sharp"];
    const Field keys = sharp["keys"];
    if (keys.is_null()) return std::nullopt;
    const auto query = point_of(sharp["query"], scores.query, fills_.queries);
    const auto high = point_of(keys["high"], scores.key, fills_.keys);
    const auto low = point_of(keys["low"], scores.key, fills_.keys);
    if (!query || !high || !low) return std::nullopt;
    std::size_t high_distance = 0;
    std::size_t low_distance = 0;
    if (scores.pairs() > 0) {
      high_distance = keys["high_distance"].count();
      low_distance = keys["low_distance"].count();
      if (!are_of_a_context(high_distance, low_distance)) return std::nullopt;
      if (scores.frequencies.size() != scores.pairs()) return std::nullopt;
    }
    const Column at = scores.query.at(*query);
    const double off = 2.0 * HeadScores::angle_error * scores.query.size() * scores.key.size();
    const DoubleDouble above = scores.score(at, *high, high_distance);
    const DoubleDouble below = scores.score(at, *low, low_distance);
    return Pair{below.high + off, above.high - off};
  }

  void check_over_distances(const HeadScores& scores) {
    const Field stated = entry_["distances"];
    const Field proof = entry_["certificates"];
    within_ = stated["within"].is_null() ? 0 : stated["within"].count();
    const Cap cap(head_.head.soft_cap, scores);
    check(stated["within"].is_null() || within_ > 0, "within", "is 0, expected at least one distance");
    check(
        proof["frequencies"].numbers(head_.head.rotary->frequencies.size()) == head_.head.rotary->frequencies,
        "frequencies", "are not those of the model");
    const auto bound_of = [&](const Field& field, const char* what, const Column* query = nullptr) {
      const PairWeights weights = read_weights(field, scores);
      const double bound = spread_by_weights(scores, weights, query);
      check(is_at_most(bound, weights.spread), what, "its weights do not bound spreads as stated");
      return std::pair(weights.distances, is_at_most(bound, weights.spread) ? weights.spread : infinity);
    };
    const auto [every, everywhere] = bound_of(proof["sharp"]["everywhere"], "everywhere");
    const double anywhere = stated["sharp_at_most_anywhere"].number();
    check(every == 0 && is_at_most(cap.upper(everywhere), anywhere), "sharp_at_most_anywhere",
          "is below the bound that its weights prove everywhere");
    double most = everywhere;
    const auto covers = [&](std::size_t distances) { return within_ > 0 && distances >= within_; };
    if (!proof["sharp"]["in_context"].is_null()) {
      const auto [distances, spread] = bound_of(proof["sharp"]["in_context"], "in_context");
      if (distances == 0 || covers(distances)) most = std::min(most, spread);
    }
    if (!proof["sharp"]["by_distance"].is_null()) most = std::min(most, check_by_distance(scores, covers));
    check(stated["enumerated"].flag() == !proof["sharp"]["by_distance"].is_null(), "enumerated",
          "does not match the certificates");
    const Ends sharp = ends_of(entry_["sharp_bounds"]);
    check(are_ends(sharp) && are_ends(ends_of(entry_["uniform_bounds"])), "bounds",
          "are not a lower and an upper end");
    check(is_at_most(cap.upper(most), sharp.upper), "sharp_bounds",
          "its certificates do not bound spreads as stated within the context");
    check_attained(scores, cap, sharp.lower);
    check_most_uniform(scores, cap, std::min(most, everywhere), bound_of);
  }

  template <typename Covers>
  double check_by_distance(const HeadScores& scores, const Covers& covers) {
    const Field field = entry_["certificates"]["sharp"]["by_distance"];
    DistanceBounds bounds{.distances = field["distances"].count(),
                          .query_square = field["query_square"].number(),
                          .key_square = field["key_square"].number(),
                          .reach = field["reach"].number(),
                          .centre = field["centre"].numbers(scores.dim),
                          .spread = field["spread"].number()};
    const double dim = static_cast<double>(scores.dim);
    if (static_cast<double>(bounds.distances) * (dim * dim * dim + 2048.0 * dim) > most_operations_) {
      found_.not_checkable.push_back({fmt::format("{}: by_distance", name_),
                                      "has more distances than a result of this size may take work for"});
      return infinity;
    }
    const bool holds = is_at_most(spread_by_distance(scores, bounds), bounds.spread);
    check(holds, "by_distance", "its ellipsoids do not bound spreads as stated");
    return holds && covers(bounds.distances) ? bounds.spread : infinity;
  }

  void check_attained(const HeadScores& scores, const Cap& cap, double stated) {
    if (stated <= 0.0) return;
    const std::optional<Pair> context = context_scores(scores);
    double attained = -infinity;
    if (context) {
      attained = cap.lower(context->high - context->low);
      if (head_.head.soft_cap > 0.0) {
        attained = std::max(
            attained, cap.score(context->high) - cap.score(context->low) - elementary * head_.head.soft_cap);
      }
    }
    check(is_at_least(attained, stated), "sharp_bounds", "its keys do not attain the lower end");
  }

  template <typename BoundOf>
  void check_most_uniform(const HeadScores& scores, const Cap& cap, double sharpest,
                          const BoundOf& bound_of) {
    const Field proof = entry_["certificates"]["uniform"];
    const double stated_anywhere = entry_["distances"]["uniform_at_most_anywhere"].number();
    double anywhere = entry_["distances"]["sharp_at_most_anywhere"].number();
    if (!proof["anywhere"].is_null()) {
      const auto point = point_of(proof["anywhere"]["query"], scores.query, fills_.queries);
      if (point) {
        const Column query = scores.query.at(*point);
        const auto [distances, spread] = bound_of(proof["anywhere"]["proof"], "uniform anywhere", &query);
        if (distances == 0) anywhere = std::min(anywhere, cap.upper(spread));
      }
    }
    check(is_at_most(anywhere, stated_anywhere), "uniform_at_most_anywhere",
          "is below the bound that its weights prove");
    const Ends uniform = ends_of(entry_["uniform_bounds"]);
    double most = std::min(anywhere, cap.upper(sharpest));
    if (!is_at_most(most, uniform.upper)) {
      if (const auto point = point_of(proof["query"], scores.query, fills_.queries)) {
        most = std::min(most, cap.upper(widest_context(scores, scores.query.at(*point), within_)));
      }
    }
    check(is_at_most(most, uniform.upper), "uniform_bounds", "its query has wider contexts than stated");
    const double least =
        unavoidable_spread(scores, contexts_of(proof["unavoidable"], scores.key, true), fills_.keys);
    check(uniform.lower <= 0.0 || is_at_least(cap.lower(least), uniform.lower), "uniform_bounds",
          "its contexts do not prove the lower end");
  }

  /// The single number stated if both bounds are close.
  void check_narrow() {
    const Ends uniform = ends_of(entry_["uniform_bounds"]);
    const Ends sharp = ends_of(entry_["sharp_bounds"]);
    const Field least = entry_["uniform_spread"];
    const Field most = entry_["sharp_spread"];
    bool holds = least.is_null() == most.is_null();
    if (holds && !least.is_null()) {
      const bool exact = fills_.queries == 1.0 && fills_.keys == 1.0 && !entry_.has("distances") &&
                         head_.head.soft_cap == 0.0;
      const double room = (exact ? 1.0 : 1e-3) * sharp.upper;
      holds = least.number() == uniform.upper && most.number() == sharp.lower &&
              sharp.upper - sharp.lower <= room && uniform.upper - uniform.lower <= room;
    }
    check(holds, "uniform_spread, sharp_spread", "are not the ends of the bounds, or those are apart");
  }

  Field entry_;
  const AttentionHead& head_;
  std::string name_;
  double most_operations_;
  std::size_t within_ = 0;
  Fills fills_{};
  Verification found_{};
};

}  // namespace

Verification verify_heads(const Result& result, const ModelHeads& heads, const VerifyOptions& options) {
  const Field entries = result.fields().root()["heads"];
  if (entries.size() != heads.size()) {
    throw Error(ErrorCode::Shape,
                fmt::format("{}: is of {}, expected those of the inputs, {}", result.source(),
                            counted(entries.size(), "head"), heads.size()));
  }
  std::vector<Verification> found(heads.size());
  const double most_operations = operations_per_byte * static_cast<double>(result.fields().bytes) /
                                 static_cast<double>(heads.size() + 1);
  const std::size_t together = std::size_t{4} * thread_count(options.threads);
  for (std::size_t first = 0; first < heads.size(); first += together) {
    options.progress("checking heads", first, heads.size());
    const std::size_t count = std::min(together, heads.size() - first);
    parallel_for(count, 1, options.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = first + begin; i < first + end; ++i) {
        const AttentionHead head = heads.read(i);
        found[i] = HeadCheck(entries[i], head, most_operations).run();
      }
    });
  }
  Verification all;
  for (Verification& one : found) {
    all.checked += one.checked;
    std::move(one.failed.begin(), one.failed.end(), std::back_inserter(all.failed));
    std::move(one.not_checkable.begin(), one.not_checkable.end(), std::back_inserter(all.not_checkable));
  }
  const Field root = result.fields().root();
  all.check(root["path"].text() == result.argument("model"), "path", "is not the name of the model");
  all.check(root["architecture"].text() == heads.model().architecture, "architecture",
            "is not that of the model's description");
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < root["notes"].size(); ++i) notes.push_back(root["notes"][i].text());
  all.check(notes == heads.model().notes, "notes", "are not those of the model's description");
  list_unproved(all, result.fields());
  return all;
}

}  // namespace normscope::verify
