#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/core.h>

#include <normscope/certificates/verify.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/text.hpp>
#include <normscope/numeric/binary_scale.hpp>
#include <normscope/numeric/rounding.hpp>
#include <normscope/numeric/sum.hpp>

#include "column_units.hpp"
#include "combination.hpp"
#include "exact_keys.hpp"
#include "fields.hpp"
#include "leads.hpp"

namespace normscope::certificates {
namespace {

/// A key's verdict as the result states it.
struct Verdict {
  std::string answer;
  std::string proof;
  double margin = infinity;         ///< in units of the keys' scale
  double stated_margin = infinity;  ///< as stated
  double residual = 0.0;
  std::vector<double> query{};
  std::vector<Weight> weights{};
  std::optional<ExactKey> exact{};
  bool complete = true;  ///< whether its query or weights are present
};

std::string key(std::size_t index) { return fmt::format("key {}", index); }

class SelectCheck {
 public:
  SelectCheck(const Result& result, MatrixView<const double> keys, bool behind_norm, const Folder* folder,
              const VerifyOptions& options)
      : root_(result.fields().root()),
        given_(keys),
        values_(behind_norm ? BinaryScale().divided(keys) : without_constants(keys)),
        scale_(BinaryScale::of(values_)),
        keys_(values_.data(), keys.rows(), keys.width()),
        slack_(behind_norm ? up(16.0 * unit * scale_.divide(largest_size(keys))) : 0.0),
        options_(options) {
    if (root_["keys"].count() != keys.rows() || root_["width"].count() != keys.width()) {
      throw Error(
          ErrorCode::Shape,
          fmt::format("{}: is of {} x {} keys, expected those of the inputs, {} x {}", result.source(),
                      root_["keys"].count(), root_["width"].count(), keys.rows(), keys.width()));
    }
    scale_.divide(values_);
    read_verdicts(folder);
  }

  Verification run() {
    check_counts();
    check_scale();
    check_margins();
    check_selectable();
    check_unselectable();
    check_exact();
    return std::move(found_);
  }

 private:
  [[nodiscard]] double stated(const Field& field) const { return scale_.divide(field.number()); }

  void read_verdicts(const Folder* folder) {
    const Field list = root_["verdicts"];
    if (list.size() != keys_.rows()) list.refuse("a verdict a key");
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Field field = list[i];
      Verdict verdict{.answer = field["answer"].text(), .proof = field["proof"].text()};
      if (field.has("margin")) verdict.stated_margin = field["margin"].number_or(infinity);
      verdict.margin = scale_.divide(verdict.stated_margin);
      if (field.has("residual")) verdict.residual = stated(field["residual"]);
      if (field.has("query")) verdict.query = field["query"].numbers(keys_.width());
      if (field.has("weights")) verdict.weights = field["weights"].weights("key", keys_.rows());
      if (field.has("exact")) verdict.exact = read_exact_key(field["exact"], keys_.rows());
      const bool by_query = verdict.answer == "selectable" && claims_query(verdict);
      verdict.complete = by_query                           ? !verdict.query.empty()
                         : verdict.answer == "unselectable" ? !verdict.weights.empty()
                                                            : true;
      verdicts_.push_back(std::move(verdict));
    }
    if (folder != nullptr) read_folder(*folder);
    center_ = root_["center"].numbers(keys_.rows() == 0 ? 0 : keys_.width());
  }

  /// An exact proof needs no query of doubles; a query that comes with it may have margin 0, which claims
  /// nothing.
  static bool claims_query(const Verdict& verdict) {
    return verdict.proof == "query" || (verdict.proof == "exact" && verdict.stated_margin > 0.0);
  }

