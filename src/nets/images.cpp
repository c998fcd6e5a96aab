#include <normscope/nets/tasks.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <Eigen/Core>
#include <Eigen/Eigenvalues>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/random.hpp>
#include <normscope/files/array.hpp>

namespace normscope::nets {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t image_classes = 10;
constexpr int cifar_batches = 5;
/// Number of images with random labels: more than a linear map can learn, few enough for minutes of training.
constexpr std::size_t random_rows = 5000;
/// For the 60,000 images of MNIST; ten epochs suffice for this net.
constexpr std::size_t image_steps = 6000;
constexpr std::size_t image_batch = 100;

/// `folder`/`name`, or the same with .gz; empty if neither exists.
fs::path find_file(const fs::path& folder, const std::string& name) {
  for (const char* ending : {"", ".gz"}) {
    fs::path path = folder / (name + ending);
    if (fs::is_regular_file(path)) return path;
  }
  return {};
}

fs::path need_file(const fs::path& folder, const std::string& name) {
  fs::path path = find_file(folder, name);
  if (path.empty()) {
    throw Error(ErrorCode::Io, fmt::format("{}: has no {} and no {}.gz", folder.string(), name, name));
  }
  return path;
}

/// The first rows of images and labels, with pixels scaled.
Dataset take_rows(const std::string& where, files::Array images, const files::Array& labels, std::size_t rows,
                  Scaling scaling) {
  const std::size_t there = images.shape.empty() ? 0 : images.shape[0];
  if (there == 0 || images.values.empty() || labels.values.size() != there) {
    throw Error(ErrorCode::Shape, fmt::format("{}: has {} images and {} labels, expected equal numbers",
                                              where, there, labels.values.size()));
  }
  if (rows > there) {
    throw Error(ErrorCode::Argument,
                fmt::format("{}: has {} images, but {} were requested", where, there, rows));
  }
  const std::size_t width = images.values.size() / there;
  const std::size_t taken = rows == 0 ? there : rows;
  images.values.resize(taken * width);
  for (double& value : images.values) value = (value - scaling.mean) / scaling.deviation;
  Dataset data{.width = width, .classes = image_classes, .x = std::move(images.values)};
  for (std::size_t row = 0; row < taken; ++row) {
    if (!(labels.values[row] >= 0.0 && labels.values[row] < static_cast<double>(image_classes))) {
      throw Error(ErrorCode::Argument, fmt::format("{}: the label of image {} is {}, expected 0 to 9", where,
                                                   row, labels.values[row]));
    }
    data.labels.push_back(static_cast<std::uint32_t>(labels.values[row]));
  }
  return data;
}

void draw_labels(Dataset& data, std::uint64_t seed) {
  Random random(seed);
  for (std::uint32_t& label : data.labels) label = static_cast<std::uint32_t>(random.below(data.classes));
}

/// Image sets by the prefix of a task's name.
struct Source {
  std::string_view prefix;
  Dataset (*read)(const fs::path& folder, Part part, std::size_t rows);
  Scaling scaling;
};

}  // namespace

Dataset mnist(const fs::path& folder, Part part, std::size_t rows) {
  const std::string begin = part == Part::train ? "train" : "t10k";
  const fs::path images = need_file(folder, begin + "-images-idx3-ubyte");
  const fs::path labels = need_file(folder, begin + "-labels-idx1-ubyte");
  return take_rows(images.string(), files::read_array(images.string()), files::read_array(labels.string()),
                   rows, mnist_scaling);
}

