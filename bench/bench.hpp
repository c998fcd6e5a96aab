#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// How a benchmark is run here: contenders solve the same problem in turn, their answers are
/// compared before any time is believed, and what is reported is the ratio of a peer's time to
/// ours, the median over paired runs. Machines are noisy; a ratio from one minute is less so.
namespace normscope::bench {

/// One program for the job. `run` does the work once and leaves its answer in `answer`, which a mere limit to
/// compare with (a copy of the bytes) does not have.
struct Contender {
  std::string name;
  std::function<void()> run;
  std::function<std::vector<double>()> answer;
  std::size_t calls = 1;  ///< that a run makes
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
  double ours_ms = 0.0;  ///< median of our times, of one call; for orientation only
  std::optional<bool>
      agrees;        ///< answers within the tolerance, relative to the largest entry; none: no answer
  double low = 0.0;  ///< quartiles of the ratio
  double high = 0.0;
};

/// Runs `ours` and each peer `pairs` times alternately. With several threads every run comes after a rest and
/// a few runs that are not timed: the threads of some peers look out for work for a while and would take ours
/// away.
[[nodiscard]] std::vector<Row> compare(const std::string& task, const Shape& shape, const Contender& ours,
                                       const std::vector<Contender>& peers, int pairs, double tolerance);

/// Median time of `runs` runs of `work`, in seconds.
[[nodiscard]] double median_seconds(int runs, const std::function<void()>& work);

/// The exponent p of time ∝ size^p that fits best, by least squares of the logarithms.
[[nodiscard]] double growth(const std::vector<double>& sizes, const std::vector<double>& times);

/// Takes rows as they come.
using Show = std::function<void(const std::vector<Row>& rows)>;

/// Parses --json and --quick, prints the rows that `rows` shows as a table and writes the JSON.
/// Returns the exit status: 1 when some answers disagree.
int main(int argc, char** argv, const std::function<void(bool quick, const Show& show)>& rows);

}  // namespace normscope::bench