  /// Reads queries and weights from a folder if the JSON does not contain them.
  void read_folder(const Folder& folder) {
    const auto misfit = [&] {
      return Error(ErrorCode::Shape, "certificates: the arrays of the folder do not fit the result");
    };
    const std::vector<double> selectable = folder.read("selectable");
    const std::vector<double> queries = folder.read("queries");
    const std::vector<double> weights = folder.read("weights");
    const std::size_t width = keys_.width();
    if (queries.size() != selectable.size() * width || weights.size() % 3 != 0) throw misfit();
    const auto index = [&](double value) {
      if (!(value >= 0.0 && value < static_cast<double>(keys_.rows()) && value == std::floor(value)))
        throw misfit();
      return static_cast<std::size_t>(value);
    };
    for (std::size_t i = 0; i < selectable.size(); ++i) {
      Verdict& verdict = verdicts_[index(selectable[i])];
      if (verdict.complete || !claims_query(verdict)) continue;
      verdict.query.assign(queries.begin() + static_cast<std::ptrdiff_t>(i * width),
                           queries.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
      verdict.complete = true;
    }
    std::vector<bool> filled(keys_.rows());
    for (std::size_t i = 0; i < keys_.rows(); ++i) filled[i] = verdicts_[i].complete;
    for (std::size_t i = 0; i < weights.size(); i += 3) {
      const std::size_t row = index(weights[i]);
      if (filled[row]) continue;
      verdicts_[row].weights.push_back({index(weights[i + 1]), weights[i + 2]});
      verdicts_[row].complete = true;
    }
  }

  void check_counts() {
    std::size_t selectable = 0;
    std::vector<std::size_t> unselectable;
    std::vector<std::size_t> undecided;
    std::map<std::string, std::size_t> proofs;
    for (std::size_t i = 0; i < verdicts_.size(); ++i) {
      const Verdict& verdict = verdicts_[i];
      if (verdict.answer == "selectable") ++selectable;
      if (verdict.answer == "unselectable") unselectable.push_back(i);
      if (verdict.answer == "undecided") undecided.push_back(i);
      ++proofs[verdict.proof];
      const bool exact = verdict.proof == "exact" && verdict.exact && verdict.exact->answer == verdict.answer;
      const bool fits =
          verdict.answer == "selectable" ? verdict.proof == "alone" || verdict.proof == "own_direction" ||
                                               verdict.proof == "query" || exact
          : verdict.answer == "unselectable" ? verdict.proof == "weights" || verdict.proof == "twin" || exact
                                             : verdict.answer == "undecided" && verdict.proof == "none";
      found_.check(fits, key(i), "its answer is not one that its kind of proof proves");
    }
    found_.check(root_["selectable"].count() == selectable &&
                     root_["unselectable"].indices(keys_.rows()) == unselectable &&
                     root_["undecided"].indices(keys_.rows()) == undecided,
                 "selectable, unselectable, undecided", "are not those of the verdicts");
    // Results written before --exact existed do not count its proofs.
    const bool counts_exact = root_["proofs"].has("exact");
    bool counted = counts_exact || proofs["exact"] == 0;
    for (const char* proof : {"alone", "own_direction", "query", "weights", "twin", "exact"}) {
      if (proof == std::string_view("exact") && !counts_exact) continue;
      counted = counted && root_["proofs"][proof].count() == proofs[proof];
    }
    found_.check(counted, "proofs", "are not the counts of the verdicts");
    if (!undecided.empty()) {
      found_.not_checkable.push_back(
          {counted_keys(undecided.size()), "undecided: nothing is stated of them"});
    }
  }

  static std::string counted_keys(std::size_t count) { return normscope::counted(count, "key"); }

  /// The scale to which tolerances refer: the largest distance of a coordinate from the center, which lies
  /// between the keys. In the given units, since columns may differ widely in size.
  void check_scale() {
    const double slack = scale_.multiply(slack_);
    double largest = 0.0;
    double largest_off = 0.0;
    bool among = true;
    for (std::size_t i = 0; i < center_.size(); ++i) {
      double least = infinity;
      double most = -infinity;
      for (std::size_t row = 0; row < given_.rows(); ++row) {
        least = std::min(least, given_.row(row)[i]);
        most = std::max(most, given_.row(row)[i]);
      }
      const double size = std::max(std::abs(least), std::abs(most));
      const double off = last_bits * size + slack + 4.0 * std::numeric_limits<double>::denorm_min();
      among = among && center_[i] >= least - off && center_[i] <= most + off;
      extents_.push_back(std::max(most - center_[i], center_[i] - least));
      sizes_.push_back(BinaryScale::of(size));
      largest = std::max(largest, extents_.back());
      largest_off = std::max(largest_off, off);
    }
    const double scale = root_["scale"].number();
    found_.check(among, "center", "is outside the range of the keys' entries");
    found_.check(std::abs(scale - largest) <= 1e-12 * largest + largest_off, "scale",
                 "is not the largest distance of a coordinate from the center");
    tolerance_ = root_["tolerance"].number();
    tie_ = tolerance_ * stated(root_["scale"]);
  }

  void check_margins() {
    std::vector<double> margins;
    for (const Verdict& verdict : verdicts_) {
      if (verdict.answer == "selectable" && std::isfinite(verdict.margin)) margins.push_back(verdict.margin);
    }
    std::sort(margins.begin(), margins.end());
    const Field field = root_["margin"];
    const bool same = margins.empty() ? field.is_null()
                                      : !field.is_null() && stated(field["least"]) == margins.front() &&
                                            stated(field["median"]) == margins[margins.size() / 2] &&
                                            stated(field["largest"]) == margins.back();
    found_.check(same, "margin", "is not that of the verdicts");
  }

  /// The claim of a verdict with its query, about the given keys.
  [[nodiscard]] LeadClaim claim(std::size_t index, std::vector<double> direction) const {
    const Verdict& verdict = verdicts_[index];
    // Only the direction matters; normalizing it prevents overflow and underflow.
    const BinaryScale scale = BinaryScale::of(direction);
    scale.divide(direction);
    const double length = euclidean_norm(direction);
    double off = 0.0;
    for (const double value : direction) off += 2.0 * slack_ * std::abs(value);
    if (verdict.proof == "own_direction") {
      off += scale.divide(scale_.multiply(slack_)) * static_cast<double>(keys_.width()) * 2.0 *
             largest_size(keys_);
    }
    const bool claims_one = length > 0.0 && verdict.margin > 0.0;
    const double least = claims_one ? verdict.margin * length * (1.0 - last_bits) - up(off) : infinity;
    return {.index = index, .direction = std::move(direction), .least = least};
  }

  void check_selectable() {
    // Behind a norm, columns are of similar size, and errors are relative to the largest entry.
    const ColumnUnits units(slack_ > 0.0 ? MatrixView<const double>() : given_);
    std::vector<LeadClaim> claims;
    std::vector<std::size_t> claimed;
    for (std::size_t i = 0; i < verdicts_.size(); ++i) {
      const Verdict& verdict = verdicts_[i];
      if (verdict.answer != "selectable") continue;
      if (verdict.proof == "alone") {
        found_.check(keys_.rows() == 1, key(i), "is stated to be alone, but there are other keys");
        continue;
      }
      if (verdict.proof == "exact" && !claims_query(verdict)) continue;
      if (!verdict.complete) {
        found_.not_checkable.push_back({key(i), "its query is not in the result; see select --certificates"});
        continue;
      }
      std::vector<double> direction = verdict.query;
      if (verdict.proof == "own_direction") {
        for (std::size_t k = 0; k < keys_.width(); ++k) direction.push_back(given_.row(i)[k] - center_[k]);
      }
      claims.push_back(units.are_needed() ? units.claim(i, std::move(direction), verdict.stated_margin)
                                          : claim(i, std::move(direction)));
      claimed.push_back(i);
    }
    const std::vector<double> leads =
        proved_leads(units.are_needed() ? units.keys() : keys_, claims, options_.threads, options_.progress);
    for (std::size_t i = 0; i < claims.size(); ++i) {
      found_.check(leads[i] >= claims[i].least, key(claimed[i]),
                   "its query gives it a smaller margin than stated");
    }
  }

  void check_unselectable() {
    const double entries = std::sqrt(static_cast<double>(keys_.width()));
    std::vector<std::size_t> asked;
    for (std::size_t i = 0; i < verdicts_.size(); ++i) {
      if (verdicts_[i].answer != "unselectable") continue;
      if (verdicts_[i].complete) {
        asked.push_back(i);
      } else {
        found_.not_checkable.push_back(
            {key(i), "its weights are not in the result; see select --certificates"});
      }
    }
    std::vector<double> residuals(asked.size(), infinity);
    parallel_for(asked.size(), 1, options_.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        const std::vector<Weight>& weights = verdicts_[asked[k]].weights;
        const Total total = total_of(weights, asked[k]);
        if (!total.valid) continue;
        residuals[k] =
            up(length_at_most(weighted_difference(keys_.row(asked[k]), keys_, weights)) / total.low);
      }
    });
    for (std::size_t k = 0; k < asked.size(); ++k) {
      const double claimed = verdicts_[asked[k]].residual;
      const double allowed = up(2.0 * slack_ * entries) + last_bits * claimed + nothing * entries;
      found_.check(residuals[k] <= claimed + allowed, key(asked[k]),
                   "its weighted keys are farther away than stated");
      if (verdicts_[asked[k]].proof == "exact") continue;
      found_.check(claimed <= tie_ * (1.0 + 1e-12) + allowed, key(asked[k]),
                   "is farther from the others' hull than tolerance * scale");
      found_.check(is_near_in_columns(asked[k]), key(asked[k]),
                   "is farther from the others' hull in a column than tolerance times its extent");
    }
  }

