#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/analysis/report.hpp>
#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>

#include "command.hpp"
#include "server.hpp"

namespace normscope::cli {
namespace {

struct ExploreOptions {
  std::string model;
  std::uint16_t port = 0;
};

/// A name that other users of this machine cannot guess, though they can reach the port.
std::string random_name() {
  std::array<std::uint64_t, 2> bits{};
  if (::getentropy(bits.data(), sizeof bits) != 0) {
    throw Error(ErrorCode::Io,
                fmt::format("explore: no random number for the link: {}", std::strerror(errno)));
  }
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

int run_explore(const Session& session, Inputs& /*inputs*/, Outputs& /*outputs*/,
                const ExploreOptions& options) {
  std::vector<explorer::SiteFile> files = explorer::site();
  if (files.empty()) {
    throw Error(ErrorCode::Unsupported,
                "explore: this program was built without the explorer; run scripts/explore where it was "
                "built, or rebuild with -DNORMSCOPE_BUILD_EXPLORER=ON");
  }
  // A service worker would stay in the browser, for a port that is another program's next time. The policy
  // that the server states lets no page read from other sites.
  std::erase_if(files, [](const explorer::SiteFile& file) {
    return file.path == "/offline.js" || file.path == "/remote.html";
  });
  std::string report;
  std::string charts;
  std::string folder;
  if (!options.model.empty()) {
    const files::Checkpoint checkpoint(options.model);
    const analysis::Report found = analysis::audit(checkpoint, session.threads, session.progress());
    report = json_text(results::report(found), 1);
    charts = json_text(figures::charts(found));
    folder = "served/" + random_name();
    for (const auto& [name, text] : {std::pair("report", &report), std::pair("charts", &charts)}) {
      files.push_back(
          explorer::site_file(fmt::format("/{}/{}.json", folder, name), "application/json", *text));
      files.back().is_private = true;
    }
  }
  explorer::Server server(std::move(files), std::string(explorer::policy()), options.port);
  Session silent = session;
  silent.quiet = true;
  const Progress poll = silent.progress();
  // The address is the output of this command, so it is printed with --quiet too.
  silent.quiet = false;
  silent.say(fmt::format("http://127.0.0.1:{}/{}", server.port(),
                         folder.empty() ? "" : "#/checkpoint?example=" + folder));
  if (!session.quiet) std::fputs("serving on this machine only; Ctrl-C stops it\n", stderr);
  server.serve([&poll] {
    poll("serving", 0, 1);
    return true;
  });
  return ok;
}

}  // namespace

Command explore_command() {
  const auto options = std::make_shared<ExploreOptions>();
  return {.name = "explore",
          .text = "Serve the explorer to browsers on this machine",
          .inputs = {input("MODEL", options->model, "Checkpoint to open in the explorer")},
          .options = {option("--port", options->port)},
          .without = {"--json"},
          .examples = {"normscope explore models/kjv_gpt --port 8000"},
          .run = with(run_explore, options)};
}

}  // namespace normscope::cli
