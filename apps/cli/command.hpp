#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/norm_spec.hpp>
#include <normscope/core/text.hpp>
#include <normscope/json/text.hpp>

#include "session.hpp"

/// What the subcommands share. A subcommand is one file with one `add_…` function, which declares
/// its options and sets `Session::run` when it is the one chosen; it parses and prints, no more.
namespace normscope::cli {

/// Options that describe a norm: --norm, --gain, --gain-offset, --bias, --groups, --eps.
struct NormOptions {
  std::string kind = "layer";
  std::string gain;
  std::string bias;
  double gain_offset = 0.0;
  std::size_t groups = 1;
  double eps = 1e-5;

  void declare(CLI::App& command);
  /// The norm they describe, arrays read; `width` where no array gives it.
  /// Errors    as `read_row`, `validate`; CLI::ValidationError where options are missing
  [[nodiscard]] NormSpec read(std::size_t width) const;
};

/// Every file that makes up a checkpoint, and every file an array's name may stand for.
[[nodiscard]] std::vector<std::filesystem::path> files_of(const checkpoint::Checkpoint& checkpoint);
[[nodiscard]] std::vector<std::filesystem::path> files_of_arrays(const std::vector<std::string>& arrays);

/// Prints what a model's description had to assume, or could not tell.
void say_notes(const Session& session, const std::vector<std::string>& notes);

void add_report(CLI::App& root, Session& session);
void add_inspect(CLI::App& root, Session& session);
void add_geometry(CLI::App& root, Session& session);
void add_apply(CLI::App& root, Session& session);
void add_build(CLI::App& root, Session& session);
void add_run(CLI::App& root, Session& session);
void add_curvature(CLI::App& root, Session& session);
void add_separate(CLI::App& root, Session& session);
void add_train(CLI::App& root, Session& session);
void add_count(CLI::App& root, Session& session);
void add_lab(CLI::App& root, Session& session);
void add_select(CLI::App& root, Session& session);
void add_heads(CLI::App& root, Session& session);
void add_reach(CLI::App& root, Session& session);
void add_explore(CLI::App& root, Session& session);

}  // namespace normscope::cli
