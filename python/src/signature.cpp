// Signatures of models by their outputs for Python, as JSON documents.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <nlohmann/json.hpp>

#include <normscope/files/array.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>
#include <normscope/selectability/vocabulary.hpp>
#include <normscope/signature/compare.hpp>
#include <normscope/signature/extract.hpp>
#include <normscope/signature/verify.hpp>

#include "arguments.hpp"
#include "array.hpp"
#include "model.hpp"
#include "module.hpp"
#include "results.hpp"
#include "work.hpp"

namespace normscope::python {
namespace {

using Json = nlohmann::ordered_json;
using signature::Ellipse;

/// In the order of `Element`.
constexpr std::array dtypes{Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16};

/// An argument that names an array as the command does, or is one.
class ArrayArgument {
 public:
  ArrayArgument(std::string_view who, const char* role, const nb::object& given) : role_(role) {
    if (nb::isinstance<nb::str>(given)) {
      name_ = text(given);
      return;
    }
    array_.emplace(who, role, given);
    const std::optional<Rows>& rows = array_->rows();
    if (!rows || (rows->count > 1 && rows->stride != rows->width)) array_ = array_->copy();
  }

  /// Requires  that this one outlives what is opened
  [[nodiscard]] files::OpenedArray open() const {
    if (!array_) return files::OpenedArray(name_);
    const Rows& rows = *array_->rows();
    const std::span<const char> values(rows.data, rows.count * rows.width * rows.entry);
    files::StoredArray stored{.shape = {array_->shape().begin(), array_->shape().end()},
                              .dtype = dtypes.at(static_cast<std::size_t>(array_->element()))};
    stored.fetch = [values](std::vector<std::byte>&) { return std::as_bytes(values); };
    return {role_, std::move(stored)};
  }

 private:
  const char* role_;
  std::string name_{};
  std::optional<Array> array_{};
};

/// Rows of outputs on their way from arguments.
class OutputsArgument {
 public:
  /// `ids` may be None; an empty `precision` is found from the rows.
  OutputsArgument(std::string_view who, const nb::object& values, const nb::object& ids, double temperature,
                  const std::string& precision)
      : values_(who, "outputs", values), options_{.temperature = temperature} {
    if (!ids.is_none()) ids_.emplace(who, "ids", ids);
    for (std::size_t i = 0; i < dtypes.size(); ++i) {
      if (to_string(static_cast<Element>(i)) == precision) options_.precision = dtypes.at(i);
    }
  }

  [[nodiscard]] signature::Outputs open(std::size_t vocabulary, double soft_cap) const {
    signature::OutputOptions options = options_;
    options.vocabulary = vocabulary;
    options.soft_cap = soft_cap;
    std::optional<files::OpenedArray> ids;
    if (ids_) ids = ids_->open();
    return {values_.open(), ids, options};
  }

