#include <fmt/format.h>

#include <normscope/core/version.hpp>

#include "command.hpp"
#include "ranks.hpp"

namespace {

using namespace normscope;

int run(int argc, char** argv, const Ranks& ranks) {
  cli::Session session;
  session.team = &ranks;
  CLI::App root(
      "Run a subcommand of normscope on the processes of mpirun, which share its work.\n\n  mpirun -n 4 "
      "normscope-mpi signature extract LOGITS.npy -o ELLIPSE.safetensors\n  mpirun -n 4 normscope-mpi reach "
      "MODEL\n",
      "normscope-mpi");
  root.set_version_flag("--version", version);
  root.require_subcommand(1);
  cli::add(root, session,
           {.name = "signature",
            .text = "Find the ellipse that a model's outputs lie on",
            .commands = {cli::signature_extract_command()}});
  cli::add(root, session, cli::reach_command());
  root.footer(
      "Every process reads the inputs; the first one writes the outputs, which have the same bits as "
      "normscope's, "
      "whatever the number of processes. mpirun gives each process one core, unless --bind-to says "
      "otherwise. "
      "If a process is lost, all end; start again with --resume, on any number of processes.");
  return cli::parse_and_run(root, session, argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  const Ranks ranks;
  const std::string name =
      fmt::format("normscope-mpi{}", ranks.is_first() ? "" : fmt::format(" (rank {})", ranks.rank()));
  const int status = cli::guarded(name.c_str(), [&] { return run(argc, argv, ranks); });
  // Other processes that wait for this one would otherwise wait for ever.
  if (status != cli::ok && status != cli::negative) ranks.end_all(status);
  return status;
}
