#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/core/text.hpp>
#include <normscope/verify/verify.hpp>

#include "attribution_sets.hpp"
#include "document.hpp"
#include "heads.hpp"
#include "share_ranges.hpp"

/// Results of `attribute`: what changes d_k of a row u do to v·u/s, s² = |u|²/R² + eps, and all sets of them.
namespace normscope::verify {
namespace {

class AttributionCheck {
 public:
  AttributionCheck(const Result& result, const files::Checkpoint& checkpoint, const models::Model& model)
      : result_(result), root_(result.fields().root()), checkpoint_(checkpoint), model_(model) {
    if (!root_.has("proof")) {
      throw Error(
          ErrorCode::Format,
          fmt::format("{}: has no proof, expected a result of attribute with its proofs", result.source()));
    }
    if (const std::string why = models::why_no_logits(model); !why.empty()) {
      throw Error(ErrorCode::Unsupported, fmt::format("{}: {}", checkpoint.path().string(), why));
    }
    norm_ = models::find_norm(model, model.vocabulary->final_norm);
    spec_ = models::read_norm(checkpoint, *norm_);
    if (spec_.elementwise() || spec_.groups != 1) {
      throw Error(ErrorCode::Unsupported,
                  fmt::format("{}: {} has no one divisor", checkpoint.path().string(), norm_->name));
    }
    read_rows();
  }

  Verification run() {
    check_facts();
    check_reading();
    const Field components = root_["components"];
    for (std::size_t k = 0; k < rows_.count; ++k) check_component(components[k], rows_.d[k]);
    check_anywhere(components, root_["proof"]["shares"]);
    const Field bounds = root_["bounds"];
    SetCheck sets(rows_, names_, found_);
    for (std::size_t i = 0; i < bounds.size(); ++i) sets.check(bounds[i], i + 1);
    if (!root_["circuit"].is_null()) check_circuit(root_["circuit"]);
    list_unproved(found_, result_.fields());
    return std::move(found_);
  }

 private:
  void read_rows() {
    const Field proof = root_["proof"];
    const Field components = root_["components"];
    rows_.width = spec_.width;
    rows_.count = components.size();
    rows_.squared_radius = spec_.squared_radius();
    rows_.eps = spec_.eps;
    rows_.u = proof["row"].numbers(spec_.width);
    rows_.v = proof["direction"].numbers(spec_.width);
    if (proof["changes"].size() != rows_.count) proof["changes"].refuse("a row for each component");
    for (std::size_t k = 0; k < rows_.count; ++k) {
      rows_.d.push_back(proof["changes"][k].numbers(spec_.width));
      names_.emplace(components[k]["name"].text(), k);
    }
    if (names_.size() != rows_.count) components.refuse("each name once");
    rows_.multiply();
    if (!(rows_.s > 0.0) || !std::isfinite(rows_.s)) proof["row"].refuse("a row with a divisor above zero");
    double largest = rows_.length;
    for (const double length : rows_.lengths) largest = std::max(largest, length);
    const auto is_centered = [&](const std::vector<double>& row) {
      return !spec_.centers() || std::abs(mean(row)) <= accepted * largest;
    };
    if (!is_centered(rows_.u) || !std::all_of(rows_.d.begin(), rows_.d.end(), is_centered)) {
      proof.refuse("rows without a mean, as the norm centres");
    }
  }

  void check(bool holds, const Field& field) {
    found_.check(holds, field.place(), "does not hold to 1e-9 of the sizes of its terms");
  }
  void check_equal(const Field& field, double expected, double size) {
    check(std::abs(field.number() - expected) <= accepted * size, field);
  }
  void check_fact(bool holds, const Field& field) {
    found_.check(holds, field.place(), "is not that of the model");
  }

