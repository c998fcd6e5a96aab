#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiment.hpp"
#include "plan.hpp"
#include "store/store.hpp"

/// What an experiment came to, in the forms it is looked at.
namespace normscope::lab {

struct Judged {
  const Claim* claim = nullptr;
  Finding finding{};
};

/// An experiment at one size, as far as the store has it.
struct Account {
  const Experiment* experiment = nullptr;
  Size size = Size::full;
  std::size_t done = 0;     ///< runs of the plan
  std::size_t planned = 0;  ///< more seeds may be done than planned
  std::vector<Judged> claims{};
  std::vector<Figure> figures{};

  /// Whether every claim holds; none where one is open and none fails.
  [[nodiscard]] std::optional<bool> holds() const;
};

/// Claims are open and figures missing where no run is done.
[[nodiscard]] Account account(const Store& store, const Experiment& experiment, Size size);

/// As the command prints it, as an entry of the machine form, as a page for people.
[[nodiscard]] std::string to_text(const Account& account);
[[nodiscard]] Json to_json(const Account& account);
[[nodiscard]] std::string to_markdown(const Account& account, const std::string& image_folder);
/// What an experiment is, without results.
[[nodiscard]] Json about(const Experiment& experiment);

/// The command that makes the runs, and the one that makes the figures of them.
[[nodiscard]] std::string run_command(const Account& account);
[[nodiscard]] std::string show_command(const Account& account);

/// The figures as files NAME.vl.json; each says in its subtitle which command makes it.
/// Errors    Io
void write_figures(const Account& account, const std::filesystem::path& folder);

/// Every number of every run of the experiment, at both sizes and of sweeps, a row each.
enum class TableFormat { csv, json_lines };
[[nodiscard]] std::string exported(const Store& store, const Experiment& experiment, TableFormat format);

}  // namespace normscope::lab
