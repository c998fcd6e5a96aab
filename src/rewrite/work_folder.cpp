#include "output_files.hpp"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/files/checkpoint.hpp>

namespace normscope::rewrite {
namespace {

namespace fs = std::filesystem;

constexpr SnapshotKind kind{"rewrite", 3, "another checkpoint or other options"};

[[noreturn]] void fail(const fs::path& path, const std::string& what) {
  throw Error(ErrorCode::Io, fmt::format("rewrite: {}: {}", path.string(), what));
}

void sync(const fs::path& path) {
  const std::error_code error = sync_to_disk(path);
  // Some file systems cannot sync a folder.
  if (error && !fs::is_directory(path)) fail(path, "cannot be synced: " + error.message());
}

/// Whether the weights in the file would be others than those that are written beside it.
bool may_hold_weights(const fs::path& file) {
  const std::string ending = file.extension().string();
  return files::holds_weights(file) || ending == ".bin" || ending == ".ot";
}

void put_text(Packer& packer, const std::string& text) {
  packer.put(std::vector<char>(text.begin(), text.end()));
}

std::string get_text(Unpacker& unpacker) {
  std::vector<char> text;
  unpacker.get(text);
  return {text.begin(), text.end()};
}

void put_written(Packer& packer, const Written& written) {
  packer.put(written.certificates.size());
  for (const Certificate& certificate : written.certificates) {
    put_text(packer, certificate.tensor);
    packer.put(certificate.change);
    put_text(packer, certificate.norm);
    packer.put(certificate.dtype);
    for (const double number :
         {certificate.rounding, certificate.bound, certificate.relative_bound, certificate.observed_in_double,
          certificate.observed_as_stored, certificate.undo_roundings}) {
      packer.put(number);
    }
  }
  packer.put(written.parts.size());
  for (const UndoPart& part : written.parts) {
    packer.put(part.edit);
    packer.put(part.means);
    packer.put(part.at);
    packer.put(part.values);
    packer.put(part.roundings);
  }
}

Written get_written(Unpacker& unpacker) {
  Written written;
  std::size_t count = 0;
  unpacker.get(count);
  for (std::size_t i = 0; i < count; ++i) {
    Certificate certificate;
    certificate.tensor = get_text(unpacker);
    unpacker.get(certificate.change);
    certificate.norm = get_text(unpacker);
    unpacker.get(certificate.dtype);
    unpacker.get(certificate.rounding);
    unpacker.get(certificate.bound);
    unpacker.get(certificate.relative_bound);
    unpacker.get(certificate.observed_in_double);
    unpacker.get(certificate.observed_as_stored);
    unpacker.get(certificate.undo_roundings);
    written.certificates.push_back(std::move(certificate));
  }
  unpacker.get(count);
  for (std::size_t i = 0; i < count; ++i) {
    UndoPart part;
    unpacker.get(part.edit);
    unpacker.get(part.means);
    unpacker.get(part.at);
    unpacker.get(part.values);
    unpacker.get(part.roundings);
    written.parts.push_back(std::move(part));
  }
  return written;
}

constexpr std::string_view prefix = ".normscope-rewrite-";

/// Removes what killed processes of this user left beside the outputs of `parent` and no later process can
/// resume: a folder without files, or without a record of those that are finished.
void remove_stale_folders(const fs::path& parent) {
  std::error_code ignored;
  for (const fs::path& path : list_folder(parent, ignored)) {
    if (!path.filename().string().starts_with(prefix)) continue;
    if (fs::exists(path / "progress", ignored) && fs::exists(path / "files", ignored)) continue;
    if (!is_own(path)) continue;
    const FolderLock lock(path);
    if (lock.is_held()) remove_folder(path);
  }
}

}  // namespace

WorkFolder::WorkFolder(const fs::path& output, bool is_folder, const Digest& run)
    : output_(spelled_out(output)), is_folder_(is_folder), run_(run) {
  if (output_.filename().empty()) output_ = output_.parent_path();
  require_new_output(output);
  std::error_code error;
  if (!fs::is_directory(output_.parent_path(), error)) fail(output, "its parent is not a folder");
  remove_stale_folders(output_.parent_path());
  work_ = output_.parent_path() / (std::string(prefix) + output_.filename().string());
  // A second time, if another process took the new and empty folder for a stale one.
  for (int attempt = 0; attempt < 2 && !lock_.is_held(); ++attempt) {
    const bool is_new = fs::create_directory(work_, error);
    if (error) fail(work_, "cannot be created: " + error.message());
    lock_ = FolderLock(work_, is_new);
  }
  if (!lock_.is_held()) {
    const std::error_code reason = lock_.without_locks();
    fail(work_, reason ? fmt::format("cannot be locked ({}): if no other process writes it, remove it",
                                     reason.message())
                       : "cannot be locked: another process writes it, or it is not a folder of this user");
  }
  try {
    // The process that held the lock until now may have written it.
    require_new_output(output);
    take_over();
    fs::create_directories(files(), error);
    if (error) fail(files(), "cannot be created: " + error.message());
  } catch (...) {
    if (kept_.empty()) remove_folder(work_);
    throw;
  }
}

WorkFolder::~WorkFolder() { remove_folder(work_); }

void WorkFolder::require_new_output(const fs::path& name) const {
  std::error_code error;
  if (is_folder_ && fs::exists(output_, error) &&
      (!fs::is_directory(output_, error) || !fs::is_empty(output_, error))) {
    throw Error(ErrorCode::Argument,
                fmt::format("rewrite: {}: exists, expected the name of a new folder or an "
                            "empty one",
                            name.string()));
  }
  if (!is_folder_ && fs::is_directory(output_, error)) {
    throw Error(ErrorCode::Argument,
                fmt::format("rewrite: {}: is a folder, expected the name of a file", name.string()));
  }
}

void WorkFolder::take_over() {
  std::error_code ignored;
  try {
    const std::vector<std::byte> payload = load_snapshot(work_ / "progress", kind, run_);
    Unpacker unpacker(payload);
    std::size_t count = 0;
    unpacker.get(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = get_text(unpacker);
      Kept kept;
      unpacker.get(kept.size);
      unpacker.get(kept.fingerprint);
      kept.written = get_written(unpacker);
      kept.written.fingerprints = {kept.fingerprint};
      const fs::path file = files() / name;
      if (fs::file_size(file, ignored) == kept.size && fingerprint_of(file) == kept.fingerprint) {
        kept_[name] = std::move(kept);
      }
    }
  } catch (const Error&) {
    kept_.clear();
  }
  if (kept_.empty()) {
    for (const char* name : {"progress", "files"}) fs::remove_all(work_ / name, ignored);
    return;
  }
  // Whatever else the killed process had begun is written again.
  for (const fs::path& file : list_folder(files(), ignored)) {
    if (!kept_.contains(file.filename().string())) fs::remove_all(file, ignored);
  }
}

const Written* WorkFolder::finished(const std::string& name) const {
  const auto found = kept_.find(name);
  return found == kept_.end() ? nullptr : &found->second.written;
}

void WorkFolder::keep(const std::string& name, std::uint64_t fingerprint, const Written& written) {
  kept_[name] = {fs::file_size(files() / name), fingerprint, written};
  save();
}

void WorkFolder::save() const {
  Packer packer;
  packer.put(kept_.size());
  for (const auto& [name, kept] : kept_) {
    put_text(packer, name);
    packer.put(kept.size);
    packer.put(kept.fingerprint);
    put_written(packer, kept.written);
  }
  save_snapshot(work_ / "progress", kind, run_, packer.bytes());
}

void WorkFolder::commit(const std::string& last) {
  std::error_code error;
  if (is_folder_) {
    sync(files());
    fs::rename(files(), output_, error);  // replaces an empty folder
  } else {
    std::vector<fs::path> written = list_folder(files(), error);
    std::stable_partition(written.begin(), written.end(),
                          [&](const fs::path& path) { return path.filename() != last; });
    for (const fs::path& path : written) {
      if (!error) fs::rename(path, output_.parent_path() / path.filename(), error);
    }
  }
  if (error) fail(output_, "cannot be created: " + error.message());
  sync(output_.parent_path());
}

std::vector<std::string> copy_small_files(const fs::path& from, const fs::path& to,
                                          const std::vector<std::string>& written) {
  std::vector<std::string> left;
  std::error_code error;
  for (const fs::path& entry : list_folder(from, error)) {
    const std::string name = entry.filename().string();
    if (std::find(written.begin(), written.end(), name) != written.end()) continue;
    std::error_code failure;
    if (!fs::is_regular_file(entry, failure) || may_hold_weights(entry)) {
      left.push_back(name);
      continue;
    }
    fs::copy_file(entry, to / name, fs::copy_options::overwrite_existing, failure);
    if (failure) fail(entry, "cannot be copied: " + failure.message());
    sync(to / name);
  }
  if (error) fail(from, "cannot be listed: " + error.message());
  std::sort(left.begin(), left.end());
  return left;
}

}  // namespace normscope::rewrite