  /// What the description of the model says.
  void check_facts() {
    const models::Vocabulary& vocabulary = *model_.vocabulary;
    const models::Linear& map = *vocabulary.unembedding;
    std::vector<std::string> notes;
    for (std::size_t i = 0; i < root_["notes"].size(); ++i) notes.push_back(root_["notes"][i].text());
    check_fact(root_["path"].text() == result_.argument("model"), root_["path"]);
    check_fact(root_["architecture"].text() == model_.title, root_["architecture"]);
    check_fact(notes == model_.notes, root_["notes"]);
    check_fact(root_["norm"].text() == norm_->name, root_["norm"]);
    check_fact(root_["soft_cap"].number_or(0.0) == vocabulary.soft_cap, root_["soft_cap"]);
    const Field proof = root_["proof"];
    check_fact(proof["squared_radius"].number() == rows_.squared_radius, proof["squared_radius"]);
    check_fact(proof["eps"].number() == rows_.eps, proof["eps"]);
    const auto selector = [](const std::optional<models::Slice>& slice) {
      return slice ? slice->selector() : std::string();
    };
    const Field source = proof["source"];
    check_fact(source["kind"].text() == to_string(norm_->kind) &&
                   is_null_or(source["gain"], selector(norm_->gain)) &&
                   source["gain_offset"].number() == norm_->gain_offset &&
                   is_null_or(source["bias"], selector(norm_->bias)) &&
                   source["unembedding"].text() == map.weight.selector() &&
                   source["layout"].text() == (map.layout == models::Layout::out_in ? "out_in" : "in_out") &&
                   is_null_or(source["unembedding_bias"], selector(map.bias)) &&
                   source["logit_scale"].number() == vocabulary.logit_scale,
               source);
  }

  /// The direction, the constant, the divisor and the value.
  void check_reading() {
    const models::Vocabulary& vocabulary = *model_.vocabulary;
    const models::Linear& map = *vocabulary.unembedding;
    const std::vector<double> bias = models::read_bias(checkpoint_, map);
    std::vector<double> reader(spec_.width);
    double constant = 0.0, size = 0.0;
    const auto add = [&](const Field& token, double sign) {
      const std::size_t index = token["token"].index(static_cast<std::size_t>(map.out));
      const std::vector<double> row = models::read_weight(checkpoint_, map, index, 1);
      for (std::size_t i = 0; i < row.size(); ++i) reader[i] += sign * vocabulary.logit_scale * row[i];
      if (bias.empty()) return;
      constant += sign * vocabulary.logit_scale * bias[index];
      size += std::abs(vocabulary.logit_scale * bias[index]);
    };
    add(root_["target"], 1.0);
    if (!root_["against"].is_null()) add(root_["against"], -1.0);
    std::vector<double> direction(spec_.width), miss(spec_.width);
    for (std::size_t i = 0; i < spec_.width; ++i) {
      constant += spec_.bias_at(i) * reader[i];
      size += std::abs(spec_.bias_at(i) * reader[i]);
      direction[i] = spec_.gain_at(i) * reader[i];
    }
    const double length = euclidean_norm(direction);
    if (spec_.centers()) center(direction);
    for (std::size_t i = 0; i < spec_.width; ++i) miss[i] = direction[i] - rows_.v[i];
    check(euclidean_norm(miss) <= accepted * length, root_["proof"]["direction"]);
    check_equal(root_["constant"], constant, size);
    check_equal(root_["divisor"], rows_.s, rows_.s);
    check_equal(root_["value"], root_["constant"].number() + rows_.read / rows_.s,
                rows_.direction_length * rows_.length / rows_.s + std::abs(root_["constant"].number()));
  }

  struct Change {
    double frozen = 0.0, price = 0.0, exact = 0.0, gradient = 0.0, size = 0.0;
    double along = 0.0, square = 0.0, length_after = 0.0, with_after = 0.0;
  };

  /// What adding d does.
  [[nodiscard]] Change change_of(const std::vector<double>& d) const {
    std::vector<double> after(rows_.width);
    for (std::size_t i = 0; i < rows_.width; ++i) after[i] = rows_.u[i] + d[i];
    Change change{.along = plain_dot(rows_.u, d), .square = plain_dot(d, d)};
    const double t = rows_.divisor(plain_dot(after, after));
    const double read = plain_dot(rows_.v, d);
    change.frozen = read / rows_.s;
    change.exact = plain_dot(rows_.v, after) / t - rows_.read / rows_.s;
    change.price = change.exact - change.frozen;
    change.gradient =
        (read - rows_.read * change.along / (rows_.squared_radius * rows_.s * rows_.s)) / rows_.s;
    change.size =
        rows_.direction_length * (rows_.length + std::sqrt(change.square)) * (1.0 / rows_.s + 1.0 / t);
    change.length_after = std::sqrt(plain_dot(after, after));
    change.with_after = plain_dot(rows_.u, after);
    return change;
  }

