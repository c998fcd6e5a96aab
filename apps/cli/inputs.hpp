#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <normscope/files/array.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/models/model.hpp>

namespace normscope::cli {

/// The inputs of a command: each name on the command line is resolved and opened once, and all files behind
/// them are known. Subcommands open their inputs before any work and then check their outputs with
/// `keep_apart`.
class Inputs {
 public:
  /// The array of that name; a checkpoint that holds several of them is opened once.
  ///
  /// Errors    as `OpenedArray`
  [[nodiscard]] files::OpenedArray array(const std::string& name);
  /// The same for an option; empty if it is not given.
  [[nodiscard]] std::optional<files::OpenedArray> optional_array(const std::string& name);

  /// The checkpoint at that path; it stays open as long as this object exists.
  ///
  /// Errors    as `Checkpoint`
  [[nodiscard]] const files::Checkpoint& checkpoint(const std::filesystem::path& path);
  /// The description of `checkpoint` as a model, computed once, with what is stated of it the first time.
  ///
  /// Errors    as `models::describe`
  [[nodiscard]] const models::Model& model_of(const files::Checkpoint& checkpoint,
                                              const models::Stated& stated = {});

  /// Adds a file that is not opened here but that outputs may not replace either.
  void add_file(const std::filesystem::path& file) { files_.push_back(file); }

  /// All files of the inputs opened; for a checkpoint all its files, including its configuration.
  [[nodiscard]] const std::vector<std::filesystem::path>& files() const { return files_; }
  /// Throws if an output (other than "" and "-") names a file of the inputs or the file of another output, or
  /// one that `expect_outside_models` refuses.
  ///
  /// Errors    Argument
  void keep_apart(const std::vector<std::string>& outputs) const;
  /// Throws if an output would replace a file in the folder of a checkpoint that has a config.json, such as
  /// its tokenizer or its code. What this program writes there may be replaced: pages, arrays, and files that
  /// name it in their first bytes.
  /// Errors    Argument
  void expect_outside_models(const std::vector<std::string>& outputs) const;

 private:
  std::shared_ptr<const files::Checkpoint> open(const std::filesystem::path& path);

  std::map<std::string, files::OpenedArray> arrays_{};
  std::map<std::filesystem::path, std::shared_ptr<const files::Checkpoint>> checkpoints_{};
  std::map<const files::Checkpoint*, models::Model> models_{};
  std::vector<std::filesystem::path> files_{};
  std::vector<std::filesystem::path> folders_{};  ///< of checkpoints that have a config.json
};

}  // namespace normscope::cli
