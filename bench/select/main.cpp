// Which keys are selectable: all of them at once, against one linear program per key by CLP, warm-started.

#include <memory>

#include <normscope/core/parallel.hpp>
#include <normscope/core/random.hpp>
#include <normscope/selectability/select.hpp>

#include "bench.hpp"
#include "clp.hpp"

namespace {

using namespace normscope;

/// Number of programs that are timed; the time of all is extrapolated.
constexpr std::size_t sampled = 12;

struct Cloud {
  std::vector<double> values;
  std::size_t width = 0;
  std::vector<std::size_t> sample{};

  [[nodiscard]] MatrixView<const double> view() const {
    return {values.data(), values.size() / width, width};
  }
};

std::shared_ptr<const Cloud> cloud(std::size_t count, std::size_t width) {
  Cloud result{.values = std::vector<double>(count * width), .width = width};
  Random random(width);
  for (double& value : result.values) value = random.normal();
  for (std::size_t i = 0; i < sampled; ++i) result.sample.push_back(random.below(count));
  return std::make_shared<const Cloud>(std::move(result));
}

bench::Contender ours(const std::shared_ptr<const Cloud>& keys, unsigned threads) {
  const auto selection = std::make_shared<selectability::Selection>();
  const auto run = [keys, threads, selection] {
    *selection = selectability::select_keys(keys->view(), {.threads = threads});
  };
  const auto answer = [keys, selection] {
    // Both sides must decide all keys.
    std::vector<double> result{
        static_cast<double>(selection->count(selectability::Selectability::undecided))};
    for (const std::size_t key : keys->sample) {
      result.push_back(selection->keys[key].answer == selectability::Selectability::unselectable ? 1.0 : 0.0);
    }
    return result;
  };
  return {"normscope", run, answer};
}

bench::Contender programs(const std::shared_ptr<const Cloud>& keys) {
  const auto inside = std::make_shared<std::vector<double>>();
  const auto run = [keys, inside] { *inside = bench::inside_by_programs(keys->view(), keys->sample); };
  const auto answer = [inside] {
    std::vector<double> result{0.0};
    result.insert(result.end(), inside->begin(), inside->end());
    return result;
  };
  return {"CLP, a program a key", run, answer};
}

void rows(bool quick, const bench::Show& show) {
  struct Shape {
    std::size_t count;
    std::size_t width;
  };
  std::vector<Shape> shapes{{1000, 8}, {1000, 64}};
  if (!quick) shapes.insert(shapes.end(), {{10000, 8}, {10000, 16}, {10000, 64}});
  for (const Shape& shape : shapes) {
    const std::shared_ptr<const Cloud> keys = cloud(shape.count, shape.width);
    for (const unsigned threads : {1U, thread_count(0)}) {
      const bench::Shape where{.text = std::to_string(shape.count) + "x" + std::to_string(shape.width),
                               .threads = threads};
      std::vector<bench::Row> table =
          bench::compare("select", where, ours(keys, threads), {programs(keys)}, 3, 0.0);
      for (bench::Row& row : table) {
        for (double* const ratio : {&row.ratio, &row.low, &row.high}) {
          *ratio *= static_cast<double>(shape.count) / static_cast<double>(sampled);
        }
      }
      show(table);
      if (thread_count(0) == 1) break;
    }
  }
}

}  // namespace

int main(int argc, char** argv) { return bench::main(argc, argv, rows); }
