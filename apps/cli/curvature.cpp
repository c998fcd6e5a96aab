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

#include "command.hpp"
#include "inputs.hpp"
#include "matrix_input.hpp"

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

int run_curvature(const Session& session, const CurvatureOptions& options) {
  expect_writable({options.rows_out});
  Inputs inputs;
  const std::optional<files::OpenedArray> given = inputs.optional_array(options.input);
  const NormInput norm = options.norm.open(inputs);
  inputs.keep_apart({options.rows_out, session.json});
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

  AtomicGroup outputs;
  if (!options.rows_out.empty()) files::write_npy(options.rows_out, of_rows);
  session.write_json(json_text(results::curvature(spec, x.rows, results, spec.source())));
  outputs.commit();

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

void add_curvature(CLI::App& root, Session& session) {
  const auto options = std::make_shared<CurvatureOptions>();
  CLI::App* command =
      add_command(root, session, "curvature",
                  "Measure a norm's curvature (squared Hessian norm) at given rows, per number of groups",
                  [&session, options] { return run_curvature(session, *options); });
  command->add_option("X", options->input, "Rows x width (default: standard normal rows of --width)");
  options->norm.usual_eps = 0.0;
  options->norm.bias_is_used = false;
  options->norm.groups_are_used = false;
  options->norm.declare(*command);
  // Several counts here, unlike in other subcommands.
  command->remove_option(command->get_option("--groups"));
  command
      ->add_option("--groups", options->groups,
                   "Numbers of groups to compare (default: all whose curvature is not zero)")
      ->type_name("K1,K2,...")
      ->delimiter(',')
      ->check(counts(1, largest_count));
  command->add_option("--width", options->width, "Width of the random rows")
      ->type_name("N")
      ->check(counts(1, largest_count));
  command->add_option("--rows", options->rows, "Number of random rows (default 1000)")
      ->type_name("R")
      ->check(counts(1, largest_count));
  command
      ->add_option("--rows-out", options->rows_out,
                   "Write the curvature at each row, rows x group counts (inf: a constant group at eps 0)")
      ->type_name("FILE.npy");
  command->add_option("--seed", options->seed, "Random seed of the rows (default 1)")
      ->type_name("S")
      ->check(seeds());
  add_examples(*command, {"normscope curvature --width 64 --rows 100",
                          "normscope curvature models/wordlist_gpt:transformer.wte.weight --groups 1,4"});
}

}  // namespace normscope::cli
