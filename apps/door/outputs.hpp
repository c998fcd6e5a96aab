#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/file.hpp>

#include "session.hpp"

namespace normscope::cli {

/// The outputs of one command: a transaction. They are named before the work, so that a name that cannot be
/// written, or that would replace an input, a file of a model or another output, is refused before the work.
/// What is written afterwards appears together, with the JSON of --json last, or not at all.
class Outputs {
 public:
  /// The output of --json, if there is one.
  explicit Outputs(const Session& session);

  /// Names a file; "" stands for an option that is not given. `expect_writable` has to follow.
  void add_file(const std::string& name);
  /// Names a file or folder that other code creates and checks.
  void add_own(const std::string& name);
  /// Names a folder, and those of its files whose names are known before the work.
  void add_folder(const std::string& name, const std::vector<std::string>& files = {});
  /// Throws if two outputs are one file, or if one cannot be written. Devices and pipes are not opened,
  /// because the reader of a pipe would take that for its end.
  ///
  /// Errors    Argument; Io
  void expect_writable() const;

  /// Throws if an output would replace that input. `replaced_by` is the name of one that may.
  ///
  /// Errors    Argument
  void protect(const std::filesystem::path& input, const std::string& replaced_by = "");
  /// Throws if an output would replace a file in the folder of a model, such as its tokenizer or its code.
  /// What this program writes there may be replaced: pages, arrays, and files that name it in their first
  /// bytes.
  ///
  /// Errors    Argument
  void protect_folder(const std::filesystem::path& model);

  /// Calls `write` with the name, unless it is empty. A file that is committed within `write` appears at
  /// `commit`.
  void write(const std::string& name, const std::function<void(const std::string&)>& write);
  void write_text(const std::string& name, const std::function<std::string()>& text);
  /// Likewise for a file in a folder, which is created.
  ///
  /// Errors    Argument if it would replace an input; Io
  void write_into(const std::string& folder, const std::string& file,
                  const std::function<void(const std::string&)>& write);
  void write_text_into(const std::string& folder, const std::string& file,
                       const std::function<std::string()>& text);
  /// Writes the JSON, if --json asks for it, and names all files.
  ///
  /// Errors    Io
  void commit(const std::function<std::string()>& json);

 private:
  void begin();

  const Session& session_;
  std::vector<std::string> names_{};   ///< of all files
  std::vector<std::string> probed_{};  ///< those that have to be writable
  std::vector<std::string> folders_{};
  std::vector<std::filesystem::path> inputs_{};
  std::optional<AtomicGroup> group_{};
};

}  // namespace normscope::cli
