#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <normscope/core/file.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/rewrite/rewrite.hpp>

#include "recipe.hpp"

namespace normscope::rewrite {

/// Results of writing one file of the output, besides its bytes.
struct Written {
  std::vector<Certificate> certificates{};
  std::vector<UndoPart> parts{};
  std::vector<std::uint64_t> fingerprints{};  ///< of each file
};

/// An output that appears under its name complete or not at all: files go to a folder beside it,
/// `.normscope-rewrite-NAME`, and `commit` renames them. Without `commit`, the destructor removes that
/// folder. The finished files of a killed process are reused by the next rewrite to the same name if `run`, a
/// digest of inputs and options, is the same and the files are unchanged; otherwise they are removed. A
/// process holds a lock on its folder, and removes those beside it that are not locked and hold nothing to
/// reuse.
///
/// Errors    Io, also if another process writes there; Argument if the name is that of another kind of file,
///           or of a folder that is not empty
class WorkFolder {
 public:
  WorkFolder(const std::filesystem::path& output, bool is_folder, const Digest& run);
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder();

  /// Where to write the files.
  [[nodiscard]] std::filesystem::path files() const { return work_ / "files"; }
  /// The file of that name that an earlier process finished; null if there is none.
  [[nodiscard]] const Written* finished(const std::string& name) const;
  /// Records a written file and its `Fingerprint`, so that a later process can reuse it.
  void keep(const std::string& name, std::uint64_t fingerprint, const Written& written);
  /// For an output that is a file: `last` is renamed after all others.
  void commit(const std::string& last = {});

 private:
  struct Kept {
    std::uint64_t size = 0;
    std::uint64_t fingerprint = 0;
    Written written{};
  };
  /// `name` is the output in messages.
  void require_new_output(const std::filesystem::path& name) const;
  void take_over();
  void save() const;

  std::filesystem::path output_;
  std::filesystem::path work_;
  bool is_folder_;
  Digest run_;
  std::map<std::string, Kept> kept_{};
  FolderLock lock_{};
};

/// Copies the files of `from` that hold no weights and are not in `written` to `to`; returns the names of the
/// others.
///
/// Errors    Io
std::vector<std::string> copy_small_files(const std::filesystem::path& from, const std::filesystem::path& to,
                                          const std::vector<std::string>& written);

}  // namespace normscope::rewrite
