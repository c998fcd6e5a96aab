#include <cmath>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/text.hpp>
#include <normscope/files/array.hpp>
#include <normscope/norm/curvature.hpp>
#include <normscope/results/documents.hpp>

#include "norm_options.hpp"

namespace normscope::cli {
namespace {

struct CurvatureOptions {
  std::string input;
  NormOptions norm;
  std::vector<std::size_t> groups;
  std::size_t width = 0;
  std::size_t rows = 1000;
  std::uint64_t seed = 1;
  std::string rows_out;
};

/// 1 GiB of them.
constexpr std::size_t most_random_numbers = std::size_t{1} << 27;

MatrixInput rows_of(const CurvatureOptions& options, const std::optional<files::OpenedArray>& given) {
  if (given) return read_matrix(*given);
  if (options.width == 0 || options.rows == 0) {
    throw Error(ErrorCode::Argument, "curvature: neither X nor --width is given, expected one of them");
  }
  if (options.rows > most_random_numbers / options.width) {
    throw CLI::ValidationError("--rows", fmt::format("{} rows of width {}, expected at most {} numbers",
                                                     options.rows, options.width, most_random_numbers));
  }
  MatrixInput x{.values = {}, .rows = options.rows, .width = options.width};
  Random random(options.seed);
  for (std::size_t i = 0; i < x.rows * x.width; ++i) x.values.push_back(random.normal());
  return x;
}

/// Six digits, or a dash if there is no number.
std::string number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{:.6g}", *value) : "-";
}

int run_curvature(const Session& session, Inputs& inputs, Outputs& outputs, const CurvatureOptions& options) {
  const std::optional<files::OpenedArray> given = inputs.optional_array(options.input);
  const NormInput norm = options.norm.open(inputs);
  const MatrixInput x = rows_of(options, given);
  const GivenNorm spec = norm.of_width(x.width);
  const std::vector<std::size_t> groups =
      options.groups.empty() ? norm::curving_group_counts(spec.kind, spec.width) : options.groups;
  files::Array of_rows{{x.rows, groups.size()}, Dtype::F64, {}};
  if (!options.rows_out.empty()) of_rows.values.resize(x.rows * groups.size());
  const std::vector<norm::GroupCurvature> results = norm::compare_groups(
      spec, x.view(), groups, session.threads,
      options.rows_out.empty() ? MatrixView<double>{}
                               : MatrixView<double>(of_rows.values.data(), x.rows, groups.size()));

  outputs.write(options.rows_out, [&](const std::string& path) { files::write_npy(path, of_rows); });
  outputs.commit([&] { return json_text(results::curvature(spec, x.rows, results, spec.source())); });

  session.say(
      fmt::format("{} of width {}, {}: mean curvature per number of groups, and its ratio to one group",
                  to_string(spec.kind), spec.width, counted(x.rows, "row")));
  spec.say_source(session);
  session.say(fmt::format("{:>6} {:>12} {:>12} {:>12} {:>12} {:>12}", "groups", "curvature", "ratio", "least",
                          "largest", "bound"));
  for (const norm::GroupCurvature& result : results) {
    session.say(fmt::format("{:>6} {:>12} {:>12} {:>12} {:>12} {:>12}{}", result.groups, number(result.mean),
                            number(result.ratio), number(result.least), number(result.largest),
                            result.bound ? at_least(*result.bound, 6) : "-",
                            result.rows < x.rows ? fmt::format("  {} rows", result.rows) : ""));
  }
  return ok;
}

}  // namespace

Command curvature_command() {
  const auto options = std::make_shared<CurvatureOptions>();
  options->norm.usual_eps = 0.0;
  options->norm.bias_is_used = false;
  options->norm.groups_are_used = false;
  return {
      .name = "curvature",
      .text = "Measure a norm's curvature, for each number of groups",
      .inputs = {input("X", options->input, "Rows x width (default: standard normal rows of --width)")},
      .outputs = {output("--rows-out", options->rows_out)},
      .options = joined({option("--groups", options->groups)
                             .typed("K1,K2,...")
                             .says("; several are compared")
                             .usually("all whose curvature is not zero"),
                         option("--width", options->width).says("of random rows"),
                         option("--rows", options->rows).usually("1000"), option("--seed", options->seed)},
                        options->norm.arguments({"--groups"})),
      .footer =
          "Curvature is the squared Frobenius norm of the Hessian, averaged over the rows. The columns:\n"
          "  groups     number of groups\n"
          "  curvature  mean over the rows\n"
          "  ratio      of that to one group\n"
          "  least      smallest ratio of a row\n"
          "  largest    largest ratio of a row\n"
          "  bound      proved lower bound of the ratio",
      .examples = {"normscope curvature --width 64 --rows 100",
                   "normscope curvature models/kjv_gpt:transformer.wte.weight --groups 1,4"},
      .run = with(run_curvature, options)};
}

}  // namespace normscope::cli
