#include "command.hpp"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include <normscope/checkpoint/array.hpp>

namespace normscope::cli {
namespace {

std::vector<double> read_parameter(const std::string& name) {
  return name.empty() ? std::vector<double>{} : checkpoint::read_row(name);
}

}  // namespace

void NormOptions::declare(CLI::App& command) {
  command.add_option("--norm", kind, "Kind of norm (default layer)")
      ->check(CLI::IsMember({"layer", "rms", "spherical"}));
  command.add_option("--gain", gain, "Gain: G.npy, G.npz:NAME, CHECKPOINT:TENSOR or 1,2,0.5 (default: ones)")
      ->type_name("ARRAY");
  command.add_option("--gain-offset", gain_offset, "Added to the gain; 1 for Gemma, which stores gain - 1")
      ->type_name("X");
  command.add_option("--bias", bias, "Bias, given like the gain (default: zeros)")->type_name("ARRAY");
  command.add_option("--groups", groups, "Blocks normalized on their own (default 1)")
      ->type_name("K")
      ->check(counts(1, largest_count));
  command
      .add_option("--eps", eps,
                  fmt::format("Added to the mean square, of spherical to the square (default {:g})", eps))
      ->type_name("E")
      ->check(CLI::Range(0.0, 1e300));
}

NormSpec NormOptions::read(std::size_t width) const {
  NormSpec spec{.kind = norm_kind(kind), .width = width, .groups = groups, .eps = eps};
  spec.gain = read_parameter(gain);
  spec.bias = read_parameter(bias);
  if (gain.empty() && gain_offset != 0.0) throw CLI::ValidationError("--gain-offset", "needs --gain");
  for (double& g : spec.gain) g += gain_offset;
  if (spec.width == 0) spec.width = std::max(spec.gain.size(), spec.bias.size());
  if (spec.width == 0) throw CLI::ValidationError("--gain, --bias or --width", "one of them is needed");
  validate(spec);
  return spec;
}

std::vector<std::filesystem::path> files_of(const checkpoint::Checkpoint& checkpoint) {
  std::vector<std::filesystem::path> files = checkpoint.files();
  files.push_back(checkpoint.path());
  const std::filesystem::path folder = files.front().parent_path();
  for (const char* name : {"config.json", "model.safetensors.index.json"}) files.push_back(folder / name);
  return files;
}

std::vector<std::filesystem::path> files_of_arrays(const std::vector<std::string>& arrays) {
  std::vector<std::filesystem::path> files;
  for (const std::string& name : arrays) {
    if (name.empty()) continue;
    const std::optional<std::filesystem::path> file = checkpoint::array_file(name);
    if (!file) continue;
    files.push_back(*file);
    if (!std::filesystem::is_directory(*file)) continue;
    const std::vector<std::filesystem::path> parts = files_of(checkpoint::Checkpoint(*file));
    files.insert(files.end(), parts.begin(), parts.end());
  }
  return files;
}

void say_notes(const Session& session, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) session.say("note: " + printable(note));
}

}  // namespace normscope::cli
