#include "outputs.hpp"

#include <fstream>
#include <system_error>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

namespace normscope::cli {

namespace fs = std::filesystem;

namespace {

bool is_file(const std::string& name) { return !name.empty() && name != "-"; }

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

void expect_folder(const std::string& folder) {
  std::error_code missing;
  fs::path nearest = spelled_out(folder);
  while (!fs::exists(nearest, missing) && nearest.has_relative_path()) nearest = nearest.parent_path();
  if (!fs::is_directory(nearest, missing)) {
    throw Error(ErrorCode::Io, fmt::format("{}: {} is not a folder, expected one to write into",
                                           printable(folder), printable(nearest.string())));
  }
  const AtomicFile probe(nearest / "normscope");
}

void write_file(const std::string& path, const std::function<std::string()>& text) {
  AtomicFile file(path);
  file.write(text());
  file.commit();
}

}  // namespace

Outputs::Outputs(const Session& session) : session_(session) { add_file(session.json); }

void Outputs::add_file(const std::string& name) {
  add_own(name);
  if (is_file(name)) probed_.push_back(name);
}

void Outputs::add_own(const std::string& name) {
  if (is_file(name)) names_.push_back(name);
}

void Outputs::add_folder(const std::string& name, const std::vector<std::string>& files) {
  if (name.empty()) return;
  folders_.push_back(name);
  for (const std::string& file : files) names_.push_back((fs::path(name) / file).string());
}

void Outputs::expect_writable() const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    for (std::size_t j = i + 1; j < names_.size(); ++j) {
      if (!is_same_place(names_[j], names_[i])) continue;
      throw Error(ErrorCode::Argument,
                  fmt::format("{}: would overwrite {}, expected another name", names_[j], names_[i]));
    }
  }
  for (const std::string& output : probed_) {
    std::error_code missing;
    const fs::file_status status = fs::status(output, missing);
    if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status)) continue;
    const AtomicFile probe(output);
  }
  for (const std::string& folder : folders_) expect_folder(folder);
}

void Outputs::protect(const fs::path& input, const std::string& replaced_by) {
  for (const std::string& output : names_) {
    if (output == replaced_by || !is_same_place(output, input)) continue;
    throw Error(ErrorCode::Argument,
                fmt::format("{}: would overwrite {}, expected another name", output, input.string()));
  }
  inputs_.push_back(input);
}

void Outputs::protect_folder(const fs::path& model) {
  for (const std::string& output : names_) {
    if (!is_foreign(output)) continue;
    const fs::path folder = fs::path(output).has_parent_path() ? fs::path(output).parent_path() : ".";
    std::error_code missing;
    if (!fs::equivalent(folder, model, missing)) continue;
    throw Error(ErrorCode::Argument,
                fmt::format("{}: would overwrite a file of the model in {}, expected another name",
                            printable(output), printable(model.string())));
  }
}

void Outputs::begin() {
  if (!group_) group_.emplace();
}

void Outputs::write(const std::string& name, const std::function<void(const std::string&)>& write) {
  if (name.empty()) return;
  begin();
  write(name);
}

void Outputs::write_text(const std::string& name, const std::function<std::string()>& text) {
  write(name, [&](const std::string& path) { write_file(path, text); });
}

void Outputs::write_into(const std::string& folder, const std::string& file,
                         const std::function<void(const std::string&)>& write) {
  if (folder.empty()) return;
  begin();
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) throw Error(ErrorCode::Io, fmt::format("{}: {}", printable(folder), failure.message()));
  const fs::path path = fs::path(folder) / file;
  for (const fs::path& input : inputs_) {
    if (!is_same_place(path, input)) continue;
    throw Error(ErrorCode::Argument, fmt::format("{}: would overwrite {}, expected another folder",
                                                 path.string(), input.string()));
  }
  write(path.string());
}

void Outputs::write_text_into(const std::string& folder, const std::string& file,
                              const std::function<std::string()>& text) {
  write_into(folder, file, [&](const std::string& path) { write_file(path, text); });
}

void Outputs::commit(const std::function<std::string()>& json) {
  begin();
  session_.write_json(session_.wants_json() ? json() : std::string());
  group_->commit();
  group_.reset();
}

}  // namespace normscope::cli
