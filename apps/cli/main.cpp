#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/version.hpp>

#include "command.hpp"

namespace {

using namespace normscope;

int run(int argc, char** argv) {
  cli::Session session;
  CLI::App root("See, measure and rewrite what normalization layers do: normscope report MODEL", "normscope");
  root.set_version_flag("--version", version);
  root.require_subcommand(1);
  const std::vector<std::pair<std::string, std::vector<cli::Command>>> groups{
      {"look",
       {cli::report_command(), cli::inspect_command(), cli::geometry_command(), cli::trace_command(),
        cli::explore_command()}},
      {"prove",
       {cli::heads_command(), cli::reach_command(), cli::ranges_command(), cli::select_command(),
        cli::separate_command(), cli::verify_command()}},
      {"explain", {cli::attribute_command()}},
      {"change", {cli::rewrite_command(), cli::compare_command()}},
      {"identify", {cli::signature_command()}},
      {"compute", {cli::apply_command(), cli::curvature_command()}},
      {"papers", {cli::nets_command()}}};
  for (const auto& [group, commands] : groups) {
    for (const cli::Command& command : commands) cli::add(root, session, command, group);
  }
  cli::add_lab(root, session, "papers");
  // The page is read with `man normscope`; this makes it when the command is installed.
  cli::add(root, session, cli::manual_command(root), cli::hidden);
  cli::add(root, session, cli::completion_command(root), "shell");
  root.footer(fmt::format(
      "MODEL is a .safetensors, .gguf, .onnx, .pt or .npz file, the .index.json of a sharded model, a "
      "Hugging "
      "Face folder, or ORG/NAME in its cache (no download).\nARRAY is X.npy, X.npz:NAME, MODEL:TENSOR "
      "(TENSOR[i] for slice i of its first axis) or literal numbers: 1,2,0.5 is one row; 0,0;1,0;0,1 is "
      "three "
      "rows.\n{}",
      cli::exit_statuses));
  return cli::parse_and_run(root, session, argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  return normscope::cli::guarded("normscope", [&] { return run(argc, argv); });
}
