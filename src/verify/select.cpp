#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include <fmt/core.h>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/core/text.hpp>
#include <normscope/verify/verify.hpp>

#include "arithmetic.hpp"
#include "document.hpp"
#include "exact_numbers.hpp"
#include "leads.hpp"

namespace normscope::verify {
namespace {

/// A key's verdict as the result states it, with its certificate.
struct Verdict {
  std::string answer;
  std::string proof;
  std::optional<double> margin{};
  std::optional<double> residual{};
  std::vector<double> query{};
  std::vector<Weight> weights{};
  std::string exact_answer{};  ///< empty without integers
  std::vector<std::string> exact_query{};
  std::vector<Numerator> numerators{};
  std::string denominator{};

  [[nodiscard]] bool is_exact() const { return proof == "exact"; }
  /// Integers prove the answer without the query of doubles; a margin of 0 then claims nothing.
  [[nodiscard]] bool claims_query() const {
    return proof == "query" || (is_exact() && margin.value_or(0.0) > 0.0);
  }
};

std::string place(std::size_t index, const char* member) {
  return fmt::format("verdicts[{}].{}", index, member);
}

Verdict read_verdict(const Field& field, std::size_t rows, std::size_t width) {
  Verdict verdict{.answer = field["answer"].text(), .proof = field["proof"].text()};
  if (field.has("margin") && !field["margin"].is_null()) verdict.margin = field["margin"].number();
  if (field.has("residual")) verdict.residual = field["residual"].number();
  if (field.has("query")) verdict.query = field["query"].numbers(width);
  if (field.has("weights")) verdict.weights = field["weights"].weights("key", rows);
  if (!field.has("exact")) return verdict;
  const Field exact = field["exact"];
  verdict.exact_answer = exact["answer"].text();
  if (exact.has("query")) {
    for (std::size_t i = 0; i < exact["query"].size(); ++i) {
      verdict.exact_query.push_back(exact["query"][i].text());
    }
  }
  if (exact.has("weights")) {
    const Field weights = exact["weights"];
    for (std::size_t i = 0; i < weights.size(); ++i) {
      verdict.numerators.push_back({weights[i]["key"].index(rows), weights[i]["numerator"].text()});
    }
  }
  if (exact.has("denominator")) verdict.denominator = exact["denominator"].text();
  return verdict;
}

/// Numbers of the rows that differ from every row before them.
std::vector<std::size_t> distinct_rows(MatrixView<const double> keys) {
  std::vector<std::size_t> order(keys.rows());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto compare = [&](std::size_t i, std::size_t j) {
    const auto a = keys.row(i);
    const auto b = keys.row(j);
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  };
  std::sort(order.begin(), order.end(), compare);
  const auto last = std::unique(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    return std::equal(keys.row(i).begin(), keys.row(i).end(), keys.row(j).begin());
  });
  order.erase(last, order.end());
  return order;
}

class SelectCheck {
 public:
  SelectCheck(const Result& result, MatrixView<const double> keys, bool behind_norm, const Folder* folder,
              const VerifyOptions& options)
      : root_(result.fields().root()), keys_(keys), behind_norm_(behind_norm), options_(options) {
    if (root_["keys"].count() != keys.rows() || root_["width"].count() != keys.width()) {
      throw Error(
          ErrorCode::Shape,
          fmt::format("{}: is of {} x {} keys, expected those of the inputs, {} x {}", result.source(),
                      root_["keys"].count(), root_["width"].count(), keys.rows(), keys.width()));
    }
    const Field list = root_["verdicts"];
    if (list.size() != keys.rows()) list.refuse("a verdict a key");
    for (std::size_t i = 0; i < list.size(); ++i) {
      verdicts_.push_back(read_verdict(list[i], keys.rows(), keys.width()));
    }
    if (folder != nullptr) read_folder(*folder);
    center_ = root_["center"].numbers(keys.rows() == 0 ? 0 : keys.width());
    tolerance_ = root_["tolerance"].number();
    if (behind_norm) slack_ = 16.0 * unit * largest_size(keys);
  }

  Verification run() {
    check_counts();
    check_sizes();
    check_selectable();
    check_unselectable();
    check_exact();
    return std::move(found_);
  }