  void check_component(const Field& of, const std::vector<double>& d) {
    const Change change = change_of(d);
    check_equal(of["frozen"], change.frozen, change.size);
    check_equal(of["price"], change.price, change.size);
    check_equal(of["exact"], change.exact, change.size);
    check_equal(of["gradient"], change.gradient, change.size);
    // The least |u + t d|² of t in [0, 1].
    const double step = change.square > 0.0 ? std::clamp(-change.along / change.square, 0.0, 1.0) : 0.0;
    double nearest = 0.0;
    for (std::size_t i = 0; i < rows_.width; ++i) {
      const double value = rows_.u[i] + step * d[i];
      nearest += value * value;
    }
    const double least = rows_.divisor(nearest);
    const double remainder =
        rows_.direction_length * change.square / (std::sqrt(3.0 * rows_.squared_radius) * least * least);
    check(change.square == 0.0 || of["remainder"].number_or(infinity) >= remainder * (1.0 - accepted),
          of["remainder"]);
    const double lengths = rows_.length * change.length_after;
    check_equal(of["cosine"], lengths > 0.0 ? change.with_after / lengths : 0.0, 1.0);
    if (root_["removal"].text() == "zero") {
      check_equal(of["share"], -change.frozen, change.size);
      check_equal(of["rules"]["gradient_input"], -change.gradient, change.size);
      check_equal(of["rules"]["half_rule"], 0.5 * (change.gradient - 2.0 * change.frozen), change.size);
    } else {
      for (const char* name : {"share", "rules"}) {
        leave(of[name], "of replaced components only a forward pass tells");
      }
    }
  }

  /// The bounds of shares in all contexts, a/s for each s of at least the divisor.
  void check_anywhere(const Field& components, const Field& sources) {
    if (sources.size() != rows_.count) sources.refuse("one for each component");
    std::optional<ShareRanges> ranges;
    for (std::size_t k = 0; k < rows_.count; ++k) {
      const Field anywhere = components[k]["anywhere"];
      if (anywhere.is_null()) {
        check_fact(sources[k].is_null(), sources[k]);
        continue;
      }
      if (!model_.decoder || !model_.decoder->activation) anywhere.refuse("null for such a model");
      if (!ranges) ranges.emplace(checkpoint_, model_, rows_.v);
      bool is_source = false;
      const auto limits = ranges->limits(components[k]["name"].text(), sources[k], is_source);
      check_fact(is_source, sources[k]);
      const double allowed = limits ? accepted * limits->size / rows_.s : 0.0;
      const char* const reason = "does not follow from what the component can add";
      found_.check(limits && anywhere["least"].number() <= std::min(0.0, limits->lower) / rows_.s + allowed,
                   anywhere["least"].place(), reason);
      found_.check(limits && anywhere["most"].number() >= std::max(0.0, limits->upper) / rows_.s - allowed,
                   anywhere["most"].place(), reason);
    }
  }

  void leave(const Field& field, const char* why) { found_.not_checkable.push_back({field.place(), why}); }

  /// The reading with all but the kept ones at their means.
  void check_circuit(const Field& circuit) {
    if (root_["removal"].text() != "mean") {
      for (const char* name : {"frozen", "gradient", "exact"}) {
        leave(circuit[name], "the means are in results whose removal is mean only");
      }
      return;
    }
    std::vector<bool> kept(rows_.count);
    for (std::size_t i = 0; i < circuit["kept"].size(); ++i) {
      const auto known = names_.find(circuit["kept"][i].text());
      if (known == names_.end()) circuit["kept"][i].refuse("a component");
      kept[known->second] = true;
    }
    std::vector<double> total(rows_.width);
    for (std::size_t k = 0; k < rows_.count; ++k) {
      for (std::size_t i = 0; i < rows_.width && !kept[k]; ++i) total[i] += rows_.d[k][i];
    }
    const Change change = change_of(total);
    const double value = root_["value"].number();
    const double size = change.size + std::abs(value);
    check_equal(circuit["frozen"], value + change.frozen, size);
    check_equal(circuit["gradient"], value + change.gradient, size);
    check_equal(circuit["exact"], value + change.exact, size);
  }

  const Result& result_;
  Field root_;
  const files::Checkpoint& checkpoint_;
  const models::Model& model_;
  const models::Norm* norm_ = nullptr;
  NormSpec spec_{};
  Rows rows_{};
  std::map<std::string, std::size_t> names_{};
  Verification found_{};
};

}  // namespace

Verification verify_attribute(const Result& result, const files::Checkpoint& checkpoint,
                              const models::Model& model) {
  return AttributionCheck(result, checkpoint, model).run();
}

}  // namespace normscope::verify
