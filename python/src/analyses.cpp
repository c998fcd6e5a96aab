// Analyses of arrays for Python, as JSON documents.

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <nlohmann/json.hpp>

#include <normscope/nets/scatter.hpp>
#include <normscope/proof/separate.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>
#include <normscope/selectability/select.hpp>
#include <normscope/verify/verify.hpp>

#include "arguments.hpp"
#include "array.hpp"
#include "matrix_argument.hpp"
#include "module.hpp"
#include "norm_argument.hpp"
#include "results.hpp"
#include "work.hpp"

namespace normscope::python {
namespace {

verify::InputArray described(const char* role, const Matrix& matrix, unsigned threads) {
  return verify::describe_array(role, {matrix.rows, matrix.width}, matrix.values, threads);
}

Illustrated geometry(const nb::object& norm, std::size_t axes, bool null_space, unsigned threads,
                     const nb::object& callback) {
  const NormSpec spec = norm_of("geometry", norm);
  return run(callback, [&](const Progress& progress) {
    return geometry_document(spec, !spec.gain.empty(), axes, null_space, threads, progress);
  });
}

Illustrated select(const nb::object& given, double tolerance, double rank_tolerance, bool exact,
                   unsigned threads, const nb::object& callback) {
  const Matrix keys = matrix_of("select", "keys", given);
  return run(callback, [&](const Progress& progress) {
    selectability::Selection selection = selectability::select_keys(
        keys.view(), {.tolerance = tolerance, .rank_tolerance = rank_tolerance, .threads = threads},
        progress);
    if (exact) selectability::decide_exactly(keys.view(), selection, {}, threads, progress);
    const verify::Inputs inputs{.arguments = {{"keys", "keys"}},
                                .arrays = {described("keys", keys, threads)}};
    return Illustrated(
        json_text(results::select(selection, {.width = keys.width, .exact = exact, .inputs = inputs})),
        json_text(figures::selection_charts(selection)));
  });
}

/// Rows of several classes, those of a class together.
struct Classes {
  Matrix rows{};
  std::vector<std::size_t> class_of{};
  std::vector<std::size_t> class_rows{};
  std::vector<std::size_t> given_row{};

  [[nodiscard]] MatrixView<const double> part(std::size_t index) const {
    std::size_t first = 0;
    for (std::size_t c = 0; c < index; ++c) first += class_rows[c];
    return {rows.values.data() + first * rows.width, class_rows[index], rows.width};
  }
};

Classes classes_of(const std::vector<Matrix>& matrices) {
  Classes result;
  result.rows.width = matrices.front().width;
  for (std::size_t c = 0; c < matrices.size(); ++c) {
    const Matrix& matrix = matrices[c];
    if (matrix.width != result.rows.width) {
      throw Error(ErrorCode::Shape,
                  fmt::format("separate: class {} has width {}, class 0 has {}, expected the same", c,
                              matrix.width, result.rows.width));
    }
    if (matrix.rows == 0) throw Error(ErrorCode::Shape, fmt::format("separate: class {} has no rows", c));
    result.rows.rows += matrix.rows;
    result.rows.values.insert(result.rows.values.end(), matrix.values.begin(), matrix.values.end());
    result.class_rows.push_back(matrix.rows);
    for (std::size_t row = 0; row < matrix.rows; ++row) {
      result.class_of.push_back(c);
      result.given_row.push_back(row);
    }
  }
  return result;
}

/// The classes along the normal of the hyperplane between two, or along the direction that separates them
/// best.
nlohmann::ordered_json charts_of(const Classes& classes, const nets::LinearRatio& linear,
                                 const std::optional<proof::Separation>& separation) {
  const bool divided = separation && !separation->normal.empty();
  const std::vector<double>& direction = divided ? separation->normal : linear.direction;
  if (direction.empty()) return nlohmann::ordered_json::array();
  std::vector<double> along(classes.rows.rows);
  for (std::size_t row = 0; row < along.size(); ++row) {
    along[row] =
        std::inner_product(direction.begin(), direction.end(), classes.rows.view().row(row).begin(), 0.0);
  }
  return figures::separation_charts(along, classes.class_of,
                                    divided ? std::optional(separation->offset) : std::nullopt);
}

std::vector<Matrix> matrices_of(const char* who, const nb::list& given) {
  std::vector<Matrix> matrices;
  for (const nb::handle entry : given) {
    matrices.push_back(matrix_of(who, fmt::format("class {}", matrices.size()), nb::borrow(entry)));
  }
  return matrices;
}

std::vector<verify::InputArray> class_arrays(const std::vector<Matrix>& matrices, unsigned threads) {
  return {described("a", matrices[0], threads), described("b", matrices[1], threads)};
}

Illustrated separate(const nb::list& given, double tolerance, bool exact, unsigned threads,
                     const nb::object& callback) {
  const std::vector<Matrix> matrices = matrices_of("separate", given);
  return run(callback, [&](const Progress& progress) {
    const Classes classes = classes_of(matrices);
    const double ssr = nets::sum_of_squares_ratio(classes.rows.view(), classes.class_of, threads);
    const nets::LinearRatio linear =
        nets::linear_ratio(classes.rows.view(), classes.class_of, threads, progress);
    std::optional<proof::Separation> separation;
    verify::Inputs inputs;
    if (matrices.size() == 2) {
      separation = proof::separate(classes.part(0), classes.part(1), tolerance, threads, progress);
      if (exact) {
        proof::decide_exactly(classes.part(0), classes.part(1), *separation, {}, threads, progress);
      }
      inputs = {.arguments = {{"a", "class 0"}, {"b", "class 1"}}, .arrays = class_arrays(matrices, threads)};
    }
    return Illustrated(json_text(results::separate({.width = classes.rows.width,
                                                    .class_rows = classes.class_rows,
                                                    .given_row = classes.given_row,
                                                    .classes = {},
                                                    .ssr = ssr,
                                                    .linear = linear,
                                                    .separation = separation,
                                                    .inputs = inputs})),
                       json_text(charts_of(classes, linear, separation)));
  });
}

/// A vocabulary's head from arrays.
struct ArrayHead {
  Matrix unembedding{};
  NormSpec norm{};
  std::vector<double> bias{};