 private:
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
    const auto are_finite = [](const std::vector<double>& values) {
      return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
    };
    if (!are_finite(queries) || !are_finite(weights)) throw misfit();
    for (std::size_t i = 0; i < selectable.size(); ++i) {
      Verdict& verdict = verdicts_[index(selectable[i])];
      if (!verdict.query.empty() || !verdict.claims_query()) continue;
      verdict.query.assign(queries.begin() + static_cast<std::ptrdiff_t>(i * width),
                           queries.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
    }
    std::vector<bool> has_weights(keys_.rows());
    for (std::size_t i = 0; i < keys_.rows(); ++i) has_weights[i] = !verdicts_[i].weights.empty();
    for (std::size_t i = 0; i < weights.size(); i += 3) {
      const std::size_t row = index(weights[i]);
      if (!has_weights[row]) verdicts_[row].weights.push_back({index(weights[i + 1]), weights[i + 2]});
    }
  }

  void check_counts() {
    std::size_t selectable = 0;
    std::vector<std::size_t> unselectable;
    std::vector<std::size_t> undecided;
    std::map<std::string, std::size_t> proofs;
    std::vector<double> margins;
    for (std::size_t i = 0; i < verdicts_.size(); ++i) {
      const Verdict& verdict = verdicts_[i];
      if (verdict.answer == "selectable") {
        ++selectable;
        if (verdict.margin) margins.push_back(*verdict.margin);
      }
      if (verdict.answer == "unselectable") unselectable.push_back(i);
      if (verdict.answer == "undecided") undecided.push_back(i);
      ++proofs[verdict.proof];
      const bool exact = verdict.is_exact() && verdict.exact_answer == verdict.answer;
      const bool fits =
          verdict.answer == "selectable" ? verdict.proof == "alone" || verdict.proof == "own_direction" ||
                                               verdict.proof == "query" || exact
          : verdict.answer == "unselectable" ? verdict.proof == "weights" || verdict.proof == "twin" || exact
                                             : verdict.proof == "none";
      found_.check(fits, place(i, "proof"), "its answer is not one that its kind of proof proves");
    }
    found_.check(root_["selectable"].count() == selectable &&
                     root_["unselectable"].indices(keys_.rows()) == unselectable &&
                     root_["undecided"].indices(keys_.rows()) == undecided,
                 "selectable, unselectable, undecided", "are not those of the verdicts");
    bool counted_right = true;
    for (const char* proof : {"alone", "own_direction", "query", "weights", "twin", "exact"}) {
      counted_right = counted_right && root_["proofs"][proof].count() == proofs[proof];
    }
    found_.check(counted_right, "proofs", "are not the counts of the verdicts");
    if (!undecided.empty()) {
      found_.not_checkable.push_back(
          {counted(undecided.size(), "key"), "undecided: nothing is stated of them"});
    }
    std::sort(margins.begin(), margins.end());
    const Field field = root_["margin"];
    const bool same = margins.empty() ? field.is_null()
                                      : !field.is_null() && field["least"].number() == margins.front() &&
                                            field["median"].number() == margins[margins.size() / 2] &&
                                            field["largest"].number() == margins.back();
    found_.check(same, "margin.least, median, largest", "are not those of the verdicts");
  }

  /// Records a statement about keys after a norm as not proved if it holds only within what another machine
  /// may round differently.
  void check_measured(bool holds, bool holds_with_slack, const std::string& item, const char* reason) {
    if (!holds && behind_norm_ && holds_with_slack) {
      found_.not_checkable.push_back({item, "this machine rounds the keys after the norm differently"});
    } else {
      found_.check(holds, item, reason);
    }
  }

  /// center, the mean of the distinct keys, and scale, the largest distance of a coordinate from it.
  void check_sizes() {
    const std::vector<std::size_t> rows = distinct_rows(keys_);
    bool is_mean = true;
    bool is_near = true;
    double largest = 0.0;
    for (std::size_t i = 0; i < center_.size(); ++i) {
      CompensatedSum sum;
      double size = 0.0;
      double extent = 0.0;
      for (const std::size_t row : rows) {
        // Divided first, so that no sum overflows.
        sum.add(keys_.row(row)[i] / static_cast<double>(rows.size()));
        size = std::max(size, std::abs(keys_.row(row)[i]));
        extent = std::max(extent, std::abs(keys_.row(row)[i] - center_[i]));
      }
      const double off = std::abs(center_[i] - sum.value());
      const double rounded = 16.0 * unit * size + std::numeric_limits<double>::min();
      is_mean = is_mean && off <= rounded;
      is_near = is_near && off <= rounded + 2.0 * slack_;
      extents_.push_back(extent);
      largest = std::max(largest, extent);
    }
    check_measured(is_mean, is_near, "center",
                   "is not the mean of the distinct keys (after the norm, if one is stated)");
    const double off = std::abs(root_["scale"].number() - largest);
    const double rounded = 8.0 * unit * largest + std::numeric_limits<double>::min();
    check_measured(off <= rounded, off <= rounded + 4.0 * slack_, "scale",
                   "is not the largest distance of a coordinate from the center");
    scale_ = std::min(largest, root_["scale"].number());
  }

