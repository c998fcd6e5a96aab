#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include <fmt/core.h>

#include <normscope/certificates/verify.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/text.hpp>
#include <normscope/numeric/binary_scale.hpp>
#include <normscope/numeric/sum.hpp>

#include "combination.hpp"
#include "fields.hpp"
#include "leads.hpp"

namespace normscope::certificates {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A key's verdict as the result states it.
struct Verdict {
  std::string answer;
  std::string proof;
  double margin = infinity;
  double residual = 0.0;
  std::vector<double> query{};
  std::vector<Weight> weights{};
  bool complete = true;  ///< whether its query or weights are there
};

std::string key(std::size_t index) { return fmt::format("key {}", index); }

class SelectCheck {
 public:
  SelectCheck(const Result& result, MatrixView<const double> keys, bool behind_norm, const Folder* folder,
              const VerifyOptions& options)
      : root_(result.fields().root()),
        scale_(BinaryScale::of(keys)),
        values_(scale_.divided(keys)),
        keys_(values_.data(), keys.rows(), keys.width()),
        slack_(behind_norm ? up(16.0 * unit * largest_size(keys_)) : 0.0),
        options_(options) {
    if (root_["keys"].count() != keys.rows() || root_["width"].count() != keys.width()) {
      throw Error(
          ErrorCode::Shape,
          fmt::format("{}: is of {} x {} keys, expected those of the inputs, {} x {}", result.source(),
                      root_["keys"].count(), root_["width"].count(), keys.rows(), keys.width()));
    }
    read_verdicts(folder);
  }

  Verification run() {
    check_counts();
    check_scale();
    check_margins();
    check_selectable();
    check_unselectable();
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
      if (field.has("margin")) verdict.margin = scale_.divide(field["margin"].number_or(infinity));
      if (field.has("residual")) verdict.residual = stated(field["residual"]);
      if (field.has("query")) verdict.query = field["query"].numbers(keys_.width());
      if (field.has("weights")) verdict.weights = field["weights"].weights("key", keys_.rows());
      verdict.complete = verdict.proof == "query"                                ? !verdict.query.empty()
                         : verdict.proof == "weights" || verdict.proof == "twin" ? !verdict.weights.empty()
                                                                                 : true;
      verdicts_.push_back(std::move(verdict));
    }
    if (folder != nullptr) read_folder(*folder);
    center_ = root_["center"].numbers(keys_.rows() == 0 ? 0 : keys_.width());
    scale_.divide(center_);
  }

  /// Queries and weights that the JSON leaves to a folder.
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
      if (verdict.proof != "query" || verdict.complete) continue;
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
      const bool fits =
          verdict.answer == "selectable"
              ? verdict.proof == "alone" || verdict.proof == "own_direction" || verdict.proof == "query"
          : verdict.answer == "unselectable" ? verdict.proof == "weights" || verdict.proof == "twin"
                                             : verdict.answer == "undecided" && verdict.proof == "none";
      found_.check(fits, key(i), "its answer is not one that its kind of proof proves");
    }
    found_.check(root_["selectable"].count() == selectable &&
                     root_["unselectable"].indices(keys_.rows()) == unselectable &&
                     root_["undecided"].indices(keys_.rows()) == undecided,
                 "selectable, unselectable, undecided", "are not those of the verdicts");
    bool counted = true;
    for (const char* proof : {"alone", "own_direction", "query", "weights", "twin"}) {
      counted = counted && root_["proofs"][proof].count() == proofs[proof];
    }
    found_.check(counted, "proofs", "are not counted as the verdicts say");
    if (!undecided.empty()) {
      found_.not_checkable.push_back(
          {counted_keys(undecided.size()), "undecided: nothing is stated of them"});
    }
  }

  static std::string counted_keys(std::size_t count) { return normscope::counted(count, "key"); }

  /// The scale that tolerances are parts of: the largest distance of a coordinate from the center, which lies
  /// among the keys.
  void check_scale() {
    const double off = last_bits * largest_size(keys_) + slack_;
    double largest = 0.0;
    bool among = true;
    for (std::size_t i = 0; i < center_.size(); ++i) {
      double least = infinity;
      double most = -infinity;
      for (std::size_t row = 0; row < keys_.rows(); ++row) {
        const double value = keys_.row(row)[i];
        least = std::min(least, value);
        most = std::max(most, value);
      }
      among = among && center_[i] >= least - off && center_[i] <= most + off;
      largest = std::max({largest, most - center_[i], center_[i] - least});
    }
    tie_ = stated(root_["scale"]);
    found_.check(among, "center", "does not lie among the keys");
    found_.check(std::abs(tie_ - largest) <= 1e-12 * largest + off, "scale",
                 "is not the largest distance of a coordinate from the center");
    tie_ *= root_["tolerance"].number();
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

  void check_selectable() {
    std::vector<LeadClaim> claims;
    std::vector<std::size_t> claimed;
    for (std::size_t i = 0; i < verdicts_.size(); ++i) {
      const Verdict& verdict = verdicts_[i];
      if (verdict.answer != "selectable") continue;
      if (verdict.proof == "alone") {
        found_.check(keys_.rows() == 1, key(i), "is not the only key");
        continue;
      }
      if (!verdict.complete) {
        found_.not_checkable.push_back({key(i), "its query is not in the result; see select --certificates"});
        continue;
      }
      LeadClaim claim{.index = i, .direction = verdict.query};
      if (verdict.proof == "own_direction") {
        for (std::size_t k = 0; k < keys_.width(); ++k)
          claim.direction.push_back(keys_.row(i)[k] - center_[k]);
      }
      // Only its direction matters: of a length near one nothing overflows or vanishes.
      const BinaryScale scale = BinaryScale::of(claim.direction);
      scale.divide(claim.direction);
      const double length = euclidean_norm(claim.direction);
      double off = 0.0;
      for (const double value : claim.direction) off += 2.0 * slack_ * std::abs(value);
      if (verdict.proof == "own_direction") {
        off += scale.divide(slack_) * static_cast<double>(keys_.width()) * 2.0 * largest_size(keys_);
      }
      const bool claims_one = length > 0.0 && verdict.margin > 0.0;
      claim.least = claims_one ? verdict.margin * length * (1.0 - last_bits) - up(off) : infinity;
      claims.push_back(std::move(claim));
      claimed.push_back(i);
    }
    const std::vector<double> leads = proved_leads(keys_, claims, options_.threads, options_.progress);
    for (std::size_t i = 0; i < claims.size(); ++i) {
      found_.check(leads[i] >= claims[i].least, key(claimed[i]),
                   "its query does not give it a margin as large as stated");
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
                   "its weights do not bring the other keys as near as stated");
      found_.check(claimed <= tie_ * (1.0 + 1e-12) + allowed, key(asked[k]),
                   "is farther from the others' hull than tolerance * scale");
    }
  }

  Field root_;
  BinaryScale scale_;
  std::vector<double> values_;
  MatrixView<const double> keys_;
  double slack_;  ///< by how much an entry may be off
  const VerifyOptions& options_;
  std::vector<Verdict> verdicts_{};
  std::vector<double> center_{};
  double tie_ = 0.0;  ///< distance that counts as none
  Verification found_{};
};

}  // namespace

Verification verify_select(const Result& result, MatrixView<const double> keys, bool behind_norm,
                           const Folder* folder, const VerifyOptions& options) {
  return SelectCheck(result, keys, behind_norm, folder, options).run();
}

}  // namespace normscope::certificates