Dataset cifar10(const fs::path& folder, Part part, std::size_t rows) {
  std::vector<fs::path> files;
  if (part == Part::test) {
    files.push_back(need_file(folder, "test_batch.bin"));
  } else {
    files.push_back(need_file(folder, "data_batch_1.bin"));
    for (int batch = 2; batch <= cifar_batches; ++batch) {
      const fs::path more = find_file(folder, fmt::format("data_batch_{}.bin", batch));
      if (!more.empty()) files.push_back(more);
    }
  }
  files::Array images;
  files::Array labels;
  for (const fs::path& file : files) {
    const MappedFile mapped(file);
    files::LabelledImages batch = files::read_cifar10(mapped.bytes(), file.string());
    images.values.insert(images.values.end(), batch.images.values.begin(), batch.images.values.end());
    labels.values.insert(labels.values.end(), batch.labels.values.begin(), batch.labels.values.end());
    if (rows != 0 && labels.values.size() >= rows) break;
  }
  images.shape = {labels.values.size()};
  return take_rows(folder.string(), std::move(images), labels, rows, cifar10_scaling);
}

std::optional<Task> image_task(std::string_view name) {
  constexpr std::string_view random_prefix = "random-labels:";
  const bool random = name.substr(0, random_prefix.size()) == random_prefix;
  const std::string_view set = random ? name.substr(random_prefix.size()) : name;
  for (const Source& source :
       {Source{"mnist:", mnist, mnist_scaling}, Source{"cifar10:", cifar10, cifar10_scaling}}) {
    if (set.substr(0, source.prefix.size()) != source.prefix) continue;
    const fs::path folder(std::string(set.substr(source.prefix.size())));
    Task task{.name = std::string(name),
              .claim = "A net of linear layers and normalization learns to read digits.",
              .spec = {.width = 128,
                       .norm = NormKind::layer,
                       // One block of 128 is so nearly linear that it reaches only 93 %:
                       // docs/papers/winsor.md.
                       .groups = 16,
                       .rate = 2e-3,
                       .schedule = Schedule::cosine,
                       .steps = image_steps,
                       .batch = image_batch,
                       .precision = Dtype::F32},
              .shift = source.scaling.mean,
              .scale = 1.0 / source.scaling.deviation};
    const auto read = source.read;
    if (random) {
      task.claim = find_task("random-labels")->claim;
      task.rows = random_rows;
      task.spec.width = 64;
      task.spec.depth = 1;
      task.spec.groups = 1;
      task.make = [read, folder](std::size_t rows, std::uint64_t seed) {
        Dataset data = read(folder, Part::train, rows);
        draw_labels(data, seed);
        return data;
      };
    } else {
      if (source.prefix != "mnist:") task.claim = "";
      task.make = [read, folder](std::size_t rows, std::uint64_t) { return read(folder, Part::train, rows); };
      task.test = [read, folder](std::uint64_t) { return read(folder, Part::test, 0); };
    }
    return task;
  }
  return std::nullopt;
}

namespace {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Index index_of(std::size_t value) { return static_cast<Eigen::Index>(value); }

Eigen::Map<const RowMatrix> samples_of(const Dataset& data) {
  return {data.x.data(), index_of(data.rows()), index_of(data.width)};
}

}  // namespace

std::vector<double> principal_components(const Dataset& data, std::size_t count) {
  NORMSCOPE_ASSERT(count <= data.width && data.rows() > 0);
  const Eigen::Map<const RowMatrix> samples = samples_of(data);
  const Eigen::RowVectorXd mean = samples.colwise().mean();
  const RowMatrix centred = samples.rowwise() - mean;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solved(centred.transpose() * centred /
                                                              static_cast<double>(data.rows()));
  const double deviation = std::sqrt(solved.eigenvalues().tail(1)[0]);
  const RowMatrix map = solved.eigenvectors().rightCols(index_of(count)).rowwise().reverse() /
                        (deviation > 0.0 ? deviation : 1.0);
  return {map.data(), map.data() + map.size()};
}

Dataset mapped(const Dataset& data, std::span<const double> map) {
  const std::size_t columns = map.size() / data.width;
  Dataset result{.width = columns, .classes = data.classes, .x = {}, .labels = data.labels};
  result.x.resize(data.rows() * columns);
  Eigen::Map<RowMatrix>(result.x.data(), index_of(data.rows()), index_of(columns)) =
      samples_of(data) * Eigen::Map<const RowMatrix>(map.data(), index_of(data.width), index_of(columns));
  return result;
}

}  // namespace normscope::nets