  void check_selectable() {
    std::vector<std::size_t> claimed;
    std::vector<LeadClaim> claims;
    for (std::size_t i = 0; i < verdicts_.size(); ++i) {
      const Verdict& verdict = verdicts_[i];
      if (verdict.answer != "selectable") continue;
      if (verdict.proof == "alone") {
        found_.check(keys_.rows() == 1 && !verdict.margin, place(i, "proof"),
                     "is stated to be alone, but there are other keys, or it states a margin");
        continue;
      }
      if (verdict.is_exact() && !verdict.claims_query()) continue;
      if (!verdict.margin) {
        found_.check(false, place(i, "margin"), "states no margin over the other keys");
        continue;
      }
      std::vector<double> direction = verdict.query;
      if (verdict.proof == "own_direction") {
        direction.clear();
        for (std::size_t k = 0; k < keys_.width(); ++k) direction.push_back(keys_.row(i)[k] - center_[k]);
      }
      if (direction.empty()) {
        found_.not_checkable.push_back(
            {place(i, "query"), "its query is not in the result; make it with certificates"});
        continue;
      }
      const double needed = up(*verdict.margin * up(euclidean_norm(direction)));
      claimed.push_back(i);
      claims.push_back({.index = i, .direction = std::move(direction), .least = std::max(needed, 0x1p-900)});
    }
    // q·(k_i − k_j) > 0 and at least margin |q|, of integers.
    const auto decide = [&](std::size_t claim, std::size_t row) {
      const std::vector<double>& direction = claims[claim].direction;
      const Exact lead =
          exact_dot(direction, keys_.row(claims[claim].index)) - exact_dot(direction, keys_.row(row));
      return lead.sign() > 0 &&
             Exact::is_product_at_most(*verdicts_[claims[claim].index].margin, exact_square(direction), lead);
    };
    const std::vector<char> holds = proved_leads(keys_, claims, decide, options_.threads, options_.progress);
    std::vector<char> nearly(claims.size());
    if (behind_norm_) {
      std::vector<LeadClaim> wider = claims;
      for (LeadClaim& claim : wider) {
        double sizes = 0.0;
        for (const double entry : claim.direction) sizes += std::abs(entry);
        claim.least -= up(4.0 * slack_ * sizes * static_cast<double>(keys_.width()));
      }
      nearly = proved_leads(keys_, wider, nullptr, options_.threads, options_.progress);
    }
    for (std::size_t k = 0; k < claims.size(); ++k) {
      check_measured(holds[k] != 0, nearly[k] != 0, place(claimed[k], "margin"),
                     "its query gives it a smaller margin than stated");
    }
  }