  /// For each column separately, in units of its largest entry.
  [[nodiscard]] bool is_near_in_columns(std::size_t index) const {
    const std::vector<Weight>& weights = verdicts_[index].weights;
    const Total total = total_of(weights, index);
    if (!total.valid) return false;
    std::vector<Weight> numbered;
    numbered.reserve(weights.size());
    for (const Weight& weight : weights) numbered.push_back({numbered.size(), weight.weight});
    std::vector<double> column(weights.size());
    for (std::size_t i = 0; i < given_.width(); ++i) {
      for (std::size_t j = 0; j < weights.size(); ++j) {
        column[j] = sizes_[i].divide(given_.row(weights[j].index)[i]);
      }
      const Twofold off = weighted_difference(sizes_[i].divide(given_.row(index)[i]), column, numbered);
      const double distance = up(off.size() / total.low);
      const double slack = 2.0 * sizes_[i].divide(scale_.multiply(slack_));
      const double extent = sizes_[i].divide(extents_[i]);
      if (!(distance <= tolerance_ * extent * (1.0 + 1e-12) + slack + nothing)) return false;
    }
    return true;
  }

  /// Checks an exact proof against the exact entries of the keys.
  void check_exact() {
    std::vector<std::size_t> decided;
    for (std::size_t i = 0; i < verdicts_.size(); ++i) {
      if (!verdicts_[i].exact || verdicts_[i].exact->answer == "undecided") continue;
      found_.check(verdicts_[i].proof == "exact", key(i),
                   "has an exact proof, but states another kind of proof");
      decided.push_back(i);
    }
    if (root_.has("exact")) {
      found_.check(root_["exact"].indices(keys_.rows()) == decided, "exact", "are not those of the verdicts");
    }
    std::vector<std::optional<bool>> holds(decided.size());
    parallel_for(decided.size(), 1, options_.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        holds[k] = proves(*verdicts_[decided[k]].exact, given_, decided[k]);
      }
    });
    for (std::size_t k = 0; k < decided.size(); ++k) {
      if (!holds[k]) {
        found_.not_checkable.push_back(
            {key(decided[k]), "exact: this build has no arithmetic for integers of any size"});
      } else if (!*holds[k] && slack_ > 0.0) {
        found_.not_checkable.push_back(
            {key(decided[k]), "exact: behind a norm, whose results another machine rounds differently"});
      } else {
        found_.check(*holds[k], key(decided[k]), "the integers do not prove the answer");
      }
    }
  }

  Field root_;
  MatrixView<const double> given_;
  std::vector<double> values_;
  BinaryScale scale_;
  MatrixView<const double> keys_;
  double slack_;  ///< error bound of an entry
  const VerifyOptions& options_;
  std::vector<Verdict> verdicts_{};
  std::vector<double> center_{};
  std::vector<double> extents_{};     ///< largest distance from the center of each coordinate
  std::vector<BinaryScale> sizes_{};  ///< of each column
  double tolerance_ = 0.0;
  double tie_ = 0.0;  ///< distance that counts as zero
  Verification found_{};
};

}  // namespace

Verification verify_select(const Result& result, MatrixView<const double> keys, bool behind_norm,
                           const Folder* folder, const VerifyOptions& options) {
  return SelectCheck(result, keys, behind_norm, folder, options).run();
}

}  // namespace normscope::certificates
