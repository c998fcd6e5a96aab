#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <normscope/checkpoint/safetensors.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/text.hpp>
#include <normscope/rewrite/rewrite.hpp>

#include "output_folder.hpp"
#include "tensor_writer.hpp"

namespace normscope::rewrite {
namespace {

namespace fs = std::filesystem;
using checkpoint::Checkpoint;
using checkpoint::TensorHeader;

constexpr const char* document_name = "rewrite.json";

bool is_index(const fs::path& path) { return path.filename().string().ends_with(".index.json"); }

fs::path folder_of(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return path;
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// The tensors of one file of the output.
std::vector<TensorHeader> headers_of(const Checkpoint& checkpoint, const Plan& plan, const fs::path& file) {
  std::vector<TensorHeader> headers;
  for (const checkpoint::Tensor& tensor : checkpoint.tensors()) {
    if (checkpoint.file_of(tensor) != file) continue;
    const std::vector<std::uint64_t> shape(tensor.shape.begin(), tensor.shape.end());
    headers.push_back({std::string(tensor.name), tensor.dtype, shape});
    const bool gets_head = plan.untied && plan.untied->bytes > 0 && plan.untied->table == tensor.name;
    if (gets_head) headers.push_back({plan.untied->head, tensor.dtype, shape});
  }
  return headers;
}

class Writing {
 public:
  Writing(const Checkpoint& checkpoint, const model::Model& model, const Plan& plan, unsigned threads,
          const Progress& progress)
      : checkpoint_(checkpoint), plan_(plan), progress_(progress), writer_(checkpoint, model, plan, threads) {
    for (const checkpoint::Tensor& tensor : checkpoint.tensors()) total_ += tensor.bytes.size();
    if (plan.untied) total_ += plan.untied->bytes;
    metadata_ = checkpoint.metadata();
    if (std::string text = marker(plan); !text.empty()) metadata_[marker_key] = std::move(text);
  }

  /// The file of the output for `file` of the input; not yet committed.
  std::unique_ptr<checkpoint::SafetensorsWriter> write(const fs::path& file, const fs::path& to) {
    auto output =
        std::make_unique<checkpoint::SafetensorsWriter>(to, headers_of(checkpoint_, plan_, file), metadata_);
    for (const TensorHeader& tensor : output->order()) {
      writer_.write(
          tensor,
          [&](std::span<const std::byte> bytes) {
            output->write(bytes);
            done_ += bytes.size();
            progress_("bytes written", done_, total_);
          },
          result_.certificates);
    }
    return output;
  }

  Result& result() { return result_; }

 private:
  const Checkpoint& checkpoint_;
  const Plan& plan_;
  const Progress& progress_;
  TensorWriter writer_;
  std::map<std::string, std::string, std::less<>> metadata_;
  std::size_t done_ = 0;
  std::size_t total_ = 0;
  Result result_;
};

void write_text(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

std::string read_text(const fs::path& path) {
  const MappedFile file(path);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

/// config.json and the index of shards, where a head of its own changes them.
void write_untied(const Checkpoint& checkpoint, const Plan& plan, const fs::path& from, const fs::path& to,
                  Result& result) {
  if (checkpoint.config_text()) {
    auto config = nlohmann::ordered_json::parse(*checkpoint.config_text());
    config["tie_word_embeddings"] = false;
    write_text(to / "config.json", config.dump(2) + "\n");
    result.files.emplace_back("config.json");
    result.configuration.emplace_back("\"tie_word_embeddings\" is false");
  }
  const fs::path index_name = "model.safetensors.index.json";
  if (plan.untied->bytes == 0 || !fs::exists(from / index_name)) return;
  auto index = nlohmann::ordered_json::parse(read_text(from / index_name));
  index["weight_map"][plan.untied->head] = index["weight_map"][plan.untied->table];
  if (index.contains("metadata") && index["metadata"].contains("total_size") &&
      index["metadata"]["total_size"].is_number_unsigned()) {
    index["metadata"]["total_size"] =
        index["metadata"]["total_size"].get<std::uint64_t>() + plan.untied->bytes;
  }
  write_text(to / index_name, index.dump(2) + "\n");
  result.files.emplace_back(index_name);
}

Result write_folder(const Checkpoint& checkpoint, const Plan& plan, const fs::path& output, Writing& writing,
                    const Describe& describe) {
  const fs::path from = folder_of(checkpoint.path());
  OutputFolder folder(output);
  for (const fs::path& file : checkpoint.files()) {
    const fs::path name = file.lexically_relative(from);
    std::error_code error;
    fs::create_directories((folder.temporary() / name).parent_path(), error);
    writing.write(file, folder.temporary() / name)->commit();
    writing.result().files.push_back(name);
  }
  Result& result = writing.result();
  if (plan.untied) write_untied(checkpoint, plan, from, folder.temporary(), result);
  if (describe) result.files.emplace_back(document_name);
  std::vector<std::string> written;
  for (const fs::path& file : result.files) written.push_back(file.string());
  result.not_copied = copy_small_files(from, folder.temporary(), written);
  if (describe) write_text(folder.temporary() / document_name, describe(result));
  folder.commit();
  return std::move(result);
}

Result write_file(const Checkpoint& checkpoint, const Plan& plan, const fs::path& output, Writing& writing,
                  const Describe& describe) {
  const std::unique_ptr<checkpoint::SafetensorsWriter> weights =
      writing.write(checkpoint.files().front(), output);
  Result& result = writing.result();
  result.files.push_back(output.filename());
  if (plan.untied && checkpoint.config_text()) {
    result.configuration.emplace_back(
        "config.json, which is not copied for a single file, must set "
        "\"tie_word_embeddings\" to false");
  }
  if (describe) {
    const fs::path document = output.string() + ".rewrite.json";
    result.files.push_back(document.filename());
    write_text(document, describe(result));
  }
  weights->commit();
  return std::move(result);
}

}  // namespace

Result write(const Checkpoint& checkpoint, const model::Model& model, const Plan& plan,
             const fs::path& output, unsigned threads, const Progress& progress, const Describe& describe) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(checkpoint.path(), ignored) || is_index(checkpoint.path());
  const fs::path input = is_folder ? folder_of(checkpoint.path()) : checkpoint.path();
  if (fs::equivalent(input, output, ignored) ||
      fs::absolute(input).lexically_normal() == fs::absolute(output).lexically_normal()) {
    throw Error(ErrorCode::Argument,
                fmt::format("rewrite: {}: is the input, expected another name", output.string()));
  }
  const fs::path inside = fs::weakly_canonical(output).lexically_relative(fs::weakly_canonical(input));
  if (is_folder && !inside.empty() && *inside.begin() != "..") {
    throw Error(ErrorCode::Argument,
                fmt::format("rewrite: {}: is in the input, expected a name outside of it", output.string()));
  }
  Writing writing(checkpoint, model, plan, threads, progress);
  return is_folder ? write_folder(checkpoint, plan, output, writing, describe)
                   : write_file(checkpoint, plan, output, writing, describe);
}

}  // namespace normscope::rewrite