 private:
  ArrayArgument values_;
  std::optional<ArrayArgument> ids_{};
  signature::OutputOptions options_;
};

signature::Head head_of(const Model& model) {
  return signature::head_of(selectability::vocabulary_head(model.checkpoint(), model.described()));
}

nb::object array_or_none(const std::vector<std::size_t>& tokens) {
  if (tokens.empty()) return nb::none();
  return array_of(std::vector<double>(tokens.begin(), tokens.end()));
}

/// The document, and of each refuted row (row, weights, logits, slack, tokens or None).
nb::tuple signature_verify(const nb::object& against, const std::string& name, const nb::object& outputs,
                           const nb::object& ids, double temperature, const std::string& precision,
                           double least_mean_square, unsigned threads, const nb::object& callback) {
  const OutputsArgument given("verify", outputs, ids, temperature, precision);
  const Ellipse* const ellipse =
      nb::isinstance<Ellipse>(against) ? nb::cast<const Ellipse*>(against) : nullptr;
  const Model* const model = ellipse == nullptr ? nb::cast<const Model*>(against) : nullptr;
  const auto [document, rows] = run(callback, [&](const Progress& progress) {
    const signature::Head head = model == nullptr ? signature::Head{} : head_of(*model);
    const signature::Outputs opened =
        given.open(ellipse != nullptr ? ellipse->tokens : head.logits.tokens, head.soft_cap);
    const signature::VerifyOptions how{
        .least_mean_square = least_mean_square, .threads = threads, .progress = progress};
    signature::Verification found =
        ellipse != nullptr ? signature::verify(*ellipse, opened, how) : signature::verify(head, opened, how);
    const results::SignatureSource source{
        .path = name,
        .kind = ellipse != nullptr ? "ellipse" : "model",
        .outputs = opened.name(),
        .dimension = ellipse != nullptr ? ellipse->rank : head.logits.dimension(),
        .temperature = temperature};
    return std::pair(json_text(results::signature_verify(found, opened, source)), std::move(found.rows));
  });
  nb::list certificates;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const signature::RowResult& found = rows[row];
    if (found.weights.empty()) continue;
    certificates.append(nb::make_tuple(row, array_of(found.weights), array_of(found.logits),
                                       array_of(found.slack), array_or_none(found.tokens)));
  }
  return nb::make_tuple(document, certificates);
}

/// The document, and the ellipse or None.
nb::tuple signature_extract(const nb::object& outputs, const std::string& output, double temperature,
                            const std::string& precision, double soft_cap, std::size_t rank,
                            const std::string& resume, unsigned threads, const nb::object& callback) {
  const OutputsArgument given("extract", outputs, nb::none(), temperature, precision);
  auto [document, ellipse] = run(callback, [&](const Progress& progress) {
    const signature::Outputs opened = given.open(0, soft_cap);
    const signature::Subspace subspace = signature::find_subspace(opened, threads, progress, rank);
    signature::Extraction found =
        signature::extract(opened, subspace, {.threads = threads, .progress = progress, .resume = resume});
    if (found.ellipse && !output.empty()) signature::write_ellipse(output, *found.ellipse);
    return std::pair(json_text(results::signature_extract(found, subspace, opened, output)),
                     std::move(found.ellipse));
  });
  return nb::make_tuple(document, ellipse ? nb::cast(std::move(*ellipse)) : nb::none());
}

Illustrated signature_kind(const nb::object& outputs, double temperature, const std::string& precision,
                           unsigned threads, const nb::object& callback) {
  const OutputsArgument given("kind", outputs, nb::none(), temperature, precision);
  return run(callback, [&](const Progress& progress) {
    const signature::Outputs opened = given.open(0, 0.0);
    const signature::Subspace subspace = signature::find_subspace(opened, threads, progress);
    const signature::Kind found =
        signature::kind_of(opened, subspace, {.threads = threads, .progress = progress, .resume = {}});
    const Json chart = chart_entry("singular_values", figures::singular_values(subspace));
    return Illustrated(json_text(results::signature_kind(found, subspace, opened)),
                       json_text(Json::array({chart})));
  });
}

std::string signature_compare(const nb::object& one, const std::string& one_name, const nb::object& other,
                              const std::string& other_name, unsigned threads) {
  const auto model_or_null = [](const nb::object& given) {
    return nb::isinstance<Ellipse>(given) ? nullptr : nb::cast<const Model*>(given);
  };
  const auto ellipse_or_null = [](const nb::object& given) {
    return nb::isinstance<Ellipse>(given) ? nb::cast<const Ellipse*>(given) : nullptr;
  };
  const std::array models{model_or_null(one), model_or_null(other)};
  const std::array ellipses{ellipse_or_null(one), ellipse_or_null(other)};
  const nb::gil_scoped_release others_may_run;
  const auto ellipse = [&](std::size_t i) {
    return models.at(i) == nullptr ? *ellipses.at(i)
                                   : signature::ellipse_of(head_of(*models.at(i)).logits, threads);
  };
  const signature::Comparison found = signature::compare(ellipse(0), ellipse(1), threads);
  return json_text(results::signature_compare(found, one_name, other_name));
}

/// The ellipse in a file; None where the file is something else.
std::optional<Ellipse> load_ellipse(const std::string& path) {
  const nb::gil_scoped_release others_may_run;
  return signature::read_ellipse(path);
}

void save_ellipse(const Ellipse& ellipse, const std::string& path) {
  const nb::gil_scoped_release others_may_run;
  signature::write_ellipse(path, ellipse);
}

}  // namespace

void define_signature(nb::module_& module) {
  nb::class_<Ellipse>(module, "Ellipse")
      .def_ro("tokens", &Ellipse::tokens)
      .def_ro("rank", &Ellipse::rank)
      .def_prop_ro("drowned", &Ellipse::drowned)
      .def_prop_ro("centre", [](const Ellipse& ellipse) { return array_of(ellipse.centre); })
      .def_prop_ro("semi_axes", [](const Ellipse& ellipse) { return array_of(ellipse.semi_axes); })
      .def_prop_ro("errors", [](const Ellipse& ellipse) { return array_of(ellipse.errors); })
      .def_prop_ro("axes", [](const Ellipse& ellipse) {
        return nb::object(array_of(ellipse.axes).attr("reshape")(ellipse.tokens, ellipse.rank));
      });
  define(module, "load_ellipse", &load_ellipse);
  define(module, "save_ellipse", &save_ellipse);
  define(module, "signature_verify", &signature_verify);
  define(module, "signature_extract", &signature_extract);
  define(module, "signature_kind", &signature_kind);
  define(module, "signature_compare", &signature_compare);
}

}  // namespace normscope::python
