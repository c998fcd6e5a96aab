#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <normscope/core/snapshot.hpp>
#include <normscope/proof/minimum_norm.hpp>
#include <normscope/selectability/select.hpp>

#include "key_set.hpp"

/// The search for keys that are selectable: own directions, then queries from violated constraints.
namespace normscope::selectability {

/// The position of a key relative to the hull of a few others.
struct Nearest {
  enum class Kind { outside, inside, unclear };
  Kind kind = Kind::unclear;
  /// Unit query from the nearest point of the hull to the key; empty if there is none.
  std::vector<double> query{};
  std::vector<proof::PointWeight> weights{};  ///< weights of the nearest point, by row
  double residual = 0.0;                      ///< upper bound of its distance from the key
};

/// The position of key `place` relative to the hull of the keys `others`. Distances near rounding are
/// computed again in twice the precision.
///
/// Requires  others not empty, without `place`
[[nodiscard]] Nearest nearest(const KeySet& key_set, const Span& span, std::size_t place,
                              const std::vector<std::size_t>& others, double tolerance);

/// Scores of every key with itself as the query: z_i is selectable if z_iᵀz_i > max_j z_iᵀz_j. The first step
/// compares all keys with the longest ones, which eliminates most; each further step processes one block of
/// the others.
class OwnDirection {
 public:
  enum class Outcome : unsigned char { open, beaten };

  explicit OwnDirection(const KeySet& key_set);

  [[nodiscard]] bool done() const { return step_ >= steps(); }
  [[nodiscard]] std::size_t steps() const;
  [[nodiscard]] std::size_t steps_done() const { return step_; }
  void step(unsigned threads);

  /// Whether another key certainly scores at least as high.
  [[nodiscard]] bool beaten(std::size_t place) const { return outcomes_[place] == Outcome::beaten; }
  /// A lower bound of min_j z_iᵀ(z_i − z_j)/|z_i|; proves nothing unless positive.
  ///
  /// Requires  done() and not beaten(place)
  [[nodiscard]] double margin(std::size_t place) const;

 private:
  void meet_the_longest(unsigned threads);
  void gather();
  void meet_one_another(std::size_t row_block, unsigned threads);
  [[nodiscard]] double length(std::size_t rank) const { return key_set_.length(order_[rank]); }

  const KeySet& key_set_;
  std::size_t step_ = 0;
  std::vector<Outcome> outcomes_;
  std::vector<double> rivals_;  ///< upper bounds of max_j z_iᵀz_j
  std::size_t open_ = 0;
  std::vector<std::size_t> order_{};  ///< places of undecided keys, then of eliminated ones
  std::vector<float> gathered_{};     ///< their values, if the order differs from the key_set's
};

/// A query of unit length that is to prove a key selectable.
struct Query {
  std::size_t place = 0;
  std::vector<double> direction{};
};

/// Keys that queries are compared with: all keys of a key set, or those gathered so far.
class Constraints {
 public:
  /// All keys of the key set.
  explicit Constraints(const KeySet& key_set) : key_set_(&key_set), all_(true) {}
  /// An empty set.
  [[nodiscard]] static Constraints none(const KeySet& key_set) {
    Constraints result(key_set);
    result.all_ = false;
    return result;
  }

  void add(std::size_t place);
  [[nodiscard]] bool holds(std::size_t place) const;
  [[nodiscard]] std::size_t size() const { return all_ ? key_set_->size() : places_.size(); }
  [[nodiscard]] std::size_t place(std::size_t index) const { return all_ ? index : places_[index]; }
  [[nodiscard]] const float* values(std::size_t index) const;
  [[nodiscard]] const std::vector<std::size_t>& places() const { return places_; }

 private:
  const KeySet* key_set_;
  bool all_;
  std::vector<std::size_t> places_{};
  std::vector<bool> held_{};
  std::vector<float> values_{};
};

struct ScoredQuery {
  std::vector<std::size_t> violated{};  ///< places of keys that may score at least as high, the highest first
  /// If `violated` is empty: a lower bound of min_j qᵀ(z_i − z_j) over the constraints.
  double margin = std::numeric_limits<double>::infinity();
};

/// Scores each query against all constraints in blocked float32 products and names up to `most` constraints
/// that score higher. Comparisons within the float32 error are repeated with the keys themselves.
[[nodiscard]] std::vector<ScoredQuery> score_queries(const KeySet& key_set, const Constraints& constraints,
                                                     std::span<const Query> queries, std::size_t most,
                                                     unsigned threads);

/// The two parts of a search: all keys by their own direction, then the remaining ones in blocks.
struct Search::Parts {
  Parts(MatrixView<const double> keys, const Options& options);

  Options options;
  KeySet key_set;
  OwnDirection own;
  std::vector<Verdict> verdicts;    ///< one per row
  std::vector<std::size_t> open{};  ///< places not decided by their own direction
  std::size_t block;                ///< undecided places per step
  std::size_t blocks_done = 0;
  Constraints front;  ///< keys known to be selectable: most violated constraints come from them
  std::optional<Span> span{};
  /// The results beyond the keys' own directions, which a saved state contains.
  struct Searched {
    std::uint64_t blocks = 0;
    std::vector<std::size_t> rows{};  ///< rows of the decided places, in order
    std::vector<Verdict> verdicts{};
    std::vector<std::size_t> front{};
  };
  std::optional<Searched> restored{};  ///< until the own directions are computed
  std::string restored_from{};         ///< for messages

  [[nodiscard]] std::size_t blocks() const;
  /// Number of undecided places that have been searched.
  [[nodiscard]] std::size_t searched() const;
  void collect();
  [[nodiscard]] Searched found() const;
  /// Uses restored results instead of searching again.
  ///
  /// Errors    Format if they are not of these keys
  void use_restored();
  [[nodiscard]] std::size_t first_unproved(const Searched& searched) const;
  [[nodiscard]] const Digest& inputs() const;
  [[nodiscard]] Selection selection();
  void advance();

 private:
  struct KeySearch;
  mutable std::optional<Digest> fingerprint{};  ///< of keys and options, on first request
  void run_block(std::vector<KeySearch> searches);
  void evaluate(std::vector<KeySearch*>& searches);
  void score(std::vector<KeySearch*>& searches, const Constraints& constraints, bool proves);
  void next_stage(KeySearch& search);
  void select(std::size_t place, Proof proof, double margin, std::vector<double> query);
  void mark_selectable(const KeySearch& search, double margin);
  void solve_working_set(KeySearch& search);
  void next_query(KeySearch& search);
};

}  // namespace normscope::selectability
