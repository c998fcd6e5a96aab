#include "inputs.hpp"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string_view>
#include <system_error>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>

#include "session.hpp"

namespace normscope::cli {

namespace fs = std::filesystem;

namespace {

/// Whether `output` is a file that this program did not write, as far as its name and its first bytes tell.
bool is_foreign(const fs::path& output) {
  std::error_code missing;
  if (!fs::is_regular_file(output, missing)) return false;
  const std::string name = output.filename().string();
  for (const std::string_view ending : {".html", ".npy", ".vl.json"}) {
    if (name.ends_with(ending)) return false;
  }
  std::string beginning(4096, '\0');
  std::ifstream file(output, std::ios::binary);
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return !beginning.empty() && !beginning.starts_with("normscope.") &&
         beginning.find("\"normscope.") == std::string::npos;
}

}  // namespace

std::shared_ptr<const files::Checkpoint> Inputs::open(const fs::path& path) {
  std::shared_ptr<const files::Checkpoint>& opened = checkpoints_[path];
  if (opened) return opened;
  opened = std::make_shared<const files::Checkpoint>(files::open_noted(path, inputs_of_process()));
  files_.insert(files_.end(), opened->files().begin(), opened->files().end());
  files_.push_back(opened->path());
  const fs::path folder = opened->files().front().parent_path();
  if (opened->config_text()) folders_.push_back(folder.empty() ? "." : folder);
  for (const char* name : {"config.json", "model.safetensors.index.json", "pytorch_model.bin.index.json"})
    files_.push_back(folder / name);
  return opened;
}

files::OpenedArray Inputs::array(const std::string& name) {
  if (const auto known = arrays_.find(name); known != arrays_.end()) return known->second;
  files::OpenedArray opened(name, [this](const fs::path& path) { return open(path); });
  if (opened.file()) {
    inputs_of_process().note(*opened.file());
    files_.push_back(*opened.file());
  }
  return arrays_.emplace(name, std::move(opened)).first->second;
}

std::optional<files::OpenedArray> Inputs::optional_array(const std::string& name) {
  return name.empty() ? std::nullopt : std::optional(array(name));
}

const files::Checkpoint& Inputs::checkpoint(const fs::path& path) { return *open(path); }

const models::Model& Inputs::model_of(const files::Checkpoint& checkpoint, const models::Stated& stated) {
  const auto known = models_.find(&checkpoint);
  if (known != models_.end()) return known->second;
  return models_.emplace(&checkpoint, models::describe(checkpoint, stated)).first->second;
}

void Inputs::keep_apart(const std::vector<std::string>& outputs) const {
  cli::keep_apart(files_, outputs);
  expect_outside_models(outputs);
}

void Inputs::expect_outside_models(const std::vector<std::string>& outputs) const {
  for (const std::string& output : outputs) {
    if (output.empty() || output == "-" || !is_foreign(output)) continue;
    const fs::path folder = fs::path(output).has_parent_path() ? fs::path(output).parent_path() : ".";
    for (const fs::path& model : folders_) {
      std::error_code missing;
      if (!fs::equivalent(folder, model, missing)) continue;
      throw Error(ErrorCode::Argument,
                  fmt::format("{}: would overwrite a file of the model in {}, expected another name",
                              printable(output), printable(model.string())));
    }
  }
}

}  // namespace normscope::cli
