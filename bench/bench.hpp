#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// Benchmarks: contenders solve the same problem in turn, and their answers are compared. The result is the
/// ratio of a peer's time to ours, the median over paired runs, which depends less on other load of the
/// machine than the times do.
namespace normscope::bench {

/// A program that solves the problem. `run` does the work once; `answer` returns its result, and is empty for
/// lower limits of the time, such as a copy of the bytes.
struct Contender {
  std::string name;
  std::function<void()> run;
  std::function<std::vector<double>()> answer;
  std::size_t calls = 1;  ///< that a run makes
};

/// Processor time of the calling thread, which other load of the machine hardly lengthens, is for contenders
/// that all run in that thread.
enum class Clock { wall, thread };

/// Size, element type and number of threads of a problem, and what is measured.
struct Shape {
  std::string text;  ///< "4096"
  std::string dtype = "float64";
  unsigned threads = 1;
  Clock clock = Clock::wall;
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
/// a few runs that are not timed, because the threads of some peers spin for a while after a run and would
/// occupy our CPUs.
[[nodiscard]] std::vector<Row> compare(const std::string& task, const Shape& shape, const Contender& ours,
                                       const std::vector<Contender>& peers, int pairs, double tolerance);

/// Median time of `runs` runs of `work`, in seconds.
[[nodiscard]] double median_seconds(int runs, const std::function<void()>& work);

/// The exponent p of time ∝ size^p that fits best, by least squares of the logarithms.
[[nodiscard]] double growth(const std::vector<double>& sizes, const std::vector<double>& times);

/// Called with each row as soon as it is measured.
using Show = std::function<void(const std::vector<Row>& rows)>;

/// Parses --json and --quick, prints the rows that `rows` shows as a table and writes the JSON.
/// Returns the exit status: 1 when some answers disagree.
int main(int argc, char** argv, const std::function<void(bool quick, const Show& show)>& rows);

}  // namespace normscope::bench