  /// What a result states of them, and by which names.
  [[nodiscard]] verify::Inputs inputs(unsigned threads) const {
    verify::Inputs found{.arguments = {{"unembedding", "unembedding"}},
                         .arrays = {described("unembedding", unembedding, threads)}};
    const auto add = [&](const char* role, const std::vector<double>& values) {
      if (values.empty()) return;
      found.arguments.push_back({role, role});
      found.arrays.push_back(verify::describe_array(role, {values.size()}, values));
    };
    add("unembedding bias", bias);
    add("gain", norm.gain);
    add("norm bias", norm.bias);
    return found;
  }
};

/// `norm` is None for a LayerNorm without gain.
ArrayHead head_of(const char* who, const nb::object& norm, const nb::object& unembedding,
                  const nb::object& bias) {
  Matrix weights = matrix_of(who, "unembedding", unembedding);
  NormSpec spec = norm.is_none() ? NormSpec{.width = weights.width} : norm_of(who, norm);
  return {std::move(weights), std::move(spec), vector_of(who, "bias", bias)};
}

Illustrated reach(const nb::object& norm, const nb::object& unembedding, const nb::object& bias,
                  const std::vector<std::size_t>& tokens, std::size_t nearest, double budget,
                  double tolerance, unsigned threads, const nb::object& callback) {
  const ArrayHead given = head_of("reach", norm, unembedding, bias);
  return run(callback, [&](const Progress& progress) {
    selectability::VocabularyHead head;
    head.norm = given.norm;
    head.has_bias = !given.bias.empty();
    head.logits = selectability::fold(given.norm, given.unembedding.view(), given.bias);
    return reach_document(
        head, {.source = "unembedding", .names = {}, .notes = {}, .inputs = given.inputs(threads)},
        {.tokens = tokens, .nearest = nearest, .budget = budget, .tolerance = tolerance}, threads, progress);
  });
}

/// Above which a lead of `reach` is one in float32 too.
double float32_lead(const nb::object& norm, const nb::object& unembedding, const nb::object& bias) {
  const ArrayHead given = head_of("head", norm, unembedding, bias);
  const nb::gil_scoped_release others_may_run;
  return selectability::fold(given.norm, given.unembedding.view(), given.bias).float32_lead();
}

std::string verify_reach(const std::string& result_text, const nb::object& norm,
                         const nb::object& unembedding, const nb::object& bias, unsigned threads,
                         const nb::object& callback) {
  const ArrayHead given = head_of("verify", norm, unembedding, bias);
  return run(callback, [&](const Progress& progress) {
    const verify::Result result(result_text, "result");
    result.expect_arrays(given.inputs(threads).arrays, "the head");
    const verify::VocabularyHead head{
        .norm = given.norm, .unembedding = given.unembedding.view(), .bias = given.bias};
    return verification_document(result, verify::verify_reach(result, head, nullptr, {threads, progress}));
  });
}

std::string verify_select(const std::string& result_text, const nb::object& given, unsigned threads,
                          const nb::object& callback) {
  const Matrix keys = matrix_of("verify", "keys", given);
  return run(callback, [&](const Progress& progress) {
    const verify::Result result(result_text, "result");
    result.expect_arrays({described("keys", keys, threads)}, "keys");
    return verification_document(
        result, verify::verify_select(result, keys.view(), false, nullptr, {threads, progress}));
  });
}

std::string verify_separate(const std::string& result_text, const nb::list& given, unsigned threads,
                            const nb::object& callback) {
  const std::vector<Matrix> matrices = matrices_of("verify", given);
  return run(callback, [&](const Progress& progress) {
    const verify::Result result(result_text, "result");
    if (matrices.size() != 2) {
      throw Error(ErrorCode::Argument,
                  fmt::format("verify: {} classes were given, expected two", matrices.size()));
    }
    result.expect_arrays(class_arrays(matrices, threads), "the classes");
    const Classes classes = classes_of(matrices);
    verify::ClassRows rows;
    for (std::size_t c = 0; c < matrices.size(); ++c) {
      rows.rows.push_back(classes.part(c));
      std::vector<std::size_t>& numbers = rows.numbers.emplace_back(classes.class_rows[c]);
      for (std::size_t row = 0; row < numbers.size(); ++row) numbers[row] = row;
    }
    return verification_document(result, verify::verify_separate(result, rows, {threads, progress}));
  });
}

std::string result_kind(const std::string& result_text) {
  return verify::Result(result_text, "result").kind();
}

}  // namespace

void define_analyses(nb::module_& module) {
  define(module, "geometry", &geometry);
  define(module, "select", &select);
  define(module, "separate", &separate);
  define(module, "reach", &reach);
  define(module, "float32_lead", &float32_lead);
  define(module, "verify_select", &verify_select);
  define(module, "verify_separate", &verify_separate);
  define(module, "verify_reach", &verify_reach);
  define(module, "result_kind", &result_kind);
}

}  // namespace normscope::python
