#include "inputs.hpp"

#include "session.hpp"

namespace normscope::cli {

namespace fs = std::filesystem;

std::shared_ptr<const checkpoint::Checkpoint> Inputs::open(const fs::path& path) {
  std::shared_ptr<const checkpoint::Checkpoint>& opened = checkpoints_[path];
  if (opened) return opened;
  opened = checkpoint::open_checkpoint(path);
  files_.insert(files_.end(), opened->files().begin(), opened->files().end());
  files_.push_back(opened->path());
  const fs::path folder = opened->files().front().parent_path();
  for (const char* name : {"config.json", "model.safetensors.index.json", "pytorch_model.bin.index.json"})
    files_.push_back(folder / name);
  return opened;
}

checkpoint::OpenedArray Inputs::array(const std::string& name) {
  if (const auto known = arrays_.find(name); known != arrays_.end()) return known->second;
  checkpoint::OpenedArray opened(name, [this](const fs::path& path) { return open(path); });
  if (opened.file()) files_.push_back(*opened.file());
  return arrays_.emplace(name, std::move(opened)).first->second;
}

std::optional<checkpoint::OpenedArray> Inputs::optional_array(const std::string& name) {
  return name.empty() ? std::nullopt : std::optional(array(name));
}

const checkpoint::Checkpoint& Inputs::checkpoint(const fs::path& path) { return *open(path); }

const model::Model& Inputs::model_of(const checkpoint::Checkpoint& checkpoint, const model::Stated& stated) {
  const auto known = models_.find(&checkpoint);
  if (known != models_.end()) return known->second;
  return models_.emplace(&checkpoint, model::describe(checkpoint, stated)).first->second;
}

void Inputs::keep_apart(const std::vector<std::string>& outputs) const { cli::keep_apart(files_, outputs); }

}  // namespace normscope::cli
