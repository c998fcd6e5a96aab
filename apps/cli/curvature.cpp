#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/version.hpp>
#include <normscope/norm/curvature.hpp>

#include "command.hpp"
#include "matrix_input.hpp"

namespace normscope::cli {
namespace {

struct Options {
  std::string input;
  NormOptions norm;
  std::vector<std::size_t> groups;
  std::size_t width = 0;
  std::size_t rows = 1000;
  std::uint64_t seed = 1;
};

MatrixInput rows_of(const Options& options) {
  if (!options.input.empty()) return read_matrix(options.input);
  if (options.width == 0 || options.rows == 0) {
    throw Error(ErrorCode::Argument, "curvature: neither X nor --width is given, expected one of them");
  }
  MatrixInput x{.values = {}, .rows = options.rows, .width = options.width};
  Random random(options.seed);
  for (std::size_t i = 0; i < x.rows * x.width; ++i) x.values.push_back(random.normal());
  return x;
}

nlohmann::ordered_json optional_number(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

int run(const Session& session, const Options& options) {
  keep_apart(files_of_arrays({options.input, options.norm.gain, options.norm.bias}), {session.json});
  const MatrixInput x = rows_of(options);
  const NormSpec spec = options.norm.read(x.width);
  const std::vector<std::size_t> groups =
      options.groups.empty() ? norm::curving_group_counts(spec.kind, spec.width) : options.groups;
  const std::vector<norm::GroupCurvature> results =
      norm::compare_groups(spec, x.view(), groups, session.threads);

  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const norm::GroupCurvature& result : results) {
    list.push_back({{"k", result.groups},
                    {"mean", result.mean},
                    {"ratio", result.ratio},
                    {"min", result.least},
                    {"max", result.largest},
                    {"bound", optional_number(result.bound)},
                    {"rows", result.rows}});
  }
  const nlohmann::ordered_json json = {{"schema", "normscope.curvature/1"},
                                       {"version", version},
                                       {"norm", std::string(to_string(spec.kind))},
                                       {"width", spec.width},
                                       {"rows", x.rows},
                                       {"eps", spec.eps},
                                       {"groups", list}};
  session.write_json(json_text(json));

  session.say(fmt::format("{} of width {}, {} row{}: curvature over that of one group", options.norm.kind,
                          spec.width, x.rows, x.rows == 1 ? "" : "s"));
  session.say(fmt::format("{:>6} {:>12} {:>12} {:>12} {:>12} {:>12}", "groups", "curvature", "ratio", "least",
                          "largest", "bound"));
  for (const norm::GroupCurvature& result : results) {
    const std::string bound = result.bound ? fmt::format("{:.6g}", *result.bound) : "-";
    session.say(fmt::format("{:>6} {:>12.6g} {:>12.6g} {:>12.6g} {:>12.6g} {:>12}{}", result.groups,
                            result.mean, result.ratio, result.least, result.largest, bound,
                            result.rows < x.rows ? fmt::format("  {} rows", result.rows) : ""));
  }
  return ok;
}

}  // namespace

void add_curvature(CLI::App& root, Session& session) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(root, session, "curvature", "How much a norm, and its groups, bend the space at given rows",
                  [&session, options] { return run(session, *options); });
  command->add_option("X", options->input, "Rows x width; without it, normal random rows of --width");
  options->norm.eps = 0.0;
  options->norm.declare(*command);
  // Several counts here, where other subcommands take one.
  command->remove_option(command->get_option("--groups"));
  command->add_option("--groups", options->groups, "Group counts (default: all that leave something curved)")
      ->type_name("K1,K2,...")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  command->add_option("--width", options->width, "Width of random rows")->type_name("N");
  command->add_option("--rows", options->rows, "Number of random rows (default 1000)")->type_name("R");
  command->add_option("--seed", options->seed, "Seed of random rows (default 1)")->type_name("S");
}

}  // namespace normscope::cli
