#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/text.hpp>
#include <normscope/proof/separate.hpp>
#include <normscope/results/documents.hpp>

#include "norm_options.hpp"

namespace normscope::cli {
namespace {

struct SeparateOptions {
  std::string a;
  std::string b;
  std::string labels;
  std::vector<std::int64_t> classes;
  double tolerance = 1e-12;
  bool check = false;
  bool exact = false;
};

/// Rows of several classes, sorted by class.
struct Sample {
  std::vector<double> values{};
  std::size_t width = 0;
  std::vector<std::size_t> class_of{};
  std::vector<std::size_t> class_rows{};
  std::vector<std::size_t> given_row{};  ///< where a row stands in the input that its class came from
  std::vector<std::int64_t> names{};     ///< a label a class; none for A and B

  [[nodiscard]] MatrixView<const double> view() const { return {values.data(), class_of.size(), width}; }
  /// Rows of the first two classes.
  [[nodiscard]] MatrixView<const double> part(std::size_t index) const {
    const std::size_t first = index == 0 ? 0 : class_rows[0];
    return {values.data() + first * width, class_rows[index], width};
  }
  void add(std::size_t index, std::size_t row, std::span<const double> features) {
    values.insert(values.end(), features.begin(), features.end());
    class_of.push_back(index);
    given_row.push_back(row);
    ++class_rows[index];
  }
};

/// The arrays of the samples.
struct Arrays {
  files::OpenedArray a;
  std::optional<files::OpenedArray> b;
  std::optional<files::OpenedArray> labels;
};

/// Records an input array in the result.
using Describe = std::function<void(const char* role, const std::string& name, const MatrixInput& matrix)>;

Sample two_classes(const Arrays& arrays, const Describe& describe) {
  const MatrixInput a = read_matrix(arrays.a);
  const MatrixInput b = read_matrix(*arrays.b);
  if (a.width != b.width) {
    throw Error(ErrorCode::Shape,
                fmt::format("{} has width {}, {} has width {}, expected the same", printable(arrays.a.name()),
                            a.width, printable(arrays.b->name()), b.width));
  }
  expect_accepted("separate", {a.view(), b.view()});
  describe("a", arrays.a.name(), a);
  describe("b", arrays.b->name(), b);
  Sample sample;
  sample.width = a.width;
  sample.class_rows.resize(2);
  sample.values.reserve(a.values.size() + b.values.size());
  for (std::size_t row = 0; row < a.rows; ++row) sample.add(0, row, a.view().row(row));
  for (std::size_t row = 0; row < b.rows; ++row) sample.add(1, row, b.view().row(row));
  return sample;
}

/// The rows of each label; only those of the labels in `wanted` unless it is empty.
Sample labelled_rows(const SeparateOptions& options, const Arrays& arrays, const Describe& describe) {
  const MatrixInput x = read_samples(arrays.a);
  const std::vector<std::int64_t> labels = read_labels(*arrays.labels);
  if (labels.size() != x.rows) {
    throw Error(ErrorCode::Shape,
                fmt::format("{} has {}, {} has {}, expected one label per row", printable(options.labels),
                            counted(labels.size(), "label"), printable(options.a), counted(x.rows, "row")));
  }
  expect_accepted("separate", {x.view()});
  describe("samples", options.a, x);
  describe("labels", options.labels, {{labels.begin(), labels.end()}, labels.size(), 1});
  std::map<std::int64_t, std::vector<std::size_t>> rows_of;
  for (std::size_t row = 0; row < x.rows; ++row) rows_of[labels[row]].push_back(row);
  Sample sample;
  sample.width = x.width;
  sample.names = options.classes;
  if (sample.names.empty()) {
    for (const auto& [label, rows] : rows_of) sample.names.push_back(label);
  }
  sample.class_rows.resize(sample.names.size());
  for (std::size_t c = 0; c < sample.names.size(); ++c) {
    const auto rows = rows_of.find(sample.names[c]);
    if (rows == rows_of.end()) {
      throw Error(ErrorCode::Argument, fmt::format("{}: no row has label {}, which --classes names",
                                                   printable(options.labels), sample.names[c]));
    }
    for (const std::size_t row : rows->second) sample.add(c, row, x.view().row(row));
    rows->second.clear();
  }
  return sample;
}

std::string proof(const proof::Separation& separation) {
  const bool exact = separation.exact && separation.exact->answer != proof::Answer::undecided;
  switch (separation.answer) {
    case proof::Answer::yes:
      if (separation.margin > 0.0)
        return fmt::format("yes, by a hyperplane with margin {:.6g}", separation.margin);
      return "yes, by a hyperplane whose normal needs integers that doubles cannot hold";
    case proof::Answer::no:
      if (exact) {
        return fmt::format("no, the hulls of {} rows of A and {} of B meet in a point, exactly",
                           separation.exact->a.size(), separation.exact->b.size());
      }
      return fmt::format("no, the hulls of {} rows of A and {} of B meet in a point, to {:.2g}",
                         separation.a.size(), separation.b.size(), separation.residual);
    case proof::Answer::undecided: break;
  }
  const std::string why = separation.exact ? separation.exact->reason : "--exact decides it";
  return fmt::format("undecided: the hulls come within {} of each other, but no hyperplane is proved; {}",
                     at_most(separation.residual, 2), why);
}

void check(const SeparateOptions& options) {
  if (options.b.empty() == options.labels.empty()) {
    throw CLI::ValidationError("B or --labels", "one of them is needed");
  }
  if (!options.classes.empty() && options.labels.empty()) {
    throw CLI::ValidationError("--classes", "needs --labels");
  }
  std::vector<std::int64_t> classes = options.classes;
  std::sort(classes.begin(), classes.end());
  if (classes.size() == 1 || std::adjacent_find(classes.begin(), classes.end()) != classes.end()) {
    throw CLI::ValidationError("--classes", "expected at least two different labels");
  }
}

int run_separate(const Session& session, Inputs& inputs, Outputs& outputs, const SeparateOptions& options) {
  check(options);
  const Arrays arrays{inputs.array(options.a), inputs.optional_array(options.b),
                      inputs.optional_array(options.labels)};
  verify::Inputs computed_from;
  const Describe describe = [&](const char* role, const std::string& name, const MatrixInput& matrix) {
    if (session.wants_json()) add_array(computed_from, role, name, matrix, session.threads);
  };
  const Sample sample =
      arrays.labels ? labelled_rows(options, arrays, describe) : two_classes(arrays, describe);
  const std::size_t classes = sample.class_rows.size();
  if ((options.check || options.exact) && classes != 2) {
    throw Error(ErrorCode::Argument, fmt::format("separate: {} over {} classes, expected two (see --classes)",
                                                 options.check ? "--check" : "--exact", classes));
  }
  const double ssr = nets::sum_of_squares_ratio(sample.view(), sample.class_of, session.threads);
  const nets::LinearRatio linear =
      nets::linear_ratio(sample.view(), sample.class_of, session.threads, session.progress());
  std::optional<proof::Separation> separation;
  if (classes == 2) {
    separation = proof::separate(sample.part(0), sample.part(1), options.tolerance, session.threads,
                                 session.progress());
    if (options.exact) {
      proof::decide_exactly(sample.part(0), sample.part(1), *separation, {}, session.threads,
                            session.progress());
    }
  }

  outputs.commit([&] {
    return json_text(results::separate({.width = sample.width,
                                        .class_rows = sample.class_rows,
                                        .given_row = sample.given_row,
                                        .classes = sample.names,
                                        .ssr = ssr,
                                        .linear = linear,
                                        .separation = separation,
                                        .inputs = computed_from}));
  });
  const std::string rows = classes == 2
                               ? fmt::format("{} and {} rows", sample.class_rows[0], sample.class_rows[1])
                               : fmt::format("{} rows in {} classes", sample.class_of.size(), classes);
  session.say(fmt::format("{} of width {}, scatter of rank {}", rows, sample.width, linear.rank));
  session.say(
      std::isfinite(ssr) && std::isfinite(linear.ratio)
          ? fmt::format("SSR {:.6g}, smallest SSR after any linear map (LSSR) {:.6g}", ssr, linear.ratio)
          : "SSR and LSSR are not defined: all rows are equal");
  if (separation) session.say("linearly separable: " + proof(*separation));
  if (!options.check || separation->answer == proof::Answer::yes) return ok;
  return separation->answer == proof::Answer::no ? negative : undecided;
}

}  // namespace

Command separate_command() {
  const auto options = std::make_shared<SeparateOptions>();
  return {
      .name = "separate",
      .text = "Decide whether a hyperplane separates two classes of rows",
      .inputs = {input("A", options->a, "Rows of the first class; with --labels, of all classes").required(),
                 input("B", options->b, "Rows of the second class, of the same width")},
      .options = {option("--labels", options->labels), option("--classes", options->classes),
                  option("--exact", options->exact),
                  option("--check", options->check).says("two classes are linearly separable"),
                  option("--tolerance", options->tolerance)
                      .says(": relative distances up to this of two hulls")
                      .within(numbers(0.0, std::numeric_limits<double>::max()))},
      .footer =
          "SSR is the sum of squares within classes over the total one. LSSR is the smallest SSR "
          "after any linear map, which the JSON has as a direction or a subspace.",
      .examples = {"normscope separate '0,0;1,0' '0,1;1,1' --exact",
                   "normscope separate '0,0;0,1;1,0;1,1' --labels 0,1,1,0"},
      .run = with(run_separate, options)};
}

}  // namespace normscope::cli
