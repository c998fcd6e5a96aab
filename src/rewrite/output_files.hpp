#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <normscope/core/file.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/safetensors.hpp>
#include <normscope/models/model.hpp>
#include <normscope/rewrite/rewrite.hpp>

#include "matrix.hpp"
#include "recipe.hpp"

/// How the files of a rewrite are written: fingerprints, a thread that writes behind, the folder of the work,
/// tensors.
namespace normscope::rewrite {

/// A hash that detects accidental changes but not forgery: each of eight lanes multiplies the words it takes.
class Fingerprint {
 public:
  void add(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t value() const;
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  static constexpr std::size_t lanes = 8;
  using Words = std::array<std::uint64_t, lanes>;

  std::uint64_t size_ = 0;
  Words mixed_ = {1, 2, 3, 4, 5, 6, 7, 8};
  std::array<std::byte, sizeof(Words)> rest_{};  ///< of `size_` modulo its length
};

/// The fingerprint of a whole file.
///
/// Errors    Io
[[nodiscard]] std::uint64_t fingerprint_of(const std::filesystem::path& path);

/// Passes bytes in their order to `write` in a separate thread, so that the next ones are computed meanwhile.
/// They are written from where they were computed: pieces begin where pages do, in memory and in the file.
///
/// Memory    twice the longest piece and 2 MiB
class WriteBehind {
 public:
  using Write = std::function<void(std::span<const std::byte>)>;
  static constexpr std::size_t page = 4096;

  /// The first byte is that at `begin` of the file.
  explicit WriteBehind(Write write, std::uint64_t begin = 0);
  /// Discards bytes that are not written yet.
  ~WriteBehind();
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  /// Room for the next `size` bytes, to be filled before the next call; waits for earlier pieces.
  ///
  /// Errors    those of `write` for earlier pieces
  [[nodiscard]] std::span<std::byte> room(std::size_t size);
  /// Waits until everything is written. Nothing can be added afterwards.
  ///
  /// Errors    those of `write`
  void finish();

 private:
  /// Begins where pages do, and leaves new bytes as they are.
  struct Pages {
    using value_type = std::byte;
    static constexpr std::align_val_t alignment{page};

    std::byte* allocate(std::size_t size) { return static_cast<std::byte*>(::operator new(size, alignment)); }
    void deallocate(std::byte* bytes, std::size_t /*size*/) { ::operator delete(bytes, alignment); }
    template <typename T>
    void construct(T* /*byte*/) {}
    template <typename T>
    struct rebind {
      using other = Pages;
    };
    bool operator==(const Pages& /*other*/) const { return true; }
  };
  using Buffer = std::vector<std::byte, Pages>;

  void hand_over(std::size_t size);
  void write_writing();
  void serve();

  Write write_;
  std::size_t skipped_;  ///< bytes before the first one, so that its page is that of the file
  Buffer filling_;
  std::mutex mutex_;
  std::condition_variable changed_;
  /// Accessed by the thread alone while `is_waiting_` is true, and by others while it is false.
  Buffer writing_;
  /// These three are accessed under the mutex.
  bool is_waiting_ = false;  ///< whether `writing_` is to be written
  bool ends_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

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

// Common parts of writing a rewrite and undoing one.

/// The files of the input, and the path of the output.
///
/// Errors    Argument if `output` is the input or in it
struct Places {
  Places(const files::Checkpoint& checkpoint, const std::filesystem::path& output);

  bool is_folder;  ///< a folder, an index of shards or a model in the hub's cache was named, not its file
  std::filesystem::path from;   ///< the folder or the file
  std::filesystem::path index;  ///< name of the index of shards in the folder, if there is one
  std::filesystem::path output;

  /// The name that a file of the input has in the output.
  [[nodiscard]] std::filesystem::path name_of(const std::filesystem::path& file) const;
};

/// Identifies a run by the files of the input, their sizes and times, and `options`.
[[nodiscard]] Digest run_of(const files::Checkpoint& checkpoint, const std::string& options);

/// The files of the input, noted so that a change while they are read is an error before the output appears.
[[nodiscard]] UnchangedFiles files_of(const files::Checkpoint& checkpoint);

/// Writes every file that holds tensors and was not finished before.
struct ShardWriter {
  std::function<std::vector<files::TensorHeader>(const std::filesystem::path& file)> headers;
  std::function<void(const files::TensorHeader& tensor, const Sink& sink, Written& written)> write;
  std::map<std::string, std::string, std::less<>> metadata{};
  std::size_t total = 0;  ///< bytes, for `progress`

  /// Returns the result for every file; sets `names` and `taken_over`.
  [[nodiscard]] Written write_all(const files::Checkpoint& checkpoint, const Places& places, WorkFolder& work,
                                  const Progress& progress);
  std::vector<std::filesystem::path> names{};
  std::size_t taken_over = 0;
};

/// Errors    Io
void write_text(const std::filesystem::path& path, const std::string& text);
[[nodiscard]] std::string read_text(const std::filesystem::path& path);

/// Writes elements [first, first + count) of a tensor as they are.
void copy_elements(const files::Tensor& tensor, std::uint64_t first, std::uint64_t count, const Sink& sink);

/// Writes tensors of the output: their bytes in the input with the edits of a plan.
class TensorWriter {
 public:
  TensorWriter(const files::Checkpoint& checkpoint, const models::Model& model, const Plan& plan,
               unsigned threads);

  /// Writes all bytes of `tensor` to `sink`; adds to `written`.
  void write(const files::TensorHeader& tensor, const Sink& sink, Written& written);

 private:
  [[nodiscard]] KeptParts kept_by(std::size_t index, const models::Linear& reader) const;
  /// What the model adds to stored entries of that gain, or bias.
  [[nodiscard]] double offset_of(std::size_t index, const models::Slice& part) const;
  struct Vector {
    std::vector<double> values{};  ///< in float64
    std::vector<double> sizes{};   ///< of the terms that are rounded for each of them
    double in_double = 0.0;        ///< rounding of these, relative to them
  };
  [[nodiscard]] Vector vector_of(const Edit& edit) const;
  [[nodiscard]] const Edit* edit_of(const models::Slice& part) const;
  void write_edit(const files::Tensor& tensor, const Edit& edit, const Sink& sink, Written& written);
  void write_vector(const files::Tensor& tensor, const Edit& edit, const Sink& sink,
                    Certificate& certificate);

  const files::Checkpoint& checkpoint_;
  const models::Model& model_;
  const Plan& plan_;
  unsigned threads_;
  std::map<std::string, std::vector<const Edit*>, std::less<>> edits_;
};

}  // namespace normscope::rewrite
