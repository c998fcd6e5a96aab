#include <memory>
#include <string>

#include <normscope/core/version.hpp>

#include "command.hpp"

namespace {

using namespace normscope;

/// Without the type names of CLI11: positionals have their own, and fixed values are listed.
class HelpFormatter : public CLI::Formatter {
 public:
  [[nodiscard]] std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_positional()) {
      return option->get_expected_max() == CLI::detail::expected_max_vector_size ? " ..." : "";
    }
    std::string text = Formatter::make_option_opts(option);
    const std::string type = "TEXT:";
    if (const std::size_t at = text.find(type); at != std::string::npos) text.erase(at, type.size());
    return text;
  }
};

int run(int argc, char** argv) {
  cli::Session session;
  CLI::App root(
      "See, measure and rewrite what normalization layers do.\n\n  normscope report MODEL        analyse "
      "every norm of a checkpoint; write one HTML page\n",
      "normscope");
  root.set_version_flag("--version", version);
  root.require_subcommand(1);
  root.formatter(std::make_shared<HelpFormatter>());
  root.get_formatter()->column_width(34);
  cli::add_report(root, session);
  cli::add_inspect(root, session);
  cli::add_geometry(root, session);
  cli::add_apply(root, session);
  cli::add_curvature(root, session);
  cli::add_separate(root, session);
  CLI::App* nets = root.add_subcommand(
      "nets", "Construct, train and run LN-Nets; test recurrent networks that count");
  nets->require_subcommand(1);
  cli::add_build(*nets, session);
  cli::add_train(*nets, session);
  cli::add_run(*nets, session);
  cli::add_count(*nets, session);
  cli::add_examples(*nets, {"normscope nets build '0,0;0,1;1,0;1,1' 0,1,1,0 -o xor.safetensors",
                            "normscope nets train xor --steps 200 -o trained.safetensors"});
  cli::add_lab(root, session);
  cli::add_select(root, session);
  cli::add_heads(root, session);
  cli::add_reach(root, session);
  cli::add_verify(root, session);
  cli::add_rewrite(root, session);
  cli::add_compare(root, session);
  cli::add_ranges(root, session);
  cli::add_trace(root, session);
  cli::add_signature(root, session);
  cli::add_explore(root, session);
  cli::add_completion(root, session);
  cli::add_manual(root, session);
  root.footer(
      "MODEL is a .safetensors, .gguf, .onnx, .pt or .npz file, the .index.json of a sharded model, a "
      "Hugging\n"
      "Face folder, or ORG/NAME in its cache (no download).\n"
      "ARRAY is X.npy, X.npz:NAME, MODEL:TENSOR (TENSOR[i] for slice i of its first axis) or literal\n"
      "numbers: 1,2,0.5 is one row; 0,0;1,0;0,1 is three rows.\n"
      "Exit status: 0 success, 1 negative answer, 2 usage error, 3 bad input, 4 left unproved, 70 bug, 130 "
      "interrupted.");
  return cli::parse_and_run(root, session, argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  return normscope::cli::guarded("normscope", [&] { return run(argc, argv); });
}
