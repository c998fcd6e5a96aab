#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/audit/report.hpp>
#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/error.hpp>
#include <normscope/documents/report.hpp>
#include <normscope/documents/text.hpp>
#include <normscope/figures/charts.hpp>

#include "command.hpp"
#include "server.hpp"

namespace normscope::cli {
namespace {

struct ExploreOptions {
  std::string model;
  std::uint16_t port = 0;
};

int run_explore(const Session& session, const ExploreOptions& options) {
  std::vector<explorer::SiteFile> files = explorer::site();
  if (files.empty()) {
    throw Error(ErrorCode::Unsupported,
                "explore: this program was built without the explorer; run scripts/setup explorer and "
                "rebuild with -DNORMSCOPE_BUILD_EXPLORER=ON");
  }
  std::string report;
  std::string charts;
  if (!options.model.empty()) {
    const checkpoint::Checkpoint checkpoint(options.model);
    const audit::Report found = audit::audit(checkpoint, session.threads, session.progress());
    report = json_text(documents::report(found), 1);
    charts = json_text(figures::charts(found));
    files.push_back(explorer::site_file("/served/report.json", "application/json", report));
    files.push_back(explorer::site_file("/served/charts.json", "application/json", charts));
  }
  explorer::Server server(std::move(files), std::string(explorer::policy()), options.port);
  Session silent = session;
  silent.quiet = true;
  const Progress poll = silent.progress();
  // The address is the output of this command, so it is printed with --quiet too.
  silent.quiet = false;
  silent.say(fmt::format("http://127.0.0.1:{}/{}", server.port(),
                         options.model.empty() ? "" : "#/checkpoint?example=served"));
  if (!session.quiet) std::fputs("serving on this machine only; Ctrl-C stops it\n", stderr);
  server.serve([&poll] {
    poll("serving", 0, 1);
    return true;
  });
  return ok;
}

}  // namespace

void add_explore(CLI::App& root, Session& session) {
  const auto options = std::make_shared<ExploreOptions>();
  CLI::App* command = add_command(root, session, "explore", "Serve the explorer to browsers on this machine",
                                  [&session, options] { return run_explore(session, *options); });
  command->remove_option(command->get_option("--json"));
  command->add_option("MODEL", options->model, "Checkpoint to open in the explorer");
  command->add_option("--port", options->port, "Port of 127.0.0.1 to listen on (default: any free port)")
      ->type_name("N")
      ->check(counts(0, 65535));
  add_examples(*command, {"normscope explore models/wordlist_gpt --port 8000"});
}

}  // namespace normscope::cli
