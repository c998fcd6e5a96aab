#include "hdf5.hpp"

#include <set>
#include <utility>

#include <fmt/core.h>

#include <normscope/bytes/quote.hpp>

#include "hdf5_dataset.hpp"
#include "hdf5_file.hpp"

namespace normscope::checkpoint {
namespace {

constexpr int deepest_group = 64;
/// Memory of an entry of the set of objects.
constexpr std::size_t object_entry_bytes = 64;

class Hdf5Walk {
 public:
  Hdf5Walk(std::span<const std::byte> bytes, const std::string& where)
      : parsed_{Arena(bytes.size(), where)}, file_(bytes, parsed_.arena, where), datasets_(file_, parsed_) {}

  ParsedFile read() {
    visit(read_hdf5_superblock(file_), 0);
    datasets_.finish();
    sort_tensors(parsed_.tensors, file_.where() + ":");
    return std::move(parsed_);
  }

 private:
  /// Visits the object at `path_`.
  void visit(std::uint64_t address, int depth) {
    file_.arena().charge(1, object_entry_bytes);
    if (!objects_.insert(address).second) {
      file_.fail(ErrorCode::Unsupported,
                 fmt::format("{} is a second name of an object, expected one name", bytes::quote(path_)));
    }
    const std::vector<Hdf5Message> messages = read_hdf5_object(file_, address);
    if (find_hdf5_message(messages, Hdf5Kind::layout) != nullptr &&
        find_hdf5_message(messages, Hdf5Kind::datatype) != nullptr) {
      return datasets_.add(path_, messages);
    }
    if (find_hdf5_message(messages, Hdf5Kind::datatype) != nullptr) {
      file_.fail(ErrorCode::Unsupported,
                 fmt::format("{} is a committed type, expected a group or a dataset", bytes::quote(path_)));
    }
    if (depth > deepest_group) {
      file_.fail(ErrorCode::Unsupported, fmt::format("has groups nested deeper than {}", deepest_group));
    }
    keep_attributes(messages);
    const std::size_t length = path_.size();
    for (const Hdf5Link& link : read_hdf5_links(file_, messages)) {
      if (length != 0) path_ += '/';
      path_ += link.name;
      visit(link.object, depth + 1);
      path_.resize(length);
    }
  }

  void keep_attributes(std::span<const Hdf5Message> messages) {
    if (path_.empty() || path_ == "model_weights") {
      for (const char* name : {"model_config", "keras_version", "backend"}) {
        keep(name, hdf5_text_attribute(file_, messages, name));
      }
    } else if (path_ == "vars" || std::string_view(path_).ends_with("/vars")) {
      keep(path_ + "@name", hdf5_text_attribute(file_, messages, "name"));
    }
  }

  void keep(const std::string& key, std::string_view value) {
    if (value.empty()) return;
    parsed_.arena.charge(1, metadata_entry_bytes + key.size() + value.size());
    parsed_.metadata.try_emplace(key, value);
  }

  ParsedFile parsed_;
  Hdf5File file_;
  Hdf5Datasets datasets_;
  std::set<std::uint64_t> objects_;
  std::string path_;
};

}  // namespace

ParsedFile parse_hdf5(std::span<const std::byte> bytes, const std::string& where) {
  return Hdf5Walk(bytes, where).read();
}

}  // namespace normscope::checkpoint
