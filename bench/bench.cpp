#include "bench.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <thread>

#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <normscope/core/file.hpp>

namespace normscope::bench {
namespace {

double now(Clock clock) {
  timespec time{};
  clock_gettime(clock == Clock::thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds(const std::function<void()>& work, Clock clock) {
  const double start = now(clock);
  work();
  return now(clock) - start;
}

/// The quantile of the values below which the fraction `part` of them lies.
double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size()))];
}

double median(const std::vector<double>& values) { return quantile(values, 0.5); }

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
  return {{"task", row.task},
          {"shape", row.shape.text},
          {"dtype", row.shape.dtype},
          {"threads", row.shape.threads},
          {"contender", row.contender},
          {"ratio", row.ratio},
          {"ours_ms", row.ours_ms},
          {"agrees", row.agrees ? nlohmann::ordered_json(*row.agrees) : nullptr},
          {"low", row.low},
          {"high", row.high}};
}

/// A time in the unit that leaves at least one digit before the point.
std::string duration(double ms) {
  if (ms < 1e-3) return fmt::format("{:.0f} ns", 1e6 * ms);
  if (ms < 1.0) return fmt::format("{:.2f} µs", 1e3 * ms);
  return fmt::format("{:.2f} ms", ms);
}

void print(const Row& row) {
  const char* const agrees = !row.agrees ? "-" : *row.agrees ? "yes" : "NO";
  fmt::print("{:<12} {:>10} {:>8} {:>7} {:<24} {:>10.2f} {:>15} {:>10}  {}\n", row.task, row.shape.text,
             row.shape.dtype, row.shape.threads, row.contender, row.ratio,
             fmt::format("{:.2f} – {:.2f}", row.low, row.high), duration(row.ours_ms), agrees);
  std::fflush(stdout);
}

}  // namespace

std::vector<Row> compare(const std::string& task, const Shape& shape, const Contender& ours,
                         const std::vector<Contender>& peers, int pairs, double tolerance) {
  const auto timed = [&](const Contender& contender) {
    if (shape.threads > 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      for (int settle = 0; settle < 5; ++settle) contender.run();
    }
    return seconds(contender.run, shape.clock);
  };
  ours.run();
  const std::vector<double> expected = ours.answer();
  std::vector<Row> rows;
  for (const Contender& peer : peers) {
    peer.run();
    std::optional<bool> agrees;
    if (peer.answer) agrees = agree(expected, peer.answer(), tolerance);
    std::vector<double> ratios;
    std::vector<double> own;
    for (int pair = 0; pair < pairs; ++pair) {
      own.push_back(timed(ours));
      ratios.push_back(timed(peer) / own.back());
    }
    const double ours_ms = 1e3 * median(own) / static_cast<double>(ours.calls);
    rows.push_back({task, shape, peer.name, median(ratios), ours_ms, agrees, quantile(ratios, 0.25),
                    quantile(ratios, 0.75)});
  }
  return rows;
}

double median_seconds(int runs, const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) times.push_back(seconds(work, Clock::wall));
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

int main(int argc, char** argv, const std::function<void(bool, const Show&)>& rows) {
  CLI::App app("Benchmark: a peer's time over ours, in the same run");
  std::string json;
  bool quick = false;
  app.add_option("--json", json, "Also write the rows to FILE")->type_name("FILE");
  app.add_flag("--quick", quick, "Small shapes only");
  CLI11_PARSE(app, argc, argv);

  fmt::print("{:<12} {:>10} {:>8} {:>7} {:<24} {:>10} {:>15} {:>10}  agrees\n", "task", "shape", "dtype",
             "threads", "contender", "ratio", "quartiles", "ours");
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  bool all_agree = true;
  rows(quick, [&](const std::vector<Row>& some) {
    for (const Row& row : some) {
      print(row);
      list.push_back(to_json(row));
      all_agree = all_agree && row.agrees.value_or(true);
    }
  });
  if (!json.empty()) {
    AtomicFile file(json);
    file.write(list.dump(1) + "\n");
    file.commit();
  }
  return all_agree ? 0 : 1;
}

}  // namespace normscope::bench
