#include "bench.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <normscope/core/file.hpp>

namespace normscope::bench {
namespace {

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

bool agree(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  if (a.size() != b.size()) return false;
  double largest = 0.0;
  for (const double value : a) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= tolerance * largest)) return false;
  }
  return true;
}

nlohmann::ordered_json to_json(const Row& row) {
  return {{"task", row.task},           {"shape", row.shape.text},
          {"dtype", row.shape.dtype},   {"threads", row.shape.threads},
          {"contender", row.contender}, {"ratio", row.ratio},
          {"ours_ms", row.ours_ms},     {"agrees", row.agrees}};
}

}  // namespace

std::vector<Row> compare(const std::string& task, const Shape& shape, const Contender& ours,
                         const std::vector<Contender>& peers, int pairs, double tolerance) {
  ours.run();
  const std::vector<double> expected = ours.answer();
  std::vector<Row> rows;
  for (const Contender& peer : peers) {
    peer.run();
    const bool agrees = agree(expected, peer.answer(), tolerance);
    std::vector<double> ratios;
    std::vector<double> own;
    for (int pair = 0; pair < pairs; ++pair) {
      own.push_back(seconds(ours.run));
      ratios.push_back(seconds(peer.run) / own.back());
    }
    rows.push_back({task, shape, peer.name, median(ratios), 1e3 * median(own), agrees});
  }
  return rows;
}

double median_seconds(int runs, const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) times.push_back(seconds(work));
  return median(times);
}

double growth(const std::vector<double>& sizes, const std::vector<double>& times) {
  const double count = static_cast<double>(sizes.size());
  double mean_size = 0.0;
  double mean_time = 0.0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    mean_size += std::log(sizes[i]) / count;
    mean_time += std::log(times[i]) / count;
  }
  double together = 0.0;
  double spread = 0.0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    together += (std::log(sizes[i]) - mean_size) * (std::log(times[i]) - mean_time);
    spread += (std::log(sizes[i]) - mean_size) * (std::log(sizes[i]) - mean_size);
  }
  return together / spread;
}

int main(int argc, char** argv, const std::function<std::vector<Row>(bool)>& rows) {
  CLI::App app("Benchmark: a peer's time over ours, in the same run");
  std::string json;
  bool quick = false;
  app.add_option("--json", json, "Also write the rows to FILE")->type_name("FILE");
  app.add_flag("--quick", quick, "Small shapes only");
  CLI11_PARSE(app, argc, argv);

  const std::vector<Row> table = rows(quick);
  fmt::print("{:<12} {:>10} {:>8} {:>7} {:<24} {:>10} {:>10}  {}\n", "task", "shape", "dtype", "threads",
             "contender", "ratio", "ours, ms", "agrees");
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  bool all_agree = true;
  for (const Row& row : table) {
    fmt::print("{:<12} {:>10} {:>8} {:>7} {:<24} {:>10.1f} {:>10.3f}  {}\n", row.task, row.shape.text,
               row.shape.dtype, row.shape.threads, row.contender, row.ratio, row.ours_ms,
               row.agrees ? "yes" : "NO");
    list.push_back(to_json(row));
    all_agree = all_agree && row.agrees;
  }
  if (!json.empty()) {
    AtomicFile file(json);
    file.write(list.dump(1) + "\n");
    file.commit();
  }
  return all_agree ? 0 : 1;
}

}  // namespace normscope::bench
