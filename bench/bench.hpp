#pragma once

#include <functional>
#include <string>
#include <vector>

/// How a benchmark is run here: contenders solve the same problem in turn, their answers are
/// compared before any time is believed, and what is reported is the ratio of a peer's time to
/// ours, the median over paired runs. Machines are noisy; a ratio from one minute is less so.
namespace normscope::bench {

/// One program for the job. `run` does the work once and leaves its answer in `answer`.
struct Contender {
  std::string name;
  std::function<void()> run;
  std::function<std::vector<double>()> answer;
};

/// Where and on what.
struct Shape {
  std::string text;  ///< "4096"
  std::string dtype = "float64";
  unsigned threads = 1;
};

/// One line of the table.
struct Row {
  std::string task;
  Shape shape;
  std::string contender;
  double ratio = 0.0;    ///< the contender's time over ours: above 1, ours is faster
  double ours_ms = 0.0;  ///< median of our times, for orientation only
  bool agrees = false;   ///< answers within the tolerance, relative to the largest entry
};

/// Runs `ours` and each peer `pairs` times alternately.
[[nodiscard]] std::vector<Row> compare(const std::string& task, const Shape& shape, const Contender& ours,
                                       const std::vector<Contender>& peers, int pairs, double tolerance);

/// Median time of `runs` runs of `work`, in seconds.
[[nodiscard]] double median_seconds(int runs, const std::function<void()>& work);

/// The exponent p of time ∝ size^p that fits best, by least squares of the logarithms.
[[nodiscard]] double growth(const std::vector<double>& sizes, const std::vector<double>& times);

/// Parses --json and --quick, prints what `rows` returns as a table and writes the JSON.
/// Returns the exit status: 1 when some answers disagree.
int main(int argc, char** argv, const std::function<std::vector<Row>(bool quick)>& rows);

}  // namespace normscope::bench
