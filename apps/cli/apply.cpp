#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/checkpoint/array.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/version.hpp>
#include <normscope/geometry/steps.hpp>
#include <normscope/norm/norm.hpp>

#include "command.hpp"

namespace normscope::cli {
namespace {

struct Options {
  std::string input;
  std::string output;
  std::string step;
  NormOptions norm;
};

/// The NumPy type closest to the input's for the result.
Dtype output_dtype(Dtype input) {
  if (input == Dtype::BF16) return Dtype::F32;
  return input == Dtype::F32 || input == Dtype::F16 ? input : Dtype::F64;
}

constexpr std::size_t entries_a_piece = 1 << 14;

/// Applies the norm, or one of its steps, to a block of rows.
void apply_in_place(const std::string& step, const NormSpec& spec, MatrixView<double> x, unsigned threads) {
  const std::size_t grain = 1 + entries_a_piece / x.width();
  parallel_for(x.rows(), grain, threads, [&](std::size_t first, std::size_t last) {
    const MatrixView<double> piece(x.row(first).data(), last - first, x.width());
    if (step.empty()) {
      norm::forward(spec, piece, piece);
    } else {
      geometry::apply(geometry::step(step), spec, piece, piece);
    }
  });
}

int run(const Session& session, const Options& options) {
  expect_writable({options.output});
  // Writing in place is allowed for a separate array file, but not for a tensor inside a checkpoint.
  const bool own_file = checkpoint::array_file(options.input) == options.input;
  keep_apart(files_of_arrays({own_file ? "" : options.input, options.norm.gain, options.norm.bias}),
             {options.output, session.json});
  if (own_file) keep_apart(files_of_arrays({options.input}), {session.json});
  checkpoint::Array array = checkpoint::read_array(options.input);
  if (array.shape.empty() || array.shape.back() == 0) {
    throw Error(ErrorCode::Shape,
                fmt::format("{}: has no features, expected rows x width", printable(options.input)));
  }
  const std::size_t width = array.shape.back();
  const std::size_t rows = array.values.size() / width;
  const GivenNorm spec = options.norm.read(width);
  const MatrixView<double> x(array.values.data(), rows, width);
  apply_in_place(options.step, spec, x, session.threads);
  array.dtype = output_dtype(array.dtype);

  const nlohmann::ordered_json json = {{"schema", "normscope.apply/1"},
                                       {"version", version},
                                       {"output", options.output},
                                       {"dtype", std::string(to_string(array.dtype))},
                                       {"rows", rows},
                                       {"width", width},
                                       {"source", spec.source()}};
  JsonOutput machine_form(session, json_text(json));
  checkpoint::write_npy(options.output, array);
  machine_form.commit();
  spec.say_source(session);
  session.say(fmt::format("{}: {} of width {}, {}", printable(options.output), counted(rows, "row"), width,
                          to_string(array.dtype)));
  return ok;
}

}  // namespace

void add_apply(CLI::App& root, Session& session) {
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(root, session, "apply", "Apply a norm, or one of its four steps, to an array",
                  [&session, options] { return run(session, *options); });
  command->add_option("X", options->input, "Rows to normalize, along the last axis")->required();
  command->add_option("-o,--output", options->output, "File to write, with X's shape and precision")
      ->type_name("Y.npy")
      ->required();
  options->norm.declare(*command);
  command->add_option("--step", options->step, "Apply only this step of the norm")
      ->check(CLI::IsMember({"project", "scale", "stretch", "shift"}));
}

}  // namespace normscope::cli