  void check_unselectable() {
    std::vector<std::size_t> asked;
    for (std::size_t i = 0; i < verdicts_.size(); ++i) {
      const Verdict& verdict = verdicts_[i];
      if (verdict.answer != "unselectable") continue;
      if (!verdict.residual) {
        found_.check(false, place(i, "residual"), "is not stated");
      } else if (verdict.weights.empty()) {
        found_.not_checkable.push_back(
            {place(i, "weights"), "its weights are not in the result; make it with certificates"});
      } else {
        asked.push_back(i);
      }
    }
    std::vector<const char*> wrong(asked.size(), nullptr);
    std::vector<char> wider(asked.size());
    parallel_for(asked.size(), 1, options_.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) {
        wrong[k] = wrong_of(asked[k], 0.0);
        wider[k] = wrong[k] != nullptr && behind_norm_ && wrong_of(asked[k], slack_) == nullptr;
      }
    });
    for (std::size_t k = 0; k < asked.size(); ++k) {
      check_measured(wrong[k] == nullptr, wider[k] != 0, place(asked[k], "weights, residual"),
                     wrong[k] == nullptr ? "" : wrong[k]);
    }
  }

  /// What is wrong with the weights of an unselectable key whose entries may be off by `slack`; null if
  /// nothing is.
  [[nodiscard]] const char* wrong_of(std::size_t index, double slack) const {
    const Verdict& verdict = verdicts_[index];
    for (const Weight& weight : verdict.weights) {
      if (weight.weight < 0.0 || weight.index == index) return "has a weight on itself, or a negative one";
      if (verdict.proof == "twin" && slack == 0.0 &&
          !std::equal(keys_.row(index).begin(), keys_.row(index).end(), keys_.row(weight.index).begin())) {
        return "is stated to equal another key, but does not";
      }
    }
    const Exact total = exact_total(verdict.weights);
    if (total.sign() <= 0) return "its weights are all 0";
    std::vector<Exact> difference = exact_sum(keys_, verdict.weights);
    for (std::size_t i = 0; i < keys_.width(); ++i) difference[i] -= total * Exact(keys_.row(index)[i]);
    // |Σ w (k_j − k_i)| <= residual Σ w, in squares.
    const Exact allowed =
        (Exact(*verdict.residual) + Exact(2.0 * slack * std::sqrt(static_cast<double>(keys_.width())))) *
        total;
    if (!(exact_square(difference) <= allowed * allowed))
      return "its weighted keys are farther away than stated";
    if (verdict.is_exact()) return nullptr;
    if (!(Exact(*verdict.residual) <= Exact(tolerance_) * Exact(scale_) + Exact(4.0 * slack)))
      return "is farther from the others' hull than tolerance * scale";
    for (std::size_t i = 0; i < keys_.width(); ++i) {
      const Exact most = (Exact(tolerance_) * Exact(extents_[i]) + Exact(4.0 * slack)) * total;
      if (!(difference[i] <= most && -difference[i] <= most))
        return "is farther from the others' hull in a column than tolerance times its extent";
    }
    return nullptr;
  }

  /// Whether the integers of a verdict prove its answer.
  [[nodiscard]] bool proves(std::size_t index) const {
    const Verdict& verdict = verdicts_[index];
    const MatrixView<const double> own(keys_.row(index).data(), 1, keys_.width());
    if (verdict.exact_answer == "selectable") return separates(verdict.exact_query, own, keys_, index);
    for (const Numerator& weight : verdict.numerators) {
      if (weight.row == index) return false;
    }
    return meet({{0, verdict.denominator}}, verdict.numerators, verdict.denominator, own, keys_);
  }

  void check_exact() {
    std::vector<std::size_t> decided;
    for (std::size_t i = 0; i < verdicts_.size(); ++i) {
      const std::string& answer = verdicts_[i].exact_answer;
      if (answer == "undecided") {
        found_.not_checkable.push_back({place(i, "exact"), "undecided, and no proof that a limit was met"});
      }
      if (answer.empty() || answer == "undecided") continue;
      found_.check(verdicts_[i].is_exact(), place(i, "exact"),
                   "has an exact proof, but states another kind of proof");
      decided.push_back(i);
    }
    if (root_.has("exact")) {
      found_.check(root_["exact"].indices(keys_.rows()) == decided, "exact", "are not those of the verdicts");
      for (std::size_t i = 0; i < verdicts_.size(); ++i) {
        if (verdicts_[i].proof != "weights") continue;
        found_.check(verdicts_[i].exact_answer == "undecided", place(i, "exact"),
                     "is decided to the tolerance in a result that states exact answers");
      }
    } else {
      found_.check(decided.empty(), "exact", "does not list the keys with exact proofs");
    }
    std::vector<char> holds(decided.size());
    parallel_for(decided.size(), 1, options_.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) holds[k] = proves(decided[k]);
    });
    for (std::size_t k = 0; k < decided.size(); ++k) {
      check_measured(holds[k] != 0, true, place(decided[k], "exact"), "the integers do not prove the answer");
    }
  }

  Field root_;
  MatrixView<const double> keys_;
  bool behind_norm_;
  const VerifyOptions& options_;
  std::vector<Verdict> verdicts_{};
  std::vector<double> center_{};
  std::vector<double> extents_{};  ///< largest distance from the center of each coordinate
  double tolerance_ = 0.0;
  double scale_ = 0.0;
  double slack_ = 0.0;  ///< by which machines may differ in an entry of a key after a norm
  Verification found_{};
};

}  // namespace

Verification verify_select(const Result& result, MatrixView<const double> keys, bool behind_norm,
                           const Folder* folder, const VerifyOptions& options) {
  Verification found = SelectCheck(result, keys, behind_norm, folder, options).run();
  list_unproved(found, result.fields());
  return found;
}

}  // namespace normscope::verify
